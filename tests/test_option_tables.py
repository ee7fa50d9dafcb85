"""Command lines by a table of options."""

from __future__ import annotations

import pytest

from gradplane._option_tables import Option, OptionError, help_text, parse

TABLE = (
    Option("-n --number", "N", "a number", int, 1),
    Option("-I", "DIR", "folders", many=True),
    Option("--level", "LEVEL", choices=("low", "high")),
    Option("--capture", "DIR", "where to", alone="here"),
    Option("-v --very-long-name-of-a-flag", "", "say more", group="other"),
)


@pytest.mark.parametrize(
    ("line", "values", "others"),
    [
        ("", {}, []),
        ("-n 2 a", {"number": 2}, ["a"]),
        ("-n2 -Ix -I=y -I z", {"number": 2, "I": ["x", "y", "z"]}, []),
        ("--number=-3 --number -4", {"number": -4}, []),
        ("--capture -v", {"capture": "here", "very_long_name_of_a_flag": True}, []),
        ("--capture there --capture=", {"capture": ""}, []),
        ("--other=1 -x - -- -n", {}, ["--other=1", "-x", "-", "-n"]),
    ],
)
def test_values_and_other_arguments(
    line: str, values: dict[str, object], others: list[str]
) -> None:
    found, rest = parse(TABLE, line.split())
    plain = {"number": 1, "I": [], "level": None, "capture": None}
    assert vars(found) == plain | {"very_long_name_of_a_flag": False} | values
    assert rest == others


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-n x", "argument -n/--number: invalid int value: 'x'"),
        ("-n", "argument -n/--number: expected one argument"),
        ("-n -v", "argument -n/--number: expected one argument"),
        ("--level mid", "argument --level: invalid choice: 'mid' (choose from 'low', 'high')"),
        ("-v=1", "argument -v/--very-long-name-of-a-flag: ignored explicit argument '1'"),
    ],
)
def test_what_is_refused(line: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse(TABLE, line.split())
    assert str(caught.value) == message


def test_the_help() -> None:
    assert help_text("p [OPTIONS]", "Do it.", TABLE, "The end.") == (
        "usage: p [OPTIONS]\n\nDo it.\n\noptions:\n"
        "  -n, --number N          a number\n"
        "  -I DIR                  folders\n"
        "  --level LEVEL           low, high\n"
        "  --capture [DIR]         where to\n"
        "\nother:\n"
        "  -v, --very-long-name-of-a-flag\n"
        "                          say more\n"
        "\nThe end.\n"
    )
