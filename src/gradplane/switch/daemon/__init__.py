"""The live switch: a program on network interfaces, under P4Runtime."""
