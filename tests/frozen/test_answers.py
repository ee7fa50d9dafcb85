"""How recorded answers are made comparable and compared; `answers.py --check` compares all."""

import answers
import pytest
import recorder


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{recorder.ROOT}/src/gradplane/p4/thc.p4:3:1: error", "thc.p4:3:1: error"),
        ('cannot read "/tmp/x-1/a.p4": no', 'cannot read "TMP": no'),
        ("127.0.0.1:40001 and localhost:9", "127.0.0.1:PORT and localhost:PORT"),
        ("{timestamp: 17 index: 3}", "{timestamp: T index: 3}"),
        ("done in 1.25 s, slots 0 to 7", "done in T s, slots 0 to 7"),
        ("value 0x0102 at 0x7f00aabbccdd", "value 0x0102 at ADDRESS"),
        (
            "{user-agent: grpc-python/1.76.0 grpc-c/50.0.0 (linux; chttp2), error_in_resp: 1}",
            "{user-agent: GRPC, error_in_resp: 1}",
        ),
    ],
)
def test_what_changes_from_run_to_run_is_replaced(text: str, expected: str) -> None:
    assert recorder.shown(text) == expected


def test_two_long_texts_that_begin_alike_differ() -> None:
    long = "x" * 10_000
    assert recorder.shown(long) != recorder.shown(long + "y")


def test_the_strictest_form_in_which_two_runs_agree() -> None:
    first = {"t": {"a": ["1", "2"], "b": ["1", "2"], "c": ["1", "1", "2"], "d": ["1"]}}
    second = {"t": {"a": ["1", "2"], "b": ["2", "1"], "c": ["2", "1"], "d": ["2"]}}
    agreed = answers.agreed(first, second)["t"]
    words = {name: digest.split()[0] for name, digest in agreed.items()}
    assert words == {"a": "sequence", "b": "bag", "c": "set", "d": "changes"}
    assert answers.changed(first, {"t": agreed}) == answers.changed(second, {"t": agreed}) == []
    third = {"t": {"a": ["2", "1"], "b": ["2", "2"], "c": ["1"], "d": ["3"], "new": ["4"]}}
    assert answers.changed(third, {"t": agreed, "gone": agreed}) == ["t: a, b, c"]


def test_the_committed_digests_are_of_known_forms() -> None:
    found = answers.frozen()
    words = [digest.split()[0] for of in found.values() for digest in of.values()]
    assert len(found) > 400
    assert words.count("sequence") > 0.9 * len(words)
