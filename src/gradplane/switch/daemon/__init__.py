"""The live switch: a program on network interfaces, controlled over P4Runtime.

What `gradplane switch` runs. May import every stage of the switch.
"""
