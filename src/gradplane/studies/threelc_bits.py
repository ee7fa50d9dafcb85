"""3LC's traffic over the sparsity multiplier s (Table 2) and over the steps of a run (Fig. 6)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gradplane.codecs._base import Floats
from gradplane.codecs.threelc import ThreeLC

MULTIPLIERS = (1.0, 1.5, 1.75, 1.9)
# ResNet-110 on CIFAR-10, gradient pushes and model pulls of all standard training steps
PAPER_BITS = {None: 1.60, 1.0: 0.812, 1.5: 0.451, 1.75: 0.298, 1.9: 0.200}


@dataclass(frozen=True)
class Row:
    """The bits per value of each step at one s, and the paper's mean.

    s is None for s = 1 without zero-run encoding."""

    s: float | None
    steps: tuple[float, ...]
    paper_bits: float | None

    @property
    def bits(self) -> float:
        """The mean over the steps, in bits per value."""
        return float(np.mean(self.steps))

    @property
    def ratio(self) -> float:
        """The compression ratio: 32 bits over `bits`."""
        return 32 / self.bits

    @property
    def paper_ratio(self) -> float | None:
        """The paper's compression ratio: 32 bits over `paper_bits`."""
        return 32 / self.paper_bits if self.paper_bits else None


def table2(steps: Iterable[Sequence[Floats]], s: Sequence[float] = MULTIPLIERS) -> list[Row]:
    """Return a row without zero-run encoding, then one for each s.

    `steps` are the gradients that one worker pushes, step by step, one array per tensor: each
    tensor has its own m and error accumulation, as in the paper. All bytes of encode() count."""
    kept = [list(step) for step in steps]
    plain = Row(None, bits(kept, ThreeLC(zero_runs=False)), PAPER_BITS[None])
    return [plain, *(Row(v, bits(kept, ThreeLC(s=v)), PAPER_BITS.get(v)) for v in s)]


def bits(steps: Sequence[Sequence[Floats]], codec: ThreeLC) -> tuple[float, ...]:
    """Return the bits per value of each step, over all its tensors."""
    states = [codec.start(tensor.size) for tensor in steps[0]] if steps else []
    made = []
    for tensors in steps:
        size = 0
        for i, tensor in enumerate(tensors):
            data, states[i] = codec.encode(tensor.reshape(-1), state=states[i])
            size += len(data)
        made.append(8 * size / sum(tensor.size for tensor in tensors))
    return tuple(made)
