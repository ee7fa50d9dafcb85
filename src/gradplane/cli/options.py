"""Options that several commands share, and what each command does with the terminal."""

import logging
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from gradplane import _shipped_programs

if TYPE_CHECKING:
    from rich.console import Console

    from gradplane.switch.daemon.clients import ClientTls


def option(metavar: str, help: str, *names: str, **limits: Any) -> Any:
    """Return an option that takes a value, as `metavar` shows it; `limits` as in typer.Option."""
    return typer.Option(*names, metavar=metavar, help=help, **limits)


def argument(metavar: str, help: str, **limits: Any) -> Any:
    """Return an argument whose default is not shown; `limits` as in typer.Argument."""
    return typer.Argument(metavar=metavar, show_default=False, help=help, **limits)


def completed(names: Callable[[], Iterable[str]], files: str = "") -> Callable[[str], list[str]]:
    """Return what completes a word: names, and the files here that match a pattern, that begin so;
    where there are none, the shell completes paths."""

    def found(incomplete: str) -> list[str]:
        here = sorted(path.name for path in Path().glob(files)) if files else []
        return [name for name in (*names(), *here) if name.startswith(incomplete)]

    return found


def _emulated() -> Iterable[str]:
    from gradplane.topologies.network import EMULATED

    return EMULATED


emulated = completed(_emulated)
"""Completes --net of commands that take no real machines."""
Settings = Annotated[list[str], option("KEY=VALUE", "Override a key: job.quorum=3", "--set")]
OUT = "-o", "--out"
"""The names of the option that says where a command writes."""

Out = Annotated[Path | None, option("DIR", "The run folder; it must not exist", *OUT)]
Seed = Annotated[int | None, option("N", "Replaces the experiment's seeds", min=0)]


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if 0 <= share <= 1:
        return share
    raise typer.BadParameter(f"{text}: expected a share from 0 to 1: 0.95 is 95 %")


Accuracy = Annotated[
    float | None, option("X", "Note when the test accuracy reaches X, as 0.95", parser=_share)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print a line for each round")]
Includes = Annotated[list[Path], option("DIR", "Folder of includes", "-I")]
Defines = Annotated[list[str], option("NAME[=VALUE]", "Define a macro", "-D")]
Externs = Annotated[Path | None, option("FILE.py", "Implements user-defined externs")]


def _found(program: Path | None) -> Path | None:
    return None if program is None else _shipped_programs.find(program)


Program = Annotated[Path, typer.Argument(metavar="FILE.p4", show_default=False, callback=_found)]
AnyProgram = Annotated[
    Path | None, typer.Argument(metavar="FILE.p4", show_default=False, callback=_found)
]
Cacert = Annotated[Path | None, option("PEM", "TLS: the authority of the switch's certificate")]
Cert = Annotated[Path | None, option("PEM", "TLS: your certificate")]
Key = Annotated[Path | None, option("PEM", "TLS: its private key")]


def fail(message: str) -> NoReturn:
    print(message if "\n" in message else f"gradplane: {message}", file=sys.stderr)
    sys.exit(1)


def notes(error: BaseException) -> list[str]:
    """Return the notes that were added to an error."""
    return list(getattr(error, "__notes__", ()))


@contextmanager
def stoppable() -> Iterator[None]:
    """Print where the records are if the run inside is stopped by Ctrl-C or SIGTERM."""

    def stop(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as error:
        status = error.code if isinstance(error, SystemExit) else 128 + signal.SIGINT
        print("\n".join(["gradplane: stopped", *notes(error)]), file=sys.stderr)
        raise typer.Exit(int(status or 0)) from None
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def only_errors(wanted: bool) -> Iterator[None]:
    """Print no warnings and notes inside, if that is wanted."""
    log = logging.getLogger("gradplane")
    before = log.level
    log.setLevel(logging.ERROR if wanted else before)
    try:
        yield
    finally:
        log.setLevel(before)


def check_network(net: str | None, machines: bool = False) -> None:
    """Raise BadParameter for no name of a network. machines: real ones will do, too."""
    from gradplane.topologies.network import EMULATED, NETWORKS

    names = NETWORKS if machines else EMULATED
    if net not in (None, *names):
        raise typer.BadParameter(f"use {' or '.join(names)}", param_hint="--net")


def tls_files(cacert: Path | None, cert: Path | None, key: Path | None) -> "ClientTls | None":
    from gradplane.switch.daemon.clients import ClientTls

    if cacert is None:
        if cert is not None or key is not None:
            raise typer.BadParameter("TLS needs it", param_hint="--cacert")
        return None
    if (cert is None) != (key is None):
        raise typer.BadParameter("give both or none", param_hint="--cert, --key")
    return ClientTls(cacert, cert, key)


def progress(as_json: bool, quiet: bool, verbose: bool) -> 'bool | Literal["rounds"]':
    """Return how a run shows its progress. Raises BadParameter where the options exclude it."""
    if verbose and (as_json or quiet):
        other = "--json" if as_json else "--quiet"
        raise typer.BadParameter(f"not with {other}", param_hint="--verbose")
    return "rounds" if verbose else not (as_json or quiet)


def make_console() -> "Console":
    from rich.console import Console

    return Console(highlight=False)


def folded(text: str) -> str:
    """Return the text with long lines continued on indented ones where it is for a terminal."""
    from shutil import get_terminal_size
    from textwrap import wrap

    if not sys.stdout.isatty():
        return text
    width = max(get_terminal_size().columns, 20)
    lines = []
    for line in text.splitlines():
        own = line[: len(line) - len(line.lstrip())]
        lines += wrap(line.strip(), width, initial_indent=own, subsequent_indent=f"{own}    ",
                      break_on_hyphens=False) or [""]  # fmt: skip
    return "".join(f"{line}\n" for line in lines)


def say(console: "Console", text: str) -> None:
    """Print text without wrapping its lines."""
    console.print(text, soft_wrap=True, markup=False)
