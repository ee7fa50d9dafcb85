"""The lengths of the ports' queues: the packets that wait in Linux's queueing disciplines (tc).

The switch gives each packet to its port's interface at once. Where the link is slower (tc, `bw` in
Mininet), packets wait there; programs see how many as `enq_qdepth` and `deq_qdepth`.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Protocol

from gradplane.switch.runtime.egress_queues import QUEUES
from gradplane.switch.runtime.links import Links

INTERVAL = 0.001
"""Seconds between two looks at the queues; a look takes about 30 microseconds."""
IDLE_INTERVAL = 1.0
"""Seconds between two looks while no port has a queue."""

# linux/netlink.h, linux/rtnetlink.h, linux/pkt_sched.h
_NLMSG_ERROR, _NLMSG_DONE, _RTM_NEWQDISC, _RTM_GETQDISC = 2, 3, 36, 38
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_TC_H_ROOT = 0xFFFF_FFFF
_TCA_KIND, _TCA_STATS = 1, 3
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_TCMSG = struct.Struct("=BxxxiIII")  # family, interface, handle, parent, info
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_QLEN = struct.Struct("=I")
_QLEN_AT = 28  # in struct tc_stats
_LONGEST = (1 << 19) - 1  # of a bit<19>
_SIZE = 1 << 16

Queue = tuple[int, int]  # the index of an interface, packets in its queue


class IndexedPort(Protocol):
    """The interface that the watch needs of a port; ports.port.Port has it."""

    @property
    def index(self) -> int: ...


class QueueWatch:
    """Reports the lengths of the queues of `ports` (by number) to `links`.

    clock: gives seconds.
    """

    def __init__(
        self,
        ports: Mapping[int, IndexedPort],
        links: Links,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ports = ports
        self._links = links
        self._clock = clock
        self._next = clock()
        self._looking = Lock()
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))

    def update(self) -> None:
        """Look at the queues, unless the last look was a moment ago or another thread looks."""
        if self._clock() < self._next or not self._looking.acquire(blocking=False):
            return
        try:
            self._look()
        finally:
            self._looking.release()

    def _look(self) -> None:
        now = self._clock()
        lengths = dict(self._queues())
        queued = self._links.queued
        for number, port in self._ports.items():
            queued[number % QUEUES] = min(lengths.get(port.index, 0), _LONGEST)
        exists = any(port.index in lengths for port in self._ports.values())
        self._next = now + (INTERVAL if exists else IDLE_INTERVAL)

    def close(self) -> None:
        self._socket.close()

    def _queues(self) -> Iterator[Queue]:
        """Ask the kernel for the root queueing disciplines of all interfaces that have one."""
        body = _TCMSG.pack(0, 0, 0, 0, 0)
        flags = _NLM_F_REQUEST | _NLM_F_DUMP
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), _RTM_GETQDISC, flags, 0, 0) + body)
        while True:
            answer = self._socket.recv(_SIZE)
            yield from read_queues(answer)
            if _is_last(answer):
                return


def read_queues(answer: bytes) -> Iterator[Queue]:
    """Read the interfaces and their root queues' lengths from a part of the kernel's answer."""
    for kind, message in _messages(answer):
        if kind != _RTM_NEWQDISC:
            continue
        _, index, _, parent, _ = _TCMSG.unpack_from(message)
        attributes = dict(_attributes(message[_TCMSG.size :]))
        if parent == _TC_H_ROOT and attributes.get(_TCA_KIND) != b"noqueue\0":
            (length,) = _QLEN.unpack_from(attributes[_TCA_STATS], _QLEN_AT)
            yield index, length


def _is_last(answer: bytes) -> bool:
    return any(kind in (_NLMSG_DONE, _NLMSG_ERROR) for kind, _ in _messages(answer))


def _messages(answer: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(answer):
        length, kind, *_ = _HEADER.unpack_from(answer, at)
        yield kind, answer[at + _HEADER.size : at + length]
        at += _aligned(length)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        yield kind, data[at + _ATTRIBUTE.size : at + length]
        at += _aligned(length)


def _aligned(length: int) -> int:
    return (length + 3) & ~3
