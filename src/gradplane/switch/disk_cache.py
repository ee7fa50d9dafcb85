"""Files that save work the next time: compiled programs, machine code.

A file's name is a hash of all that its content depends on; its content begins with a hash of the
rest, so that a damaged file is as good as none. Files are written whole or not at all, whoever
else writes the same. What was not used for long is removed when there is too much.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

DIGEST = 32  # bytes of the hash in front
KEPT = 500  # files in a folder
KEPT_BYTES = 256 << 20


def folder(kind: str) -> Path:
    """Where files of a kind are kept: $XDG_CACHE_HOME/gradplane/KIND."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "gradplane" / kind


def name(*parts: str) -> str:
    """A file name for what depends on these texts."""
    whole = "\0".join(f"{len(part)}:{part}" for part in (sys.version, *parts))
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def read(path: Path) -> bytes | None:
    """A file's content, if it is there and whole."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):
        os.utime(path)
    content = data[DIGEST:]
    return content if data[:DIGEST] == hashlib.sha256(content).digest() else None


def write(path: Path, content: bytes) -> None:
    """Keeps a file; where that is not possible, nothing is kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(made, path)
        _prune(path)
    except OSError:
        return


def _prune(newest: Path) -> None:
    """Removes the files that were not used for longest."""
    found = []
    for path in newest.parent.iterdir():
        try:
            status = path.stat()
        except FileNotFoundError:  # another process was faster
            continue
        found.append((status.st_mtime_ns, status.st_size, path))
    count, size = 0, 0
    for _, length, path in sorted(found, reverse=True):
        count, size = count + 1, size + length
        if path != newest and (count > KEPT or size > KEPT_BYTES):
            path.unlink(missing_ok=True)
