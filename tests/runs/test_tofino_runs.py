"""Experiments with target = "tofino": a process apart, with our BFRuntime server, is the driver."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gradplane.experiment.loading import ExperimentError, load_deployment
from gradplane.runs import isolation
from gradplane.runs.replayer.replay_run import replay
from gradplane.runs.run_experiment import run

EXPERIMENT = """
[topology]
workers = 2
[switch]
target = "tofino"
ports = { h1 = "9@veth1", h2 = "136@veth3", h3 = "10@veth5" }
[[job]]
epochs = 1
batch = 500
[output]
baseline = false
report = false
"""
DRIVER_PORTS = {9: "veth0", 136: "veth2", 10: "veth4"}
ERRORS = {
    "switch.address=127.0.0.1:1": "is the driver running, and is this its BFRuntime address?",
    "switch.device_id=3": "there is no device 3",
    "switch.ports.h1=11@veth1": "the driver has no port 11; it has 9, 10, 136",
    "switch.ports.h1=9@veth7": "ports: h1: no interface veth7 here; there are lo, veth0,",
    "switch.program=chip.p4": "the driver runs thc_tna, which has no table",
}


def in_lab(folder: Path) -> None:
    """Start a driver, try what it refuses, train twice; print what was found as JSON."""
    for number in (0, 2, 4):
        pair = f"veth{number}", f"veth{number + 1}"
        _ip("add", pair[0], "type", "veth", "peer", "name", pair[1])
        for end in pair:
            _ip("set", end, "up")
    program = Path(run.__code__.co_filename).parents[1] / "p4" / "thc_tna.p4"
    argv = [sys.executable, "-m", "gradplane", "switch", str(program)]
    for port, interface in DRIVER_PORTS.items():
        argv += ["-i", f"{port}@{interface}"]
    argv += ["--bfrt-addr", "127.0.0.1:0", "--", "--grpc-server-addr", "127.0.0.1:0"]
    found: dict[str, Any] = {"refused": {}}
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as driver, ExitStack() as on_exit:
        on_exit.callback(driver.terminate)
        assert driver.stdout is not None
        address = json.loads(driver.stdout.readline())["bfrt"]
        path, names = folder / "tofino.toml", ("first", "second")
        settings = [f"switch.address={address}"]
        for setting in ERRORS:
            try:
                run(path, folder / "refused", net="mininet", settings=[*settings, setting])
            except ExperimentError as error:
                found["refused"][setting] = str(error)
        runs = [run(path, folder / name, net="mininet", settings=settings) for name in names]
        found["switches"] = [done.values["switches"]["s1"]["events"] for done in runs]
    listed = subprocess.check_output(["ip", "-j", "link"], text=True)
    found["links"] = sorted(link["ifname"] for link in json.loads(listed))
    print(json.dumps(found))


def _ip(*words: str) -> None:
    subprocess.run(["ip", "link", *words], check=True)


def experiment(folder: Path) -> Path:
    path = folder / "tofino.toml"
    path.write_text(EXPERIMENT)
    return path


def test_a_driver_that_was_started_before_runs_experiments(tmp_path: Path) -> None:
    experiment(tmp_path)
    # As it is compiled for the chip: with other tables than the driver's program.
    (tmp_path / "chip.p4").write_text('#define CODES_A_LOOKUP 2\n#include "thc_tna.p4"\n')
    argv = isolation.command([sys.executable, __file__, str(tmp_path)], [tmp_path])
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for setting, words in ERRORS.items():
        assert words in found["refused"][setting]
    assert not (tmp_path / "refused").exists()
    events = {"accepted": 10, "completed sums": 4, "completed norms": 1}
    assert found["switches"] == [{"0": events}, {"0": events}]
    assert found["links"] == ["lo", *(f"veth{n}" for n in range(6))]
    assert replay(tmp_path / "first").equal


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("switch.ports.h1=9-veth1", 'h1 = "9-veth1": write PORT@INTERFACE, such as h1 = "8@veth1"'),
        ("switch.ports.h1=512@veth1", "the chip has no port 512"),
        ("switch.ports.h1=136@veth1", "h1 and h2 both have 136"),
        ("switch.ports.h4=7@veth7", "the network has no host h4"),
        ("topology.workers=3", 'ports lacks h4: write ports = { h4 = "PORT@INTERFACE"'),
        ("switch.address=here", 'address = "here": write HOST:PORT'),
        ("topology.kind=leaf-spine", "is one switch, and this network has"),
        ("output.pcap=true", "use tcpdump on the interfaces"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, setting: str, words: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        load_deployment(experiment(tmp_path), [setting])
    assert words in str(refused.value)


def test_a_run_outside_a_lab_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"start both from one script, gradplane lab SCRIPT"):
        run(experiment(tmp_path), tmp_path / "run", net="mininet")


if __name__ == "__main__":
    in_lab(Path(sys.argv[1]))
