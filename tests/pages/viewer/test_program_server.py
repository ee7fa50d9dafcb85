"""`gradplane p4 view --at`: the page of a program with a running switch's tables and counters."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from gradplane.cli.app import app
from gradplane.controller import targets
from gradplane.controller.connection import Connection
from gradplane.experiment import p4_programs
from gradplane.pages.viewer.local_server import LocalServer
from gradplane.pages.viewer.program_graphs import page, page_files
from gradplane.pages.viewer.program_server import program_server, stepping_server
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.server import P4RuntimeServer
from gradplane.switch.program_cache import load_program, load_source
from gradplane.switch.switch import Switch

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; }
struct metadata { }
parser P(packet_in p, out headers hdr, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata m) { apply { } }
control I(inout headers hdr, inout metadata m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets_and_bytes) hits;
    counter(4, CounterType.packets) seen;
    action forward(bit<9> port) { s.egress_spec = port; hits.count(); }
    action drop() { mark_to_drop(s); hits.count(); }
    table t {
        key = { hdr.h.a : exact; } actions = { forward; drop; }
        default_action = drop(); size = 16; counters = hits;
    }
    action mark(bit<8> v) { hdr.h.b = v; }
    table u {
        key = { hdr.h.b : ternary; hdr.h.a : range; } actions = { mark; NoAction; }
        default_action = NoAction();
    }
    apply { seen.count(0); t.apply(); u.apply(); }
}
control E(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply { } }
control C(inout headers hdr, inout metadata m) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture(scope="module")
def device() -> Device:
    made = Device(load_source, Switch, id=0)
    made.load(load_program("program.p4", text=PROGRAM))
    return made


@pytest.fixture(scope="module")
def served(device: Device) -> Iterator[LocalServer]:
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    with P4RuntimeServer(device, "127.0.0.1:0") as running:
        connection = Connection(running.address, 0, targets.get("embedded"))
        program = load_program("program.p4", text=PROGRAM)
        text = page(program, {}, "program.p4", live=running.address)
        server = program_server(text, connection)
        thread = threading.Thread(target=server.run)
        thread.start()
        yield server
        server.stop()
        thread.join()


def ask(server: LocalServer, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    return json.load(urllib.request.urlopen(server.url + path, data, timeout=60))


def refusal(server: LocalServer, path: str, body: Any) -> str:
    with pytest.raises(urllib.error.HTTPError) as error:
        ask(server, path, body)
    text: str = json.load(error.value)["error"]
    return text


def test_entries_are_added_changed_and_deleted(served: LocalServer, device: Device) -> None:
    entry = {"table": "I.t", "match": {"a": "5"}, "action": "forward", "params": {"port": "2"}}
    ask(served, "put", entry)
    assert device.process(1, b"\5\0")[0] == (2, b"\5\0")
    ask(served, "put", entry | {"params": {"port": "3"}})
    assert device.process(1, b"\5\0")[0] == (3, b"\5\0")
    table = ask(served, "table?name=I.t")
    shown = [(e["text"], e["action"], e["packets"]) for e in table["entries"]]
    assert shown == [("a=0x5", "forward(port=0x3)", 2), ("", "drop()", None)]
    assert ask(served, "live")["tables"]["I.t"] == {"entries": 1, "size": 16, "packets": 2}
    ask(served, "remove", table["entries"][0] | {"table": "I.t"})
    assert ask(served, "live")["tables"]["I.t"]["entries"] == 0
    assert ask(served, "live")["counters"]["I.seen"][0] == 2


def test_masks_ranges_and_priorities(served: LocalServer) -> None:
    match = {"b": "0x4/&0xf", "a": "1...9"}
    entry = {"table": "I.u", "match": match, "action": "mark", "params": {"v": "7"}, "priority": 3}
    ask(served, "put", entry)
    (found, _) = ask(served, "table?name=I.u")["entries"]
    assert (found["match"]["b"], found["priority"]) == ("0x4/&0xf", 3)
    ask(served, "remove", found | {"table": "I.u"})
    assert len(ask(served, "table?name=I.u")["entries"]) == 1


def test_wrong_entries_are_refused_with_the_reason(served: LocalServer) -> None:
    entry = {"table": "I.t", "match": {"a": "500"}, "action": "drop"}
    assert "invalid value for bitwidth 8: '500'" in refusal(served, "put", entry)
    entry = {"table": "I.t", "match": {"a": "5"}, "action": "forwrd"}
    assert "Did you mean 'forward'" in refusal(served, "put", entry)
    assert "this is no entry" in refusal(served, "put", {"table": "I.t"})
    assert "this is no entry" in refusal(served, "put", [])


def test_the_page_edits_a_table(browser: Any, served: LocalServer, device: Device) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(served.url)
    wait = WebDriverWait(browser, 60)

    def text(selector: str) -> str:
        found = "return document.querySelector(arguments[0])?.innerText ?? ''"
        return str(browser.execute_script(found, selector))

    wait.until(lambda _: "I.t" in text("#live"))
    browser.find_element("css selector", "#live button").click()
    wait.until(lambda _: "(default)" in text("#entries"))
    browser.find_element("css selector", "#entries input[name=a]").send_keys("7")
    browser.find_element("css selector", "#entries input[name=port]").send_keys("4\n")
    wait.until(lambda _: "a=0x7" in text("#entries"))
    assert device.process(1, b"\7\0")[0] == (4, b"\7\0")
    browser.find_element("css selector", "#entries input[name=a]").send_keys("700\n")
    wait.until(lambda _: "invalid value" in text("#entries .problem"))
    browser.find_element("css selector", "#entries td button").click()
    wait.until(lambda _: "a=0x7" not in text("#entries"))
    refused = [line for line in browser.get_log("browser") if "409" not in line["message"]]
    assert [line for line in refused if line["level"] == "SEVERE"] == []


def test_a_switch_that_does_not_answer_is_named(tmp_path: Any) -> None:
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM)
    done = CliRunner().invoke(app, ["p4", "view", str(path), "--at", "127.0.0.1:1"])
    assert done.exit_code == 1
    assert "is the switch running, and is this its P4Runtime address?" in done.output


# Packets from the page


@pytest.fixture(scope="module")
def stepping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """Yield the server of the program's page, with a switch that sends packets to port 3."""
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    file = tmp_path_factory.mktemp("stepping") / "program.p4"
    file.write_text(PROGRAM)
    compiled = p4_programs.compiled(file)
    program, lines = compiled.program, compiled.reporter.lines
    switch = Switch(program, engine="interpreter")
    switch.run_commands("table_add I.t forward 5 => 3\ntable_add I.u mark 0&&&0 0->9 => 7 1")
    text = page(program, lines, "program.p4", stepping=True)
    server = stepping_server(text, switch, page_files(program, lines))
    thread = threading.Thread(target=server.run)
    thread.start()
    yield server
    server.stop()
    thread.join()


