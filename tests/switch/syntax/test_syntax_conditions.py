"""#if arithmetic against Python's own, and C's peculiarities one by one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane.switch.syntax.macros import ConditionError, evaluate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("2 - 1 - 1", 0),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 / -2", -3),
        ("1 << 4 | 1", 17),
        ("6 & 3 == 3", 0),  # as in C, == binds tighter
        ("1 | 2 ^ 3 & 1", 3),
        ("!0 + !5", 1),
        ("~0", -1),
        ("- -1", 1),
        ("1 < 2 == 1", 1),
        ("2 > 1 && 1 >= 1 && 1 <= 1 && 1 != 2", 1),
        ("0 || 2", 1),
        ("0 && 1 / 0", 0),
        ("1 || 1 / 0", 1),
        ("0 ? 1 / 0 : 5", 5),
        ("1 ? 2 : 1 << 99", 2),
        ("1 ? 0 ? 3 : 4 : 5", 4),
        ("0x1F", 31),
        ("0b101", 5),
        ("017", 15),
        ("20180101UL", 20180101),
        ("undefined_name", 0),
        ("0x7FFFFFFFFFFFFFFF + 1", -(2**63)),
        ("1 << 63", -(2**63)),
        ("-1 >> 1", -1),
        # as C's preprocessor (GCC 12): unsigned operands make the operator unsigned
        ("-1 > 0u", 1),
        ("-1 > 0", 0),
        ("0x8000000000000000 > 0", 1),
        ("9223372036854775808 > 0", 1),
        ("9223372036854775807 + 1 > 0", 0),
        ("-1 / 2u", 2**63 - 1),
        ("-7 % 4u", 1),
        ("(0u - 1) >> 63", 1),
        ("-1 >> 63u", -1),  # a shift is of its left operand's type
        ("0u - 1", 2**64 - 1),
        ("-1 == 0xFFFFFFFFFFFFFFFF", 1),
        ("~0u > 0", 1),
        ("-(1u) > 0", 1),
        ("-1 < (0u < 1)", 1),  # a comparison is signed
        ("-1 < (1u && 1u)", 1),
        ("-1 < !0u", 1),
        ("(1 ? -1 : 0u) > 0", 1),
        ("(0 && 1u) - 1 < 0", 1),
        ("2LLU - 3 > 0", 1),
        ("0xFFFFFFFFFFFFFFFFF > 0", 0),  # cut to 64 bits, signed
        ("0xFFFFFFFFFFFFFFFFFu > 0", 1),
        ("18446744073709551617 == 1", 1),
    ],
)
def test_values(text, value):
    assert evaluate(text) == value


NUMBER = st.integers(0, 1000).map(str)
OPERATOR = st.sampled_from(["+", "-", "*", "<<", "&", "|", "^"])


@settings(deadline=None)
@given(st.recursive(NUMBER, lambda e: st.tuples(e, OPERATOR, e).map(lambda t: f"({' '.join(t)})")))
def test_like_python_within_64_bits(text):
    """All operations are in brackets, so that the two languages' precedences do not matter."""
    try:
        value = evaluate(text)
    except ConditionError as error:
        assert "a shift by" in str(error) or "nested" in str(error)
        return
    assert (value - eval(text)) % 2**64 == 0


@settings(deadline=None)
@given(st.text(alphabet="01x+-*/%<>&|^!~?:()= a", max_size=30))
def test_any_text_has_a_value_or_an_error(text):
    try:
        assert -(2**63) <= evaluate(text) < 2**63
    except ConditionError as error:
        assert str(error)
