"""simple_switch_CLI's commands: what they do to a switch, and what scripts read of it."""

from __future__ import annotations

import re

import pytest
from one_of_each import SOURCE, packet

from gradplane.switch import Switch
from gradplane.switch.commands import (
    COMMANDS,
    CommandError,
    CommandTarget,
    NoPorts,
    PortStatus,
    run_words,
)


def out(sw: Switch, port: int, data: bytes) -> list[tuple[int, bytes]]:
    return sw.process(port, data)


def handles(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"with handle (\d+)", text)]


def refusal(sw: Switch, text: str) -> str:
    with pytest.raises(CommandError) as caught:
        sw.run_commands(text, "s1.txt")
    return str(caught.value)


# -- tables --------------------------------------------------------------------------------------


def test_entries_have_the_handles_that_bmv2_gives_them(sw: Switch) -> None:
    said = sw.run_commands(
        """
        table_add hosts forward 1 => 1
        table_add hosts forward 00:00:00:00:00:02 => 2
        table_delete hosts 0
        table_add I.hosts I.drop 3 =>
        table_add hosts drop 4        # the arrow may be left out
        """
    )
    # The freed place is taken again, and its number says that it was.
    assert handles(said) == [0, 1, 1 << 24, 2]
    sw.run_commands("table_modify hosts forward 1 9\ntable_modify hosts forward 2 => 0x0a")
    assert [out(sw, 0, packet(dst))[0][0] for dst in (2, 4)] == [9, 10]
    assert sw.run_commands("table_num_entries hosts") == "3"
    sw.run_commands("table_clear hosts")
    assert handles(sw.run_commands("table_add hosts drop 1")) == [0]


def test_a_controllers_entries_have_handles_too(sw: Switch) -> None:
    sw.table("hosts").add({"h.eth.dst": 7}, "forward", {"port": 3})
    assert handles(sw.run_commands("table_add hosts drop 8")) == [1]
    sw.run_commands("table_modify hosts forward 0 4")
    [entry] = [e for e in sw.table("hosts").entries() if e.matches == ((7,),)]
    assert entry.action.args == (4,)


def test_of_two_entries_the_smaller_priority_wins(sw: Switch) -> None:
    sw.run_commands(
        """
        table_add acl counted 0&&&0 0->0xffff 0&&&0 => 1 20
        table_add acl counted 1&&&0xff 0x800->0x8ff 0&&&0xff => 2 10
        table_add acl counted 1&&&0xff 0x800->0x8ff 0 => 3 11
        table_add acl counted 1&&&0xff 0x800->0x8ff 0&&&0 => 4 0
        """
    )
    assert out(sw, 0, packet(5))[0][0] == 4
    sw.run_commands("table_delete acl 3")
    assert out(sw, 0, packet(5))[0][0] == 2
    assert out(sw, 0, packet(5, type=0x900))[0][0] == 1
    # In the switch, and over P4Runtime, the larger wins, as simple_switch_grpc has it.
    assert [e.priority for e in sw.table("acl").entries()] == [2**31 - 1 - p for p in (20, 10, 11)]


def test_default_actions(sw: Switch) -> None:
    assert out(sw, 0, packet(5)) == []
    sw.run_commands("table_set_default hosts forward 6")
    assert out(sw, 0, packet(5))[0][0] == 6
    sw.run_commands("table_reset_default hosts")
    assert out(sw, 0, packet(5)) == []


def test_a_table_is_dumped_in_the_form_that_scripts_read(sw: Switch) -> None:
    said = sw.run_commands(
        "table_add hosts forward 00:00:00:00:00:01 => 300\n"
        "table_add limits metered 0x0800/8 => 1\n"
        "table_dump hosts\ntable_dump_entry limits 0\ntable_dump_entry_from_key limits 0x800/8\n"
    )
    entry = "Dumping entry 0x0\nMatch key:\n* h.eth.type          : LPM       0800/8\n"
    entry += "Action entry: I.metered - 0001"
    assert said == (
        "Entry has been added with handle 0\nEntry has been added with handle 0\n"
        "==========\nTABLE ENTRIES\n**********\nDumping entry 0x0\nMatch key:\n"
        "* h.eth.dst           : EXACT     000000000001\n"
        "Action entry: I.forward - 012c\n"
        "==========\nDumping default entry\nAction entry: I.drop - \n==========\n"
        f"{entry}\n{entry}"
    )


