"""Compiled programs, kept on disk: the second time a program starts at once.

What is kept for a program depends on this package's compiler, on what was asked for, and on every
file that was read or looked for in vain; it is compiled again when one of these has changed.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path

from gradplane.switch import disk_cache
from gradplane.switch.ir import nodes as ir

HERE = Path(__file__).parent
# What programs depend on, beside this folder's files; `arch` says which externs are known.
COMPILER = ("arch", "check", "ir", "lower", "syntax")

Files = dict[str, str | None]
"""Path -> a hash of the text, None for a file that is not there."""


def load_program(
    path: str | Path,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | Sequence[str] | None = None,
    text: str | None = None,
) -> ir.Program:
    """As gradplane.switch.compiler.compile_program; a new object with every call."""
    asked = (str(path), os.getcwd(), [str(d) for d in include_dirs], _listed(defines), text)
    kept = disk_cache.folder("p4") / disk_cache.name(_fingerprint(), repr(asked))
    found = _kept(disk_cache.read(kept))
    if found is not None:
        return found
    # Imported where it is needed: it takes longer than reading a program that is kept.
    from gradplane.switch.compiler import compile_source

    compiled = compile_source(path, include_dirs, defines, text)
    files = {name: _hash(text) for name, text in compiled.reporter.read.items()}
    try:
        content = pickle.dumps(files, 5) + pickle.dumps(compiled.program, 5)
    except RecursionError:  # nested too deeply to be kept
        return compiled.program
    disk_cache.write(kept, content)
    return compiled.program


def _kept(content: bytes | None) -> ir.Program | None:
    """The program in a file, if what it depends on is as it was."""
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


def _fingerprint() -> str:
    """Changes with the compiler's files."""
    return repr(
        sorted(_stamps(HERE, within=False)) + sorted(s for p in COMPILER for s in _stamps(HERE / p))
    )


def _stamps(folder: Path, within: bool = True) -> Iterator[tuple[str, int, int]]:
    """Name, time and size of the Python files in a folder and the folders within it."""
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            status = entry.stat()
            yield entry.name, status.st_mtime_ns, status.st_size
        elif within and entry.is_dir():
            yield from _stamps(Path(entry))
