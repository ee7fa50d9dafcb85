"""SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), the generator of all counter-based random values.

It is computed in Python, NumPy, Numba and LLVM; its constants are defined here only. Every room may
import this module; it imports none.
"""

GOLDEN = 0x9E3779B97F4A7C15  # the difference of two successive words' arguments
STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # z = (z ^ z >> shift) * factor
LAST_SHIFT = 31  # the word is z ^ z >> 31
MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """Return the word after `value`: 0 to 2^64 - 1, scattered."""
    value = (value + GOLDEN) & MASK
    for shift, factor in STEPS:
        value = ((value ^ (value >> shift)) * factor) & MASK
    return value ^ (value >> LAST_SHIFT)