def test_priorities_and_idle_times_are_dumped(sw: Switch) -> None:
    sw.state.tables["I.acl"].clock = sw.state.clock = lambda: 5_000_000
    said = sw.run_commands(
        "table_add acl drop 1&&&0xff 2->3 7 => 10\ntable_set_timeout acl 0 1000\n"
        "table_dump_entry acl 0"
    )
    assert said.splitlines()[1:] == [
        "Dumping entry 0x0",
        "Match key:",
        "* h.eth.src           : TERNARY   000000000001 &&& 0000000000ff",
        "* h.eth.type          : RANGE     0002 -> 0003",
        "* m.kind              : TERNARY   07 &&& ff",
        "Priority: 10",
        "Action entry: I.drop - ",
        "Life: 0ms since hit, timeout is 1000ms",
    ]


def test_what_a_program_has_is_listed(sw: Switch) -> None:
    assert sw.run_commands("table_info hosts").splitlines() == [
        f"{'I.hosts':30} [implementation=None, mk=h.eth.dst(exact, 48)]",
        "*" * 80,
        f"{'I.clone_to':30} [port(9)]",
        f"{'I.drop':30} []",
        f"{'I.forward':30} [port(9)]",
        f"{'I.group':30} [id(16)]",
    ]
    assert [line.split()[0] for line in sw.run_commands("show_tables").splitlines()] == [
        "I.acl", "I.hosts", "I.limits", "I.paths",
    ]  # fmt: skip
    assert f"{'I.metered':30} [port(9)]" in sw.run_commands("show_actions")
    assert sw.run_commands("show_pvs").splitlines() == [
        f"{'P.pairs':30} [compressed bitwidth:24]",
        f"{'P.types':30} [compressed bitwidth:16]",
    ]


# -- action profiles -----------------------------------------------------------------------------


def test_members_and_groups(sw: Switch) -> None:
    said = sw.run_commands(
        """
        table_indirect_create_member paths forward 3
        act_prof_create_member I.paths.implementation forward 4
        table_indirect_create_group paths
        table_indirect_add_member_to_group paths 1 0
        table_indirect_add paths 0x0800 => 0
        table_indirect_add_with_group paths 0x0801 => 0
        """
    )
    assert handles(said) == [0, 1, 0, 0, 1]
    assert [out(sw, 0, packet(5, type=t))[0][0] for t in (0x0800, 0x0801)] == [3, 4]
    sw.run_commands(
        "table_indirect_modify_member paths forward 0 6\n"
        "table_indirect_add_member_to_group paths 0 0\n"
        "table_indirect_remove_member_from_group paths 1 0\n"
        "table_indirect_set_default paths 0"
    )
    assert [out(sw, 0, packet(5, type=t))[0][0] for t in (0x0800, 0x0801, 1)] == [6, 6, 6]
    assert sw.run_commands("act_prof_dump paths.implementation") == (
        "==========\nMEMBERS\n"
        "**********\nDumping member 0\nAction entry: I.forward - 0006\n"
        "**********\nDumping member 1\nAction entry: I.forward - 0004\n"
        "==========\nGROUPS\n**********\nDumping group 0\nMembers: [0]\n=========="
    )
    assert "Index: group(0)" in sw.run_commands("table_dump_entry paths 1")
    sw.run_commands("table_indirect_modify_member paths forward 0 7")
    assert out(sw, 0, packet(5, type=1))[0][0] == 7
    sw.run_commands("table_indirect_set_default_with_group paths 0")
    assert out(sw, 0, packet(5, type=1))[0][0] == 7
    assert "Index: group(0)\n" in sw.run_commands("table_dump paths").split("default entry")[1]
    assert refusal(sw, "table_indirect_delete_group paths 0") == (
        "s1.txt:1: action profile I.paths.implementation: group 0 is used by table I.paths, entry"
        " h.eth.type 0x801"
    )
    sw.run_commands(
        "table_indirect_delete paths 1\ntable_indirect_delete_group paths 0\n"
        "table_indirect_delete_member paths 1\ntable_indirect_reset_default paths"
    )


# -- registers, counters, meters -----------------------------------------------------------------


