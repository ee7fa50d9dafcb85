"""A back end of torch.distributed: sums, means, all-gathers and broadcasts by the network, all else
by gloo.

    torch.distributed.init_process_group("gradplane")
    torch.distributed.all_reduce(gradient, op=torch.distributed.ReduceOp.AVG)

`import gradplane.torch` registers it. It knows nothing of a tensor's role from step to step, so it
keeps no error feedback; DDP's hook does.
"""

from __future__ import annotations

import datetime
import functools
import os
import re
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch._compile import _disable_dynamo

from gradplane.hosts.reducer import MOST_GATHERED, ReducerTimeout
from gradplane.torch.exchange import Exchange, FallbackWarning
from gradplane.torch.membership import MembershipError, member
from gradplane.torch.stand_ins import replaced

NAME = "gradplane"
DEVICES = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
"""The devices whose tensors the back end takes: gloo has its other collectives on both."""
GATHER_VARIABLE = "GRADPLANE_GATHER"
"""Set to "gloo", it leaves all-gathers and broadcasts to gloo."""
_GLOO = dist.ProcessGroup.BackendType.GLOO
_LATE = re.compile("Timed out|ReducerTimeout")  # gloo's errors, and the network's
_ERROR = re.compile(r"Got the following error.*?: \w+: (.*?)\n\nAt:\n", re.DOTALL)
"""The error of a future in torch's wrapping: the error's text, then the calls that led to it."""
_PATIENCE, _POLL = 3.0, 0.05  # seconds, for what the other ranks say where they stand still
_Gloo: Any = dist.ProcessGroupGloo  # of which torch's type information has little


