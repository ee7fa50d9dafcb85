"""PyTorch's own hooks in the place of the network's, to compare them with the same script.

Where GRADPLANE_HOOK is set, `join()` returns one of these and `hook` calls it: everything goes
through the process group, over the same links, and nothing through the switch. So does all that the
back end `gradplane` does.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powersgd

from gradplane._suggestions import quoted

if TYPE_CHECKING:
    from torch._C._distributed_c10d import GradBucket

HOOK_VARIABLE = "GRADPLANE_HOOK"
"""Set: the name of a hook of PyTorch's that takes the network's place."""


class StandIn:
    """A hook of PyTorch's with its state: "allreduce", "fp16", "bf16" or "powersgd"."""

    def __init__(self, name: str, group: dist.ProcessGroup | None = None) -> None:
        """Take the hook of that name; ValueError if there is none."""
        if name not in _HOOKS:
            known = ", ".join(_HOOKS)
            raise ValueError(f"{HOOK_VARIABLE} = {quoted(name)}: it is one of {known}")
        self.name = name
        self._hook, make = _HOOKS[name]
        self._state = make(group)

    def reduce(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Return a future of the bucket's mean."""
        mean: torch.futures.Future[torch.Tensor] = self._hook(self._state, bucket)
        return mean

    def state_dict(self) -> dict[str, Any]:
        """Return what the hook keeps, under this rank's key; torch.load reads it with
        weights_only=False."""
        state: Any = self._state
        return {self._key: state.__getstate__()} if self.name == "powersgd" else {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on where state_dict() was called. Raises KeyError for another rank's state."""
        state: Any = self._state
        if self.name == "powersgd":
            group = state.process_group
            state.__setstate__(dict(saved[self._key]))
            state.process_group = group

    @property
    def _key(self) -> str:
        return f"{self.name}, rank {dist.get_rank()} of {dist.get_world_size()}"

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedDict, (), None, None, iter(self.state_dict().items())


def stand_in(
    group: dist.ProcessGroup | None, environment: Mapping[str, str] = os.environ
) -> StandIn | None:
    """Return the hook that GRADPLANE_HOOK asks for; None where it asks for none."""
    return StandIn(environment[HOOK_VARIABLE], group) if replaced(environment) else None


def replaced(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether GRADPLANE_HOOK asks for a hook in the network's place."""
    return bool(environment.get(HOOK_VARIABLE))


def _group(group: dist.ProcessGroup | None) -> dist.ProcessGroup | None:
    return group if group is not None else dist.group.WORLD


def _bf16(
    group: dist.ProcessGroup | None, bucket: GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Average as PyTorch's fp16 hook does, in bfloat16: PyTorch's own refuses gloo (2.13.0)."""
    buffer = bucket.buffer()
    share = buffer.to(torch.bfloat16).div_(dist.get_world_size(group))
    work: Any = dist.all_reduce(share, group=group, async_op=True)
    mean: torch.futures.Future[torch.Tensor] = work.get_future().then(
        lambda done: buffer.copy_(done.value()[0])
    )
    return mean


def _powersgd(group: dist.ProcessGroup | None) -> Any:
    """Return the state with PyTorch's defaults, but from the third iteration on: its default of
    1,000 without compression would leave short trainings uncompressed."""
    return powersgd.PowerSGDState(_group(group), start_powerSGD_iter=2)


_HOOKS: dict[str, tuple[Callable[..., Any], Callable[[dist.ProcessGroup | None], Any]]] = {
    "allreduce": (default_hooks.allreduce_hook, _group),
    "fp16": (default_hooks.fp16_compress_hook, _group),
    "bf16": (_bf16, _group),
    "powersgd": (powersgd.powerSGD_hook, _powersgd),
}
