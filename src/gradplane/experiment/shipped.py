"""The experiments that come with the package, by name."""

import re
from pathlib import Path

from gradplane._suggestions import did_you_mean, near_file, quoted
from gradplane._toml_documents import nearest
from gradplane.experiment.document import ExperimentError, read

FOLDER = Path(__file__).parent.parent / "experiments"


def names() -> list[str]:
    """Return the names of the shipped experiments and studies, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def find(experiment: str | Path) -> Path:
    """Return the file of an experiment: a path, or the name of a shipped one.

    A file of that name in the current folder comes first. A path with a folder or a suffix is
    returned whether or not the file exists. Raises ExperimentError for an unknown name."""
    path = Path(experiment)
    if path.exists() or path.suffix or len(path.parts) != 1:
        return path
    if str(experiment) not in names():
        beside = near_file(path).removeprefix("; ")
        hint = did_you_mean(path.name, names(), quoted) or beside or nearest(path.name, names())
        raise ExperimentError(f"{experiment}: neither a file nor a shipped experiment: {hint}")
    return FOLDER / f"{experiment}.toml"


def is_study(path: str | Path) -> bool:
    """Return whether a file has a [study] table; ExperimentError if it is not a TOML file."""
    return "study" in read(find(path)).values


def summary(name: str) -> str:
    """Return the first sentence of the comment at the top of a shipped experiment."""
    comment = re.match(r"(?:#.*\n)*", (FOLDER / f"{name}.toml").read_text("utf-8"))
    assert comment is not None
    text = " ".join(line.lstrip("# ") for line in comment[0].splitlines())
    return re.split(r"(?<=[a-z]\.)\s+", text)[0]


def copy(name: str, destination: Path | None = None) -> Path:
    """Write a shipped experiment to a file (default: NAME.toml) or into a folder; return its path.

    Raises ExperimentError for an unknown name, and for a file that exists."""
    if name not in names():
        raise ExperimentError(f'no shipped experiment "{name}": {nearest(name, names())}')
    path = destination or Path(f"{name}.toml")
    if path.is_dir():
        path /= f"{name}.toml"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write((FOLDER / f"{name}.toml").read_text("utf-8"))
    except FileExistsError:
        raise ExperimentError(f"{path} exists: give another file or folder") from None
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}") from None
    return path
