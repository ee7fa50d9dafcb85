"""Files that are whole or not there: written beside their place, and renamed."""

from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file beside its place and rename it. A link of that name is replaced, not followed.

    Raises OSError, which names the file on a full disk, too."""
    partial = path.with_name(f".{path.name}.part")
    data = content.encode() if isinstance(content, str) else content
    try:
        partial.unlink(missing_ok=True)
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        error.filename = str(path)
        raise


def write_output(path: Path, content: str | bytes) -> None:
    """Write a file that the user names, as write_whole does.

    What is no plain file there, such as /dev/stdout or a link, is written to as it is."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    else:
        write_whole(path, content)
