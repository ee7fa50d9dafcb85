"""The input files: what ships is true, and what is wrong is named."""

import re
from importlib import resources
from pathlib import Path

import pytest

from gradplane.planner.inputs import (
    Compression,
    Model,
    PlannerError,
    System,
    load,
    model_text,
    shipped,
)
from gradplane.planner.planning import make

PAPER = {  # Espresso's Tables 4 and 5: MB (2^20 bytes), tensors
    "vgg16": (528, 32), "resnet101": (170, 314), "ugatit": (2559, 148),
    "bert-base": (420, 207), "gpt2": (475, 148), "lstm": (328, 10),
}  # fmt: skip


@pytest.mark.parametrize("name", PAPER)
def test_sizes_and_numbers_of_tensors_are_the_papers(name: str) -> None:
    tensors = load(Model, name).tensors
    megabytes = sum(t.values for t in tensors) * 4 / 2**20
    assert (round(megabytes), len(tensors)) == PAPER[name]
    assert len({t.name for t in tensors}) == len(tensors)


@pytest.mark.parametrize("name", PAPER)
def test_a_shipped_model_written_to_a_file_loads_as_itself(tmp_path: Path, name: str) -> None:
    model, file = load(Model, name), tmp_path / "model.toml"
    file.write_text(model_text(model, "A comment."))
    assert load(Model, file) == model


def test_the_times_of_shipped_models_are_operations_over_the_rate() -> None:
    forward = {name: load(Model, name).forward for name in PAPER}
    assert forward == {
        "vgg16": 0.07104, "resnet101": 0.0388, "ugatit": 0.03661,
        "bert-base": 0.01801, "gpt2": 0.002892, "lstm": 0.001082,
    }  # fmt: skip


def test_everything_shipped_loads() -> None:
    for kind in (Model, Compression, System):
        for name in shipped(kind):
            load(kind, name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('name = "m"\n', "tensors is missing"),
        ('name = "m"\ntensors = []\n', "tensors.*expected at least 1 in the list"),
        (
            'name = "m"\nx = 1\ntensors = [{ name = "a", values = 1, compute = 0.0 }]',
            "unknown key x",
        ),
        (
            'tensors = [{ name = "a", values = 0, compute = 0.0 }]',
            "model.toml:1: tensors.0.values = 0: expected at least 1",
        ),
        ("tensors = [", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_key(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "model.toml"
    file.write_text(content)
    with pytest.raises(PlannerError, match=message):
        load(Model, file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('codec = "randomk"', 'codec = "randmk"', ':3: no codec "randmk", did you mean "randomk"?'),
        (
            "{ fraction",
            "{ fractoin",
            ':4: randomk has no parameter "fractoin", did you mean "fract',
        ),
        ("= 0.01 }", "= 1.5 }", ":4: fraction must be a number above 0 and at most 1, got 1.5"),
    ],
)
def test_a_codec_that_is_none_is_named_by_its_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    text = (resources.files("gradplane.planner") / "data/codecs/randomk.toml").read_text()
    file = tmp_path / "codec.toml"
    file.write_text(text.replace(old, new))
    with pytest.raises(PlannerError, match=f"^{re.escape(f'{file}{message}')}"):
        load(Compression, file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("gbits = 25", '6: unknown key inter.gbits: did you mean "gbit"\\?'),
        ('gbit = "25"', '6: inter.gbit = "25": expected a number above 0, in Gbit/s'),
        ("gbit = 25", "5: inter.latency_us is missing"),
    ],
)
def test_a_wrong_system_is_named_by_line_key_and_unit(
    tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "system.toml"
    head = 'name = "s"\nmachines = 2\ngpus = 1\nintra = { gbit = 100, latency_us = 1 }\n[inter]\n'
    file.write_text(f"{head}{content}\n")
    with pytest.raises(PlannerError, match=f"system.toml:{message}"):
        load(System, file)


def test_what_is_wrong_with_all_three_files_is_said_at_once(tmp_path: Path) -> None:
    model = tmp_path / "model.toml"
    model.write_text('name = "m"\ntensor = []\n')
    with pytest.raises(PlannerError) as refused:
        make(model, "dcg", "pcie-25")
    assert str(refused.value).splitlines() == [
        f"{model}: tensors is missing",
        f'{model}:2: unknown key tensor: did you mean "tensors"?',
        'dcg: no such file, and no shipped compression: did you mean "dgc"?',
        'pcie-25: no such file, and no shipped system: did you mean "pcie-25g"?',
    ]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(PlannerError, match='no shipped system: did you mean "pcie-25g"'):
        load(System, "pcie-25")
