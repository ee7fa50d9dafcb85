"""Hints for an unknown name, and quotes for messages.

Every room may import this module; it imports none.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

_SIMILARITY = 0.61  # difflib's ratio, from 0 (nothing in common) to 1


def quoted(value: object) -> str:
    """Return a name or text in double quotes, as TOML has it; any other value as Python has it."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def nearest(
    name: str, known: Iterable[str], count: int = 1, similarity: float = _SIMILARITY
) -> list[str]:
    """Return at most `count` known names that resemble `name`, the most similar first."""
    return get_close_matches(name, sorted(known), count, similarity)


def near_file(path: Path) -> str:
    """Return `; did you mean PATH?` where a file or folder of a similar name is in the place of one
    that is missing, else "". One with the same ending comes first."""
    with suppress(OSError):
        files = [] if path.exists() else list(path.parent.iterdir())
        for alike in ([f for f in files if f.suffix == path.suffix], files):
            beside = {file.stem: file for file in alike}
            if near := nearest(path.stem, beside):
                return f"; did you mean {beside[near[0]]}?"
    return ""


def did_you_mean(name: str, known: Iterable[str], quote: Callable[[str], str] = str) -> str:
    """Return `did you mean NAME?` with the nearest known name, or "" if none resembles `name`."""
    close = nearest(name, known)
    return f"did you mean {quote(close[0])}?" if close else ""


def hint(name: str, known: Iterable[str], quote: Callable[[str], str] = str) -> str:
    """Return did_you_mean() or, where that is empty, the list of the known names."""
    names = list(known)
    return did_you_mean(name, names, quote) or f"known: {', '.join(names)}"
