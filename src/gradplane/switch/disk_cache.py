"""A cache of files on disk: compiled programs and machine code.

A file's name is a hash of everything that its content depends on. The content is preceded by its
own hash, so a damaged file counts as missing. Files are written atomically, even when several
processes write the same file. When the cache grows too large, the files that were not used for
longest are removed; each process looks for them at its first write and at every sixteenth.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

DIGEST = 32  # bytes of the hash that precedes the content
KEPT = 5000  # most files in a folder, but for those since it was last looked through
KEPT_BYTES = 256 << 20  # most bytes in a folder, likewise
PRUNED_EVERY = 16  # writes: looking through a full folder takes 10 ms or more

_writes = count()


def name(*parts: str) -> str:
    """Return a file name that is a hash of these texts and the Python version."""
    whole = "\0".join(f"{len(part)}:{part}" for part in (sys.version, *parts))
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def read(path: Path) -> bytes | None:
    """Return a file's content; None if it is missing or damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):
        os.utime(path)
    content = data[DIGEST:]
    return content if data[:DIGEST] == hashlib.sha256(content).digest() else None


def write(path: Path, content: bytes) -> None:
    """Write a file atomically; where that is not possible, cache nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        import tempfile  # not where everything is cached

        handle, made = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(made, path)
        if next(_writes) % PRUNED_EVERY == 0:
            _prune(path)
    except OSError:
        return


def _prune(newest: Path) -> None:
    """Remove the least recently used files above the limits."""
    found = []
    with os.scandir(newest.parent) as files:
        for file in files:
            with suppress(FileNotFoundError):  # another process removed it
                status = file.stat()
                found.append((status.st_mtime_ns, status.st_size, file.path))
    size = 0
    for number, (_, length, path) in enumerate(sorted(found, reverse=True), 1):
        size += length
        if path != str(newest) and (number > KEPT or size > KEPT_BYTES):
            Path(path).unlink(missing_ok=True)