def test_registers_are_read_as_scripts_expect(sw: Switch) -> None:
    said = sw.run_commands(
        "register_write cells 2 0xff\nregister_read I.cells 2\nregister_read cells"
    )
    assert said == "I.cells[2]= 255\ncells= 0, 0, 255"
    assert sw.run_commands("register_reset cells\nregister_read cells") == "cells= 0, 0, 0"


def test_counters_are_read_as_scripts_expect(sw: Switch) -> None:
    sw.run_commands("table_add acl counted 0&&&0 0->0xffff 0&&&0 => 1 1")
    out(sw, 2, packet(5))
    assert sw.run_commands("counter_read seen 2\ncounter_read hits 0") == (
        "seen[2]= (14 bytes, 1 packets)\nhits[0]= (14 bytes, 1 packets)"
    )
    sw.run_commands("counter_write seen 1 3 400\ncounter_write hits 0 5 600")
    assert sw.counter("seen").read(1) == (3, 400)
    assert sw.table("acl").entries()[0].counter.packets == 5
    sw.run_commands("counter_reset seen\ncounter_reset hits")
    assert sw.run_commands("counter_read seen 1\ncounter_read hits 0") == (
        "seen[1]= (0 bytes, 0 packets)\nhits[0]= (0 bytes, 0 packets)"
    )


def test_meter_rates_are_a_microsecond(sw: Switch) -> None:
    sw.run_commands("meter_set_rates rates 1 0.00001:10 0.5:20\ntable_add limits metered 0/0 => 1")
    config = sw.meter("rates").read(1)
    assert config is not None
    assert (config.cir, config.cburst, config.pir, config.pburst) == (10, 10, 500_000, 20)
    assert sw.run_commands("meter_get_rates rates 1\nmeter_get_rates rates 0") == (
        "0: info rate = 1e-05, burst size = 10\n1: info rate = 0.5, burst size = 20\n"
        "no rates: every packet is green"
    )
    sw.run_commands("meter_array_set_rates rates 1:1 2:2\nmeter_set_rates entry_rates 0 1:1 2:2")
    assert (
        sw.meter("rates").read(0).cir == sw.table("limits").entries()[0].meter.config.cir == 10**6
    )


def test_meter_rates_may_be_below_one_a_second(sw: Switch) -> None:
    sw.run_commands("meter_set_rates rates 1 1.5e-8:1 0.0000001:2")
    config = sw.meter("rates").read(1)
    assert config is not None
    assert (config.cir, config.pir, config.period) == (15, 100, 1000)  # 0.015 and 0.1 a second
    assert sw.run_commands("meter_get_rates rates 1") == (
        "0: info rate = 1.5e-08, burst size = 1\n1: info rate = 1e-07, burst size = 2"
    )


# -- multicast, mirroring, value sets ------------------------------------------------------------


def test_groups_are_made_of_nodes(sw: Switch) -> None:
    said = sw.run_commands(
        """
        table_add hosts group 9 => 11
        mc_node_create 5 0 3
        mc_node_create 10 7
        mc_mgrp_create 11
        mc_mgrp_create 11
        mc_node_associate 11 0
        mc_node_associate 11 1
        """
    )
    assert handles(said) == [0, 0, 1]
    sent = out(sw, 1, packet(9))
    assert [(port, data[11]) for port, data in sent] == [(0, 5), (3, 5), (7, 10)]
    assert sw.run_commands("mc_dump") == (
        "==========\nMC ENTRIES\n**********\nmgrp(11)\n"
        "  -> (L1h=0, rid=5) -> (ports=[0, 3], lags=[])\n"
        "  -> (L1h=1, rid=10) -> (ports=[7], lags=[])\n"
        "==========\nLAGS\n=========="
    )
    sw.run_commands("mc_node_dissociate 11 0\nmc_node_update 1 8 6\nmc_node_destroy 0")
    assert [port for port, _ in out(sw, 1, packet(9))] == [6, 8]
    assert handles(sw.run_commands("mc_node_create 1 2")) == [0]
    sw.run_commands("mc_mgrp_destroy 11")
    assert out(sw, 1, packet(9)) == []
    sw.run_commands("mc_mgrp_create 12\nmc_node_associate 12 1")


