"""A program under control: its objects by id, its running state, and what only controllers see."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from finsy.proto import p4r

from gradplane.switch.arch.architecture import Architecture
from gradplane.switch.p4runtime.catalog import Catalog
from gradplane.switch.p4runtime.status_errors import RpcError
from gradplane.switch.runtime.packet_buffers import Bytes, Ints, Sent
from gradplane.switch.runtime.state import State

Undo = Callable[[], None]
EntryKey = tuple[Any, ...]


class RunningSwitch(Protocol):
    """What the control plane needs of a switch; gradplane.switch.Switch is one."""

    @property
    def architecture(self) -> Architecture: ...

    @property
    def state(self) -> State: ...

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    @property
    def cpu_port(self) -> int | None: ...

    def process(self, port: int, packet: bytes) -> list[tuple[int, bytes]]: ...

    def process_spans(self, ports: Ints, data: Bytes, starts: Ints, ends: Ints) -> Sent: ...


@dataclass(slots=True)
class Pipeline:
    """One pushed (or loaded) program. `config` is what GetForwardingPipelineConfig answers.

    The rest is kept for reads to give back what was written, where the switch has no use for it.
    """

    catalog: Catalog
    switch: RunningSwitch
    config: p4r.ForwardingPipelineConfig
    cookies: dict[EntryKey, tuple[int, bytes]] = field(default_factory=dict)
    groups: dict[int, p4r.MulticastGroupEntry] = field(default_factory=dict)
    sessions: dict[int, p4r.CloneSessionEntry] = field(default_factory=dict)
    digests: dict[int, p4r.DigestEntry.Config] = field(default_factory=dict)

    @property
    def state(self) -> State:
        return self.switch.state

    @property
    def port_bits(self) -> int:
        """Width of a port number in the program's architecture."""
        return self.switch.architecture.port_bits


def only_modify(kind: int, what: str) -> None:
    """Refuse INSERT and DELETE of what always exists."""
    if kind != p4r.Update.MODIFY:
        raise RpcError(
            "INVALID_ARGUMENT", f"{what} can only be changed (MODIFY), not inserted or deleted"
        )
