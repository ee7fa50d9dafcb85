"""The decision tree: the paper's count, its rules, and the user's constraints."""

import pytest

from gradplane.planner.inputs import Compression, PlannerError, System, load
from gradplane.planner.job import build
from gradplane.planner.options import COMPRESSED_PAIRS, PAIRS, constraint, draw, tree

OPTIONS = list(tree())


def test_the_tree_has_the_papers_4341_options_and_none_twice() -> None:
    assert len(OPTIONS) == len(set(OPTIONS)) == 4341
    assert len(list(tree(shapes=("flat",)))) == 63


def test_every_option_is_valid() -> None:
    for option in OPTIONS:
        compressed = False
        first = {}
        for task in option:
            if task.kind in ("comp", "decomp"):
                assert compressed == (task.kind == "decomp")
                compressed = not compressed
                continue
            assert compressed == task.kind.endswith("_comp"), option
            if task.kind.startswith("comm1"):
                first[task.phase] = task.choice
            if task.kind.startswith("comm2"):
                begun = first["intra1" if task.phase == "intra2" else task.phase]
                assert {**PAIRS, **COMPRESSED_PAIRS}[begun] == task.choice, option
        assert not compressed


@pytest.mark.parametrize(
    ("text", "left"),
    [("compressions<=0", 9), ("shape=flat", 63), ("device=gpu", None), ("compress=all", 4332)],
)
def test_constraints_prune(text: str, left: int | None) -> None:
    kept = [option for option in OPTIONS if constraint(text)(option)]
    assert 0 < len(kept) < len(OPTIONS)
    assert left is None or len(kept) == left


def test_an_unknown_constraint_says_what_there_is() -> None:
    with pytest.raises(PlannerError, match='constraint devise=gpu: did you mean "device=gpu"?'):
        constraint("devise=gpu")


def test_the_networks_options_come_on_top() -> None:
    more = list(tree(network=("switch-int32", "switch-codes")))
    assert set(OPTIONS) < set(more)


def test_the_drawn_tree_has_every_path_once() -> None:
    lines = draw(list(tree(shapes=("flat",)))).splitlines()
    assert lines[0] == "allreduce@flat"
    depths = [len(line) - len(line.lstrip()) for line in lines]
    leaves = sum(after <= here for here, after in zip(depths, [*depths[1:], 0], strict=True))
    assert leaves == len({option.on("gpu") for option in tree(shapes=("flat",))})


def test_constraints_that_leave_nothing_are_refused() -> None:
    from gradplane.planner.inputs import Model

    model, codec, system = load(Model, "lstm"), load(Compression, "dgc"), load(System, "pcie-25g")
    with pytest.raises(PlannerError, match="no option is left"):
        build(model, codec, system, ["compress=all", "compressions<=0"])
