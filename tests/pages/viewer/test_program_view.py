"""`gradplane p4 view`: the graphs of a program, their drawing, and the page."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gradplane._shipped_programs import SHIPPED
from gradplane.experiment.p4_programs import compiled
from gradplane.pages.viewer.program_graphs import DrawingError, graphs, page, path_graphs, svg

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<16> value; }
struct headers { h_t h; }
struct metadata { }
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
  state start { p.extract(h.h); transition select(h.h.kind) { 1: one; 2: one; default: accept; } }
  state one { transition select(h.h.value) { 0x0800: accept; default: reject; } }
}
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
  action leave(bit<9> port) { s.egress_spec = port; }
  action other() { }
  table t0 { key = { h.h.kind: exact; } actions = { leave; NoAction; } size = 16; }
  table t1 { key = { h.h.kind: exact; } actions = { leave; NoAction; } size = 16; }
  table first { key = { h.h.value: lpm; } actions = { leave; other; } size = 64; }
  table first2 { key = { h.h.kind: lpm; } actions = { leave; other; } }
  table missed { actions = { leave; NoAction; } }
  table chosen { key = { h.h.value: ternary; } actions = { leave; NoAction; } }
  apply {
    if (h.h.isValid()) {
      t0.apply(); t1.apply();
      if (first.apply().hit) { s.priority = 1; } else { missed.apply(); }
      switch (first2.apply().action_run) { other: { chosen.apply(); } default: { exit; } }
    }
  }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control C(inout headers h, inout metadata m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h.h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("p4") / "small.p4"
    path.write_text(PROGRAM)
    return compiled(path)


def edges(graph):
    titles = {node.key: node.title for node in graph.nodes}
    return {(titles[e.source], titles[e.target], e.label) for e in graph.edges}


def test_states_of_a_parser(program):
    graph = graphs(program.program)[0]
    assert [(n.title, n.kind) for n in graph.nodes] == [
        ("start", "state"),
        ("one", "state"),
        ("accept", "end"),
        ("reject", "end"),
    ]
    assert graph.nodes[0].lines == ("extract h.h", "select h.h.kind")
    assert edges(graph) == {
        ("start", "one", "1\n2"),
        ("start", "accept", "default"),
        ("one", "accept", "2048 (0x800)"),
        ("one", "reject", "default"),
    }


def test_tables_and_conditions_of_a_control(program):
    parser, ingress = graphs(program.program)
    assert (ingress.block, ingress.name) == ("ig", "I")
    assert edges(ingress) == {
        ("start", "h.h.isValid()", ""),
        ("h.h.isValid()", "t0 to t1", "true"),
        ("h.h.isValid()", "end", "false"),
        ("t0 to t1", "first", ""),
        ("first", "first2", "hit"),
        ("first", "missed", "miss"),
        ("missed", "first2", ""),
        ("first2", "chosen", "other"),
        ("first2", "end", "otherwise"),
        ("chosen", "end", ""),
    }
    tables = {n.title: n for n in ingress.nodes if n.kind == "table"}
    assert tables["t0 to t1"].tables == ("I.t0", "I.t1")
    assert tables["first"].lines == ("h.h.value: lpm", "size 64")
    assert tables["missed"].lines == ("no key", "size 1024")


@pytest.mark.parametrize("name", ["thc.p4", "tos_compress.p4", "thc_tna.p4", "tos_compress_tna.p4"])
def test_each_table_of_a_shipped_program_is_drawn_and_reached(name):
    program = compiled(SHIPPED / name).program
    drawn = [t for graph in graphs(program) for node in graph.nodes for t in node.tables]
    assert sorted(set(drawn)) == sorted(table.name for table in program.tables)
    for graph in graphs(program):
        sources = {edge.source for edge in graph.edges}
        targets = {edge.target for edge in graph.edges}
        for node in graph.nodes:
            assert node.key in targets or node.title == "start", (graph.name, node)
            assert node.key in sources or node.kind == "end", (graph.name, node)


@needs_dot
def test_the_page_leads_from_each_node_to_its_line(program):
    html = page(program.program, program.reporter.lines, "small.p4")
    anchors = set(re.findall(r'id="(f\d+-\d+)"', html))
    links = re.findall(r'xlink:href="#(f\d+-\d+)"', html)
    of_path = [n for graph in path_graphs(program.program) for n in graph.nodes if n.span]
    assert len(links) == 2 + 6 + len(of_path) and set(links) <= anchors
    lines = PROGRAM.split("\n")
    [start] = re.findall(r'id="f0-(\d+)"[^>]*>  state start', html)
    assert f"f0-{start}" in links and "state start" in lines[int(start) - 1]
    assert "http://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", html)


def test_without_graphviz_the_message_says_what_to_install(program, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(DrawingError, match="apt-get install graphviz"):
        svg(graphs(program.program)[0])


@needs_dot
def test_the_command_writes_a_page_and_prints_dot(tmp_path):
    def view(*options):
        words = [sys.executable, "-m", "gradplane", "p4", "view", str(SHIPPED / "thc.p4"), *options]
        return subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    assert view() == "thc.html\n"
    assert "ThcIngress" in Path(tmp_path / "thc.html").read_text()
    dot = view("--dot")
    assert dot.count("digraph") == 3 + 2  # and both parts of the packet's path
    subprocess.run(["dot", "-Tplain"], input=dot, text=True, check=True, stdout=subprocess.DEVNULL)


def test_the_packets_path_is_drawn(program):
    ingress, egress = path_graphs(program.program)
    assert (ingress.name, ingress.kind) == ("the packet's path: ingress", "path")
    blocks = [(node.title, *node.lines) for node in ingress.nodes if node.kind == "block"]
    assert blocks == [("P", "p"), ("C", "vr"), ("I", "ig"), ("P", "p")]  # anew, for a clone
    steps = [node.title for node in egress.nodes if node.kind == "step"]
    assert "drop" in steps and "send to port port" in steps
    assert all(n.span.file == "v1model/path.p4" for n in ingress.nodes if n.kind == "block")
    ends = {edge.target for edge in egress.edges} - {edge.source for edge in egress.edges}
    assert ends == {"end"}


def test_the_graphs_for_graphviz_have_the_path(tmp_path):
    file = tmp_path / "small.p4"
    file.write_text(PROGRAM)
    command = [sys.executable, "-m", "gradplane", "p4", "view", str(file), "--dot"]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert 'digraph "the packet\'s path: egress"' in shown.stdout, shown.stderr
