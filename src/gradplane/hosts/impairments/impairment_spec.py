"""Reading the specs of impairments.py: keys, kinds, ranges, and errors that name the way out."""

from collections.abc import Collection, Mapping
from typing import Any

from gradplane._suggestions import hint
from gradplane.hosts.config import ConfigError
from gradplane.hosts.wire.aggregation import Type

AGG_TYPES = tuple(kind.name.lower().replace("_", " ") for kind in Type)
STREAM_TYPES = ("stream", "values", "ack")
OTHER = "other"
FLOWS: dict[str, Collection[str]] = {
    "agg": AGG_TYPES,
    "stream": STREAM_TYPES,
    "all": (*AGG_TYPES, *STREAM_TYPES, OTHER),
}

Spec = Mapping[str, Any]


def known_keys(spec: Spec, known: Collection[str], what: str) -> None:
    """ConfigError for a key that is not known, with the nearest one."""
    for key in spec:
        if key not in known:
            raise ConfigError(f"{what}: unknown key {key!r}, {hint(key, known, repr)}")


def get(spec: Spec, key: str, kind: Any, default: Any = None) -> Any:
    """The key's value, of that kind; ConfigError if it is missing and has no default."""
    value = spec.get(key, default)
    if value is None:
        raise ConfigError(f"impairment {spec['model']}: {key} is missing")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ConfigError(f"impairment {spec['model']}: {key} = {value!r} is of the wrong kind")
    return value


def whole(spec: Spec, key: str, default: int | None = None) -> int:
    """A whole number of at least 1; the default is not checked."""
    value = int(get(spec, key, int, default))
    if key in spec and value < 1:
        raise ConfigError(f"impairment {spec['model']}: {key} = {value}: it must be at least 1")
    return value


def fraction(spec: Spec, key: str, default: float | None = None) -> float:
    """A number from 0 to 1."""
    value = get(spec, key, (int, float), default)
    if not 0 <= value <= 1:
        raise ConfigError(f"impairment {spec['model']}: {key} = {value}: it must be from 0 to 1")
    return float(value)


def directions(spec: Spec) -> tuple[str, ...]:
    """The key `direction`."""
    direction = spec.get("direction", "both")
    if direction not in ("up", "down", "both"):
        raise ConfigError(
            f"impairment {spec['model']}: direction = {direction!r}: it must be up, down or both"
        )
    return ("up", "down") if direction == "both" else (direction,)


def types(spec: Spec) -> Collection[str]:
    """The key `flow`, as packet types."""
    flow = spec.get("flow", "all")
    if isinstance(flow, str) and flow in FLOWS:
        return FLOWS[flow]
    listed = [flow] if isinstance(flow, str) else flow
    for kind in listed:
        if kind not in FLOWS["all"]:
            raise ConfigError(
                f"impairment {spec['model']}: flow = {kind!r}: it must be agg, stream, all or a "
                f"list of {', '.join(FLOWS['all'])}"
            )
    return tuple(listed)
