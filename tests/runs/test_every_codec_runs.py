"""Any codec is a job's codec: through a parameter server, and through the switch if its codes can
be summed. Whatever the network does on the way, workers end with what the codec itself decodes."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradplane import codecs
from gradplane.experiment.loading import load_deployment
from gradplane.hosts.config import JobConfig
from gradplane.hosts.protocols.job_codec import reduce_seed, summed_codec
from gradplane.hosts.protocols.results import Floats, Reduced
from gradplane.hosts.training.train import Reduce, Report, train
from gradplane.runs.run_experiment import run
from gradplane.studies import trainings

HEAD = """
[topology]
workers = 3
[output]
baseline = false
report = false
"""
JOB = """
[[job]]
name = "%s"
workers = 3
model = "softmax"
epochs = 2
batch = 75
"""
NAMES = codecs.names()
FED_BACK = [name for name in NAMES if not codecs.get(name).unfit_for_feedback]
SUMMABLE = [name for name in NAMES if codecs.get(name).summable]
BY_TENSOR = '[["*.weights", "thc"], ["*", "float32"]]'
SERVER = 'aggregation = "ps"\npush = '
PUSHED = {
    **{name: f'{SERVER}"{name}"\nerror_feedback = false' for name in NAMES},
    **{f"{name}, error feedback": f'{SERVER}"{name}"' for name in FED_BACK},
    "threelc, local steps": f'{SERVER}"threelc"\nlocal_steps = 2',
    "thc, local steps": f'{SERVER}"thc"\nlocal_steps = 2',
    "by tensor": f"{SERVER}{BY_TENSOR}",
    "by tensor, local steps": f"{SERVER}{BY_TENSOR}\nlocal_steps = 3",
}
PULLED = {name: f'{SERVER}"float32"\npull = "{name}"' for name in NAMES}
SUMMED = {name: f'push = "{name}"' for name in SUMMABLE}

Jobs = dict[str, tuple[dict[str, Any], JobConfig]]
"""By name: what the run's summary says of a job, and its configuration."""


def ran(jobs: dict[str, str], folder: Path) -> Jobs:
    """Run all jobs at once, on the same three hosts: the P4 program is compiled once."""
    path = folder / "x.toml"
    path.write_text(HEAD + "".join(JOB % name + text + "\n" for name, text in jobs.items()))
    summary, deployment = run(path, folder / "run", net="sim"), load_deployment(path)
    return {
        name: (summary.values["jobs"][number], deployment.jobs[number].config)
        for number, name in enumerate(jobs)
    }


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    return ran(PUSHED, tmp_path_factory.mktemp("pushed"))


@pytest.fixture(scope="module")
def pulled(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    return ran(PULLED, tmp_path_factory.mktemp("pulled"))


@pytest.fixture(scope="module")
def summed(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    return ran(SUMMED, tmp_path_factory.mktemp("summed"))


def agrees(job: dict[str, Any], weights: str) -> None:
    assert set(job["weights"].values()) == {weights}
    assert job["missed"] == 0 and math.isfinite(job["loss"])


@pytest.mark.parametrize("name", PUSHED)
def test_through_the_parameter_server(name: str, pushed: Jobs) -> None:
    job, config = pushed[name]
    agrees(job, trainings.run(config).weights)


@pytest.mark.parametrize("name", PULLED)
def test_as_the_servers_answer(name: str, pulled: Jobs) -> None:
    job, _ = pulled[name]
    agrees(job, next(iter(job["weights"].values())))


@pytest.mark.parametrize("name", SUMMED)
def test_through_the_switch(name: str, summed: Jobs) -> None:
    job, config = summed[name]
    agrees(job, summed_by_hand(config))


def test_by_tensor_each_has_its_own(pushed: Jobs) -> None:
    parts = pushed["by tensor"][1].coding.codec[1]["parts"]
    assert [(size, config["name"]) for size, config in parts] == [(640, "thc"), (10, "float32")]


def test_local_steps_halve_the_pushes(pushed: Jobs) -> None:
    every, second = (pushed[name][0]["traffic"] for name in ("threelc", "threelc, local steps"))
    # a message has a header of 20 bytes whether it says something or not
    assert second["payload_up"] - 20 <= 0.6 * (every["payload_up"] - 20)


def summed_by_hand(job: JobConfig) -> str:
    """Return the weights of a training whose codes are looked up and added here."""
    codec, states = summed_codec(job), {}
    workers = [train(job, worker) for worker in range(job.workers)]
    answer: Reduced | None = None
    while True:
        steps = [worker.send(answer) for worker in workers]
        answer = None
        if isinstance(steps[0], Reduce):
            answer = mean_of_codes(codec, job, steps[0].round, [s.vector for s in steps], states)
        elif isinstance(steps[0], Report) and steps[0].kind == "done":
            return str(steps[0].fields["weights"])


def mean_of_codes(
    codec: codecs.Codec, job: JobConfig, ticket: int, vectors: list[Floats], states: dict[int, Any]
) -> Reduced:
    n, seed = vectors[0].size, reduce_seed(job, ticket)
    own = [states.get(worker, codec.start(n)) for worker in range(job.workers)]
    stats = [codec.local(vector, state) for vector, state in zip(vectors, own, strict=True)]
    shared = codec.combine([stat for stat in stats if stat is not None])
    sums = np.zeros(codec.lanes(n), np.int64)
    for worker, vector in enumerate(vectors):
        codes, states[worker] = codec.codes(vector, shared, seed, own[worker], worker)
        sums += np.array(codec.table)[codes]
    mean = codec.decode_sum(sums, n, job.workers, shared, seed)
    return Reduced(mean, np.array([job.workers]), 0, "", "", "")
