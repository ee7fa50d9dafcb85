"""Shipped experiments by name, and written out."""

from pathlib import Path

import pytest

from gradplane.experiment import shipped
from gradplane.experiment.document import ExperimentError
from gradplane.experiment.loading import load

FOLDER = Path(__file__).parents[2] / "experiments"


def test_every_file_has_a_name_and_a_sentence() -> None:
    assert shipped.names() == sorted(path.stem for path in FOLDER.glob("*.toml"))
    assert all(20 < len(shipped.summary(name)) < 200 for name in shipped.names())
    assert shipped.summary("thc-star") == (
        "The demo: 4 workers around one switch, which sums their THC-compressed gradients."
    )


def test_an_experiment_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load("thc-star").name == "thc-star"
    Path("thc-star").write_text("name = 'mine'\n")
    assert load("thc-star").name == "mine"  # a file comes first
    with pytest.raises(ExperimentError) as missing:
        load("thc-sta")
    assert str(missing.value) == (
        'thc-sta: neither a file nor a shipped experiment: did you mean "thc-star"?'
    )
    with pytest.raises(ExperimentError) as missing:
        load("thc-sta.toml")
    assert str(missing.value) == "thc-sta.toml: No such file or directory; did you mean thc-star?"


def test_a_copy_is_written_once(tmp_path: Path) -> None:
    path = shipped.copy("thc-star", tmp_path)
    assert path == tmp_path / "thc-star.toml"
    assert path.read_text() == (FOLDER / "thc-star.toml").read_text()
    with pytest.raises(ExperimentError) as exists:
        shipped.copy("thc-star", path)
    assert str(exists.value) == f"{path} exists: give another file or folder"
    with pytest.raises(ExperimentError) as unknown:
        shipped.copy("thc-sta")
    assert str(unknown.value).startswith('no shipped experiment "thc-sta": did you mean')
