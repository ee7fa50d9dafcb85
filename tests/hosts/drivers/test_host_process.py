"""Hosts as real processes on loopback: training, the runner's protocol, ends of all kinds."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from host_configs import make_hosts, make_job
from loopback_job import free_net, switch_on_a_socket
from virtual_network import Network, make_switch

ROOT = Path(__file__).parents[3]
PATIENCE = 300  # seconds that a process may take on a busy machine


@pytest.fixture
def net():
    """Return the first three bytes of loopback addresses that no other test process uses."""
    return free_net()


@pytest.fixture
def start(tmp_path):
    """Start a host's process; all are gone at the end."""
    processes = []

    def start_host(config):
        path = tmp_path / f"{config.name}.json"
        path.write_text(config.to_json())
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-m", "gradplane.hosts", str(path)]
        processes.append(subprocess.Popen(command, cwd=ROOT, text=True, **pipes))
        return processes[-1]

    yield start_host
    for process in processes:
        with process:  # closes its pipes and waits
            process.kill()


def log_of(config):
    return [json.loads(line) for line in Path(config.log).read_text().splitlines()]


def say(process, line):
    process.stdin.write(line)
    process.stdin.flush()


def hear(process):
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return json.loads(line)


def run_to_the_end(configs, start):
    """Start all, wait for ready, say go, wait for finished and close, as the runner does."""
    processes = [start(config) for config in configs]
    for config, process in zip(configs, processes, strict=True):
        assert hear(process) == {"ready": config.name}
    origin = time.monotonic_ns()
    for process in processes:
        say(process, f"go {origin}\n")
    for config, process in zip(configs, processes, strict=True):
        assert hear(process) == {"finished": config.name}
    for process in processes:
        process.stdin.close()
        assert process.wait(PATIENCE) == 0, process.stderr.read()
    return processes


def virtual_weights(job):
    network = Network()
    for config in make_hosts(job):
        network.add(config)
    network.run()
    return [r["weights"] for r in network.records if r["kind"] in ("round", "done")]


def test_training_through_a_server_gives_the_weights_of_the_virtual_network(net, start, tmp_path):
    job = make_job(net=net, workers=2, aggregation="ps", epochs=1, batch=120)
    configs = make_hosts(job, log_folder=tmp_path)
    run_to_the_end(configs, start)
    logs = [log_of(config) for config in configs[:2]]
    weights = [[r["weights"] for r in log if r["kind"] in ("round", "done")] for log in logs]
    assert weights[0] == weights[1]
    assert sorted(weights[0] + weights[1]) == sorted(virtual_weights(job))
    rounds = [record for record in logs[0] if record["kind"] == "round"]
    assert [record["round"] for record in rounds] == list(range(5))
    for record in rounds:
        assert (
            0
            < record["started"] + job.training.compute_ns
            <= record["computed"]
            < record["finished"]
        )
    for direction in ("payload_up", "payload_down"):  # a busy machine may send a segment twice
        assert all(record[direction] >= 4 * 4060 + 20 for record in rounds)


def test_a_ring_of_processes_gives_the_weights_of_the_virtual_network(net, start, tmp_path):
    marks = {"marked": True, "bound": 10, "reduce_ns": 100.0}
    job = make_job(net=net, workers=3, aggregation="ring", epochs=1, batch=120, **marks)
    losses = [{"model": "bernoulli", "rate": 0.02, "seed": 4}]
    configs = make_hosts(job, losses, log_folder=tmp_path)
    run_to_the_end(configs, start)
    logs = [log_of(config) for config in configs]
    weights = [[r["weights"] for r in log if r["kind"] in ("round", "done")] for log in logs]
    assert weights[0] == weights[1] == weights[2]
    assert sorted(weights[0] * 3) == sorted(virtual_weights(job))
    for record in (record for record in logs[1] if record["kind"] == "round"):
        least = record["reduce"] + record["codec"]
        assert 0 < least <= record["finished"] - record["computed"]


def test_training_through_a_switch_survives_losses(net, start, tmp_path):
    """The switch is the model of tests/hosts, on a socket of this process, in a thread."""
    job = make_job(
        net=net, workers=2, reliability="retransmit", epochs=1, batch=120, timeout_ns=20_000_000
    )
    losses = [{"model": "nth", "n": 10}]
    configs = make_hosts(job, losses, log_folder=tmp_path)
    with switch_on_a_socket(job):
        run_to_the_end(configs, start)
    weights = [[r["weights"] for r in log_of(config) if r["kind"] == "round"] for config in configs]
    network = Network(job.addresses.aggregator[0], make_switch(job))
    for config in make_hosts(job):
        network.add(config)
    network.run()
    virtual = [r["weights"] for r in network.records if r["kind"] == "round" and not r["worker"]]
    assert weights == [virtual, virtual]
    verdicts = [r for config in configs for r in log_of(config) if r["kind"] == "verdict"]
    assert len(verdicts) > 5


def test_the_end_of_input_ends_the_process_before_and_after_go(net, start, tmp_path):
    configs = make_hosts(make_job(net=net, workers=2), log_folder=tmp_path)
    waiting, running = start(configs[0]), start(configs[1])
    assert hear(waiting) == {"ready": "h1"} and hear(running) == {"ready": "h2"}
    say(running, f"go {time.monotonic_ns()}\n")
    for process in (waiting, running):
        process.stdin.close()
        assert process.wait(PATIENCE) == 0, process.stderr.read()


def test_hosts_let_others_compute_unless_the_user_chose_a_policy(net, start, tmp_path):
    process = start(make_hosts(make_job(net=net, workers=2), log_folder=tmp_path)[0])
    assert hear(process) == {"ready": "h1"}
    assert os.sched_getscheduler(process.pid) == os.SCHED_BATCH
    code = (
        "import os; from gradplane.hosts.drivers.host_process import interrupt_nobody;"
        "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)); interrupt_nobody();"
        "print(os.sched_getscheduler(0))"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert found.stdout == f"{os.SCHED_IDLE}\n", found.stderr


def failure(process):
    output, errors = process.communicate(timeout=PATIENCE)
    assert output == "" and process.returncode == 1
    return errors


def test_a_host_that_cannot_work_says_why_in_a_line(net, start, tmp_path):
    job = make_job(net=net, workers=2, data="mnist")
    process = start(make_hosts(job, log_folder=tmp_path)[0])
    assert failure(process) == (
        f'gradplane.hosts {tmp_path}/h1.json: no data "mnist": use one of blank, breast_cancer,'
        ' digits, wine, or your own: "module:object", or "file.py" (docs/own-parts.md)\n'
    )


def test_anything_but_go_is_refused(net, start, tmp_path):
    process = start(make_hosts(make_job(net=net, workers=2), log_folder=tmp_path)[0])
    assert hear(process) == {"ready": "h1"}
    say(process, "run\n")
    assert failure(process) == (
        f"gradplane.hosts {tmp_path}/h1.json: expected a line 'go ORIGIN' with a time in ns,"
        " got 'run\\n'\n"
    )


def test_usage():
    command = [sys.executable, "-m", "gradplane.hosts"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr == "usage: python -m gradplane.hosts CONFIG.json | CONFIG.json@PID ...\n"
