"""A disk cache of compiled programs: the second start of a program needs no compilation.

A cached program depends on the compiler's source, on the arguments, and on every file that was read
or searched for; it is compiled again when one of these has changed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from gradplane._user_folders import cache_folder
from gradplane.switch import disk_cache
from gradplane.switch.garbage_pause import collections_paused
from gradplane.switch.ir import nodes as ir

if TYPE_CHECKING:
    from gradplane.switch.p4runtime.device_config import Source

HERE = Path(__file__).parent
# Packages that a compiled program depends on, beside this folder's files; `arch` decides which
# externs are user-defined.
COMPILER = ("arch", "check", "frontends", "ir", "lower", "syntax")

Files = dict[str, str | None]
"""Path -> hash of the text; None for a file that does not exist."""


@collections_paused()
def load_program(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | Sequence[str] | None = None,
    text: str | None = None,
    p4info: bytes | None = None,
) -> ir.Program:
    """Compile as compiler.compile_source does, through the cache.

    Each call returns a new object.
    """
    asked = (str(path), os.getcwd(), [str(d) for d in include_dirs], _listed(defines), text, p4info)
    kept = cache_folder("p4") / disk_cache.name(_fingerprint(), repr(asked))
    found = _kept(disk_cache.read(kept))
    if found is not None:
        return found
    # Imported late: importing the compiler takes longer than reading a cached program.
    from gradplane.switch.compiler import compile_source

    compiled = compile_source(path, include_dirs, defines, text, p4info=p4info)
    files = {name: _hash(text) for name, text in compiled.reporter.read.items()}
    try:
        content = pickle.dumps(files, 5) + pickle.dumps(compiled.program, 5)
    except RecursionError:  # nested too deeply to be pickled
        return compiled.program
    disk_cache.write(kept, content)
    return compiled.program


def load_source(source: Source) -> ir.Program:
    """Compile a pushed program. Raises CompileError."""
    return load_program(source.file, defines=source.defines, text=source.text, p4info=source.p4info)


def _kept(content: bytes | None) -> ir.Program | None:
    """Return the program in a cache file, if everything it depends on is unchanged."""
    if content is None:
        return None
    stream = BytesIO(content)
    files: Files = pickle.load(stream)
    if any(_hash(_text(file)) != kept for file, kept in files.items()):
        return None
    program: ir.Program = pickle.load(stream)
    return program


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8-sig", errors="replace")
    except (OSError, ValueError):
        return None


def _hash(text: str | None) -> str | None:
    if text is None:
        return None
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _listed(defines: Mapping[str, str] | Sequence[str] | None) -> list[str]:
    if isinstance(defines, Mapping):
        return [f"{name}={value}" for name, value in defines.items()]
    return list(defines or ())


@functools.cache
def _fingerprint() -> str:
    """Return a text that changes with the compiler's files, as this process imports them: they may
    be replaced while it runs."""
    top = sorted(_stamps(HERE, within=False))
    return repr(top + sorted(s for p in COMPILER for s in _stamps(HERE / p)))


def _stamps(folder: Path, within: bool = True) -> Iterator[tuple[str, int, int]]:
    """Name, time and size of the Python files in a folder and the folders within it."""
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            status = entry.stat()
            yield entry.name, status.st_mtime_ns, status.st_size
        elif within and entry.is_dir():
            yield from _stamps(Path(entry))


_fingerprint()
