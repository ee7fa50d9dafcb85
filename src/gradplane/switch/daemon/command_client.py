"""Commands to a switch that runs in another process (command_service.py)."""

from __future__ import annotations

from collections.abc import Iterator

from gradplane.switch.daemon.clients import connect, open_call, received

METHOD = "Commands"


class CommandClient:
    """simple_switch_CLI's commands for the switch at `address` ("127.0.0.1:9559").

    Its methods raise Refused where the switch cannot be reached.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._channel = connect(address)

    def run(self, text: str, file: str) -> Iterator[dict[str, str]]:
        """Run a text of commands, or a runtime JSON file; `file` names it in answers.

        Yields an answer for each: {"where": "FILE:LINE", "output": ..., "error": the reason or ""}.
        """
        call = open_call(self._channel, METHOD, {"text": text, "file": file})
        yield from received(self.address, call)

    def complete(self, line: str) -> list[str]:
        """Return the completions of the last word of an unfinished line."""
        call = open_call(self._channel, METHOD, {"complete": line})
        return [choice for answer in received(self.address, call) for choice in answer["choices"]]

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> CommandClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
