"""BMv2's programs and p4c, run by this package: `python -m ... NAME ARGUMENTS`.

The scripts that `gradplane shims` writes call this module with the name they stand for. It adds the
original programs' defaults: the port 9090 for commands, the format of the log, and a simple_switch
without a P4Runtime server on a fixed port.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from gradplane._whole_files import write_whole
from gradplane.switch.runtime.control_errors import SwitchError

# Options that come before the arguments, so that one of the same name among these replaces it.
THRIFT = ("--thrift-port", "9090")
LOG = ("--log-format", "bmv2")
ANY_PORT = ("--grpc-server-addr", "127.0.0.1:0")


def _p4c_bm2_ss(arguments: Sequence[str]) -> int:
    from gradplane.cli.p4c_command import main

    return main("p4c-bm2-ss", arguments)


def _p4c(arguments: Sequence[str]) -> int:
    from gradplane.cli.p4c_command import main

    return main("p4c", arguments)


def _simple_switch_grpc(arguments: Sequence[str]) -> int:
    from gradplane.switch.daemon import live_switch

    return live_switch.main([*THRIFT, *LOG, *arguments])


def _simple_switch(arguments: Sequence[str]) -> int:
    """Run a switch whose P4Runtime server has a free port, so that many run on one machine."""
    from gradplane.switch.daemon import live_switch

    return live_switch.main([*THRIFT, *LOG, *ANY_PORT, *arguments])


def _simple_switch_cli(arguments: Sequence[str]) -> int:
    command = [sys.executable, "-P", "-m", "gradplane", "cli", *THRIFT, *arguments]
    os.execv(command[0], command)


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "p4c": _p4c,
    "p4c-bm2-ss": _p4c_bm2_ss,
    "simple_switch": _simple_switch,
    "simple_switch_grpc": _simple_switch_grpc,
    "simple_switch_CLI": _simple_switch_cli,
}
"""Name of the program -> what runs in its place: arguments in, exit status out."""


def run(name: str, arguments: Sequence[str]) -> int:
    """Run what stands for a program; the process has the program's name, for ps and pkill."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)  # Linux keeps the first 15 characters
    return COMMANDS[name](arguments)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))


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
        text = _SCRIPT.format(mark=_MARK, python=shlex.quote(sys.executable), name=name)
        write_whole(file, text)
        file.chmod(0o755)
    return f"export PATH={shlex.quote(str(folder.resolve()))}:$PATH"


def _is_shim(file: Path) -> bool:
    return file.is_file() and _MARK.encode() in file.read_bytes()[:200]
