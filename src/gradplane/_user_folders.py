"""Folders of the user who runs this: for what is made once and kept, and for what is the user's
alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

TEMPORARY = Path("/tmp")


def cache_folder(kind: str) -> Path:
    """Return the folder for files of a kind that are made once: $XDG_CACHE_HOME/gradplane/KIND, or
    one below ~/.cache.

    A user without a home that can be written, as a container has with `--user`, gets one among the
    temporary files. Where that is not the user's alone either, the folder cannot be written.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if not _writable(home) and not private_obstacle(own := temporary_folder()):
        return own / "cache" / kind
    return home / "gradplane" / kind


def temporary_folder() -> Path:
    """Return the path of the user's folder among the temporary files; private_obstacle makes it."""
    return TEMPORARY / f"gradplane-{os.getuid()}"


def private_obstacle(folder: Path) -> str:
    """Make a folder that only this user can enter; return what is in the way, "" if nothing."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        there = folder.lstat()
    except OSError as error:
        return f"{folder}: {error.strerror}"
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid() or there.st_mode & 0o077:
        return f"{folder} is not this user's alone"
    return ""


def _writable(folder: Path) -> bool:
    """Return whether a folder can be written, or made."""
    if folder.parts[:1] == ("~",):  # a user who has no home
        return False
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
