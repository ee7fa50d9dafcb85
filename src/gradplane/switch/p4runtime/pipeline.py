"""A program under control: its objects by id, its running state, and the controllers' own data."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gradplane._p4runtime import p4r
from gradplane.switch.arch.architecture import Architecture
from gradplane.switch.control.store import Store
from gradplane.switch.p4runtime.bit_strings import from_bytes, to_bytes
from gradplane.switch.p4runtime.catalog import Catalog
from gradplane.switch.p4runtime.entry_rules import EntryRules, NoRules
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.packet_buffers import Bytes, Ints, Sent
from gradplane.switch.runtime.state import State

if TYPE_CHECKING:
    from gradplane.switch.packet_tracing import PacketWatcher


class RunningSwitch(Protocol):
    """The interface that the control plane needs of a switch; gradplane.switch.Switch has it."""

    @property
    def architecture(self) -> Architecture: ...

    @property
    def state(self) -> State: ...

    @property
    def store(self) -> Store: ...

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    @property
    def cpu_port(self) -> int | None: ...

    def process(self, port: int, packet: bytes) -> list[tuple[int, bytes]]: ...

    def watch(self, watcher: PacketWatcher) -> None: ...

    def unwatch(self, watcher: PacketWatcher) -> None: ...

    def poll(self) -> list[tuple[int, bytes]]: ...

    def process_spans(self, ports: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent: ...


class PlainEntries(NamedTuple):
    """A table's entries with one action that are read without looking at anything but numbers: the
    keys are exact, and no rule is about them. `keys`, `params`: the id and the width of each."""

    action: int
    keys: tuple[tuple[int, int], ...]
    params: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Pipeline:
    """One pushed or loaded program. `config` is the answer to GetForwardingPipelineConfig.

    `whole`: reads and writes are the switch's own, to save or restore all state; then ids of
    members, groups and sessions may be 0, which commands choose and controllers cannot.
    `rules`: what the program's annotations demand of entries. `binaries`: the device configs of
    several programs of a chip, by name, as they were pushed. `plain`: the plain entries by the ids
    of table and action, None where they are not plain, as far as somebody has asked.
    """

    catalog: Catalog
    switch: RunningSwitch
    config: p4r.ForwardingPipelineConfig
    whole: bool = False
    rules: EntryRules = field(default_factory=NoRules)
    binaries: Mapping[str, bytes] = field(default_factory=dict)
    plain: dict[tuple[int, int], PlainEntries | None] = field(default_factory=dict, init=False)

    @property
    def state(self) -> State:
        return self.switch.state

    @property
    def store(self) -> Store:
        return self.switch.store

    def digest_config(self, number: int) -> p4r.DigestEntry.Config | None:
        """Return how the messages of a digest are gathered, None while it is not enabled."""
        extern = self.catalog.digests.get(number)
        found = None if extern is None else self.store.digests.get(extern.name)
        return None if found is None else p4r.DigestEntry.Config(**found)

    @property
    def port_bits(self) -> int:
        """Width of a port number in the program's architecture."""
        return self.switch.architecture.port_bits

    def read_port(self, data: bytes, where: str) -> int:
        """Decode the port of a replica, or a watched one: a name, if the program names ports and
        it is printable text, else a number. Raises RpcError."""
        names = self.catalog.port_names
        if names is None or not _is_text(data):
            return from_bytes(data, self.port_bits, where)
        number = names.number(data.decode())
        if number >> self.port_bits:
            code, known = "OUT_OF_RANGE", f"port {data.decode()} stands for {number}"
            raise RpcError(code, f"{where}: {known}, which does not fit bit<{self.port_bits}>")
        return number

    def show_port(self, port: int) -> bytes:
        """Encode a port, as `read_port` takes it."""
        names = self.catalog.port_names
        return to_bytes(port, self.port_bits) if names is None else names.name(port).encode()


def only_modify(kind: int, what: str) -> None:
    """Refuse INSERT and DELETE of an object that always exists."""
    if kind != p4r.Update.MODIFY:
        raise invalid(f"{what} can only be modified (MODIFY), not inserted or deleted")


def _is_text(data: bytes) -> bool:
    """Return whether a port's bytes are its name: in a number of up to 9 bits a control character
    comes first, but for 32 to 126."""
    try:
        return data.decode().isprintable() and data != b""
    except UnicodeDecodeError:
        return False
