"""A sample of the frozen artefacts; `python tests/frozen/artefacts.py --check` compares all."""

import artefacts
import pytest
from p4_sources import ROOT, sources

ONE_IN = 16


def test_a_sample_is_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = artefacts.digests(sources()[::ONE_IN])
    assert len(found) > 40
    assert artefacts.differences(found, artefacts.frozen()) == []


def test_most_programs_are_frozen() -> None:
    """Where a test's text changes, --write freezes the new one."""
    names = {source.name for source in sources()}
    assert len(names & artefacts.frozen().keys()) > 0.9 * len(names)


def test_a_difference_names_the_program_and_what_changed() -> None:
    old = {"a": {"ir": "1", "p4info": "2"}, "b": {"refusal": "3"}, "gone": {"ir": "4"}}
    new = {"a": {"ir": "1", "p4info": "5"}, "b": {"ir": "6"}, "new": {"ir": "7"}}
    assert artefacts.differences(new, old) == ["a: p4info", "b: ir, refusal"]
