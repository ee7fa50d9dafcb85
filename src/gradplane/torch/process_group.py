"""A back end of torch.distributed: sums and means by the network, everything else by gloo.

    torch.distributed.init_process_group("gradplane")
    torch.distributed.all_reduce(gradient, op=torch.distributed.ReduceOp.AVG)

`import gradplane.torch` registers it. It knows nothing of a tensor's role from step to step, so it
keeps no error feedback; DDP's hook does.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from gradplane.torch.exchange import Exchange, FallbackWarning
from gradplane.torch.membership import member
from gradplane.torch.stand_ins import replaced

NAME = "gradplane"
DEVICES = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
"""The devices whose tensors the back end takes: gloo has its other collectives on both."""
_GLOO = dist.ProcessGroup.BackendType.GLOO
_Gloo: Any = dist.ProcessGroupGloo  # of which torch's type information has little


class NetworkGroup(dist.ProcessGroup):
    """A process group whose all_reduce goes through the network.

    `all_reduce` and `reduce_scatter_tensor`, which sharded training reduces gradients by (FSDP2's
    fully_shard), of float32, float16 and bfloat16, by SUM (the mean times the number of ranks) or
    AVG, and of integers where the job sums them exactly. CUDA's tensors are encoded on their
    device where the job's codec has kernels (device_vectors.py), else on the CPU. What the network
    cannot take goes through gloo, with a FallbackWarning for each type; so does a reduce in a group
    of some of the ranks, with one for each group, and, without a warning, other operations and
    other collectives. Each reduce by the network is a round for stragglers.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> None:
        """Join the network; MembershipError where there is none. The default group's ranks must be
        the job's workers; it waits until all of them have come so far. Where GRADPLANE_HOOK is
        set, nothing is joined, and gloo does everything."""
        super().__init__(rank, size)  # type: ignore[call-arg]
        self._gloo = _Gloo(store, rank, size, timeout)
        for device in DEVICES:
            self._register_backend(torch.device(device), _GLOO, self._gloo)
        self._set_default_backend(_GLOO)
        self._exchange: Exchange | None = None  # of a group of all ranks
        self._warned = replaced()  # that it is a group of some of the ranks
        if replaced():
            return
        self._member = member(timeout.total_seconds())
        if not dist.is_initialized() or size == self._member.reducer.workers:
            self._member.check(rank, size)
            self._exchange = Exchange(self._member.reducer, self._maximum)
        self._gloo.barrier().wait()  # lossy jobs miss what comes before a worker listens

    def getBackendName(self) -> str:  # noqa: N802  (torch's name)
        """Return the back end's name."""
        return NAME

    def allreduce(self, tensors: Any, opts: Any = None, **more: Any) -> Any:  # type: ignore[override]
        """Begin the all-reduce of the only tensor in a list, in place; return its work."""
        op, exchange = _operation(opts, more), self._exchange
        mean = bool(op == dist.ReduceOp.AVG)
        if not (mean or op == dist.ReduceOp.SUM):
            return self._gloo.allreduce(tensors, *([opts] if opts is not None else []), **more)
        (tensor,) = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        if exchange is None:
            self._warn("all_reduce")
        if exchange is None or exchange.obstacle(tensor) is not None:
            return self._exactly(tensor, mean)
        self._member.begin_round()
        done = exchange.reduce(tensor, None, mean)
        return _Pending(done.then(lambda found: [found.value()]))

    def reduce_scatter_single(self, output: Any, whole: Any, opts: Any = None) -> Any:
        """Begin the sum or mean of a tensor of which each rank keeps its part; return its work.

        All ranks get all of it from the network."""
        op, exchange = _operation(opts, {}), self._exchange
        mean = bool(op == dist.ReduceOp.AVG)
        if exchange is None:
            self._warn("reduce_scatter_tensor")
        if (
            exchange is None
            or not (mean or op == dist.ReduceOp.SUM)
            or exchange.obstacle(whole) is not None
        ):
            return self._gloo._reduce_scatter_base(output, whole, *([opts] if opts else []))
        self._member.begin_round()
        done = exchange.reduce(whole.detach().clone(), None, mean)

        def keep(found: Any) -> list[torch.Tensor]:
            own = found.value().view(self.size(), *output.shape)[self.rank()]
            return [output.copy_(own)]

        return _Pending(done.then(keep))

    # Names before torch 2.13 follow the methods.
    _reduce_scatter_base = reduce_scatter_single  # type: ignore[assignment]

    def reduce_scatter_single_coalesced(self, outputs: Any, wholes: Any, opts: Any = None) -> Any:
        """Begin a reduce_scatter_single of each tensor, as functional collectives do."""
        pairs = zip(outputs, wholes, strict=True)
        return _together([self.reduce_scatter_single(*pair, opts) for pair in pairs])

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced  # type: ignore[assignment]

    def all_gather_single_coalesced(self, outputs: Any, parts: Any, opts: Any = None) -> Any:
        """Begin gloo's gathering of each tensor, as functional collectives do.

        By hand, as gloo's own is called with Python's lock held; see _through_gloo."""
        options, pairs = [opts] if opts else [], zip(outputs, parts, strict=True)
        return _together([self._gloo._allgather_base(*pair, *options) for pair in pairs])

    allgather_into_tensor_coalesced = all_gather_single_coalesced  # type: ignore[assignment]

    def _warn(self, what: str) -> None:
        """Warn, the first time, that the network does not reduce for some of the ranks."""
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{what} in a group of {self.size()} ranks goes through gloo, uncompressed: the"
                f" network reduces for all {self._member.reducer.workers} ranks together",
                FallbackWarning,
                stacklevel=5,
            )

    def _exactly(self, tensor: torch.Tensor, mean: bool) -> Any:
        """Return the work of gloo's sum, or of the mean; integers are rounded towards 0.

        Gloo has no mean of integers, and adds up what lies in memory one behind the other: a view
        with gaps is summed in a copy.
        """
        dense = tensor.contiguous()
        work = self._gloo.allreduce([dense])
        if not mean and dense is tensor:
            return work
        whole = None if tensor.is_floating_point() or tensor.is_complex() else "trunc"

        def finished(done: Any) -> list[torch.Tensor]:
            total = done.value()[0]
            if mean:
                total.div_(self.size(), rounding_mode=whole)
            return [total if dense is tensor else tensor.copy_(total)]

        return _Pending(work.get_future().then(finished))

    def _maximum(self, flag: torch.Tensor) -> Any:
        options: Any = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp.MAX
        return self._gloo.allreduce([flag], options).get_future()


