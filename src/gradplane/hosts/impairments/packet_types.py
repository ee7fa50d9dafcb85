"""The types of packets that impairments distinguish, and the flows that they form."""

from gradplane.hosts.wire import bounded
from gradplane.hosts.wire.aggregation import Type

ARRIVING = ("delay", "duplicate")
"""The verdicts under which a packet arrives; under all others it is lost, or too late."""


AGG_TYPES = tuple(kind.name.lower().replace("_", " ") for kind in Type)
BLOCK_TYPES = tuple(kind.name.lower() for kind in bounded.Type)
STREAM_TYPES = ("stream", "values", "ack")
OTHER = "other"
FLOWS = {
    "agg": (*AGG_TYPES, *BLOCK_TYPES),
    "stream": STREAM_TYPES,
    "all": (*AGG_TYPES, *BLOCK_TYPES, *STREAM_TYPES, OTHER),
}
"""The packet types of each value of an impairment's key `flow` that is not one type."""


def types(flow: str | list[str]) -> tuple[str, ...]:
    """Return the packet types that a flow selects: one by name, a type, or a list of types."""
    if isinstance(flow, str):
        return FLOWS.get(flow, (flow,))
    return tuple(flow)
