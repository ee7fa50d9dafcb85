"""Answers of commands beside simple_switch_CLI's (behavioral-model 1.15.5): a row of
docs/coming-from-bmv2.md, "Differences"."""

from __future__ import annotations

import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import bmv2_runner
import pytest
from v1programs import source

from gradplane.experiment import p4_programs
from gradplane.switch import Switch
from gradplane.switch.compiler import compile_source

COMPILED = compile_source(
    "commands.p4",
    text=source(
        metadata="bit<8> n;",
        ingress_locals="""
            register<bit<8>>(16) seen; counter(4, CounterType.packets_and_bytes) hits;
            action hit(bit<9> p, bit<8> v) { s.egress_spec = p; h.a.z = v; }
            table t { key = { h.a.x : exact; h.a.y : ternary; } actions = { hit; NoAction; } }
            table u { key = { h.a.x : lpm; } actions = { hit; NoAction; } size = 5; }""",
        ingress="t.apply(); u.apply(); seen.read(m.n, 0); hits.count(0);",
    ),
)
COMMANDS = """table_add I.t hit 3 1&&&255 => 2 7 10
table_add I.t hit 3 2&&&255 => 300 9 20
table_add I.u hit 16/4 => 2 9
table_dump I.t
table_dump I.u
table_dump_entry I.t 1
table_dump_entry_from_key I.t 3 1&&&255 10
table_modify I.t hit 0 4 8
table_delete I.t 1
table_num_entries I.t
table_set_default I.t hit 2 2
table_dump I.t
table_info I.t
register_write I.seen 3 9
register_read I.seen 3
register_read I.seen
counter_read I.hits 1
mc_mgrp_create 1
mc_node_create 5 1 2
mc_node_associate 1 0
mc_dump"""
REPEATED = re.compile(
    r"(Adding|Modifying|Deleting|Setting|Creating|Associating|match key:|action:|runtime data:"
    r"|register index omitted).*\n?"
)


def theirs(folder: Path) -> list[str]:
    """Return the answers of a switch of its own, without the lines that repeat the command."""
    (file := folder / "commands.json").write_text(p4_programs.compiled_for("bmv2", COMPILED))
    with ExitStack() as stack:
        thrift = str(bmv2_runner._free_port())
        command = ["simple_switch", str(file), "--thrift-port", thrift]
        if "--notifications-addr" in bmv2_runner._help("simple_switch"):
            command += ["--notifications-addr", f"ipc://{folder / 'notes'}"]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
        stack.callback(bmv2_runner._end, process)
        ask = stack.enter_context(bmv2_runner._cli("simple_switch_CLI", thrift, process, file))
        return [REPEATED.sub("", ask(line)).strip() for line in COMMANDS.splitlines()]


def as_theirs(answer: str) -> str:
    """Return an answer of ours with a key's name and action data as they have them."""
    named = answer.replace("h.a.", "a.").replace("* a.x  ", "* a.x    ")
    named = re.sub(r"\* (\S+) +:", lambda m: f"* {m[1]:<20}:", named)
    return re.sub(r"(?<=[-,] )(?:00)+(?=[0-9a-f]{2}\b)", "", named)


def test_the_answers_are_the_same_but_for_names_of_keys_and_leading_zeros(tmp_path: Path) -> None:
    if not bmv2_runner.available():
        pytest.skip("simple_switch and its command line are not on PATH")
    here = Switch(COMPILED.program)
    for line, expected in zip(COMMANDS.splitlines(), theirs(tmp_path), strict=True):
        answer = REPEATED.sub("", here.run_commands(line)).strip()
        assert as_theirs(answer) == expected, line
