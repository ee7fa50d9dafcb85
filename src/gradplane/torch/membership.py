"""A rank's place in a running network: found by two environment variables."""

from __future__ import annotations

import json
import os
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from gradplane.hosts.config import HostConfig
from gradplane.hosts.reducer import Reducer
from gradplane.torch.exchange import Exchange
from gradplane.torch.stand_ins import StandIn, stand_in

if TYPE_CHECKING:
    from gradplane.runs.machine_ranks import MachineRank

NETWORK_VARIABLE = "GRADPLANE_NETWORK"
"""The folder in which a running network's hosts have their configurations, NAME.json."""
HOST_VARIABLE = "GRADPLANE_HOST"
"""The name of the host that the program runs on, such as h1."""


class MembershipError(RuntimeError):
    """A program that cannot take part in the network; the message names the way out."""


Bucket = tuple[int, int, tuple[int, ...]]
"""The user of a bucket, its place among the user's, and the sizes of its parameters."""


class StateWarning(UserWarning):
    """Buckets that are not those of a state that was loaded."""


_OTHERS = (
    "DDP has cut other buckets than those of the state that was loaded, as it does in its first"
    " step: their error feedback begins with zeros; to go on bit for bit, make a backward pass"
    " before you load the model, the optimizer and the hook's state"
)


class Member:
    """This process as a worker of the job: one reducer, which its models and groups share.

    Buckets are numbered by who reduces them, their places and their parameters' sizes, so that each
    has an error feedback of its own. All ranks make the same calls in the same order.
    """

    def __init__(self, reducer: Reducer) -> None:
        self.reducer = reducer
        self._tensors: dict[Bucket, int] = {}
        self._latest: dict[Bucket, int] = {}  # the step in which each was reduced last
        self._numbers = 0
        self._loaded = False
        self._users = 0
        self._started = False  # whether a round has begun
        self._closed = weakref.finalize(self, reducer.close)

    def user(self) -> int:
        """Return the number of a new user of this worker: a model, or a group."""
        self._users += 1
        return self._users - 1

    def tensor(self, bucket: Bucket, step: int) -> int:
        """Return the number of a bucket's error feedback, reduced in that step of its user's."""
        if bucket not in self._tensors:
            self._tensors[bucket] = self._numbers
            self._numbers += 1
            if self._loaded:
                self._loaded = False
                warnings.warn(_OTHERS, StateWarning, stacklevel=4)
        self._latest[bucket] = step
        return self._tensors[bucket]

    def state_dict(self) -> dict[str, Any]:
        """Return the reducer's state, and the numbers of the buckets of the last steps.

        DDP cuts buckets anew after its first step: the error feedback of that step is too old by
        then."""
        last: dict[int, int] = {}
        for (user, *_), step in self._latest.items():
            last[user] = max(step, last.get(user, step))
        buckets = [
            [*bucket, number]
            for bucket, number in self._tensors.items()
            if self._latest[bucket] == last[bucket[0]]
        ]
        text = json.dumps({"buckets": buckets, "numbers": self._numbers})
        return {**self.reducer.state_dict(), self._buckets: text}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on where state_dict() was called."""
        self.reducer.load_state_dict(saved)
        found = json.loads(saved[self._buckets])
        self._numbers = found["numbers"]
        self._tensors = {(user, place, tuple(n)): k for user, place, n, k in found["buckets"]}
        self._latest = dict.fromkeys(self._tensors, 0)
        self._loaded = True

    @property
    def _buckets(self) -> str:
        return f"buckets of rank {self.reducer.rank}"

    def begin_round(self) -> None:
        """Begin a round, for which new stragglers are drawn; the first begins by itself."""
        if self._started:
            self.reducer.begin_round()
        self._started = True

    def close(self) -> None:
        """Leave the network."""
        self._closed()

    @property
    def closed(self) -> bool:
        """Whether this worker has left."""
        return not self._closed.alive

    def check(self, rank: int, size: int) -> None:
        """Raise MembershipError where a group's ranks are not the job's workers."""
        own = self.reducer
        if (rank, size) != (own.rank, own.workers):
            raise MembershipError(
                f"rank {rank} of {size} is on host {own.config.name}, which has worker"
                f" {own.rank} of {own.workers}: start the ranks in the order of the hosts,"
                " one for each worker of the job"
            )


_members: list[Member] = []  # the open one, if there is one


def member(timeout: float = 60.0) -> Member:
    """Return this process's worker, which is opened by the first call; see join()."""
    if not available():
        raise MembershipError(
            f"no network: {NETWORK_VARIABLE} and {HOST_VARIABLE} are not set: start the script with"
            " gradplane torchrun EXPERIMENT.toml SCRIPT.py"
        )
    _members[:] = [each for each in _members if not each.closed]
    if not _members:
        _members.append(Member(Reducer(_configuration(), timeout)))
    return _members[0]


