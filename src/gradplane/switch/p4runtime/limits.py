"""The limits of a switch's servers, what one client may use; and where they are by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

DEFAULT_ADDRESS = "127.0.0.1:9559"  # the port that IANA assigned to P4Runtime
MIB = 1 << 20


def _limit(default: int, text: str) -> int:
    found: int = field(default=default, metadata={"text": text})
    return found


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of each server. An option of `gradplane switch`, --limit NAME=N, sets one."""

    calls: int = _limit(128, "requests in progress, and half as many reads; more are refused")
    silent_calls: int = _limit(256, "calls whose request has not come yet; the oldest is ended")
    patience: int = _limit(10, "seconds that a call waits for its request")
    stalled_reads: int = _limit(32, "answers that wait for a slow reader; the oldest is ended")
    read_patience: int = _limit(60, "seconds that a part of an answer waits for its reader")
    streams: int = _limit(32, "open streams; beyond that one that has said nothing is ended")
    subscriptions: int = _limit(16, "open subscriptions of gNMI, as for streams")
    traces: int = _limit(8, "traces of packets at a time; more are refused")
    handshake: int = _limit(10, "seconds that a new connection has to speak HTTP/2")
    connection_calls: int = _limit(100, "open calls of one connection; more wait at the client")
    message: int = _limit(32 * MIB, "bytes of a request of a primary or bound client")
    small_message: int = _limit(MIB, "bytes of any other request, and of a message on a stream")
    metadata: int = _limit(MIB // 4, "bytes of a call's metadata")
    roles: int = _limit(64, "roles; beyond that the one without controllers for longest goes")
    role_name: int = _limit(256, "bytes of a role's name")
    role_config: int = _limit(MIB // 16, "bytes of a role's configuration")
    waiting: int = _limit(50_000, "messages that wait for a slow client; more are lost")

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Limits:
        """Read limits, NAME=N each. Raises ValueError with what is wrong."""
        names = [f.name for f in fields(cls)]
        given: dict[str, int] = {}
        for text in texts:
            name, equals, number = text.partition("=")
            name = name.replace("-", "_")
            if name not in names or not equals:
                known = ", ".join(name.replace("_", "-") for name in names)
                raise ValueError(f"{text}: expected NAME=N; the limits are {known}")
            if not (number.isdecimal() and 0 < int(number) < 1 << 31):
                raise ValueError(f"{text}: expected a number from 1 to {(1 << 31) - 1}")
            given[name] = int(number)
        return cls(**given)


DEFAULT_LIMITS = Limits()
