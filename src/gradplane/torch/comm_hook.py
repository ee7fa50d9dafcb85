"""The hook that DistributedDataParallel calls with each bucket of gradients.

A bucket leaves at once, while the backward pass computes the next, and several are in flight. Its
values travel as float32 and come back in the bucket's own type.
"""

# No `from __future__ import annotations`: DDP compares the hook's annotations with its own types.
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from gradplane.torch.membership import NetworkState
from gradplane.torch.stand_ins import StandIn

if TYPE_CHECKING:
    from torch._C._distributed_c10d import GradBucket
else:
    GradBucket = dist.GradBucket  # which torch's own type information does not export


def hook(state: NetworkState | StandIn, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Return a future of the bucket's mean over all ranks, in the bucket's type and place.

    For `ddp.register_comm_hook(gradplane.torch.join(), gradplane.torch.hook)`. A bucket of another
    type than float32, float16, bfloat16 and integers, of integers that the job does not sum
    exactly, or on a device that is neither the CPU nor a CUDA GPU, goes through the process group,
    with a FallbackWarning for each type. The future gets the ReducerError of a network that fails.
    """
    if isinstance(state, StandIn):
        return state.reduce(bucket)
    buffer = bucket.buffer()
    if state.exchange.obstacle(buffer) is not None:
        return _by_group(state, buffer)
    if bucket.index() == 0:
        state.begin_step()
    sizes = tuple(parameter.numel() for parameter in bucket.parameters())
    return state.exchange.reduce(buffer, state.tensor(bucket.index(), sizes), mean=True)


def _by_group(state: NetworkState, buffer: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
    """Average the bucket as DDP does without a hook."""
    buffer.div_(state.member.reducer.workers)
    work = dist.all_reduce(buffer, group=state.group, async_op=True)
    mean: torch.futures.Future[torch.Tensor] = work.get_future().then(lambda done: done.value()[0])
    return mean
