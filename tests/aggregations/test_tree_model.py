"""The rules of several switches hold in small cases, and each is needed."""

import pytest
from tree_model import (
    SMALL,
    TWO_RACKS,
    Faults,
    Model,
    Rules,
    Violation,
    explore,
)

ALL, ONE_LEAF = (2, 2, 2), (2, 2, 1)


@pytest.mark.parametrize("name", ["two racks", "a leaf is enough"])
def test_no_state_breaks_a_rule(name: str) -> None:
    assert explore(SMALL[name]) > 100


@pytest.mark.parametrize(
    ("rule", "quorums", "faults", "norms", "message"),
    [
        ("asks", ONE_LEAF, Faults(losses=2), False, "stuck: "),
        ("paths", ALL, Faults(), False, "goes off its path"),
        ("raised", ALL, Faults(losses=1, restarts=1), False, "stuck: "),
        ("serial", ALL, Faults(restarts=1), False, "no end after "),
        ("keeps", ALL, Faults(restarts=1), False, "stuck: "),
        ("norms", ALL, Faults(restarts=1), True, "stuck: "),
        ("told", ALL, Faults(restarts=1), False, "stuck: "),
        ("gives_up", ONE_LEAF, Faults(restarts=1), False, "stuck: "),
    ],
)
def test_each_rule_is_needed(
    rule: str, quorums: tuple[int, ...], faults: Faults, norms: bool, message: str
) -> None:
    model = Model(TWO_RACKS, quorums, 1, faults, norms, Rules()._replace(**{rule: False}))
    with pytest.raises(Violation, match=message) as raised:
        explore(model)
    assert raised.value.events
