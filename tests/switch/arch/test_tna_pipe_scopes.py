"""TNA programs with several pipelines: which pipes run them, and packets that cross over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from gradplane.switch import Switch, SwitchError
from gradplane.switch.arch.registry import device_facts
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.source import CompileError

ENGINES = pytest.mark.parametrize("engine", ["interpreter", "jit"])
PROGRAM = Path(__file__).parents[1] / "bfruntime" / "pipelines.p4"
RECIRCULATION = {1: 68, 2: 6}  # a port of each pipe, by chip
TAGGED = bytes([0xBB, 9, 3, 4, 5, 6])

Scopes = Mapping[str, Sequence[int]]


def switch(engine: str = "interpreter", chip: int = 1, scopes: Scopes | None = None) -> Switch:
    return Switch(PROGRAM, engine=engine, defines={"CHIP": str(chip)}, pipe_scopes=scopes)


def pipes(made: Switch) -> dict[str, tuple[int, ...]]:
    facts = device_facts(made.program)
    assert facts is not None
    return {pipeline.name: pipeline.pipes for pipeline in facts.pipelines}


def tag(made: Switch, port: int, pipe: int | None = None) -> None:
    """Let pipeB send what it has tagged to a port."""
    own = pipes(made)["pipeB"][0] if pipe is None else pipe
    match = {"hdr.tag.tag": 0xBB, "hdr.word.word": (0, 0)}
    made.table("pipeB.BIngress.t", own).add(match, "BIngress.send", {"port": port}, priority=1)


@pytest.mark.parametrize(
    ("chip", "expected"),
    [(1, {"pipeA": (0, 2), "pipeB": (1, 3)}), (2, {"pipeA": (0, 1), "pipeB": (2, 3)})],
)
def test_pipelines_are_placed_as_the_chips_compiler_does(
    chip: int, expected: dict[str, tuple[int, ...]]
) -> None:
    assert pipes(switch(chip=chip)) == expected


@ENGINES
@pytest.mark.parametrize("chip", [1, 2])
def test_packets_cross_from_pipeline_to_pipeline(engine: str, chip: int) -> None:
    made = switch(engine, chip)
    (first, *_), (second, *_) = pipes(made)["pipeA"], pipes(made)["pipeB"]
    there = second << 7 | RECIRCULATION[chip]
    made.table("pipeA.Ingress.t").add({"hdr.number.kind": 1}, "Ingress.send", {"port": there})
    tag(made, first << 7 | 5)
    # Ingress of A counts; egress of B tags; its ingress takes the tag off; egress of A adds 1.
    assert made.process(first << 7, bytes([1, 2, 0, 0, 7, 8])) == [
        (first << 7 | 5, bytes([1, 3, 0, 1, 7, 8]))
    ]
    assert made.register("pipeA.Ingress.seen").read(0) == 1
    assert made.register("pipeB.BIngress.ports").read(0) == there & 0xFF


@ENGINES
@pytest.mark.parametrize(
    "scopes",
    [{"pipeA": [0, 3], "pipeB": [2, 1]}, {"pipeA": [2], "pipeB": [0, 1, 3]}],
)
def test_the_user_chooses_the_pipes(engine: str, scopes: Scopes) -> None:
    made = switch(engine, scopes=scopes)
    made.table("pipeA.Ingress.t").add({"hdr.number.kind": 0xBB}, "Ingress.send", {"port": 511})
    tag(made, 511)
    assert pipes(made) == {name: tuple(sorted(own)) for name, own in scopes.items()}
    last = bytes([0xBB, 0xFF]) if 3 in scopes["pipeB"] else b""
    for pipe in range(4):
        ((_, sent),) = made.process(pipe << 7, TAGGED)
        if pipe in scopes["pipeA"]:
            value = 9 + (not last)
            assert sent == last + bytes([0xBB, value, 0, 1, 5, 6])
        else:
            assert sent == (last + TAGGED[2:] if last else bytes([3, 5, 5, 6]))


@ENGINES
def test_pipes_of_one_pipeline_have_tables_of_their_own(engine: str) -> None:
    made = switch(engine)
    made.set_scope("pipeB.BIngress.t")
    tag(made, 10, pipe=1)
    tag(made, 11, pipe=3)
    assert [made.process(pipe << 7, TAGGED)[0][0] for pipe in (1, 3)] == [10, 11]
    with pytest.raises(TableError, match="each of the pipes 1, 3 must be in one scope"):
        made.set_scope("pipeB.BIngress.t", [[0, 1], [2, 3]])


@pytest.mark.parametrize(
    ("scopes", "message"),
    [
        ({"pipeA": [0, 1]}, "pipeline pipeB has no pipe"),
        ({"pipeA": [0, 1], "pipeB": []}, "pipeline pipeB has no pipe"),
        ({"pipeA": [0, 1], "pipeC": [2, 3]}, "there is no pipeline 'pipeC'; pipelines: pipeA, pip"),
        ({"pipeA": [0, 1], "pipeB": [1, 2]}, "each of the pipes 0 to 3 must be given once, not 0"),
        ({"pipeA": [0, 1], "pipeB": [2, 3, 4]}, "each of the pipes 0 to 3 must be given once"),
    ],
)
def test_scopes_that_cannot_be_are_refused(scopes: Scopes, message: str) -> None:
    with pytest.raises(SwitchError, match=message):
        switch(scopes=scopes)


def test_a_pipeline_given_twice_is_one() -> None:
    text = PROGRAM.read_text().replace("Switch(pipeA, pipeB)", "Switch(pipeA, pipeA)")
    made = Switch("twice.p4", text=text, engine="interpreter")
    assert pipes(made) == {"pipeA": (0, 1, 2, 3)}


@ENGINES
def test_a_filter_is_for_the_pipelines_that_have_its_headers(engine: str) -> None:
    made = switch(engine)

    def chosen(where: str) -> list[tuple[int, int]]:
        tracing = made.tracing(where=where)
        for port in (1, 1 << 7 | 1):
            for first in (1, 0xBB):
                made.process(port, bytes([first, 2, 3, 4, 5, 6]))
        tracing.close()
        return [(trace.port, trace.packet[0]) for trace in tracing]

    assert chosen("hdr.number.kind == 0xbb") == [(1, 0xBB)]
    assert chosen("hdr.tag.tag == 0xbb && md.more == 0") == [(129, 0xBB)]
    assert chosen("intrinsic.ingress_port == 129") == [(129, 1), (129, 0xBB)]
    with pytest.raises(CompileError, match="numbers_t has no field other"):
        chosen("hdr.other.kind == 1")
