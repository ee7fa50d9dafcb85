"""The gNMI service of a live switch: Capabilities, Get, Set and Subscribe.

Source: gNMI specification 0.10 (openconfig/reference, rpc/gnmi/gnmi-specification.md). Beyond
openconfig-interfaces there is no data. A change of the configuration lasts until the switch ends.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc

from gradplane._p4runtime import gnmi
from gradplane.switch.gnmi.interfaces import (
    COUNTERS,
    LIST,
    MODULE,
    TOP,
    WRITABLE,
    Leaf,
    Pattern,
    Value,
    leaves,
    path_of,
    path_text,
    subtrees,
)
from gradplane.switch.p4runtime.grpc_methods import Gate, RpcMethod, service_handler
from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS, Limits
from gradplane.switch.p4runtime.response_streams import ResponseStream, StreamSlots
from gradplane.switch.p4runtime.status_errors import RpcError, internal_error, invalid
from gradplane.switch.runtime.interfaces import Interfaces

_VERSION = gnmi.DESCRIPTOR.GetOptions().Extensions[gnmi.gnmi_service]
_TICK = 0.05  # seconds between looks for changes
_SHORTEST = 100_000_000  # nanoseconds between samples
_COUNTERS_EVERY = 10_000_000_000  # nanoseconds, where the target chooses
_MODEL = gnmi.ModelData(name=MODULE, organization="OpenConfig working group", version="3.0.0")
_ENCODINGS = (gnmi.JSON, gnmi.PROTO, gnmi.JSON_IETF)
_PARTS = {gnmi.GetRequest.CONFIG: "config/", gnmi.GetRequest.STATE: "state/"}
_PARTS[gnmi.GetRequest.OPERATIONAL] = "state/"


class GnmiService:
    """Answers requests about `ports`."""

    def __init__(self, ports: Interfaces, limits: Limits = DEFAULT_LIMITS) -> None:
        self._ports = ports
        self._streams = StreamSlots(limits.subscriptions, "subscriptions")
        self._setting = threading.Lock()

    def handler(self, gate: Gate) -> grpc.GenericRpcHandler:
        """Return the handler for P4RuntimeServer."""
        return service_handler("gnmi.gNMI", {
            "Capabilities": RpcMethod(
                _answered(self.capabilities), gnmi.CapabilityRequest, gnmi.CapabilityResponse
            ),
            "Get": RpcMethod(_answered(self.get), gnmi.GetRequest, gnmi.GetResponse),
            "Set": RpcMethod(_answered(self.set), gnmi.SetRequest, gnmi.SetResponse),
            "Subscribe": RpcMethod(
                self._subscribe, gnmi.SubscribeRequest, gnmi.SubscribeResponse,
                requests=True, responses=True,
            ),
        }, gate)  # fmt: skip

    def capabilities(self, request: gnmi.CapabilityRequest) -> gnmi.CapabilityResponse:
        """Return the model, the encodings and the version of gNMI."""
        return gnmi.CapabilityResponse(
            supported_models=[_MODEL], supported_encodings=_ENCODINGS, gNMI_version=_VERSION
        )

    def get(self, request: gnmi.GetRequest) -> gnmi.GetResponse:
        """Return a notification for each path.

        With PROTO its updates are leaves, with JSON what the path names. Raises RpcError.
        """
        _check(request.encoding, request.use_models)
        _known(gnmi.GetRequest.DataType, request.type, "type")
        part = _PARTS.get(request.type, "")
        values, now = leaves(self._ports), time.time_ns()
        answer = gnmi.GetResponse()
        for path in request.path or [gnmi.Path()]:
            pattern = Pattern(request.prefix, path)
            found = {leaf: v for leaf, v in pattern.of(values).items() if part in leaf[1]}
            notification = answer.notification.add(timestamp=now, prefix=_echo(request.prefix))
            if request.encoding == gnmi.PROTO:
                notification.update.extend(_updates(found, gnmi.PROTO))
                continue
            for at, value in subtrees(pattern, found):
                counters = COUNTERS in path_text(at.elem) + "/"
                notification.update.add(path=at, val=_json(value, request.encoding, counters))
        return answer

    def set(self, request: gnmi.SetRequest) -> gnmi.SetResponse:
        """Change the configuration: all of a request, or nothing. Raises RpcError.

        A deleted leaf has its default value again.
        """
        if request.union_replace:
            raise RpcError("UNIMPLEMENTED", "union_replace is not offered: use replace")
        answer = gnmi.SetResponse(prefix=request.prefix, timestamp=time.time_ns())
        changes: dict[str, bool] = {}
        with self._setting:
            values = leaves(self._ports)
            for path in request.delete:
                self._change(changes, values, request.prefix, path, None)
                answer.response.add(path=path, op=gnmi.UpdateResult.DELETE)
            for op, updates in (
                (gnmi.UpdateResult.REPLACE, request.replace),
                (gnmi.UpdateResult.UPDATE, request.update),
            ):
                for update in updates:
                    self._change(changes, values, request.prefix, update.path, update.val)
                    answer.response.add(path=update.path, op=op)
            before = {name: bool(values[name, WRITABLE]) for name in changes}
            try:
                for name, up in changes.items():
                    self._enable(name, up)
            except RpcError:
                for name, up in before.items():
                    self._ports.enable(name, up)
                raise
        return answer

    def _change(
        self,
        changes: dict[str, bool],
        values: dict[Leaf, Value],
        prefix: gnmi.Path,
        path: gnmi.Path,
        value: gnmi.TypedValue | None,
    ) -> None:
        """Add what one part of a request asks for. value: None for the default."""
        pattern = Pattern(prefix, path)
        found = pattern.of(values)
        names = [name for name, below in found if below == WRITABLE]
        if not names:
            raise invalid(f"{pattern.text} cannot be set: only {WRITABLE} can")
        if value is None:
            changes.update(dict.fromkeys(names, True))
            return
        at = {path_text(path_of((name, WRITABLE)).elem): name for name in names}
        for leaf, new in _written(pattern, value):
            if leaf in at:
                changes[at[leaf]] = _boolean(leaf, new)
            elif leaf not in {path_text(path_of(f).elem) for f, v in found.items() if v == new}:
                raise invalid(f"{leaf} cannot be set: only {WRITABLE} can")

    def _enable(self, name: str, up: bool) -> None:
        try:
            self._ports.enable(name, up)
        except PermissionError as error:
            raise RpcError(
                "PERMISSION_DENIED",
                f"the switch may not set {name} {'up' if up else 'down'}: it needs CAP_NET_ADMIN",
            ) from error
        except OSError as error:
            raise RpcError("ABORTED", f"{name}: {error.strerror}") from error

    # -- subscriptions ---------------------------------------------------------------------------

    def _subscribe(
        self, requests: Iterable[gnmi.SubscribeRequest], context: grpc.ServicerContext
    ) -> Iterator[gnmi.SubscribeResponse]:
        stream, closed = ResponseStream(), threading.Event()
        subscriber = _Subscriber(self._ports, stream, closed)

        def take(request: gnmi.SubscribeRequest) -> None:
            subscriber.take(request)
            self._streams.settle(stream)

        try:
            with self._streams.use(stream):
                yield from stream.serve(requests, take, closed.set, "gnmi stream", context)
        finally:
            closed.set()


@dataclass
class _Watch:
    """A subscription to a path. `sent`: the values sent last; `due`, `beat`: when to send next."""

    pattern: Pattern
    every: int | None  # nanoseconds; None: on change
    redundant: bool = True  # also values that have not changed
    heartbeat: int = 0  # nanoseconds
    counters: bool | None = None  # False: all but counters; True: these alone
    due: int = 0
    beat: int = 0
    sent: dict[Leaf, Value] = field(default_factory=dict)

    def step(self, values: dict[Leaf, Value], now: int) -> tuple[dict[Leaf, Value], list[Leaf]]:
        """Return the leaves to send now, and those that are gone."""
        beats = bool(self.heartbeat) and now >= self.beat
        if self.every is not None and now < self.due and not beats:
            return {}, []
        found = self._found(values)
        everything = beats or (self.every is not None and self.redundant)
        changed = {k: v for k, v in found.items() if everything or self.sent.get(k) != v}
        gone = [leaf for leaf in self.sent if leaf not in found]
        self.sent = found
        if self.every is not None:
            self.due = max(self.due + self.every, now)
        if self.heartbeat and (beats or not self.beat):
            self.beat = now + self.heartbeat
        return changed, gone

    def _found(self, values: dict[Leaf, Value]) -> dict[Leaf, Value]:
        """Return the leaves there are: an interface may go, and come back, meanwhile."""
        try:
            found = self.pattern.of(values)
        except RpcError:
            return {}
        if self.counters is None:
            return found
        return {k: v for k, v in found.items() if k[1].startswith(COUNTERS) == self.counters}


class _Subscriber:
    """One stream of a client: takes its requests, and sends what it subscribed to."""

    def __init__(self, ports: Interfaces, stream: ResponseStream, closed: threading.Event) -> None:
        self._ports = ports
        self._stream = stream
        self._closed = closed
        self._wanted: gnmi.SubscriptionList | None = None
        self._patterns: list[Pattern] = []

    def take(self, request: gnmi.SubscribeRequest) -> None:
        """Take a request of the client. Raises RpcError."""
        kind = request.WhichOneof("request")
        if kind == "subscribe" and self._wanted is None:
            self._begin(request.subscribe)
        elif kind == "poll" and self._is(gnmi.SubscriptionList.POLL):
            self._send_all()
        elif kind == "poll":
            raise invalid("poll, on a stream without a POLL subscription")
        else:
            raise invalid("expected one subscription, then polls")

    def _is(self, mode: gnmi.SubscriptionList.Mode.ValueType) -> bool:
        return self._wanted is not None and self._wanted.mode == mode

    def _begin(self, wanted: gnmi.SubscriptionList) -> None:
        _check(wanted.encoding, wanted.use_models)
        _known(gnmi.SubscriptionList.Mode, wanted.mode, "mode")
        if not wanted.subscription:
            raise invalid("the subscription names no path")
        watches = [w for s in wanted.subscription for w in _watches(wanted.prefix, s)]
        self._patterns = [Pattern(wanted.prefix, s.path) for s in wanted.subscription]
        self._wanted = wanted
        if self._is(gnmi.SubscriptionList.POLL):
            return
        if not self._is(gnmi.SubscriptionList.STREAM):
            self._send_all()
            self._stream.end()
            return
        values, now = leaves(self._ports), time.monotonic_ns()
        for pattern in self._patterns:
            pattern.of(values)  # an interface that is unknown is an error at the start
        for watch in watches:
            changed, _ = watch.step(values, now)
            self._send({} if wanted.updates_only else changed, [])
        self._stream.send(gnmi.SubscribeResponse(sync_response=True))
        threading.Thread(
            target=self._watch, args=(watches,), name="gnmi watch", daemon=True
        ).start()

    def _send_all(self) -> None:
        assert self._wanted is not None
        values = leaves(self._ports)
        for pattern in self._patterns:
            found = pattern.of(values)
            self._send({} if self._wanted.updates_only else found, [])
        self._stream.send(gnmi.SubscribeResponse(sync_response=True))

    def _watch(self, watches: list[_Watch]) -> None:
        try:
            while not self._closed.wait(_TICK):
                values, now = leaves(self._ports), time.monotonic_ns()
                for watch in watches:
                    self._send(*watch.step(values, now))
        except Exception as error:
            self._stream.end(internal_error(error, "a gNMI subscription"))

    def _send(self, found: dict[Leaf, Value], gone: Sequence[Leaf]) -> None:
        if not found and not gone:
            return
        assert self._wanted is not None
        notification = gnmi.Notification(
            timestamp=time.time_ns(),
            prefix=_echo(self._wanted.prefix),
            update=_updates(found, self._wanted.encoding),
            delete=map(path_of, gone),
        )
        self._stream.send(gnmi.SubscribeResponse(update=notification))


def _watches(prefix: gnmi.Path, wanted: gnmi.Subscription) -> Iterator[_Watch]:
    """Yield what one subscription watches. Where the target may choose, counters are sampled."""
    pattern = Pattern(prefix, wanted.path)
    _known(gnmi.SubscriptionMode, wanted.mode, f"{pattern.text}: mode")
    every, beat = wanted.sample_interval, wanted.heartbeat_interval
    if every and every < _SHORTEST and wanted.mode != gnmi.ON_CHANGE:
        raise invalid(
            f"{pattern.text}: a sample_interval of {every} ns is too short: the shortest is"
            f" {_SHORTEST} ns"
        )
    match wanted.mode:
        case gnmi.ON_CHANGE:
            yield _Watch(pattern, None, heartbeat=beat)
        case gnmi.SAMPLE:
            yield _Watch(pattern, every or _SHORTEST, not wanted.suppress_redundant, beat)
        case _:
            yield _Watch(pattern, None, heartbeat=beat, counters=False)
            yield _Watch(pattern, every or _COUNTERS_EVERY, counters=True)


# -- values ---------------------------------------------------------------------------------------


def _check(encoding: gnmi.Encoding.ValueType, models: Iterable[gnmi.ModelData]) -> None:
    if encoding not in _ENCODINGS:
        offered = ", ".join(map(gnmi.Encoding.Name, _ENCODINGS))
        raise RpcError("UNIMPLEMENTED", f"encoding {encoding} is not one of {offered}")
    for model in models:
        if model.name != MODULE:
            raise invalid(f'model "{model.name}" is not {MODULE}')


def _known(kind: Any, value: int, what: str) -> None:
    """Raise RpcError for a number that `kind`, an enum of gNMI, does not have."""
    if value not in kind.values():
        offered = ", ".join(kind.keys())
        raise invalid(f"{what} {value} is unknown; there are {offered}")


def _echo(prefix: gnmi.Path) -> gnmi.Path | None:
    """Return the prefix of an answer: the target that the request names (section 2.2.2.1)."""
    return gnmi.Path(target=prefix.target) if prefix.target else None


def _updates(found: dict[Leaf, Value], encoding: gnmi.Encoding.ValueType) -> Iterator[gnmi.Update]:
    """Yield leaves, as JSON_IETF or as scalars.

    JSON, which is also what clients have that choose nothing, means scalars here: Stratum sends
    them, and finsy 0.30 reads nothing else.
    """
    for leaf, value in found.items():
        if _is_ietf(encoding):
            typed = _json(value, encoding, leaf[1].startswith(COUNTERS))
        else:
            typed = _typed(value)
        yield gnmi.Update(path=path_of(leaf), val=typed)


def _typed(value: Value) -> gnmi.TypedValue:
    match value:
        case bool():
            return gnmi.TypedValue(bool_val=value)
        case int():
            return gnmi.TypedValue(uint_val=value)
        case str():
            return gnmi.TypedValue(string_val=value)


def _is_ietf(encoding: gnmi.Encoding.ValueType) -> bool:
    return encoding == gnmi.JSON_IETF


def _json(
    value: object, encoding: gnmi.Encoding.ValueType, counters: bool = False
) -> gnmi.TypedValue:
    """Return JSON; as RFC 7951 has it, the outermost names say their module, and numbers of 64
    bits, which counters are, are strings."""
    if not _is_ietf(encoding):
        return gnmi.TypedValue(json_val=json.dumps(value).encode())
    value = _with_strings(value, counters)
    if isinstance(value, dict):
        value = {f"{MODULE}:{name}": below for name, below in value.items()}
    return gnmi.TypedValue(json_ietf_val=json.dumps(value).encode())


def _with_strings(tree: object, counter: bool = False) -> object:
    match tree:
        case dict():
            return {n: _with_strings(v, counter or n == "counters") for n, v in tree.items()}
        case list():
            return [_with_strings(item) for item in tree]
        case bool():
            return tree
        case int():
            return str(tree) if counter else tree
    return tree


def _written(pattern: Pattern, value: gnmi.TypedValue) -> Iterator[tuple[str, object]]:
    """Yield the path of each leaf that a Set writes, with the value."""
    kind = value.WhichOneof("value")
    base = pattern.text.replace(f"{MODULE}:", "")
    if kind not in ("json_val", "json_ietf_val"):
        yield base, getattr(value, kind) if kind else None
        return
    try:
        tree = json.loads(getattr(value, kind))
    except ValueError as error:
        raise invalid(f"{base}: the value is no JSON: {error}") from error
    yield from _flat(base.rstrip("/"), tree)


def _flat(base: str, tree: object) -> Iterator[tuple[str, object]]:
    match tree:
        case dict():
            for name, below in tree.items():
                yield from _flat(f"{base}/{name.removeprefix(f'{MODULE}:')}", below)
        case list() if base == f"/{TOP}/{LIST}":
            for entry in tree:
                if not isinstance(entry, dict) or "name" not in entry:
                    raise invalid(f"{base}: an entry has no name")
                yield from _flat(f"{base}[name={entry['name']}]", entry)
        case _:
            yield base, tree


def _boolean(leaf: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise invalid(f"{leaf}: {value!r} is neither true nor false")
    return value


def _answered(answer: Callable[..., object]) -> Callable[[object, grpc.ServicerContext], object]:
    return lambda request, context: answer(request)
