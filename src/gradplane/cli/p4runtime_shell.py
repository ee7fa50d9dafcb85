"""Open p4runtime-shell, the stock P4Runtime client, on a running switch.

It needs protobuf below 3.21, which would break PyTorch and others in the same environment, so it is
installed into a separate environment under the user's cache folder on first use.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from gradplane._suggestions import near_file
from gradplane._user_folders import cache_folder

_PINS = (
    "p4runtime-shell==0.0.6",
    "protobuf<3.21",
    "googleapis-common-protos<1.74",  # later ones want a later protobuf
    "setuptools<81",  # has pkg_resources, which old packages import; Python 3.12 comes without
)
_COMPLETE = "complete"
# The shell's main() with a script in place of its prompt. Its threads must be stopped whatever the
# script does, so no exception leaves `run`.
_SCRIPT = """
import sys, traceback
from p4runtime_sh import shell
path, status = sys.argv.pop(1), 0
def run(user_ns, **_):
    global status
    try:
        exec(compile(open(path).read(), path, "exec"), dict(user_ns, __name__="__main__"))
    except BaseException:
        traceback.print_exc()
        status = 1
shell.start_ipython = run
shell.main()
sys.stdout.flush()
sys.exit(status)
"""


class ShellError(Exception):
    """The shell cannot start: its environment cannot be created, or the script does not exist."""


def open_shell(
    address: str,
    device_id: int = 0,
    election_id: int = 100,
    config: tuple[Path | str, Path | str] | None = None,
    script: Path | str | None = None,
) -> int:
    """Run the shell on the switch at `address` until the user leaves; return its exit status.

    config: P4Info (text) and device config files to load first. script: a Python file to run
    instead of a prompt, with the shell's names (table_entry, ...); the status is 1 if it raises.
    election_id: the controller with the highest one may write. Raises ShellError if the script does
    not exist or the environment cannot be created.
    """
    if script is not None and not Path(script).is_file():
        raise ShellError(f"there is no script {script}{near_file(Path(script))}")
    python = ensure_environment() / "bin" / "python"
    start = ["-m", "p4runtime_sh"] if script is None else ["-c", _SCRIPT, str(script)]
    options = ["--grpc-addr", address, "--device-id", str(device_id)]
    options += ["--election-id", f"0,{election_id}"]
    if config is not None:
        options += ["--config", ",".join(map(str, config))]
    return subprocess.call([str(python), "-I", *start, *options])


def ensure_environment(folder: Path | None = None) -> Path:
    """Return the folder of a working environment; create it if it is missing or damaged.

    Safe to call from many processes at once. Raises ShellError, with pip's output, if that fails.
    """
    folder = folder or _default_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_name(folder.name + ".lock")):
        if not _works(folder):
            shutil.rmtree(folder, ignore_errors=True)
            _make(folder)
    return folder


def _default_folder() -> Path:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache_folder(f"p4runtime-shell-0.0.6-python{version}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock, which the kernel releases if its holder dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _works(folder: Path) -> bool:
    """Return whether the environment is complete for these pins and its Python still runs."""
    complete = folder / _COMPLETE
    if not complete.is_file() or complete.read_text().split() != list(_PINS):
        return False
    return _run([folder / "bin" / "python", "-I", "-c", "import p4runtime_sh"]) == ""


def _make(folder: Path) -> None:
    print(f"installing {_PINS[0]} into {folder}, once", file=sys.stderr, flush=True)
    own_pip = _own_pip()
    try:
        venv.create(folder, with_pip=not own_pip)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ShellError(
            f"no virtual environment in {folder}: {error}; on Debian: apt-get install python3-venv"
        ) from error
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python] if own_pip else [python, "-Im", "pip"]
    options = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    failure = _run([*pip, "install", *options, *_PINS])
    if failure:
        raise ShellError(
            f"{_PINS[0]} could not be installed into {folder}; pip says:\n{failure}\n"
            "Check that pip reaches a package index, and try again."
        )
    (folder / _COMPLETE).write_text("\n".join(_PINS))


def _own_pip() -> bool:
    """Return whether this Python has a pip that installs for another one (22.3): to install pip
    there, too, takes as long as all else."""
    try:
        major, minor = metadata.version("pip").split(".")[:2]
    except (metadata.PackageNotFoundError, ValueError):
        return False
    return (int(major), int(minor)) >= (22, 3)


def _run(argv: Sequence[Path | str]) -> str:
    """Run a program; return "" if it succeeds, else the last lines of its output."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    said = (done.stdout + done.stderr).strip().splitlines()[-15:]
    return "" if done.returncode == 0 else "\n".join(said) or f"status {done.returncode}"
