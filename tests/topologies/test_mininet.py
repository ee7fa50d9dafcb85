"""The network for real: every test makes namespaces, links, switch and host processes."""

import dataclasses
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import mininet_cases as cases
import pytest
from namespaces_left import await_gone, processes_in
from network_cases import job, of_kind, results, run, set_up, switch_config
from scapy.utils import rdpcap

from gradplane.experiment.loading import ExperimentError, load_deployment
from gradplane.hosts.wire.aggregation import Type
from gradplane.runs import isolation, run_experiment
from gradplane.runs.run_experiment import load
from gradplane.topologies import NetworkError, build
from gradplane.topologies.mininet import mininet_network
from gradplane.topologies.network import LinkCounters
from gradplane.topologies.sim.sim_network import SimNetwork

call = partial(isolation.call, load=load)


def test_a_run_gives_what_the_simulated_network_gives_and_then_another_may_follow(tmp_path):
    """How often a message is repeated depends on the time: that alone may differ."""
    jobs = job(reliability="retransmit"), job()
    for number, (records, links) in enumerate(call(cases.train, tmp_path, *jobs, keep=[tmp_path])):
        with SimNetwork(build("star", workers=2), switch_config()) as net:
            set_up(net, jobs[number])
            assert results(run(net, jobs[number])) == results(records)
            wanted = net.link_counters()
        for port, link in enumerate(links, 1):
            up, down = (
                [bytes(p) for p in rdpcap(str(tmp_path / str(number) / f"s1-eth{port}_{way}.pcap"))]
                for way in ("in", "out")
            )
            assert (len(up), len(down)) == (link.up_packets, link.down_packets)
            assert without(link, repeats(up), repeats(down)) == wanted[port - 1]
        assert all(record["unsent"] == 0 for record in of_kind(records, "ignored"))


def repeats(captured):
    """Return the frames that ask or tell a slot's state, and those whose message came before."""
    found, seen = [], set()
    for frame in captured:
        message = frame[14 + 20 + 8 :]  # Ethernet, IP, UDP
        if message[0] & 0xF == Type.STATUS or message in seen:
            found.append(frame)
        seen.add(message)
    return found


def without(link, up, down):
    """Return the link's counters without the given frames."""
    return dataclasses.replace(
        link,
        up_packets=link.up_packets - len(up),
        up_bytes=link.up_bytes - sum(map(len, up)),
        down_packets=link.down_packets - len(down),
        down_bytes=link.down_bytes - sum(map(len, down)),
    )


def test_hosts_that_share_a_process_do_what_those_with_one_each_do():
    wanted = job(reliability="retransmit", timeout_ns=60 * 10**9)
    records, processes = call(partial(cases.train_shared, wanted))
    with SimNetwork(build("star", workers=2), switch_config()) as net:
        set_up(net, wanted)
        assert results(run(net, wanted)) == results(records)
    assert [record["host"] for record in of_kind(records, "ignored")] == ["h1", "h2"]
    assert processes == ["h1-0-shared"]
    assert "nothing-of-the-kind" in call(cases.shared_host_that_fails)


def test_nodes_and_links_are_as_described():
    seen = call(cases.inspect)
    assert any("h1-eth0@" in line and "10.0.0.1/24" in line for line in seen["addresses"])
    assert not any("fe80" in line for line in seen["addresses"])
    assert seen["neighbours"] == [
        f"10.0.0.{n} dev h1-eth0 lladdr 00:00:00:00:00:{n:02x} PERMANENT" for n in (2, 254, 3)
    ]
    for side in ("offloads", "switch offloads"):
        assert "tx-checksumming: off" in seen[side]
        assert "generic-segmentation-offload: off" in seen[side]
        assert "generic-receive-offload: off" in seen[side]
    assert "3 packets transmitted, 3 received" in seen["ping"]
    ping = (3, 3 * 98, 0)
    assert seen["links"] == [
        LinkCounters("h1-s1", *ping, *ping),
        LinkCounters("h2-s1", 0, 0, 0, 0, 0, 0),
        LinkCounters("h3-s1", *ping, *ping),
    ]
    assert all(f"s1-eth{n}@" in seen["root"] for n in (1, 2, 3))


def test_nothing_is_left_of_a_network_that_was_stopped():
    processes, links = call(cases.left_after)
    assert not [line for line in processes if "gradplane switch" in line or "mininet:" in line]
    assert len(links) == 1 and links[0].startswith("lo ")


def test_a_rate_and_a_queue_lose_what_is_too_much():
    link = call(partial(cases.burst, 50, rate="100kbit", queue=5))
    assert link.up_packets >= 5 and link.up_dropped > 0


def test_what_the_kernels_queues_do():
    """At 100 bytes a second, with a queue of 5 packets behind a burst of 3028 bytes."""
    assert call(cases.queues) == {  # frames taken, why the next was not, drops
        "whole frames": (2 + 5, "ENOBUFS", 1),
        "small frames": (50 + 5, "ENOBUFS", 1),
        "odd rate": (1, "", 0),
        "no carrier": (1, ""),
        "down": (0, "ENETDOWN"),
    }


