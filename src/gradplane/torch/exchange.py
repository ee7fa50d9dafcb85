"""Means of tensors over all ranks, by the network: what the hook and the process group share.

Ranks must agree where a tensor goes. What it is decided by, the tensor's type, device and size, is
the same on all. Whether values are finite is not: a codec cannot encode infinity or NaN, which
mixed precision produces now and then. So each reduce has a flag that the process group reduces
meanwhile; where any rank has raised it, the tensor is NaN on all ranks, and a GradScaler skips the
step on all of them, as after an all-reduce.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import Future as Answer
from typing import Any

import numpy as np
import torch

from gradplane.hosts.reducer import Reducer, Result
from gradplane.torch.device_vectors import Vector, beside, device_vector, named
from gradplane.torch.kernels import DEVICES
from gradplane.torch.profiled import Ranges, ranges

TYPES = (torch.float32, torch.float16, torch.bfloat16)
"""The types of tensors that the network averages."""
INTEGERS = {
    torch.uint8: torch.int32,
    torch.int8: torch.int32,
    torch.int16: torch.int32,
    torch.int32: torch.int32,
    torch.int64: torch.int64,
}
"""The types of integers that some jobs sum exactly, and the types that they travel in."""


_TAKEN = (
    "the network takes "
    + ", ".join(str(kind).removeprefix("torch.") for kind in TYPES)
    + " and integers on cpu and cuda"
)


class FallbackWarning(UserWarning):
    """A tensor that the network cannot take goes through the process group."""


class NonFiniteWarning(UserWarning):
    """A rank's gradient had infinities or NaN."""


class Exchange:
    """Reduces tensors by `reducer`; `maximum` starts the all-reduce of a flag and returns its
    future, whose value is a list with the largest flag.
    """

    def __init__(self, reducer: Reducer, maximum: Callable[[torch.Tensor], Any]) -> None:
        self.reducer, self._maximum = reducer, maximum
        self._warned: set[str] = set()  # reasons that a warning has been given for

    def obstacle(self, tensor: torch.Tensor) -> str | None:
        """Return why the network cannot take a tensor, with a warning the first time; or None."""
        reason, why = _obstacle(tensor), _TAKEN
        inexact = self.reducer.integers_obstacle if tensor.dtype in INTEGERS else None
        if reason is None and inexact is not None:
            reason, why = f"of {tensor.dtype}", inexact
        if reason is not None and reason not in self._warned:
            self._warned.add(reason)
            warnings.warn(
                f"tensors {reason} go through the process group, uncompressed: {why}",
                FallbackWarning,
                stacklevel=4,
            )
        return reason

    def reduce(
        self, tensor: torch.Tensor, number: int | None, mean: bool, scattered: bool = False
    ) -> torch.futures.Future[torch.Tensor]:
        """Replace a tensor by its mean or its sum over all ranks; return its future.

        scattered: the rank's own part of it will do. The sum of integers is exact, and their mean
        is rounded towards 0. See mean().
        """
        if tensor.dtype in INTEGERS:
            return self._integers(tensor, mean, scattered)
        factor = 1.0 if mean else float(self.reducer.workers)
        return self.mean(tensor, number, factor, scattered)

    def _integers(
        self, tensor: torch.Tensor, mean: bool, scattered: bool
    ) -> torch.futures.Future[torch.Tensor]:
        filled, shown, what = _future(tensor.device), ranges(), _what(tensor, None)
        with named(what):
            values = tensor.detach().to(INTEGERS[tensor.dtype]).contiguous().cpu().numpy()

        def take(answer: Answer[Result]) -> None:
            _close(shown)
            try:
                total = torch.from_numpy(answer.result().sum)
                if mean:
                    total = total.div(self.reducer.workers, rounding_mode="trunc")
                with named(what), torch.no_grad():
                    filled.set_result(tensor.copy_(total))
            except Exception as error:  # which nobody else would see, and wait() would not end
                filled.set_exception(error)

        self.reducer.start(values, None, shown, scattered).add_done_callback(take)
        future: torch.futures.Future[torch.Tensor] = filled
        return future

    def mean(
        self, tensor: torch.Tensor, number: int | None, factor: float = 1.0, scattered: bool = False
    ) -> torch.futures.Future[torch.Tensor]:
        """Replace a tensor by its mean over all ranks times `factor`; return its future.

        number: of its error feedback; None for none. The values travel as float32. The future gets
        the error of a network that fails, mostly a ReducerError. A CUDA tensor is encoded and
        decoded on its device where the job's codec has kernels (device_vectors.py), else here.
        """
        what = _what(tensor, number)
        with named(what):
            values = tensor.detach().to(torch.float32)
            wrong = (~torch.isfinite(values).all()).to("cpu", torch.float32).reshape(1)
            if wrong.item():
                values = torch.zeros_like(values)
        flag = self._maximum(wrong)
        mean, shown = _future(tensor.device), ranges()

        def take(answer: Answer[Result]) -> None:
            """Pass a failure on at once: the flag may wait for ranks that are gone."""
            _close(shown)
            try:
                found = _mean_of(answer.result())
            except Exception as error:  # which nobody else would see, and wait() would not end
                mean.set_exception(error)
            else:
                flag.add_done_callback(lambda done: finish(done, found))

        def finish(done: Any, found: torch.Tensor) -> None:
            try:
                with beside(tensor.device, what=what):
                    mean.set_result(_filled(tensor, found, factor, done.value()[0], number))
            except Exception as error:  # which nobody else would see, and wait() would not end
                mean.set_exception(error)

        with named(what):
            given = device_vector(values, self.reducer, what)
            values = values.cpu() if given is None else values
        taken = values.numpy() if given is None else given
        start = self.reducer.start(taken, number, shown, scattered)
        start.add_done_callback(take)
        averaged: torch.futures.Future[torch.Tensor] = mean
        return averaged


