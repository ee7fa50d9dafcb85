"""Processes that start slowly: they are waited for while they work, and a note says for what."""

import logging
import sys

import pytest

from gradplane.topologies import child_process
from gradplane.topologies.child_process import Process, free_port, wait_for_port
from gradplane.topologies.topology_errors import NetworkError

WORKS = "import time\nwhile time.process_time() < {}: pass\nprint('{{\"ready\": 1}}', flush=True)\n"
SLEEPS = "import sys\nprint('waits', file=sys.stderr, flush=True)\nsys.stdin.read()"


def python(code: str) -> Process:
    return Process("switch s1", [sys.executable, "-S", "-c", code])


def test_a_process_that_works_is_waited_for_and_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(child_process, "FIRST_NOTE", 0.01)
    with caplog.at_level(logging.WARNING), python(WORKS.format(0.3)) as process:
        assert process.wait_for("ready") == {"ready": 1}
    assert caplog.messages[0] == (
        "switch s1: waiting for the answer ready for 0 s; it is still at work (Ctrl-C ends it)"
    )
    assert 2 <= len(caplog.messages) <= 20  # each after twice the time of the one before


def test_the_limit_counts_from_the_last_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "STALLED", 30.0)
    monkeypatch.setattr(child_process, "WORK", 0.0)  # each look finds some
    seconds = iter(range(0, 10_000, 29))
    monkeypatch.setattr(child_process.time, "monotonic", lambda: float(next(seconds)))
    with python(WORKS.format(0.1)) as process:
        assert process.wait_for("ready") == {"ready": 1}


@pytest.mark.parametrize("port", [False, True])
def test_a_process_that_does_nothing_is_stuck(monkeypatch: pytest.MonkeyPatch, port: bool) -> None:
    monkeypatch.setattr(child_process, "STALLED", 0.5)
    address = f"127.0.0.1:{free_port()}"
    awaited = f"server at {address}" if port else "answer ready"
    with python(SLEEPS) as process, pytest.raises(NetworkError) as error:
        wait_for_port(process, address) if port else process.wait_for("ready")
    words = str(error.value)
    assert words.startswith(f"switch s1: no {awaited} after ")
    assert words.endswith(" s, and the process has been idle for 0.5 s: waits")


def test_a_process_that_ends_is_not_waited_for() -> None:
    with (
        python("import sys; sys.exit('no memory')") as process,
        pytest.raises(NetworkError, match="^switch s1 ended with status 1: no memory$"),
    ):
        wait_for_port(process, f"127.0.0.1:{free_port()}")
