"""Settings of externs, ports and queues: hashes, CRCs, digests, ports' metadata, queues, links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradplane.switch.control.journal import Journal
from gradplane.switch.control.kind import Field, Kind, Numbered, Record
from gradplane.switch.runtime.crcs import CrcParameters, CustomCrc
from gradplane.switch.runtime.dynamic_hashes import DynamicHash
from gradplane.switch.runtime.egress_queues import EgressQueues
from gradplane.switch.runtime.links import Links
from gradplane.switch.runtime.state import State
from gradplane.switch.runtime.written_tables import MOST_NS
from gradplane.switch.runtime.written_tables import ExpireTimes as Times


class Hashes(Kind[str]):
    """The hashes of a program, by name.

    `crc`: in place of the program's algorithm, None for that; `spans`: the bits that it takes, None
    for all of them; `shown`: what a notation keeps of both, under its own names.
    """

    name = "hash"
    fields = (Field("crc"), Field("spans"), Field("total", 0), Field("shown", {}))

    def __init__(self, journal: Journal, hashes: Mapping[str, DynamicHash]) -> None:
        super().__init__(journal)
        self._hashes = hashes

    def existing(self) -> Iterable[str]:
        return self._hashes

    def get(self, key: str) -> Record | None:
        hash = self._hashes.get(key)
        if hash is None:
            return None
        return {"crc": hash.crc, "spans": hash.spans, "total": hash.total, "shown": hash.shown}

    def put(self, key: str, record: Record | None) -> None:
        record = self.defaults() if record is None else record
        former, hash = self.read(key), self._hashes[key]
        _set_hash(hash, record)
        self.journal.record(_set_hash, hash, former)


def _set_hash(hash: DynamicHash, record: Record) -> None:
    if hash.crc != record["crc"]:
        hash.set(record["crc"])
    hash.take(record["spans"], record["total"])
    hash.shown = record["shown"]


class CustomCrcs(Kind[str]):
    """The CRCs of v1model's custom algorithms, by the name of the calculation."""

    name = "CRC"
    fields = (Field("parameters"),)

    def __init__(self, journal: Journal, crcs: Iterable[CustomCrc]) -> None:
        super().__init__(journal)
        self._crcs = {crc.name: crc for crc in crcs}

    def existing(self) -> Iterable[str]:
        return self._crcs

    def get(self, key: str) -> Record | None:
        return {"parameters": self._crcs[key].parameters} if key in self._crcs else None

    def put(self, key: str, record: Record | None) -> None:
        crc = self._crcs[key]
        former = crc.parameters
        parameters: CrcParameters = crc.standard if record is None else record["parameters"]
        crc.set(parameters)
        self.journal.record(crc.set, former)

    def of_width(self, width: int) -> dict[str, CustomCrc]:
        """Return those of so many bits, by name."""
        return {name: crc for name, crc in self._crcs.items() if crc.width == width}


class Digests(Kind[str]):
    """The digests that a controller has enabled, by name, and how their messages are gathered."""

    name = "digest"
    fields = (Field("max_timeout_ns", 0), Field("max_list_size", 0), Field("ack_timeout_ns", 0))

    def __init__(self, journal: Journal, state: State) -> None:
        super().__init__(journal)
        self._enabled = state.digests

    def existing(self) -> Iterable[str]:
        return self._enabled

    def get(self, key: str) -> Record | None:
        return self._enabled.get(key)

    def put(self, key: str, record: Record | None) -> None:
        self.journal.put(self._enabled, key, record)


class PortMetadata(Numbered):
    """The metadata of ports, which ingress parsers read before a packet; zeros without any."""

    name = "metadata of port"
    fields = (Field("data", b""),)

    def __init__(self, journal: Journal, state: State) -> None:
        super().__init__(journal, range(len(state.port_metadata)))
        self._rows, self._set = state.port_metadata, state.ports_with_metadata

    def existing(self) -> Iterable[int]:
        return sorted(self._set)

    def get(self, key: int) -> Record | None:
        return {"data": self._rows[key].tobytes()} if key in self._set else None

    def put(self, key: int, record: Record | None) -> None:
        data = bytes(self._rows.shape[1]) if record is None else record["data"]
        self.journal.splice(self._rows[key], slice(None), data)
        self.journal.put(self._set, key, None if record is None else True)


class ExpireTimes(Numbered):
    """The nanoseconds of PNA's expire time profiles, 0: an entry with it stays. Entries that
    packets have added or restarted keep the time that they have."""

    name = "expire time profile"
    fields = (Field("time_ns", 0, range(MOST_NS + 1), "the time in ns"),)

    def __init__(self, journal: Journal, times: Times) -> None:
        super().__init__(journal, range(len(times.cells)))
        self._times = times

    def existing(self) -> Iterable[int]:
        return self.numbers

    def get(self, key: int) -> Record | None:
        self.check_key(key)
        return {"time_ns": int(self._times.cells[key])}

    def put(self, key: int, record: Record | None) -> None:
        time, former = 0 if record is None else record["time_ns"], int(self._times.cells[key])
        self._times.set(key, time)

        def step() -> None:
            if self._times.cells[key] == time:
                self._times.set(key, former)

        self.journal.record(step)

    def changed(self) -> Iterable[int]:
        """Return the profiles whose time is not that of the start."""
        return self._times.changed()

    def reset(self) -> None:
        """Set the times that a program starts with."""
        former = {profile: int(self._times.cells[profile]) for profile in self.changed()}
        self._times.reset()

        def step() -> None:
            for profile, time in former.items():
                self._times.set(profile, time)

        self.journal.record(step)


QueueKey = tuple[int | None, int | None]
"""A port and a priority; None: all of them."""


class Queues(Kind[QueueKey]):
    """The switch's own queues: packets a second (`rate`, 0: no limit) and packets that wait
    (`depth`). A write of all ports is for those that get queues later, too. Raises SwitchError."""

    name = "queue"
    fields = (Field("rate"), Field("depth"))

    def __init__(self, journal: Journal, queues: EgressQueues) -> None:
        super().__init__(journal)
        self.queues = queues

    def existing(self) -> Iterable[QueueKey]:
        return ((queue.port, queue.priority) for queue in self.queues.status())

    def get(self, key: QueueKey) -> Record | None:
        port, priority = key
        if port is None or priority is None:
            return self.defaults()
        queue = self.queues.queue(port, priority)
        return {"rate": queue.rate, "depth": queue.depth}

    def modify(self, key: QueueKey, /, **values: Any) -> None:
        self.put(key, values)

    def put(self, key: QueueKey, record: Record | None) -> None:
        former = self.queues.limits()
        for name, set in (("rate", self.queues.set_rate), ("depth", self.queues.set_depth)):
            if record is not None and record.get(name) is not None:
                set(record[name], *key)
        self.journal.record(self.queues.restore_limits, former, self.queues.limits())


class LinkStates(Numbered):
    """Whether the links of ports are up."""

    name = "link of port"
    fields = (Field("up", True),)

    def __init__(self, journal: Journal, links: Links, ports: int) -> None:
        super().__init__(journal, range(ports))
        self._links = links

    def existing(self) -> Iterable[int]:
        return sorted(self._links.down)

    def get(self, key: int) -> Record | None:
        return {"up": key not in self._links.down}

    def put(self, key: int, record: Record | None) -> None:
        up, was_up = record is None or record["up"], key not in self._links.down
        self._links.set(key, up)

        def step() -> None:
            if (key not in self._links.down) == up:
                self._links.set(key, was_up)

        self.journal.record(step)
