"""Digest messages gathered into lists, none told twice before it is acknowledged. No I/O.

P4Runtime specification, section "DigestEntry".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from finsy.proto import p4d, p4r


@dataclass(slots=True)
class _Digest:
    """One digest's buffer, and what was sent and not acknowledged: message -> (list, time)."""

    waiting: dict[bytes, p4d.P4Data] = field(default_factory=dict)
    since: int = 0
    unacknowledged: dict[bytes, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class DigestLists:
    """`configs` (by digest id) says which digests are told, and how; time is in ns."""

    configs: dict[int, p4r.DigestEntry.Config]
    _digests: dict[int, _Digest] = field(default_factory=dict)
    _next_list: int = 1

    @property
    def waiting(self) -> bool:
        """Whether messages are gathered for a list."""
        return any(digest.waiting for digest in self._digests.values())

    def offer(self, digest_id: int, data: p4d.P4Data, now: int) -> list[p4r.DigestList]:
        """A message from the data plane: the lists to send now."""
        config = self.configs.get(digest_id)
        if config is None:
            return []
        digest = self._digests.setdefault(digest_id, _Digest())
        self._forget(digest, config, now)
        key = data.SerializeToString(deterministic=True)
        if key in digest.waiting or key in digest.unacknowledged:
            return []
        if not digest.waiting:
            digest.since = now
        digest.waiting[key] = data
        full = 0 < config.max_list_size <= len(digest.waiting)
        return self._send(digest_id, now) if full or not config.max_timeout_ns else []

    def tick(self, now: int) -> list[p4r.DigestList]:
        """The lists whose oldest message has waited long enough."""
        due = []
        for digest_id, digest in self._digests.items():
            config = self.configs.get(digest_id)
            if config is None:
                digest.waiting.clear()
            elif digest.waiting and now - digest.since >= config.max_timeout_ns:
                due.append(digest_id)
        return [message for digest_id in due for message in self._send(digest_id, now)]

    def acknowledge(self, digest_id: int, list_id: int) -> None:
        digest = self._digests.get(digest_id)
        if digest is not None:
            kept = digest.unacknowledged.items()
            digest.unacknowledged = {k: sent for k, sent in kept if sent[0] != list_id}

    def _forget(self, digest: _Digest, config: p4r.DigestEntry.Config, now: int) -> None:
        """Messages whose acknowledgement did not come in time may be told again."""
        kept = digest.unacknowledged.items()
        digest.unacknowledged = {k: s for k, s in kept if now - s[1] < config.ack_timeout_ns}

    def _send(self, digest_id: int, now: int) -> list[p4r.DigestList]:
        """All that waits; in several lists, where the most that one may have was lowered since."""
        digest, lists = self._digests[digest_id], []
        waiting = iter(digest.waiting.items())
        while some := list(islice(waiting, self.configs[digest_id].max_list_size or None)):
            number, self._next_list = self._next_list, self._next_list + 1
            digest.unacknowledged.update((key, (number, now)) for key, _ in some)
            lists.append(
                p4r.DigestList(
                    digest_id=digest_id,
                    list_id=number,
                    data=[data for _, data in some],
                    timestamp=now,
                )
            )
        digest.waiting.clear()
        return lists
