"""The bus between a worker's host, which holds the weights, and the device that computes with them.

A2DTWP, sections III and V-G. At the start of a batch the host packs the weights (Bitpack), sends
them over the bus, and the device unpacks them (Bitunpack); after it the device sends its gradient,
as float32. The host's policy (AWP) computes the norm of each layer. Weights that a server sent at
reduced precision cross the bus as they came. Without either the weights cross as float32, and
nothing is converted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gradplane.hosts.protocols.job_codec import adaptive

Floats = npt.NDArray[np.float32]

TIMES = ("norm", "pack", "down", "unpack", "up")
"""The parts of a batch's time on the bus and at its ends, in a worker's record of a round."""


@dataclass(frozen=True)
class OnDevice:
    """The weights that a batch is computed with, and what it took to send them there.

    precision: bytes of each tensor's values, empty if no policy chooses them. times: ns by name of
    TIMES, the gradient's way back included.
    """

    weights: Floats
    precision: tuple[int, ...]
    times: dict[str, int]

    @property
    def ns(self) -> int:
        """The time of all parts together."""
        return sum(self.times.values())


class Device:
    """A worker's device.

    `keys` are JobConfig.device: rate and back_rate (bit/s); pack_ns, unpack_ns and norm_ns, per
    value; policy, the configuration of codecs.AdaptiveADT, or None.
    """

    def __init__(self, keys: dict[str, Any], initial: Floats) -> None:
        self._keys = keys
        self._codec = None if keys["policy"] is None else adaptive(keys["policy"])
        if self._codec is not None:  # the policy sees the initial weights before any batch
            self._state = self._codec.start(initial.size)

    def send(self, parameters: Floats, pulled: tuple[int, tuple[int, ...]] | None) -> OnDevice:
        """Send the weights, float32[n], for a batch.

        pulled: bytes and precision that a server has sent them in; None if the host packs them.
        """
        if pulled is not None:
            nbytes, precision = pulled
            times = {"norm": 0, "pack": 0, "unpack": self._ns("unpack_ns", parameters.size)}
            return self._sent(parameters, precision, nbytes, times)
        if self._codec is None:
            none = {"norm": 0, "pack": 0, "unpack": 0}
            return self._sent(parameters, (), parameters.nbytes, none)
        data, self._state = self._codec.encode(parameters, state=self._state)
        n = self._codec.compressed
        times = {part: self._ns(f"{part}_ns", n) for part in ("norm", "pack", "unpack")}
        arrived = self._codec.decode(data, parameters.size)
        return self._sent(arrived, self._codec.precision(data), len(data), times)

    def arrived(self, parameters: Floats) -> Floats:
        """Return the weights as the next batch would be computed with them, float32[n]."""
        if self._codec is None:
            return parameters
        data, _ = self._codec.encode(parameters, state=self._state)
        return self._codec.decode(data, parameters.size)

    def _sent(
        self, weights: Floats, precision: tuple[int, ...], nbytes: int, times: dict[str, int]
    ) -> OnDevice:
        down, up = self._keys["rate"], self._keys["back_rate"]
        bus = {"down": _bus_ns(nbytes, down), "up": _bus_ns(weights.nbytes, up)}
        ordered = {part: (times | bus)[part] for part in TIMES}
        return OnDevice(weights, precision, ordered)

    def _ns(self, key: str, values: int) -> int:
        return round(float(self._keys[key]) * values)


def _bus_ns(nbytes: int, rate: int) -> int:
    return round(8e9 * nbytes / rate)