def _future(device: torch.device) -> Any:
    """Return a future whose waiters' streams wait for what fills it. (torch's types take no
    exception in set_exception.)"""
    return torch.futures.Future(devices=[device] if device.type == "cuda" else [])


def _what(tensor: torch.Tensor, number: int | None) -> str:
    """Return how errors name a bucket on a device; "" for one of the CPU's memory."""
    if tensor.device.type not in DEVICES:
        return ""
    what = "a tensor" if number is None else f"bucket {number}"
    return f"{what} of {tensor.numel()} values on {tensor.device}"


def _mean_of(result: Result) -> torch.Tensor:
    mean: Any = result.mean
    return mean.tensor if isinstance(mean, Vector) else torch.from_numpy(np.ascontiguousarray(mean))


def _close(shown: Ranges | None) -> None:
    if shown is not None:
        shown.close()


def _obstacle(tensor: torch.Tensor) -> str | None:
    if tensor.dtype not in TYPES and tensor.dtype not in INTEGERS:
        return f"of {tensor.dtype}"
    if tensor.device.type not in ("cpu", "cuda"):
        return f"on {tensor.device.type}"
    if tensor.layout != torch.strided:
        return f"of layout {tensor.layout}"
    return None


def _filled(
    tensor: torch.Tensor, found: torch.Tensor, factor: float, flag: torch.Tensor, number: int | None
) -> torch.Tensor:
    """Return the tensor with what was found, or NaN where a rank has raised the flag."""
    with torch.no_grad():
        if not flag.item():
            found = found.reshape(tensor.shape)
            return tensor.copy_(found if factor == 1.0 else found * factor)
        what = "a tensor" if number is None else f"bucket {number}"
        warnings.warn(
            f"{what}: a rank's gradient is not finite: it is NaN on all ranks",
            NonFiniteWarning,
            stacklevel=1,
        )
        return tensor.fill_(float("nan"))
