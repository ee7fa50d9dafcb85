"""The hook that DistributedDataParallel calls with each bucket of gradients.

A bucket leaves at once, while the backward pass computes the next, and several are in flight. Its
values travel as float32 and come back in the bucket's own type.

Ranks must agree where a bucket goes. What the hook decides by, the bucket's type, device and size,
is the same on all. Whether values are finite is not: a codec cannot encode infinity or NaN, which
mixed precision produces now and then. So each bucket has a flag that the process group reduces
meanwhile; where any rank has raised it, the bucket is NaN on all ranks, and a GradScaler skips the
step on all of them, as after an all-reduce.
"""

# No `from __future__ import annotations`: DDP compares the hook's annotations with its own types.
import warnings
from concurrent.futures import Future as Answer
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist

from gradplane.hosts.reducer import ReducerError, Result
from gradplane.torch.membership import NetworkState

if TYPE_CHECKING:
    from torch._C._distributed_c10d import GradBucket
else:
    GradBucket = dist.GradBucket  # which torch's own type information does not export

TYPES = (torch.float32, torch.float16, torch.bfloat16)
"""The types of buckets that the network takes."""


class FallbackWarning(UserWarning):
    """A bucket that the network cannot take goes through the process group."""


class NonFiniteWarning(UserWarning):
    """A rank's gradient had infinities or NaN."""


def hook(state: NetworkState, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Return a future of the bucket's mean over all ranks, in the bucket's type and place.

    For `ddp.register_comm_hook(gradplane.torch.join(), gradplane.torch.hook)`. A bucket of another
    type than float32, float16 and bfloat16, or not in the CPU's memory, goes through the process
    group, with a FallbackWarning for each type. The future gets the ReducerError of a network that
    fails.
    """
    buffer = bucket.buffer()
    reason = _obstacle(buffer)
    if reason is not None:
        return _by_group(state, buffer, reason)
    if bucket.index() == 0 and state.started:
        state.reducer.begin_round()
    state.started = True
    return _by_network(state, buffer, state.tensor(bucket.index(), buffer.numel()))


def _obstacle(buffer: torch.Tensor) -> str | None:
    """Return why the network cannot take a bucket; None if it can."""
    if buffer.dtype not in TYPES:
        return f"buckets of {buffer.dtype}"
    if buffer.device.type != "cpu":
        return f"buckets on {buffer.device.type}"
    return None


def _by_group(
    state: NetworkState, buffer: torch.Tensor, reason: str
) -> torch.futures.Future[torch.Tensor]:
    """Average the bucket as DDP does without a hook."""
    if reason not in state.fallbacks:
        state.fallbacks.add(reason)
        names = ", ".join(str(kind).removeprefix("torch.") for kind in TYPES)
        warnings.warn(
            f"{reason} go through the process group, uncompressed: the network takes {names} on"
            " cpu",
            FallbackWarning,
            stacklevel=3,
        )
    buffer.div_(state.reducer.workers)
    work = dist.all_reduce(buffer, group=state.group, async_op=True)
    mean: torch.futures.Future[torch.Tensor] = work.get_future().then(lambda done: done.value()[0])
    return mean


def _by_network(
    state: NetworkState, buffer: torch.Tensor, tensor: int
) -> torch.futures.Future[torch.Tensor]:
    values = buffer.detach().to(torch.float32)
    wrong = (~torch.isfinite(values).all()).to(torch.float32).reshape(1)
    if wrong.item():
        values = torch.zeros_like(values)
    flag = dist.all_reduce(wrong, dist.ReduceOp.MAX, state.group, async_op=True).get_future()
    mean: Any = torch.futures.Future()  # torch's types take no exception in set_exception

    def take(answer: Answer[Result]) -> None:
        """Pass on at once that the network failed: the flag may wait for ranks that are gone."""
        try:
            found = torch.from_numpy(np.ascontiguousarray(answer.result().mean))
        except ReducerError as error:
            mean.set_exception(error)
        else:
            flag.add_done_callback(lambda done: finish(done, found))

    def finish(done: Any, found: torch.Tensor) -> None:
        try:
            mean.set_result(_checked(buffer, found, done.value()[0], tensor))
        except Exception as error:  # which nobody else would see, and backward() would wait
            mean.set_exception(error)

    state.reducer.start(values.numpy(), tensor).add_done_callback(take)
    averaged: torch.futures.Future[torch.Tensor] = mean
    return averaged


def _checked(
    buffer: torch.Tensor, found: torch.Tensor, flag: torch.Tensor, tensor: int
) -> torch.Tensor:
    """Return the bucket with what was found, or NaN where a rank has raised the flag."""
    if not flag.item():
        return buffer.copy_(found)
    warnings.warn(
        f"bucket {tensor}: a rank's gradient is not finite: it is NaN on all ranks",
        NonFiniteWarning,
        stacklevel=1,
    )
    return buffer.fill_(float("nan"))