def _through_gloo(name: str) -> Callable[..., Any]:
    """Return a collective that is gloo's own.

    The base class would call gloo, too, but with Python's lock held (torch 2.13.0,
    PyProcessGroup.hpp, WORK_OVERRIDE): gloo then waits for its queue, while its thread holds that
    and may wait for Python's lock, to free a tensor.
    """

    def collective(self: NetworkGroup, *arguments: Any, **more: Any) -> Any:
        return getattr(self._gloo, name)(*arguments, **more)

    return collective


for _name in ("allgather", "allreduce_coalesced", "alltoall_base", "barrier", "broadcast",
              "recv", "reduce_scatter", "send"):  # fmt: skip
    setattr(NetworkGroup, _name, _through_gloo(_name))


def _operation(opts: Any, more: dict[str, Any]) -> Any:
    if opts is None:
        return more.get("op", dist.ReduceOp.SUM)
    return getattr(opts, "reduceOp", opts)


class _Pending(dist.Work):
    """The work of a future."""

    def __init__(self, future: torch.futures.Future[list[torch.Tensor]]) -> None:
        super().__init__()
        self._future = future

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Wait for the end; raise the error that there was."""
        self._future.wait()
        return True

    def is_completed(self) -> bool:
        """Return whether it has ended."""
        return self._future.done()

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """Return a future of the list of results."""
        return self._future

    def result(self) -> list[torch.Tensor]:
        """Return the results; wait for them first."""
        return self._future.value()


def _together(works: list[Any]) -> Any:
    """Return the work of several."""
    every: Any = torch.futures.collect_all([work.get_future() for work in works])
    return _Pending(every.then(lambda done: [each for one in done.value() for each in one.value()]))


def register() -> None:
    """Make the back end known to torch.distributed, once."""
    if NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(NAME, NetworkGroup, devices=list(DEVICES))
