"""Digest messages gathered into lists; none is sent twice before it is acknowledged. No I/O.

P4Runtime specification, section "DigestEntry".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from gradplane._p4runtime import p4d, p4r


@dataclass(slots=True)
class _Digest:
    """One digest: its buffer, its unacknowledged messages, and those by list, with the time when
    it was sent, the oldest first."""

    waiting: dict[bytes, None] = field(default_factory=dict)  # in their order
    since: int = 0
    unacknowledged: set[bytes] = field(default_factory=set)
    lists: dict[int, tuple[int, list[bytes]]] = field(default_factory=dict)

    def forget(self, number: int) -> None:
        """Forget the messages of a list: they may be sent again."""
        _, keys = self.lists.pop(number, (0, []))
        self.unacknowledged.difference_update(keys)


@dataclass(slots=True)
class DigestLists:
    """The lists of all digests that are enabled; time is in ns. config: returns how the messages of
    a digest, by its id, are gathered, None while it is not enabled."""

    config: Callable[[int], p4r.DigestEntry.Config | None]
    _digests: dict[int, _Digest] = field(default_factory=dict)
    _next_list: int = 1

    @property
    def waiting(self) -> bool:
        """True while messages wait for a list to fill."""
        return any(digest.waiting for digest in self._digests.values())

    def offer(self, digest_id: int, data: bytes, now: int) -> list[p4r.DigestList]:
        """Add a message from the data plane, a P4Data's bytes; return the lists to send now."""
        config = self.config(digest_id)
        if config is None:
            return []
        digest = self._digests.setdefault(digest_id, _Digest())
        self._forget(digest, config, now)
        if data in digest.waiting or data in digest.unacknowledged:
            return []
        if not digest.waiting:
            digest.since = now
        digest.waiting[data] = None
        full = 0 < config.max_list_size <= len(digest.waiting)
        return self._send(digest_id, now) if full or not config.max_timeout_ns else []

    def tick(self, now: int) -> list[p4r.DigestList]:
        """Return the lists whose oldest message has waited long enough."""
        due = []
        for digest_id, digest in self._digests.items():
            config = self.config(digest_id)
            if config is None:
                digest.waiting.clear()
            elif digest.waiting and now - digest.since >= config.max_timeout_ns:
                due.append(digest_id)
        return [message for digest_id in due for message in self._send(digest_id, now)]

    def acknowledge(self, digest_id: int, list_id: int) -> None:
        digest = self._digests.get(digest_id)
        if digest is not None:
            digest.forget(list_id)

    def _forget(self, digest: _Digest, config: p4r.DigestEntry.Config, now: int) -> None:
        """Forget messages that were not acknowledged in time: they may be sent again."""
        while digest.lists:
            number, (sent, _) = next(iter(digest.lists.items()))
            if now - sent < config.ack_timeout_ns:
                return
            digest.forget(number)

    def _send(self, digest_id: int, now: int) -> list[p4r.DigestList]:
        """Send all waiting messages, in several lists if the maximum size was lowered since."""
        digest, lists = self._digests[digest_id], []
        waiting = iter(digest.waiting)
        config = self.config(digest_id)
        most = None if config is None else config.max_list_size or None
        while some := list(islice(waiting, most)):
            number, self._next_list = self._next_list, self._next_list + 1
            digest.lists[number] = now, some
            digest.unacknowledged.update(some)
            lists.append(
                p4r.DigestList(
                    digest_id=digest_id,
                    list_id=number,
                    data=map(p4d.P4Data.FromString, some),
                    timestamp=now,
                )
            )
        digest.waiting.clear()
        return lists