def test_mc_dump_shows_backup_replicas(sw: Switch) -> None:
    sw.multicast(11, [(4, 1, [(5, 2), 6]), (7, 1)])
    assert sw.run_commands("mc_dump") == (
        "==========\nMC ENTRIES\n**********\nmgrp(11)\n"
        "  -> (rid=1) -> (ports=[4, 7], lags=[])\n"
        "     backups of port 4: 5 (rid=2), 6 (rid=0)\n"
        "==========\nLAGS\n=========="
    )


def test_groups_and_sessions_are_the_controllers_too(sw: Switch) -> None:
    sw.multicast(11, [(4, 1), (5, 1)])
    sw.run_commands("mc_node_create 2 6\nmc_node_associate 11 0\nmirroring_add_mc 5 11")
    assert "  -> (rid=1) -> (ports=[4, 5], lags=[])\n" in sw.run_commands("mc_dump")
    assert [r.port for r in sw.state.multicast[11]] == [4, 5, 6]
    sw.multicast(11, [9])  # the node is not in it any more, and the session follows
    assert "L1h" not in sw.run_commands("mc_dump")
    assert [r.port for r in sw.state.clone_sessions[5].replicas] == [9]
    sw.clone_session(5, [1, 2])
    assert sw.run_commands("mirroring_get 5") == "MirroringSessionConfig(mgid=None, port=[1, 2])"
    sw.multicast(11, [3])
    assert [r.port for r in sw.state.clone_sessions[5].replicas] == [1, 2]


def test_mirroring(sw: Switch) -> None:
    sw.run_commands(
        "table_add hosts clone_to 9 => 1\nmirroring_add 5 7\ntable_set_default hosts drop"
    )
    assert [port for port, _ in out(sw, 0, packet(9))] == [7, 1]
    assert sw.run_commands("mirroring_get 5") == "MirroringSessionConfig(mgid=None, port=7)"
    sw.run_commands("mirroring_add_truncate 5 8 10")
    assert [(p, len(data)) for p, data in out(sw, 0, packet(9))] == [(8, 10), (1, 14)]
    said = sw.run_commands("mirroring_delete 5\nmirroring_add_mc 5 3\nmirroring_get 5")
    assert said == "MirroringSessionConfig(mgid=3, port=None)"
    assert [port for port, _ in out(sw, 0, packet(9))] == [1]  # the group comes later
    sw.run_commands("mc_mgrp_create 3\nmc_node_create 0 2 4\nmc_node_associate 3 0")
    assert [port for port, _ in out(sw, 0, packet(9))] == [2, 4, 1]


def test_value_sets_take_one_number_or_one_a_field(sw: Switch) -> None:
    sw.run_commands("pvs_add types 0x1234\npvs_add types 0x1234\npvs_add pairs 0x080101")
    sw.run_commands("pvs_add pairs 0x0900 2")
    assert sw.run_commands("pvs_get types\npvs_get P.pairs") == "1234\n080101\n090002"
    ports = [out(sw, 0, packet(5, s, t)) for s, t in ((9, 0x1234), (1, 0x801), (2, 0x900))]
    assert [sent[0][0] for sent in ports] == [70, 70, 70]
    sw.run_commands("pvs_remove pairs 0x080101\npvs_remove pairs 5\npvs_clear types")
    assert sw.run_commands("pvs_get types\npvs_get pairs") == "090002"


# -- the whole -----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_reset_state(engine: str) -> None:
    sw = Switch("all.p4", text=SOURCE, engine=engine)
    sw.run_commands(
        """
        table_add hosts group 9 => 11
        table_set_default hosts forward 5
        table_indirect_create_member paths forward 3
        table_indirect_add paths 0x0801 => 0
        mc_mgrp_create 11
        mirroring_add 5 7
        pvs_add types 0x0800
        register_write cells 0 9
        counter_write seen 0 1 1
        meter_set_rates rates 0 1:1 2:2
        """
    )
    assert out(sw, 0, packet(1))[0][0] == 70
    sw.run_commands("reset_state")
    assert out(sw, 0, packet(1)) == []
    assert [len(sw.table(name)) for name in ("hosts", "paths")] == [0, 0]
    assert not sw.profile("implementation").state.members
    assert not sw.state.multicast
    assert not sw.state.clone_sessions
    assert sw.register("cells").read(0) == 0
    assert sw.counter("seen").read(0)[0] == 1  # the packet since then
    assert sw.meter("rates").read(0) is None


