"""The simulated network as a whole: real hosts, the real program, virtual time."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from network_cases import P4, hosts, job, of_kind, results, run, set_up, switch_config
from scapy.utils import rdpcap

from gradplane.controller import read_counters
from gradplane.controller.targets import QueueSettings
from gradplane.topologies import NetworkError, build
from gradplane.topologies.network import LinkCounters
from gradplane.topologies.sim.sim_network import SimNetwork


def simulate(*jobs, config=None, program=P4 / "thc.p4", **star):
    with SimNetwork(build("star", **({"workers": 2} | star)), config or switch_config()) as net:
        set_up(net, *jobs, program=program)
        return run(net, *jobs), net.link_counters()


def test_a_job_trains_and_every_worker_ends_with_the_same_weights():
    records, links = simulate(job())
    done = of_kind(records, "done")
    assert len(done) == 2 and len({record["weights"] for record in done}) == 1
    assert all(record["missed"] == 0 for record in of_kind(records, "round"))
    rounds = of_kind(records, "round")
    assert links[0].up_packets == sum(r["packets_up"] for r in rounds if r["worker"] == 0)
    assert links[0].down_packets == sum(r["packets_down"] for r in rounds if r["worker"] == 0)


def test_the_same_configuration_is_the_same_run():
    star = {"rate": "50Mbit", "delay": "20us"}
    assert simulate(job(), **star) == simulate(job(), **star)


def test_rates_and_delays_take_virtual_time_and_change_no_result():
    fast, _ = simulate(job())
    slow, _ = simulate(job(), rate="1Mbit", delay="1ms")
    assert results(fast) == results(slow)
    ends = [of_kind(records, "done")[0]["at"] for records in (fast, slow)]
    assert ends[0] < ends[1]


def test_recirculation_at_a_low_rate_takes_longer():
    fast, _ = simulate(job())
    slow, _ = simulate(job(), config=switch_config(recirculation_rate=10_000_000))
    assert results(fast) == results(slow)
    assert of_kind(fast, "done")[0]["at"] < of_kind(slow, "done")[0]["at"]


def test_a_full_queue_loses_packets_that_the_hosts_send_again():
    patient = job(
        reliability="retransmit", timeout_ns=20 * 10**6, model_args={"hidden": [32]}, batch=512
    )
    records, links = simulate(patient, rate="10Mbit", queue=2)
    assert sum(link.up_dropped + link.down_dropped for link in links) > 0
    assert results(records) == results(simulate(patient)[0])


def test_queues_of_the_switch_lose_packets_that_the_hosts_send_again():
    patient = job(reliability="retransmit", timeout_ns=20 * 10**6, model_args={"hidden": [64]})
    config = switch_config(queues=QueueSettings(rate=1000, depth=1))
    records, links = simulate(patient, config=config)
    assert sum(link.down_dropped for link in links) > 0
    assert results(records) == results(simulate(patient)[0])


def test_frames_that_wait_before_egress_arrive_as_if_they_waited_on_the_link(tmp_path):
    """The program's copy looks at a queue's length, so that its frames wait in the switch."""
    text = (P4 / "thc.p4").read_text()
    looks = "if (standard_metadata.deq_qdepth == 0x7ffff) { mark_to_drop(standard_metadata); }"
    start, egress, rest = text.partition("control ThcEgress(")
    copy = tmp_path / "thc.p4"
    copy.write_text(start + egress + rest.replace("apply {", f"apply {{ {looks}", 1))
    star = {"rate": ["10Mbit", "1Mbit"], "delay": "20us", "queue": 2}
    hasty = job(quorum=1, timeout_ns=20 * 10**6)  # results for the slow link come too fast
    here, there = simulate(hasty, **star), simulate(hasty, program=copy, **star)
    assert here == there
    assert here[1][1].down_dropped > 0


def test_two_jobs_share_hosts_and_switch():
    both, _ = simulate(job(0), job(1))
    alone, _ = simulate(job(1))
    assert {r["job"] for r in of_kind(both, "done")} == {0, 1}
    rounds, weights = results(both)
    assert results(alone) == (
        {key: value for key, value in rounds.items() if key[0] == 1},
        {key: value for key, value in weights.items() if key[0] == 1},
    )


def test_a_second_run_on_the_same_network_starts_at_time_0():
    with SimNetwork(build("star", workers=2), switch_config()) as net:
        set_up(net, job(0), job(1))
        first = run(net, job(0))
        second = run(net, job(1))
    assert [r["at"] for r in of_kind(first, "done")] == [r["at"] for r in of_kind(second, "done")]


def test_every_frame_is_counted_on_links_ports_and_in_the_captures(tmp_path):
    with SimNetwork(build("star", workers=2), switch_config(pcap=tmp_path)) as net:
        set_up(net, job())
        run(net, job())
        counters = read_counters(net.switch_addresses["s1"])
        links = net.link_counters()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "s1-eth1_in.pcap",
        "s1-eth1_out.pcap",
        "s1-eth2_in.pcap",
        "s1-eth2_out.pcap",
    ]
    for port, link in enumerate(links, 1):
        ports = counters["ThcIngress.port_in"][port], counters["ThcEgress.port_out"][port]
        assert (link.up_packets, link.down_packets) == tuple(p["packets"] for p in ports)
        for way, count, size in (
            ("in", link.up_packets, link.up_bytes),
            ("out", link.down_packets, link.down_bytes),
        ):
            packets = rdpcap(str(tmp_path / f"s1-eth{port}_{way}.pcap"))
            assert (len(packets), sum(map(len, packets))) == (count, size)
            times = [packet.time for packet in packets]
            assert times == sorted(times)


def test_an_idle_link_counts_nothing():
    _, links = simulate(job(), servers=1)
    assert links[2] == LinkCounters("h3-s1", 0, 0, 0, 0, 0, 0)


def test_several_networks_at_once(caplog):
    with ThreadPoolExecutor(3) as threads:
        first, second, third = threads.map(simulate, [job()] * 3)
    assert first == second == third
    assert caplog.text == ""


def test_the_deadline_is_virtual():
    with SimNetwork(build("star", workers=2), switch_config()) as net:
        set_up(net, job())
        with pytest.raises(NetworkError) as error:
            run(net, job(), deadline=0.0015)
    assert str(error.value).startswith("the deadline has passed at 0.0")
    assert str(error.value).endswith(" s, not finished: h1, h2")


def test_hosts_that_wait_for_nothing():
    """One host of two runs alone, without a timer that would end it."""
    silent = job(timeout_ns=10**6, retries=0, reliability="retransmit")
    with SimNetwork(build("star", workers=2), switch_config()) as net:
        set_up(net, silent)
        with pytest.raises(NetworkError) as error:
            net.run(hosts(silent)[:1], lambda record: None, 0.5)
    assert str(error.value).endswith(" s, not finished: h1")


def test_a_host_that_the_topology_does_not_have():
    with SimNetwork(build("star", workers=1), switch_config()) as net:
        with pytest.raises(NetworkError) as error:
            net.run(hosts(job()), print)
        assert str(error.value) == "no host h2 10.0.0.2 in the topology: h1 10.0.0.1"
        with pytest.raises(NetworkError) as error:
            net.cli()
        assert str(error.value) == (
            "the simulated network has no prompt: use --net mininet for --cli"
        )
