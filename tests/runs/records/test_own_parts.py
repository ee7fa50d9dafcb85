"""Copies of users' files in run folders: taken in place of files that are gone or changed."""

from pathlib import Path

import pytest

from gradplane import codecs
from gradplane.experiment.deployment import Deployment
from gradplane.experiment.loading import load_deployment
from gradplane.runs.records import manifest, own_parts
from gradplane.runs.records.manifest import Manifest
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.run_folder import FolderError

CODEC = """
from dataclasses import dataclass
from gradplane.codecs import Codec

@dataclass(frozen=True)
class Own(Codec):
    number: int = 1

    def max_size(self, n):
        return 4 * n

    def _encode(self, x, context):
        return x.tobytes(), None

    def _decode(self, data, n):
        raise NotImplementedError
"""
EXPERIMENT = """
[topology]
kind = "own.py:ring"
workers = 2
[[job]]
aggregation = "ps"
push = { name = "codec/own.py" }
"""
TOPOLOGY = "from gradplane.topologies.star import star as ring\n"


def number(deployment: Deployment) -> int:
    """Return the default of the codec's parameter."""
    return int(codecs.get(deployment.experiment.job[0].push.name).config["number"])


def recorded(tmp_path: Path, codec: str = CODEC, topology: str = TOPOLOGY) -> Path:
    """Make the run folder of an experiment that names two files; return the codec's."""
    (tmp_path / "codec").mkdir(exist_ok=True)
    file = tmp_path / "codec" / "own.py"
    file.write_text(codec)
    (tmp_path / "own.py").write_text(topology)
    (tmp_path / "x.toml").write_text(EXPERIMENT)
    deployment = load_deployment(tmp_path / "x.toml")
    plan = Manifest(network="sim", machine={}, jobs=manifest.extents(deployment))
    (tmp_path / "run").mkdir()
    manifest.start(tmp_path / "run", deployment.experiment, plan)
    return file


@pytest.fixture
def codec(tmp_path: Path) -> Path:
    return recorded(tmp_path)


def test_a_file_that_was_changed_or_is_gone_has_its_copy(codec: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    copies = sorted(str(path.relative_to(folder)) for path in folder.rglob("own.py"))
    assert copies == ["parts/2/own.py", "parts/own.py"]
    run = RunData.opened(folder)
    assert run.experiment.job[0].push.name == str(codec)
    assert not [note for note in run.notes if "copy" in note]

    codec.write_text(CODEC.replace("int = 1", "int = 2"))
    (tmp_path / "own.py").unlink()
    run = RunData.opened(folder)
    assert number(run.deployment) == 1
    assert run.deployment.topology.kind == "star"
    assert [note for note in run.notes if "copy" in note] == [
        f"{tmp_path}/own.py is gone: its copy is used, {folder}/parts/own.py.",
        f"{codec} was changed since the run: its copy is used, {folder}/parts/2/own.py.",
    ]
    # What begins anew takes the file as it is now, and the copy only where there is none.
    anew = own_parts.renewed_deployment(folder)
    assert anew.experiment.job[0].push.name == str(codec)
    assert anew.experiment.topology.kind == f"{folder}/parts/own.py:ring"
    own_parts.keep(folder, anew.experiment)
    assert not list(own_parts.notes(folder))[1:]


def test_a_copy_from_elsewhere_is_not_run(
    codec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))
    RunData.opened(folder)  # the files are as they were: no copy is needed
    codec.unlink()
    with pytest.raises(FolderError) as error:
        RunData.opened(folder)
    assert str(error.value).startswith(f"{codec} is gone, and its copy {folder}/parts/2/own.py was")
    codec.write_bytes((folder / "parts" / "2" / "own.py").read_bytes())
    assert number(RunData.opened(folder).deployment) == 1


def test_what_a_file_imports_from_beside_it_is_copied_too(tmp_path: Path) -> None:
    """Each of two folders has its own module of a name. Where one of them was changed, the files
    beside it come from their copies, too."""
    helpers = [tmp_path / "sizes" / "of_it.py", tmp_path / "codec" / "sizes" / "of_it.py"]
    for value, helper in enumerate(helpers, 5):
        helper.parent.mkdir(parents=True)
        helper.write_text(f"DEFAULT = {value}\n")
    imported = "from sizes.of_it import DEFAULT\n"
    ring = f"{imported}assert DEFAULT == 5\n{TOPOLOGY}"
    recorded(tmp_path, imported + CODEC.replace("int = 1", "int = DEFAULT"), ring)
    folder = tmp_path / "run"
    assert number(RunData.opened(folder).deployment) == 6

    helpers[1].write_text("DEFAULT = 7\n")
    run = RunData.opened(folder)
    assert run.experiment.job[0].push.name == f"{folder}/parts/2/own.py"
    assert number(run.deployment) == 6
    assert [note for note in run.notes if "copy" in note] == [
        f"{helpers[1]} was changed since the run: its copy is used,"
        f" {folder}/parts/2/sizes/of_it.py."
    ]
    (folder / "parts" / "hashlib.py").write_text("")
    with pytest.raises(FolderError, match="of_it.py was not made on this machine"):
        RunData.opened(folder)


def test_damaged_lists_and_links_are_refused(codec: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "parts" / "more.py").symlink_to(codec)
    with pytest.raises(FolderError, match=r"parts/more.py: a link: no links"):
        RunData.opened(folder)
    (folder / "parts" / "more.py").unlink()
    (folder / "parts" / "files.json").write_text("{")
    with pytest.raises(FolderError, match=r"parts/files.json: damaged: "):
        RunData.opened(folder)


def test_a_folder_of_shipped_parts_has_no_copies(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("[topology]\nworkers = 2\n")
    own_parts.keep(tmp_path, load_deployment(tmp_path / "x.toml").experiment)
    assert [path.name for path in tmp_path.iterdir()] == ["x.toml"]
