"""simple_switch_CLI's commands for a running switch: from a file, from a pipe, at a prompt.

From a pipe the prompt is printed too, and errors are on standard output: scripts that were written
for simple_switch_CLI look for `RuntimeCmd: NAME[INDEX]= VALUE`.
"""

from __future__ import annotations

import io
import os
import readline
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from gradplane._whole_files import write_output
from gradplane.switch.daemon.clients import ClientTls, CommandClient
from gradplane.switch.runtime.control_errors import SwitchError

PROMPT = "RuntimeCmd: "
_ENDS = ("EOF", "exit", "quit")


def run_commands(address: str, file: Path | None, tls: ClientTls | None = None) -> int:
    """Run a file's commands, or those of standard input, on the switch at `address`.

    Returns the exit status: 0 if all succeeded, else 1. Raises Refused where no switch answers.
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # as files are read
    with CommandClient(address, tls) as client:
        if file is not None:
            return _from_file(client, file)
        if sys.stdin.isatty():
            _at_prompt(client)
            return 0
        return _from_pipe(client)


def _from_file(client: CommandClient, file: Path) -> int:
    failed = False
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    for answer in _answers(client, text, str(file)):
        if answer["error"]:
            failed = True
            print(f"{answer['where']}: {answer['error']}", file=sys.stderr)
        elif answer["output"]:
            print(answer["output"])
    return int(failed)


def _from_pipe(client: CommandClient) -> int:
    _check_switch(client)
    failed = False
    for text in _texts():
        for answer in _answers(client, text, "standard input"):
            failed |= bool(answer["error"])
            print(PROMPT, end="")
            _show(answer)
        sys.stdout.flush()
    print(PROMPT)
    return int(failed)


def _answers(client: CommandClient, text: str, name: str) -> Iterator[dict[str, str]]:
    """Run a text of commands; those that save and load state have their files on this side."""
    lines, start = text.splitlines(), 0
    for i, line in enumerate(lines if not text.lstrip().startswith(("{", "[")) else ()):
        words = line.split()
        if words[:1] in (["serialize_state"], ["load_state"]):
            yield from client.run("\n" * start + "\n".join(lines[start:i]), name)
            yield {"where": f"{name}:{i + 1}", "output": "", "error": _state(client, words)}
            start = i + 1
    yield from client.run("\n" * start + "\n".join(lines[start:]), name)


def _state(client: CommandClient, words: list[str]) -> str:
    """Save or load state; return why it failed, "" for success."""
    command, *files = words
    if len(files) != 1:
        return f"{len(files)} words follow {command}; usage: {command} FILE"
    try:
        if command == "serialize_state":
            write_output(Path(files[0]), client.save_state())
        else:
            client.load_state(Path(files[0]).read_text("utf-8", errors="replace"))
    except (OSError, SwitchError) as error:
        return str(error)
    return ""


def _check_switch(client: CommandClient) -> None:
    """Raise Refused, before any command, where no switch answers."""
    list(client.run("", "no commands"))


def _texts() -> Iterator[str]:
    """Yield commands as they arrive; a file or JSON text as a whole."""
    lines = takewhile(lambda line: line.strip() not in _ENDS, sys.stdin)
    if stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
        yield "".join(lines)
        return
    for line in lines:
        yield line + "".join(lines) if line.lstrip().startswith(("{", "[")) else line


def _at_prompt(client: CommandClient) -> None:
    _set_up_keys(client)
    _check_switch(client)
    while True:
        try:
            line = input(PROMPT)
        except KeyboardInterrupt:
            print()
            continue
        except EOFError:
            print()
            return
        if line.strip() in _ENDS:
            return
        for answer in _answers(client, line, "prompt"):
            _show(answer)


def _set_up_keys(client: CommandClient) -> None:
    """Let the tab key complete commands and names."""
    choices: list[str] = []

    def complete(text: str, number: int) -> str | None:
        nonlocal choices
        if number == 0:
            choices = []
            with suppress(SwitchError):
                choices = client.complete(readline.get_line_buffer()[: readline.get_endidx()])
        return f"{choices[number]} " if number < len(choices) else None

    readline.set_completer_delims(" \t")
    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


def _show(answer: dict[str, str]) -> None:
    if answer["error"]:
        print(f"Error: {answer['error']}")
    elif answer["output"]:
        print(answer["output"])
