"""[[traffic]]: a flow of background traffic between two hosts."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from gradplane.experiment.sections import Section
from gradplane.hosts.config import Flow
from gradplane.hosts.drivers.background import LEAST_PACKET
from gradplane.topologies.description import Topology
from gradplane.topologies.link_options import parse_rate
from gradplane.topologies.topology_errors import TopologyError

_MOST_PACKET = 1472  # bytes after UDP that fit an MTU of 1500


def _rate(value: Any) -> Any:
    try:
        parse_rate(value, "rate")
    except TopologyError as error:
        raise PydanticCustomError("contradiction", "{text}", {"text": str(error)}) from None
    return value


class TrafficSection(Section):
    """A flow: from where to where, how fast, from when to when or how many bytes."""

    source: str
    destination: str
    rate: Annotated[Any, AfterValidator(_rate)]
    packet: int = Field(default=1400, ge=LEAST_PACKET, le=_MOST_PACKET)
    start_ms: float = Field(default=0.0, ge=0)
    stop_ms: float | None = Field(default=None, gt=0)
    size: int | None = Field(default=None, ge=1)
    arrivals: Literal["constant", "poisson"] = "constant"
    seed: int | None = Field(default=None, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _check_alternatives(self) -> "TrafficSection":
        if self.stop_ms is not None and self.stop_ms <= self.start_ms:
            text = f"traffic: stop_ms = {self.stop_ms} is not after start_ms = {self.start_ms}"
            raise PydanticCustomError("contradiction", "{text}", {"text": text})
        if self.source == self.destination:
            text = f"traffic: source and destination are both {self.source}"
            raise PydanticCustomError("contradiction", "{text}", {"text": text})
        return self

    def flow(self, number: int, network: Topology) -> Flow:
        """Return the flow for its two hosts; the section is resolved."""
        assert self.seed is not None, "not resolved"
        return Flow(
            number=number,
            source_ip=network.host[self.source].ip,
            destination_ip=network.host[self.destination].ip,
            rate=parse_rate(self.rate, "rate"),
            packet=self.packet,
            start_ns=round(self.start_ms * 1e6),
            stop_ns=None if self.stop_ms is None else round(self.stop_ms * 1e6),
            packets=None if self.size is None else -(-self.size // self.packet),
            poisson=self.arrivals == "poisson",
            seed=self.seed,
        )
