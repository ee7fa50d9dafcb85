"""A small experiment to sweep, and a Dask cluster of two processes of this machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EXPERIMENT = """
[topology]
workers = 2

[[job]]
model = { name = "softmax" }
epochs = 1
batch = 400
timeout_ms = 5
reliability = "retransmit"

[[impairment]]
model = "bernoulli"
rate = 0.0

[output]
baseline = false
"""


@pytest.fixture(scope="session")
def swept_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two workers, one packet in each of two rounds; losses are repaired."""
    path = tmp_path_factory.mktemp("swept") / "tiny.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two worker processes behind a scheduler, as a user's cluster."""
    import dask.config
    from distributed import LocalCluster

    files = str(tmp_path_factory.mktemp("dask"))
    with (
        dask.config.set({"temporary-directory": files}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address=None,
            local_directory=files,
            silence_logs=50,
        ) as made,
    ):
        yield made
