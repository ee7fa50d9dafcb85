"""Stand-ins for p4c and BMv2's programs: scripts under their names that run this package.

With their folder on PATH, Makefiles and scripts that were written for BMv2 run unchanged:
`bmv2_commands` translates their options.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from gradplane.cli.bmv2_commands import COMMANDS
from gradplane.switch.runtime.control_errors import SwitchError

_MARK = "# A stand-in written by `gradplane shims`."
_SCRIPT = """\
#!/bin/sh
{mark}
exec {python} -P -m gradplane.cli.bmv2_commands {name} "$@"
"""


def write_shims(folder: Path) -> str:
    """Write a stand-in for each of BMv2's programs; return the shell line that puts them on PATH.

    Stand-ins of an earlier call are replaced. Raises SwitchError, before anything is written, where
    a file of that name is something else.
    """
    files = {name: folder / name for name in COMMANDS}
    for file in files.values():
        if file.is_symlink() or (file.exists() and not _is_shim(file)):
            raise SwitchError(f"{file} exists and is not a stand-in: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in files.items():
        file.write_text(_SCRIPT.format(mark=_MARK, python=shlex.quote(sys.executable), name=name))
        file.chmod(0o755)
    return f"export PATH={shlex.quote(str(folder.resolve()))}:$PATH"


def _is_shim(file: Path) -> bool:
    return file.is_file() and _MARK.encode() in file.read_bytes()[:200]