def test_a_delay_takes_netem_and_a_kernel_without_says_so():
    netem = subprocess.run(
        isolation.command(["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]),
        capture_output=True,
        check=False,
    )
    said = call(partial(cases.enter, delay="1ms"))
    if netem.returncode == 0:
        assert said == "it could be"
    else:
        assert said == (
            "link h1-s1: a delay needs the kernel's netem, which this kernel refuses: leave the"
            " delay out or 0, or use --net sim, where delays are virtual"
            " (tc: Error: Specified qdisc kind is unknown.)"
        )


def test_what_the_kernel_cannot_shape_is_refused_before_a_run_is_started(tmp_path, monkeypatch):
    """A kernel without netem, or without tbf: stood for by a tc that refuses it."""
    tc = tmp_path / "tc"
    tc.write_text('#!/bin/sh\ncase "$*" in *$REFUSED*) echo "Error: unknown." >&2; exit 2;; esac\n')
    tc.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(isolation, "command", list)  # whose namespaces do not see the folder
    for refused, key, value, message in (
        ("netem", "delay", "1ms", "a delay needs the kernel's netem, which this kernel refuses"),
        ("tbf", "rate", "5Mbit", "a rate needs the kernel's tbf, which this kernel refuses"),
    ):
        monkeypatch.setenv("REFUSED", refused)
        settings = ["topology.delay=0", f"topology.{key}={value}"]
        deployment = load_deployment("thc-star", settings)
        with pytest.raises(ExperimentError, match=f"^link h1-s1: {message}.*tc: Error: unknown."):
            run_experiment.run_deployed(deployment, tmp_path / "run", net="mininet")
        assert not (tmp_path / "run").exists()


def test_a_program_with_an_error_is_shown_as_the_compiler_shows_it(tmp_path):
    program = tmp_path / "wrong.p4"
    program.write_text("control C() {\n")
    said = call(cases.enter_program, str(program))
    assert said.startswith("switch s1 ended with status 1: ")
    assert f"{program}:1:14: error: found end of file" in said
    assert said.endswith("    control C() {\n                 ^")


def test_a_host_that_cannot_start_says_why():
    said = call(cases.host_that_fails)
    assert said.startswith("host h1 (job 0) ended with status 1: gradplane.hosts ")
    assert "nothing-of-the-kind" in said


def test_a_host_that_dies_ends_the_run():
    assert call(cases.host_killed) == ("host h2 (job 0) ended with status -9: it printed nothing")


def test_a_switch_that_dies_ends_the_run():
    assert call(cases.switch_killed) == "switch s1 ended with status -9: it printed nothing"


def test_the_deadline():
    assert call(cases.past_deadline) == (
        "the deadline has passed at 0.2 s, not finished: h1 (job 0); h2 (job 0)"
    )


def test_the_prompt():
    argv = isolation.command([sys.executable, cases.__file__, "prompt"])
    typed = "h1 ping -c 1 h2\npingall\nexit\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    done = subprocess.run(
        argv, input=typed, capture_output=True, text=True, check=True, env=environment
    )
    assert "1 packets transmitted, 1 received" in done.stdout + done.stderr
    assert "Results: 0% dropped (2/2 received)" in done.stdout + done.stderr


def test_in_a_user_namespace_as_without_root():
    code = "import mininet_cases; mininet_cases.inspect_isolated()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert "3 packets transmitted, 3 received" in done.stdout, done.stderr


def test_missing_programs_are_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NetworkError) as error:
        mininet_network.check_tools()
    assert str(error.value) == (
        "Mininet needs programs that are missing here: apt-get install iproute2 mininet net-tools"
    )


def test_a_kill_in_the_middle_of_a_run_leaves_nothing(tmp_path):
    """No process, no namespace (hence no veth link) and no temporary file is left."""
    code = "import mininet_cases as cases; from gradplane.runs import isolation; "
    code += "isolation.call(cases.stay)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    environment["TMPDIR"] = str(tmp_path)
    before = set(os.listdir("/dev/shm"))
    victim = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert victim.stdout is not None
    namespaces = set(victim.stdout.readline().split())
    temporary = victim.stdout.readline().strip()
    assert victim.stdout.readline() == "training\n"
    assert len(namespaces) == 4 and len(processes_in(namespaces)) >= 8
    victim.send_signal(signal.SIGKILL)
    victim.stdout.read()
    victim.wait()
    await_gone(namespaces)
    assert not any(name in Path("/proc/self/mountinfo").read_text() for name in namespaces)
    assert "s1-eth" not in subprocess.check_output(["ip", "link"], text=True)
    assert temporary in ("/dev/shm", "/media", "/srv", "/mnt")
    left = set(os.listdir("/dev/shm")) - before
    assert not [name for name in left if name.startswith(("tmp", "gradplane", "h1", "s1"))]
    assert not os.listdir(tmp_path)
