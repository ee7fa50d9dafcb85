"""links.jsonl: a line for each round's end, with what every link has done since the line before.

Its fields are job, round, at (ns) and links: for each link of the topology, in its order, bytes up
and down, packets dropped up and down, and the most frames that waited in the queue up and down.
Only a network that keeps the queues' peaks, the simulated one, has the file.
"""

import json
from pathlib import Path
from types import TracebackType

from gradplane.runs.records.recorder import Recorder
from gradplane.runs.records.run_folder import LINKS
from gradplane.topologies.network import Network

COLUMNS = ("up_bytes", "down_bytes", "up_dropped", "down_dropped")


class LinkLog:
    """A context manager; call it at the end of each round, as a Recorder's `on_round`."""

    def __init__(self, folder: Path, network: Network) -> None:
        self._path, self._network = folder / LINKS, network

    def __enter__(self) -> "LinkLog":
        self._before = self._network.link_counters() if self._peaks() else []
        self._file = self._path.open("w", encoding="utf-8", buffering=1) if self._before else None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def __call__(self, recorder: Recorder, job: int) -> None:
        """Write the line of the round that the job has just ended."""
        if self._file is None:
            return
        now, peaks = self._network.link_counters(), self._peaks()
        links = [
            [*(getattr(link - before, name) for name in COLUMNS), *peak]
            for link, before, peak in zip(now, self._before, peaks, strict=True)
        ]
        self._before = now
        tally = recorder.jobs[job]
        line = {"job": job, "round": tally.rounds - 1, "at": tally.finished, "links": links}
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def _peaks(self) -> list[tuple[int, int]]:
        return self._network.queue_peaks() or []
