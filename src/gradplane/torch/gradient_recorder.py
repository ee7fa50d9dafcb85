"""Records the gradients of a model's layers in chosen steps of a training, for `gradplane codecs`.

Each parameter's hook sees the gradient that the backward pass made, before DistributedDataParallel
takes the mean; so every rank records its own, and the last step gathers them.
"""

from __future__ import annotations

import atexit
import warnings
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook

from gradplane.codecs import CodecError, Floats, RecordedGradients


class GradientRecorder:
    """Records until the last of its steps, and then writes the file; close() ends it before."""

    def __init__(
        self, path: Path, model: torch.nn.Module, steps: tuple[int, ...], origin: str, licence: str
    ) -> None:
        self._path, self._asked, self._texts = path, steps, (origin, licence)
        trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        if not trained:
            raise CodecError("the model has no parameters that are trained")
        self._layers = tuple(name.removeprefix("module.") for name, _ in trained)
        self._parameters = [parameter for _, parameter in trained]
        self._seen: dict[int, list[Floats]] = {}  # by step
        self._step = 1
        registering: list[Any] = [p.register_hook for p in self._parameters]  # untyped in torch
        self._hooks: list[Any] = [
            register(partial(self._take, at)) for at, register in enumerate(registering)
        ]
        self._hooks.append(register_optimizer_step_post_hook(self._after_step))
        atexit.register(self._warn)

    def close(self) -> None:
        """Write the steps recorded so far, if the file is not written yet; all ranks call it."""
        if not self._hooks:
            return
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        atexit.unregister(self._warn)
        workers = self._gathered()
        if not workers or not self._seen:
            return
        values = tuple(
            np.stack([np.stack([own[step][at] for own in workers]) for step in sorted(self._seen)])
            for at in range(len(self._layers))
        )
        numbers = tuple(range(len(workers)))
        steps = tuple(sorted(self._seen))
        RecordedGradients(self._layers, steps, numbers, values, *self._texts).write(self._path)

    def _gathered(self) -> list[dict[int, list[Floats]]]:
        """Return the gradients of all ranks on rank 0, and nothing on the others."""
        if not (dist.is_available() and dist.is_initialized()):
            return [self._seen]
        found: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(found, self._seen)
        return found if dist.get_rank() == 0 else []

    def _take(self, at: int, gradient: torch.Tensor) -> None:
        """Add what a backward pass found: several may precede a step."""
        if self._step not in self._asked:
            return
        if self._step not in self._seen:
            self._seen[self._step] = [
                np.zeros(tuple(p.shape), np.float32) for p in self._parameters
            ]
        dense = gradient.detach().to_dense() if gradient.is_sparse else gradient.detach()
        self._seen[self._step][at] += dense.to("cpu", torch.float32).numpy()

    def _after_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        first = self._parameters[0]
        if any(p is first for group in optimizer.param_groups for p in group["params"]):
            self._step += 1
            if self._step > self._asked[-1]:
                self.close()

    def _warn(self) -> None:
        warnings.warn(
            f"{self._path} is not written: the training ended after step {self._step - 1}, before"
            f" step {self._asked[-1]}: ask for fewer steps, or call close() at its end",
            stacklevel=1,
        )


def record_gradients(
    path: str | Path,
    model: torch.nn.Module,
    steps: int | Collection[int] = 10,
    *,
    origin: str = "",
    licence: str = "",
) -> GradientRecorder:
    """Record the model's gradients in so many first steps, or in these (counted from 1), to a file.

    A step ends when the optimizer of the model's first parameter steps; until then gradients add
    up. With a process group every rank records its own, before DDP's mean, all ranks make this
    call, and rank 0 writes the file. `codecs.RecordedGradients` reads it. A parameter that a step
    does not use has zeros. CodecError where a step is below 1, or nothing is trained."""
    asked = range(1, steps + 1) if isinstance(steps, int) else sorted(set(steps))
    if not asked or asked[0] < 1:
        raise CodecError(f"steps = {steps!r}: a number of steps, or some, counted from 1")
    return GradientRecorder(Path(path), model, tuple(asked), origin, licence)
