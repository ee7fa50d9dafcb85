"""Codecs by file name: every module here without a leading underscore is one.

The folder policies/ holds public modules that are not codecs.
"""

import dataclasses
import importlib
import pkgutil
from pathlib import Path
from typing import Any

from gradplane._suggestions import did_you_mean, quoted
from gradplane.codecs._base import Codec, CodecError


def names() -> list[str]:
    """Return the names that get() knows, sorted, without importing the codecs."""
    found = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(m.name for m in found if not (m.ispkg or m.name.startswith("_")))


def get(name: str, **params: Any) -> Codec:
    """Return the codec of that name; CodecError lists what exists if a name is unknown."""
    known = names()
    if name not in known:
        raise CodecError(f"no codec {_hinted(name, known)} there are {', '.join(known)}")
    kind = _load(name)
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for param in params:
        if param not in known:
            listed = f"its parameters: {', '.join(known)}" if known else "it has none"
            raise CodecError(f"{name} has no parameter {_hinted(param, known)} {listed}")
    return kind(**params)


def _load(name: str) -> type[Codec]:
    module = importlib.import_module(f"gradplane.codecs.{name}")
    kinds = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Codec)
        and value.__module__ == module.__name__
    ]
    assert len(kinds) == 1, f"{module.__file__} defines {len(kinds)} codecs, expected one"
    return kinds[0]


def _hinted(word: str, known: list[str]) -> str:
    hint = did_you_mean(word, known, quoted)
    return f"{quoted(word)}, {hint}" if hint else f"{quoted(word)};"