def test_a_packet_is_sent_and_each_step_told(stepping: LocalServer) -> None:
    answer = ask(stepping, "send", {"port": 1, "packet": "0504"})
    sets = [one for step in answer["steps"] for one in step["sets"]]
    assert sets[:2] == [["hdr.h.a", "5"], ["hdr.h.b", "4"]]
    assert ["hdr.h.b", "7"] in sets
    assert answer["outputs"] == [[3, "0507"]]
    (hit,) = [step for step in answer["steps"] if step["text"].startswith("table I.t")]
    line = 1 + PROGRAM[: PROGRAM.index("t.apply()")].count("\n")
    assert hit["place"].split("-")[1] == str(line)


def test_what_is_no_packet_is_refused(stepping: LocalServer) -> None:
    said = "a packet is a port and bytes as hexadecimal digits: "
    assert refusal(stepping, "send", {"port": 1, "packet": "xy"}).startswith(said)
    assert refusal(stepping, "send", {"packet": "00"}).startswith(said)
    assert "port 1000" in refusal(stepping, "send", {"port": 1000, "packet": "00"})


@pytest.mark.parametrize("width", [1200, 500])
def test_the_page_steps_through_a_packet(browser: Any, stepping: LocalServer, width: int) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.set_window_size(width, 900)
    browser.get(stepping.url)

    def text(selector: str) -> str:
        found = "return document.querySelector(arguments[0])?.innerText ?? ''"
        return str(browser.execute_script(found, selector))

    packet = browser.find_element("css selector", "#hex")
    packet.clear()
    packet.send_keys("05 04")
    browser.find_element("css selector", "#send button").click()
    WebDriverWait(browser, 60).until(lambda _: "step 1 of" in text("#which"))
    while text("#trace .here") != "hdr.h.b = 7":
        browser.find_element("css selector", "#after").click()
    assert text("#fields tr.chosen").split() == ["hdr.h.b", "4", "7"]
    assert "hdr.h.b = v" in text(".source .here")
    assert "0507" in text("#steps")
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.execute_script(wide) == 0
    assert browser.get_log("browser") == []
