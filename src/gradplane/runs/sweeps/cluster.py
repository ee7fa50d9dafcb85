"""The Dask cluster that carries out a sweep: processes of this machine, or one that exists.

Runs on Mininet need the resource `mininet`, of which a machine has one: on one machine they run one
after another. A worker of an existing cluster offers it when it is started with
`--resources "mininet=1"`.
"""

import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from gradplane._quiet_dask import quiet_dask
from gradplane._version import __version__
from gradplane.runs.sweeps import run_task
from gradplane.runs.sweeps.plan_file import SweepError
from gradplane.runs.sweeps.run_task import RunResult, RunTask

Client = Any  # Dask's, which has no types and is imported where it is used

MININET = "mininet"  # the resource
_NO_WORKERS = "10 minutes"  # without a worker process left, after which runs fail
_PATIENCE = 30  # seconds for a cluster to answer
_MODULES = ("distributed", "pandas", "pyarrow")


def _distributed() -> Any:
    import distributed

    return distributed


def check_installed() -> None:
    """Raise SweepError if the packages of the extra `sweep` are not installed."""
    from importlib.util import find_spec

    missing = [name for name in _MODULES if find_spec(name) is None]
    if missing:
        text = f"sweeps need {', '.join(missing)}: pip install 'gradplane[sweep]'"
        raise SweepError(text)


@contextmanager
def connected(address: str | None, network: str, workers: int | None = None) -> Iterator[Client]:
    """Connect to the cluster at an address such as tcp://HOST:8786, or start a local one.

    workers: the local cluster's processes; by default one for each core, and a single one where
    runs are on Mininet. Raises SweepError where the cluster cannot be used.
    """
    check_installed()
    with ExitStack() as stack:
        if address is None:
            stack.enter_context(quiet_dask())
            yield stack.enter_context(_local(network, workers))
        else:
            client = stack.enter_context(_existing(address))
            _check_workers(client, address, network)
            yield client


_GUARD = 'read line && exit; for n in 1 2 3 4 5; do rm -rf "$0"; sleep 1; done'


@contextmanager
def scratch() -> Iterator[str]:
    """Yield a folder that is removed at the end, also where this process is killed.

    A shell waits for a line, or for the pipe's end, which comes first where none can be sent."""
    files = tempfile.mkdtemp(prefix="gradplane-sweep-")
    with subprocess.Popen(
        ["sh", "-c", _GUARD, files], stdin=subprocess.PIPE, start_new_session=True
    ) as guard:
        try:
            yield files
        finally:
            shutil.rmtree(files, ignore_errors=True)
            guard.communicate(b"done\n")


@contextmanager
def _local(network: str, workers: int | None) -> Iterator[Client]:
    import dask.config

    one = network == "mininet"
    count = 1 if one else workers or len(os.sched_getaffinity(0))
    with (
        scratch() as files,
        dask.config.set(
            {"temporary-directory": files, "distributed.scheduler.no-workers-timeout": _NO_WORKERS}
        ),
        _distributed().LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address=None,
            memory_limit=0,
            local_directory=files,
            silence_logs=logging.CRITICAL,
            resources={MININET: 1} if one else {},
        ) as cluster,
        _distributed().Client(cluster) as client,
    ):
        yield client


@contextmanager
def _existing(address: str) -> Iterator[Client]:
    try:
        client = _distributed().Client(address, timeout=_PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise SweepError(f"--cluster {address}: no Dask scheduler answers: {error}") from None
    with client:
        yield client


def _check_workers(client: Client, address: str, network: str) -> None:
    """Check that there are workers, with this version of gradplane and what the network needs."""
    where = f"--cluster {address}"
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise SweepError(f"{where}: it has no workers: start some: dask worker {address}") from None
    for worker, version in client.run(run_task.version, on_error="return").items():
        if isinstance(version, BaseException):
            raise SweepError(f"{where}: no gradplane on worker {worker}: {version}")
        if version != __version__:
            text = f"gradplane {version} on worker {worker}, and {__version__} here"
            raise SweepError(f"{where}: {text}: install the same version")
    described = client.scheduler_info(n_workers=-1)["workers"].values()
    if network == "mininet" and not any(MININET in one["resources"] for one in described):
        raise SweepError(
            f"{where}: no worker has the resource {MININET}, which keeps Mininet runs to one at a"
            f' time on a machine: start one worker a machine with --resources "{MININET}=1"'
        )


def results(client: Client, tasks: Sequence[RunTask]) -> Iterator[RunResult]:
    """Carry the tasks out; yield their results as they come.

    Runs of a worker that dies are run again by another one; where several died of the same run, its
    result is an error."""
    futures = {_submit(client, task): task.name for task in tasks}
    try:
        for future in _distributed().as_completed(futures):
            yield _result(future, futures[future])
            future.release()
    finally:
        client.cancel(list(futures))


def _submit(client: Client, task: RunTask) -> Any:
    resources = {MININET: 1} if task.network == "mininet" else None
    return client.submit(
        run_task.carry_out,
        task,
        key=f"{task.name}-{task.identity}",
        pure=False,
        resources=resources,
    )


def _result(future: Any, name: str) -> RunResult:
    from distributed.scheduler import KilledWorker

    try:
        found: RunResult = future.result()
    except KilledWorker:
        text = "each worker process that ran it ended, killed or out of memory"
        return RunResult(name, text)
    except Exception as error:
        return RunResult(name, f"{type(error).__name__}: {error}")
    return found
