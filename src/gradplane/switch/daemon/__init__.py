"""The live switch: a program on network interfaces, controlled over P4Runtime."""
