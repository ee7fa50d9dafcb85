"""The machine that packet paths run on: primitives with a closure and a piece of machine code each,
and the weaving of an architecture's path, which is P4 text, around a program."""
