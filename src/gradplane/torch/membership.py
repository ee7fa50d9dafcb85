"""A rank's place in a running network: found by two environment variables."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from pathlib import Path

import torch.distributed as dist

from gradplane.hosts.config import HostConfig
from gradplane.hosts.reducer import Reducer

NETWORK_VARIABLE = "GRADPLANE_NETWORK"
"""The folder in which a running network's hosts have their configurations, NAME.json."""
HOST_VARIABLE = "GRADPLANE_HOST"
"""The name of the host that the program runs on, such as h1."""


class MembershipError(RuntimeError):
    """A program that cannot take part in the network; the message names the way out."""


class NetworkState:
    """The state of `hook`: this rank's reducer, and the process group beside it.

    The group (gloo) carries what is no gradient, buckets that the network cannot take, and a flag a
    bucket that says whether all its values are finite. Tensors are numbered by the buckets' places
    and sizes, so that each has an error feedback of its own.
    """

    def __init__(self, reducer: Reducer, group: dist.ProcessGroup | None = None) -> None:
        """Take part with `reducer`; group: None for the default one.

        Waits until all ranks have come so far. Raises MembershipError where the group's ranks are
        not the job's workers."""
        self.reducer, self.group = reducer, group
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        if (rank, size) != (reducer.rank, reducer.workers):
            raise MembershipError(
                f"rank {rank} of {size} is on host {reducer.config.name}, which has worker"
                f" {reducer.rank} of {reducer.workers}: start the ranks in the order of the hosts,"
                " one for each worker of the job"
            )
        self._tensors: dict[tuple[int, int], int] = {}
        self.fallbacks: set[str] = set()  # reasons that a warning has been given for
        self.started = False  # whether a bucket has been reduced
        dist.barrier(group)  # lossy jobs miss what comes before a worker listens
        self._closed = weakref.finalize(self, reducer.close)

    def tensor(self, bucket: int, size: int) -> int:
        """Return the number of a bucket's error feedback; DDP may cut buckets anew once."""
        return self._tensors.setdefault((bucket, size), len(self._tensors))

    def close(self) -> None:
        """Leave the network; at the program's end this happens by itself."""
        self._closed()


def available(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this program runs on a host of a network."""
    return NETWORK_VARIABLE in environment and HOST_VARIABLE in environment


def join(group: dist.ProcessGroup | None = None, timeout: float = 60.0) -> NetworkState:
    """Join the network that GRADPLANE_NETWORK and GRADPLANE_HOST name, and return hook's state.

    The process group must be initialised; all its ranks make this call. timeout: seconds that a
    bucket may take. Raises MembershipError, and OSError where the host's address cannot be bound.
    """
    if not available():
        raise MembershipError(
            f"no network: {NETWORK_VARIABLE} and {HOST_VARIABLE} are not set: start the script with"
            " gradplane torchrun EXPERIMENT.toml SCRIPT.py"
        )
    if not dist.is_initialized():
        raise MembershipError(
            'no process group: call torch.distributed.init_process_group("gloo") before join()'
        )
    return NetworkState(Reducer(_configuration(), timeout), group)


def _configuration() -> HostConfig:
    path = Path(os.environ[NETWORK_VARIABLE]) / f"{os.environ[HOST_VARIABLE]}.json"
    try:
        return HostConfig.from_json(path.read_text())
    except OSError as error:
        raise MembershipError(
            f"{path}: {error.strerror}: {NETWORK_VARIABLE} is the folder of a running network and"
            f" {HOST_VARIABLE} a host with a worker"
        ) from None
