"""SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), the generator of all counter-based random values.

Its users compute it in Python, NumPy, Numba and LLVM; the constants are here once. Every room may
import this module; it imports none.
"""

GOLDEN = 0x9E3779B97F4A7C15  # from one word's argument to the next one's
STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # z = (z ^ z >> shift) * factor
LAST_SHIFT = 31  # z ^ z >> 31 is the word
MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """Return the word after `value`: 0 to 2^64 - 1, scattered."""
    value = (value + GOLDEN) & MASK
    for shift, factor in STEPS:
        value = ((value ^ (value >> shift)) * factor) & MASK
    return value ^ (value >> LAST_SHIFT)