def test_each_command_is_explained(sw: Switch) -> None:
    listed = sw.run_commands("help").splitlines()
    assert "table_add" in listed
    assert "load_new_config_file" not in listed
    for name in sorted(COMMANDS):
        usage, summary = sw.run_commands(f"help {name}").splitlines()
        assert usage.split()[0] == name
        assert summary.endswith(".")


def test_ports_are_those_of_the_running_switch(sw: Switch) -> None:
    class Ports(NoPorts):
        def status(self) -> list[PortStatus]:
            return [PortStatus(1, "s1-eth1", True), PortStatus(2, "s1-eth2", False)]

    target = CommandTarget(sw, Ports())
    rows = run_words(target, ["show_ports"]).splitlines()[2:]
    assert [row.split() for row in rows] == [["1", "s1-eth1", "UP"], ["2", "s1-eth2", "DOWN"]]


def test_a_switch_in_a_program_has_no_interfaces(sw: Switch) -> None:
    assert refusal(sw, "port_add s1-eth1 1") == (
        "s1.txt:1: the switch has no interfaces: only `gradplane switch` opens some"
    )
    assert refusal(sw, "port_remove 1") == "s1.txt:1: port 1 has no interface; ports: none"


# -- what is refused -----------------------------------------------------------------------------


def test_failed_lines_are_reported_and_the_others_are_run(sw: Switch) -> None:
    said = refusal(
        sw,
        "# comment\n\ntable_ad hosts\ntable_add hosts forward 1 => 1 // comment\n"
        "table_add host drop 1 =>\n",
    )
    assert said == (
        "s1.txt:3: there is no command 'table_ad'; did you mean table_add or table_dump or"
        " table_clear?\n"
        "s1.txt:5: there is no table 'host'; known: I.acl, I.hosts, I.limits, I.paths"
    )
    assert len(sw.table("hosts")) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("table_delete hosts", "1 word follows table_delete; usage: table_delete TABLE"
         " HANDLE"),
        ("table_delete hosts x", "table I.hosts: handle: 'x' is not a number"),
        ("table_delete hosts 3", "table I.hosts: it has no entry with handle 3; handles: none"),
        ("table_add hosts fwd 1 => 1", "table I.hosts: there is no action 'fwd'; known: I.clone_to,"
         " I.drop, I.forward, I.group"),
        ("table_add hosts forward 1 =>", "action I.forward: 0 parameters (none) for its 1: port"
         " (bit<9>)"),
        ("table_add hosts forward 1 2 => 1", "table I.hosts: 2 match values (1 2) for its 1 fields:"
         " h.eth.dst (exact)"),
        ("table_add hosts forward 1 => 512", "table I.hosts: action I.forward: parameter port:"
         " value 512 does not fit bit<9> (0 to 511)"),
        ("table_add hosts forward 1::2::3 => 1", "table I.hosts: field h.eth.dst: '1::2::3' is not"
         " a number or a MAC, IPv4 or IPv6 address"),
        ("table_add limits metered 0x800 => 1", "table I.limits: field h.eth.type: '0x800' is not"
         " of the form VALUE/LENGTH of an lpm match: 0x800/16 matches it alone"),
        ("table_add acl drop 1 0->9 0&&&0 => 1", "table I.acl: field h.eth.src: '1' is not of the"
         " form VALUE&&&MASK of a ternary match: 1&&&0xffffffffffff matches it alone"),
        ("table_add acl counted 1&&&1 0->9 0&&&0 => 1", "action I.counted: 0 parameters (none) for"
         " its 1: port (bit<9>); the last number is the entry's priority, which follows the"
         " parameters, since not all of the table's fields are exact or lpm"),
        ("table_add acl drop 1&&&1 0..9 0&&&0 => 1", "table I.acl: field h.eth.type: '0..9' is not"
         " of the form LOW->HIGH of a range match"),
        ("table_add acl drop 1&&&1 0->9 1&&&3 => 1", "table I.acl: field m.kind: mask 3 of an"
         " optional match is neither 0 nor 0xff"),
        ("table_add acl drop 1&&&1 0->9 0&&&0 =>", "table I.acl: the last word must be the entry's"
         " priority, a number, since not all of its fields are exact or lpm: h.eth.src (ternary),"
         " h.eth.type (range), m.kind (optional)"),
        ("table_add acl drop 1&&&1 0->9 0&&&0 => 2147483647", "table I.acl: priority 2147483647 is"
         " not within 0 to 2147483646"),
        ("table_add paths forward 1 => 1", "table I.paths: its actions are those of"
         " I.paths.implementation: give a member or a group (member=, group=; table_indirect_add,"
         " table_indirect_add_with_group)"),
        ("table_indirect_add hosts 1 => 1", "table I.hosts: it has no action profile; use table_add"
         " and the other table_ commands"),
        ("table_indirect_add paths 1 => 5", "action profile I.paths.implementation: no member 5;"
         " members: none"),
        ("table_indirect_add paths 1 =>", "table I.paths: after => expected a member's number and"
         " nothing else, got nothing"),
        ("table_set_timeout hosts 0 1", "table I.hosts: the source does not set support_timeout ="
         " true"),
        ("register_read cells 3", "register I.cells: index 3 is not within 0 to 2"),
        ("register_write cells 0 0x100000000", "register I.cells: value 4294967296 does not fit"
         " bit<32>"),
        ("meter_set_rates rates 0 1:1", "a meter has two rates, committed and peak, each"
         " RATE:BURST; 1 are given"),
        ("meter_set_rates rates 0 2:1 1:1", "meter: peak rate 1000000 is below committed rate"
         " 2000000"),
        ("meter_set_rates rates 0 a:1 1:1", "'a:1' is not RATE:BURST, with the rate in packets or"
         " bytes per microsecond, for example 0.0001:10"),
        ("meter_set_rates rates 0 1e-17:1 1:1", "1e-17:1 1:1: a rate is at least one in 1000000000"
         " seconds"),
        ("meter_set_rates rates 0 nan:1 1:1", "'nan:1' is not RATE:BURST, with the rate in packets"
         " or bytes per microsecond, for example 0.0001:10"),
        ("mc_node_associate 3 0", "there is no multicast group 3: mc_mgrp_create 3 first"),
        ("mc_node_create 1 2 2", "port 2 is given twice: a node sends one copy through a port"),
        ("mc_node_create 1 512", "port 512 is not within 0 to 511"),
        ("mc_node_create 65536 5", "egress_rid 65536 is not within 0 to 65535"),
        ("mirroring_add 5 512", "port 512 is not within 0 to 511"),
        ("mirroring_add_truncate 5 1 0x80000000", "clone session 5: truncate 2147483648 is not"
         " within 31 bits"),
        ("mc_node_create 1 2 | 1", "lags (1) are not supported: name their ports"),
        ("mc_mgrp_create 0", "multicast group 0 is not within 1 to 65535"),
        ("mirroring_add 32768 1", "clone session 32768 is not within 0 to 32767"),
        ("mirroring_get 5", "there is no mirroring session 5; sessions: none"),
        ("pvs_add types 0x10000", "value set P.types: field : value 65536 does not fit 16 bits"
         " (0 to 65535)"),
        ("pvs_add pairs 0x1000000", "value set P.pairs: 0x1000000 does not fit 24 bits"),
        ("load_new_config_file a.json", "load_new_config_file is not supported by this switch:"
         " a program comes as P4 source: start the switch with it, or push the .p4 over P4Runtime"
         " (SetForwardingPipelineConfig)"),
    ],
)  # fmt: skip
def test_errors_are_reported(sw: Switch, line: str, message: str) -> None:
    assert refusal(sw, line) == f"s1.txt:1: {message}"


def test_queues_get_rates_and_depths(sw: Switch) -> None:
    assert sw.run_commands("set_queue_rate 100\nset_queue_depth 5 1\nset_queue_rate 20 3 0") == ""
    assert sw.run_commands("show_queues").splitlines() == [
        " port queue       rate      depth  waiting  dropped",
        "    1     0        100          5        0        0",
        "    3     0         20         64        0        0",
    ]
    assert refusal(sw, "set_queue_rate 1 2 1") == (
        "s1.txt:1: priority 1: port 2 has queues 0 to 0; start the switch with more"
        " (--priority-queues N)"
    )