def _untraced(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that torch.compile leaves as it is: a model that is compiled around DDP, or
    FSDP, begins collectives."""
    apart = _disable_dynamo(method)  # its first call imports torch._dynamo, which takes a second

    @functools.wraps(method)
    def call(*arguments: Any, **more: Any) -> Any:
        chosen = apart if torch.compiler.is_dynamo_compiling() else method
        return chosen(*arguments, **more)

    return call


class NetworkGroup(dist.ProcessGroup):
    """A process group whose all_reduce goes through the network.

    `all_reduce` and `reduce_scatter_tensor`, which sharded training reduces gradients by (FSDP2's
    fully_shard), of float32, float16 and bfloat16, by SUM (the mean times the number of ranks) or
    AVG, and of integers where the job sums them exactly. CUDA's tensors are encoded on their
    device where the job's codec has kernels (device_vectors.py), else on the CPU. What the network
    cannot take goes through gloo, with a FallbackWarning for each type; so does a reduce in a group
    of some of the ranks, with one for each group, and, without a warning, other operations and
    other collectives. Each reduce by the network is a round for stragglers.

    `all_gather`, `all_gather_into_tensor` and `broadcast` of the CPU's tensors in a group of all
    ranks go by the hosts' streams, bit for bit, under the impairments of reduces; others by gloo,
    and all where GRADPLANE_GATHER is gloo.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> None:
        """Join the network; MembershipError where there is none. The default group's ranks must be
        the job's workers; it waits until all of them have come so far. Where GRADPLANE_HOOK is
        set, nothing is joined, and gloo does everything."""
        super().__init__(rank, size)  # type: ignore[call-arg]
        self._seconds = timeout.total_seconds()
        self._gathers = _gathers()
        self._store, self._begun = store, 0  # collectives
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

    @_untraced
    def allreduce(self, tensors: Any, opts: Any = None, **more: Any) -> Any:  # type: ignore[override]
        """Begin the all-reduce of the only tensor in a list, in place; return its work."""
        op, exchange, place = _operation(opts, more), self._exchange, self._begin("all_reduce")
        mean = bool(op == dist.ReduceOp.AVG)
        if not (mean or op == dist.ReduceOp.SUM):
            given = [opts] if opts is not None else []
            return _Work(self._gloo.allreduce(tensors, *given, **more), place)
        (tensor,) = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        if exchange is None:
            self._warn("all_reduce")
        if exchange is None or exchange.obstacle(tensor) is not None:
            return self._exactly(tensor, mean, place)
        self._member.begin_round()
        done = exchange.reduce(tensor, None, mean)
        return _Pending(done.then(lambda found: [found.value()]), place)

    @_untraced
    def reduce_scatter_single(self, output: Any, whole: Any, opts: Any = None) -> Any:
        """Begin the sum or mean of a tensor of which each rank keeps its part; return its work.

        Each rank gets its part alone from a ring, a server of float32, and a switch of thc.p4."""
        op, exchange = _operation(opts, {}), self._exchange
        mean, place = bool(op == dist.ReduceOp.AVG), self._begin("reduce_scatter_tensor")
        if exchange is None:
            self._warn("reduce_scatter_tensor")
        if (
            exchange is None
            or not (mean or op == dist.ReduceOp.SUM)
            or exchange.obstacle(whole) is not None
        ):
            given = [opts] if opts else []
            return _Work(self._gloo._reduce_scatter_base(output, whole, *given), place)
        self._member.begin_round()
        done = exchange.reduce(whole.detach().clone(), None, mean, scattered=True)

        def keep(found: Any) -> list[torch.Tensor]:
            own = found.value().view(self.size(), *output.shape)[self.rank()]
            return [output.copy_(own)]

        return _Pending(done.then(keep), place)

    # Names before torch 2.13 follow the methods.
    _reduce_scatter_base = reduce_scatter_single  # type: ignore[assignment]

    @_untraced
    def reduce_scatter_single_coalesced(self, outputs: Any, wholes: Any, opts: Any = None) -> Any:
        """Begin a reduce_scatter_single of each tensor, as functional collectives do."""
        pairs = zip(outputs, wholes, strict=True)
        works = [self.reduce_scatter_single(*pair, opts) for pair in pairs]
        return _together(works, _Place(self, "reduce_scatter_tensor", self._begun))

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced  # type: ignore[assignment]

    @_untraced
    def all_gather_single(self, output: Any, part: Any, opts: Any = None) -> Any:
        """Begin to gather all ranks' tensors of equal size, one behind the other in `output`."""
        place, size = self._begin("all_gather_into_tensor"), self.size()
        fits = output.numel() == size * part.numel() and output.is_contiguous()
        if not (fits and self._carries(part, output)):
            options = [opts] if opts else []
            return _Work(self._gloo._allgather_base(output, part, *options), place)
        return self._gathered(output.view(-1).chunk(size), part, place)

    _allgather_base = all_gather_single  # type: ignore[assignment]

    @_untraced
    def allgather(self, outputs: Any, parts: Any, opts: Any = None) -> Any:  # type: ignore[override]
        """Begin to gather all ranks' tensors into a list of tensors."""
        place = self._begin("all_gather")
        fits = len(parts) == 1 and all(each.shape == parts[0].shape for each in outputs[0])
        if not (fits and self._carries(parts[0], *outputs[0])):
            options = [opts] if opts else []
            return _Work(self._gloo.allgather(outputs, parts, *options), place)
        return self._gathered(outputs[0], parts[0], place)

    @_untraced
    def broadcast(self, tensors: Any, opts: Any = None, **more: Any) -> Any:  # type: ignore[override]
        """Begin to give all ranks the tensor of one of them."""
        place = self._begin("broadcast")
        listed = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        source = getattr(opts, "rootRank", more.get("root", opts if type(opts) is int else 0))
        if not (len(listed) == 1 and self._carries(*listed)):
            options = [] if opts is None else [opts]
            return _Work(self._gloo.broadcast(tensors, *options, **more), place)
        return self._gathered(listed, listed[0], place, source)

    def _carries(self, part: torch.Tensor, *outputs: torch.Tensor) -> bool:
        """Return whether the hosts' streams take a tensor to others: dense ones of the CPU, of one
        type."""
        alike = (
            self._gathers
            and self._exchange is not None
            and all(
                each.device.type == "cpu"
                and each.layout == torch.strided
                and each.dtype == part.dtype
                and not each.is_quantized
                for each in (part, *outputs)
            )
        )
        return alike and 0 < part.nbytes <= MOST_GATHERED

    def _gathered(
        self, outputs: Any, part: torch.Tensor, place: _Place, source: int | None = None
    ) -> Any:
        """Return the work of an all-gather, or of a broadcast, into some tensors."""
        filled: Any = torch.futures.Future()
        sent = part.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()

        def take(answer: Any) -> None:
            try:
                with torch.no_grad():
                    for output, data in zip(outputs, answer.result(), strict=True):
                        found = torch.frombuffer(bytearray(data), dtype=output.dtype)
                        output.copy_(found.view(output.shape))
            except Exception as error:  # which nobody else would see, and wait() would not end
                filled.set_exception(error)
            else:
                filled.set_result(list(outputs))

        answer = self._member.reducer.gather(sent, source, self._seconds)
        answer.add_done_callback(take)
        return _Pending(filled, place)

    @_untraced
    def all_gather_single_coalesced(self, outputs: Any, parts: Any, opts: Any = None) -> Any:
        """Begin an all_gather_single of each tensor, as functional collectives do."""
        works = [self.all_gather_single(*pair, opts) for pair in zip(outputs, parts, strict=True)]
        return _together(works, _Place(self, "all_gather_into_tensor", self._begun))

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

    def _begin(self, name: str) -> _Place:
        """Count a collective that begins."""
        self._begun += 1
        return _Place(self, name, self._begun)

    def _exactly(self, tensor: torch.Tensor, mean: bool, place: _Place) -> Any:
        """Return the work of gloo's sum, or of the mean; integers are rounded towards 0.

        Gloo has no mean of integers, and adds up what lies in memory one behind the other: a view
        with gaps is summed in a copy.
        """
        dense = tensor.contiguous()
        work = self._gloo.allreduce([dense])
        if not mean and dense is tensor:
            return _Work(work, place)
        whole = None if tensor.is_floating_point() or tensor.is_complex() else "trunc"

        def finished(done: Any) -> list[torch.Tensor]:
            total = done.value()[0]
            if mean:
                total.div_(self.size(), rounding_mode=whole)
            return [total if dense is tensor else tensor.copy_(total)]

        return _Pending(work.get_future().then(finished), place)

    def _maximum(self, flag: torch.Tensor) -> Any:
        options: Any = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp.MAX
        return self._gloo.allreduce([flag], options).get_future()


def _through_gloo(name: str, shown: str) -> Callable[..., Any]:
    """Return a method that is gloo's own; shown: the collective's name, "" of what is none.

    The base class would call gloo, too, but with Python's lock held (torch 2.13.0,
    PyProcessGroup.hpp, WORK_OVERRIDE): gloo then waits for its queue, while its thread holds that
    and may wait for Python's lock, to free a tensor.
    """

    def call(self: NetworkGroup, *arguments: Any, **more: Any) -> Any:
        work = getattr(self._gloo, name)(*arguments, **more)
        return _Work(work, self._begin(shown)) if shown else work

    return call


_GLOOS = {
    "allreduce_coalesced": "all_reduce of several tensors",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all_single",
    "barrier": "barrier",
    "gather": "gather",
    "recv": "",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "scatter": "scatter",
    "send": "",
}
for _name, _shown in _GLOOS.items():
    setattr(NetworkGroup, _name, _untraced(_through_gloo(_name, _shown)))


def _gathers() -> bool:
    """Return whether the network gathers; MembershipError for a wrong value of its variable."""
    asked = os.environ.get(GATHER_VARIABLE, "")
    if asked not in ("", "gloo"):
        raise MembershipError(f'{GATHER_VARIABLE} = "{asked}": it can be "gloo", or is not set')
    return not asked


def _operation(opts: Any, more: dict[str, Any]) -> Any:
    if opts is None:
        return more.get("op", dist.ReduceOp.SUM)
    return getattr(opts, "reduceOp", opts)


@dataclass(frozen=True)
class _Place:
    """Where a rank is: in a group's collective of this name and number, from 1."""

    group: NetworkGroup
    name: str
    number: int

    def standing(self, error: RuntimeError) -> RuntimeError:
        """Return the error of a wait; where its time was up, with what the other ranks wait for, as
        all of them write it into the group's store then."""
        if not (isinstance(error, ReducerTimeout) or _LATE.search(str(error))):
            return error
        store, own = self.group._store, self.group.rank()
        others = [rank for rank in range(self.group.size()) if rank != own]
        until, said = time.monotonic() + _PATIENCE, dict[int, str]()
        with suppress(RuntimeError):  # the store is gone with rank 0
            store.set(f"waits/{own}", f"{self.name}, its collective {self.number}")
            while len(said) < len(others) and time.monotonic() < until:
                said |= {
                    rank: store.get(f"waits/{rank}").decode()
                    for rank in others
                    if rank not in said and store.check([f"waits/{rank}"])
                }
                time.sleep(_POLL)
        waits = [f"rank {rank} waits in {where}" for rank, where in sorted(said.items())]
        gone = ", ".join(f"rank {rank}" for rank in others if rank not in said)
        silent = [f"nothing was heard of {gone}: not come so far, or ended"] if gone else []
        where = f"rank {own} waits in {self.name}, its collective {self.number}"
        shown = _ERROR.match(str(error))
        reason = shown[1] if shown else error
        return RuntimeError(f"{'; '.join((where, *waits, *silent))}. {reason}")


class _Work(dist.Work):
    """Gloo's work, whose error says where the ranks are."""

    def __init__(self, work: Any, place: _Place) -> None:
        super().__init__()
        self._work, self._place = work, place

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Wait for the end; raise the error that there was."""
        try:
            return bool(self._work.wait() if timeout is None else self._work.wait(timeout))
        except RuntimeError as error:
            raise self._place.standing(error) from None


def _of_gloos(name: str) -> Callable[[_Work], Any]:
    """Return a method of gloo's work."""
    return lambda work: getattr(work._work, name)()


for _name in ("exception", "get_future", "is_completed", "is_success", "result", "synchronize"):
    setattr(_Work, _name, _of_gloos(_name))


class _Pending(dist.Work):
    """The work of a future."""

    def __init__(self, future: torch.futures.Future[list[torch.Tensor]], place: _Place) -> None:
        super().__init__()
        self._future, self._place = future, place

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Wait for the end; raise the error that there was."""
        try:
            self._future.wait()
        except RuntimeError as error:
            raise self._place.standing(error) from None
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


def _together(works: list[Any], place: _Place) -> Any:
    """Return the work of several."""
    every: Any = torch.futures.collect_all([work.get_future() for work in works])
    joined = every.then(lambda done: [each for one in done.value() for each in one.value()])
    return _Pending(joined, place)


def register() -> None:
    """Make the back end known to torch.distributed, once."""
    if NAME.upper() not in dist.Backend._plugins:
        dist.Backend.register_backend(NAME, NetworkGroup, devices=list(DEVICES))
