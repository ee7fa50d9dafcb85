"""interventions.jsonl: a line for each impairment that was asked for while the run went on.

It is the way from the page of a running experiment to its network, which may be in namespaces of
its own, and the record of what was asked. What the packets suffered is in impairments.jsonl, as
for the impairments of the experiment file.
"""

from __future__ import annotations

import time
from pathlib import Path

from gradplane.hosts.impairments.interventions import Intervention
from gradplane.runs.records.run_folder import INTERVENTIONS


def ask(folder: Path, intervention: Intervention) -> None:
    """Ask the run in the folder for an intervention."""
    with (folder / INTERVENTIONS).open("a", encoding="utf-8") as file:
        file.write(intervention.to_json() + "\n")


class Asked:
    """Called, returns the interventions that were asked for since the last call.

    The file is looked at every `pause` seconds of the wall clock at most."""

    def __init__(self, folder: Path, pause: float = 0.05) -> None:
        self._path, self._pause = folder / INTERVENTIONS, pause
        self._place, self._next = 0, 0.0

    def __call__(self) -> list[Intervention]:
        """Return the new interventions, in their order."""
        now = time.monotonic()
        if now < self._next:
            return []
        self._next = now + self._pause
        try:
            with self._path.open("rb") as file:
                file.seek(self._place)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._place += len(whole)
        return [Intervention.from_json(line) for line in whole.decode().splitlines()]