class NetworkState:
    """The state of `hook`: this rank's worker, and the process group beside it.

    The group (gloo) carries what is no gradient, buckets that the network cannot take, and a flag a
    bucket that says whether all its values are finite.
    """

    def __init__(
        self,
        member: Member,
        group: dist.ProcessGroup | None = None,
        rank: MachineRank | None = None,
    ) -> None:
        """Take part as `member`; group: None for the default one. rank: of the machine, which the
        run of a script alone has.

        Waits until all ranks have come so far. Raises MembershipError where the group's ranks are
        not the job's workers."""
        member.check(dist.get_rank(group), dist.get_world_size(group))
        self.member, self.group, self._rank = member, group, rank
        self.exchange = Exchange(member.reducer, self._maximum)
        self._user = member.user()
        self._steps = 0
        dist.barrier(group)  # lossy jobs miss what comes before a worker listens

    def begin_step(self) -> None:
        """Begin a training step, which is a round of the network's."""
        self.member.begin_round()
        self._steps += 1

    def tensor(self, bucket: int, sizes: tuple[int, ...]) -> int:
        """Return the number of a bucket's error feedback; sizes: of its parameters."""
        return self.member.tensor((self._user, bucket, sizes), self._steps)

    def state_dict(self) -> dict[str, Any]:
        """Return what this rank keeps from one step for the next, under keys of its own.

        That is what Reducer.state_dict() names, for all models of this rank. Each rank saves its
        own: torch.distributed.checkpoint does so, as does a file for each rank; pickling the state,
        as torch.save does, saves this dict. Raises ReducerError.
        """
        return self.member.state_dict()

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on where state_dict() was called; all ranks do, once all their models have joined.

        DDP cuts its buckets anew after the first backward pass. For a training that goes on bit for
        bit, make a pass first and then load the model, the optimizer and this. Otherwise the first
        step has no error feedback, with a StateWarning, and the second has what was saved.

        Raises ReducerError where another rank, or another number of ranks, saved it, where the job
        has other codecs, and after more steps than it had."""
        self.member.load_state_dict(saved)

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedDict, (), None, None, iter(self.state_dict().items())

    def close(self) -> None:
        """Leave the network, with all models and groups of this process; at the program's end
        this happens by itself.

        Where `join` was given an experiment, all ranks make this call, while the process group is
        there: the records come to rank 0. Without it they stay on their machines, in runs/."""
        self.member.close()
        rank, self._rank = self._rank, None
        if rank is not None:
            rank.close()
            del os.environ[NETWORK_VARIABLE], os.environ[HOST_VARIABLE]

    def _maximum(self, flag: torch.Tensor) -> Any:
        return dist.all_reduce(flag, dist.ReduceOp.MAX, self.group, async_op=True).get_future()


def available(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this program runs on a host of a network."""
    return NETWORK_VARIABLE in environment and HOST_VARIABLE in environment


def join(
    experiment: str | Path | None = None,
    group: dist.ProcessGroup | None = None,
    timeout: float = 60.0,
) -> NetworkState | StandIn:
    """Join the network that GRADPLANE_NETWORK and GRADPLANE_HOST name, and return hook's state.

    The process group must be initialised; all its ranks make this call. timeout: seconds that a
    bucket may take. Raises MembershipError, and OSError where the host's address cannot be bound.
    Where GRADPLANE_HOOK is set, nothing is joined: see stand_ins.py.

    experiment: a file with a table [cluster]. Where no network is running, the ranks make its hosts
    of their machines, and rank 0 configures its switches; the state's close() is then a call of all
    ranks, and gives rank 0 all records.
    """
    if (available() or experiment is not None) and not dist.is_initialized():
        raise MembershipError(
            'no process group: call torch.distributed.init_process_group("gloo") before join()'
        )
    if (found := stand_in(group)) is not None:
        return found
    rank = None
    if experiment is not None and not available():
        rank = _on_machines(experiment, group)
    return NetworkState(member(timeout), group, rank)


def _on_machines(experiment: str | Path, group: dist.ProcessGroup | None) -> MachineRank:
    """Make this process's machine a host of the experiment's network, with the two variables."""
    from gradplane.runs.machine_ranks import MachineRank, RanksError

    size = dist.get_world_size(group)

    def exchange(mine: Any) -> list[Any]:
        found: list[Any] = [None] * size
        dist.all_gather_object(found, mine, group)
        return found

    try:
        rank = MachineRank(experiment, dist.get_rank(group), size, exchange)
    except RanksError as error:
        raise MembershipError(str(error)) from None
    os.environ[NETWORK_VARIABLE] = str(rank.folder / "hosts")
    os.environ[HOST_VARIABLE] = rank.host
    return rank


def _configuration() -> HostConfig:
    path = Path(os.environ[NETWORK_VARIABLE]) / f"{os.environ[HOST_VARIABLE]}.json"
    try:
        return HostConfig.from_json(path.read_text())
    except OSError as error:
        raise MembershipError(
            f"{path}: {error.strerror}: {NETWORK_VARIABLE} is the folder of a running network and"
            f" {HOST_VARIABLE} a host with a worker"
        ) from None


def record(**values: float | int | str) -> None:
    """Append values, with the time, to this rank's records; do nothing where there is no network.

    `test_accuracy` (from 0 to 1) and `loss` are shown in the report where all ranks record them;
    other names are kept. The file is HOST.values.jsonl beside the host's configuration.
    """
    if not available():
        return
    path = Path(os.environ[NETWORK_VARIABLE]) / f"{os.environ[HOST_VARIABLE]}.values.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"at": time.monotonic_ns()} | values) + "\n")
