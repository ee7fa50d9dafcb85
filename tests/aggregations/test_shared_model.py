"""The rules of memory shared by jobs hold in small cases, and each is needed."""

import pytest
from shared_model import ON_CHIP, ONE_SLOT, SMALL, Faults, Model, Rules, Violation, explore

ONE_JOB = ((0,),)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("models", [SMALL, ON_CHIP], ids=["v1model", "chip"])
def test_no_state_breaks_a_rule(models: dict[str, Model], name: str) -> None:
    assert explore(models[name]) > 20


@pytest.mark.parametrize(
    ("rule", "places", "faults", "passes", "message"),
    [
        ("direct", ONE_SLOT, Faults(timers=1), 1, "no end after "),
        ("disjoint", ONE_JOB, Faults(timers=1), 1, "a wrong sum of "),
        ("lives", ONE_JOB, Faults(lives=1), 1, "a wrong sum of "),
        ("checks", ONE_JOB, Faults(losses=1), 2, "a wrong sum of "),
        ("keeps", ONE_JOB, Faults(losses=1), 1, "no end after "),
    ],
)
def test_each_rule_is_needed(
    rule: str, places: tuple[tuple[int, ...], ...], faults: Faults, passes: int, message: str
) -> None:
    rules = Rules()._replace(**{rule: False})
    with pytest.raises(Violation, match=message) as raised:
        explore(Model(places, faults, passes=passes, rules=rules))
    assert raised.value.events
