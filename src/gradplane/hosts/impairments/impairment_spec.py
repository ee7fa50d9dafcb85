"""Access to the specs of impairments with checks of keys, types and ranges."""

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


def refusal(spec: Spec, key: str, text: str) -> ConfigError:
    """Return the error of a spec whose key is wrong."""
    return ConfigError(f"impairment {spec['model']}: {text}", key)


def known_keys(spec: Spec, known: Collection[str], what: str) -> None:
    """Raise ConfigError with the nearest known key if a key is unknown."""
    for key in spec:
        if key not in known:
            raise ConfigError(f"{what}: unknown key {key!r}, {hint(key, known, repr)}", key)


def get(spec: Spec, key: str, kind: Any, default: Any = None) -> Any:
    """Return the key's value; ConfigError for a wrong type, or if it is missing."""
    value = spec.get(key, default)
    if value is None:
        raise refusal(spec, key, f"{key} is missing")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise refusal(spec, key, f"{key} = {value!r} is of the wrong kind")
    return value


def whole(spec: Spec, key: str, default: int | None = None) -> int:
    """Return an integer of at least 1; the default is not checked."""
    value = int(get(spec, key, int, default))
    if key in spec and value < 1:
        raise refusal(spec, key, f"{key} = {value}: it must be at least 1")
    return value


def fraction(spec: Spec, key: str, default: float | None = None) -> float:
    """Return a number from 0 to 1."""
    value = get(spec, key, (int, float), default)
    if not 0 <= value <= 1:
        raise refusal(spec, key, f"{key} = {value}: it must be from 0 to 1")
    return float(value)


def directions(spec: Spec) -> tuple[str, ...]:
    """Return the directions that the key `direction` selects."""
    direction = spec.get("direction", "both")
    if direction not in ("up", "down", "both"):
        text = f"direction = {direction!r}: it must be up, down or both"
        raise refusal(spec, "direction", text)
    return ("up", "down") if direction == "both" else (direction,)


def types(spec: Spec) -> Collection[str]:
    """Return the packet types that the key `flow` selects."""
    flow = spec.get("flow", "all")
    if isinstance(flow, str) and flow in FLOWS:
        return FLOWS[flow]
    listed = [flow] if isinstance(flow, str) else flow
    for kind in listed:
        if kind not in FLOWS["all"]:
            kinds = ", ".join(FLOWS["all"])
            text = f"flow = {kind!r}: it must be agg, stream, all or a list of {kinds}"
            raise refusal(spec, "flow", text)
    return tuple(listed)
