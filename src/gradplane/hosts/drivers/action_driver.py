"""The driver of a host's state machines: performs their actions in order, keeps their timers, and
passes messages between the streams and the machines."""

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any

from gradplane.hosts.drivers.environment import Environment, Handle
from gradplane.hosts.protocols.actions import (
    Action,
    CancelTimer,
    Defer,
    Deliver,
    Failed,
    Forget,
    Peer,
    Received,
    Record,
    Send,
    SendMessage,
    SetTimer,
)
from gradplane.hosts.protocols.messages import Kind, MessageError, kind_of
from gradplane.hosts.stream.segments import BEYOND
from gradplane.hosts.stream.stream import Stream
from gradplane.hosts.wire.payloads import Payloads

OnMessage = Callable[[Peer, bytes, int], list[Action]]
OnTimer = Callable[[Hashable, int], list[Action]]


class ActionDriver:
    """The state machines of one host, with the stream that listens on local port `stream_port`.

    `send` puts a datagram on the link, `deliver` gets the results, `failed` the peers that a
    stream gave up; `connection`, `granularity` (None: the environment's), `window`, `trip` and
    `about` are the Stream's. open_stream() adds another one.
    Actions that follow from an action are performed before the next one, and results are delivered
    last.
    """

    def __init__(
        self,
        env: Environment,
        stream_port: int,
        send: Callable[[Send], None],
        deliver: Callable[[Deliver], None],
        failed: Callable[[Failed], None],
        connection: int = 1,
        granularity: int | None = None,
        window: int = BEYOND,
        trip: int = 0,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self._env = env
        self._send, self._deliver, self._failed = send, deliver, failed
        least = env.granularity if granularity is None else granularity
        self._first = stream_port
        self._streams: dict[int, Stream] = {}
        self._new_stream = partial(
            Stream,
            connection=connection,
            granularity=least,
            window=window,
            trip=trip,
            about=about,
            probes=env.granularity > 0,
        )
        self.open_stream(stream_port)
        self._on_message: dict[Kind, tuple[OnMessage, OnTimer | None]] = {}
        self._timers: dict[tuple[OnTimer, Hashable], Handle] = {}
        self._waiting: deque[tuple[Action, OnTimer | None]] = deque()
        self._results: deque[Deliver] = deque()
        self._busy = False
        self._unwanted = 0

    @property
    def idle(self) -> bool:
        """True if every message that was sent is acknowledged."""
        return all(stream.idle for stream in self._streams.values())

    @property
    def ignored(self) -> dict[str, int]:
        """The number of datagrams and messages that were ignored, by reason."""
        refused = sum((stream.refused for stream in self._streams.values()), Counter[str]())
        return {"messages": self._unwanted} | {f"stream {why}": n for why, n in refused.items()}

    def open_stream(self, port: int) -> None:
        """Add a stream on another local port, whose messages do not wait behind those of others."""
        self._streams[port] = self._new_stream(port)

    def take_bytes(self, port: int | None = None) -> tuple[int, int]:
        """Return the bytes of messages sent and arrived since the last call, by the stream of that
        port, None: the first one's."""
        return self._streams[self._first if port is None else port].take_bytes()

    def route(
        self, kinds: Iterable[Kind], on_message: OnMessage, on_timer: OnTimer | None = None
    ) -> None:
        """Pass messages of these kinds to `on_message`, whose timers call `on_timer`."""
        self._on_message |= dict.fromkeys(kinds, (on_message, on_timer))

    def receive(
        self, ip: str, source_port: int, payloads: Payloads, port: int | None = None
    ) -> None:
        """Take datagrams for the port of a stream, None: the first one's."""
        stream = self._streams[self._first if port is None else port]
        actions = stream.receive((ip, source_port), payloads, self._env.now())
        self.perform(actions, stream.timer)

    def perform(self, actions: Iterable[Action], on_timer: OnTimer | None = None) -> None:
        """Perform a machine's actions; its timers call `on_timer`."""
        self._waiting.extendleft([(action, on_timer) for action in actions][::-1])
        if self._busy:
            return
        self._busy = True
        try:
            while self._waiting or self._results:
                if self._waiting:
                    self._perform(*self._waiting.popleft())
                else:
                    self._deliver(self._results.popleft())
        finally:
            self._busy = False

    def _perform(self, action: Action, on_timer: OnTimer | None) -> None:
        match action:
            case Send():
                self._send(action)
            case SetTimer(key, at):
                assert on_timer is not None, f"{action} of a machine without timers"
                self._set_timer(on_timer, key, at)
            case CancelTimer(key):
                assert on_timer is not None, f"{action} of a machine without timers"
                self._cancel_timer(on_timer, key)
            case Record(kind, fields):
                self._env.record(kind, **fields)
            case SendMessage(peer, data, values, port):
                stream = self._streams[self._first if port is None else port]
                sent = stream.send_message(peer, data, self._env.now(), values)
                self.perform(sent, stream.timer)
            case Received(peer, data):
                self._received(peer, data)
            case Forget(peer):
                for stream in self._streams.values():
                    self.perform(stream.forget(peer), stream.timer)
            case Defer(values):
                for value in values:
                    self._env.when_idle(value)
            case Deliver():
                self._results.append(action)
            case Failed():
                self._failed(action)

    def _set_timer(self, on_timer: OnTimer, key: Hashable, at: int) -> None:
        self._cancel_timer(on_timer, key)

        def expire() -> None:
            del self._timers[on_timer, key]
            self.perform(on_timer(key, self._env.now()), on_timer)

        self._timers[on_timer, key] = self._env.call_at(at, expire)

    def _cancel_timer(self, on_timer: OnTimer, key: Hashable) -> None:
        handle = self._timers.pop((on_timer, key), None)
        if handle is not None:
            handle.cancel()

    def _received(self, peer: Peer, data: bytes) -> None:
        """Pass on a whole message; count and drop one that is malformed or from the wrong peer."""
        try:
            machine = self._on_message.get(kind_of(data))
            if machine is None:
                raise MessageError(f"a message of kind {data[0]} is for no machine of this host")
            on_message, on_timer = machine
            self.perform(on_message(peer, data, self._env.now()), on_timer)
        except MessageError:
            self._unwanted += 1
