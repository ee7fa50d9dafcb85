"""Helpers of the controller's tests: a switch, the program, job plans."""

import asyncio
from functools import partial
from pathlib import Path

from gradplane.controller import Controller, JobPlan, Member, Pipeline
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.device_config import device_config
from gradplane.switch.p4runtime.p4info import build_p4info, p4info_text
from gradplane.switch.p4runtime.server import P4RuntimeServer
from gradplane.switch.program_cache import load_program, load_source
from gradplane.switch.switch import Switch

THC = Path(__file__).parents[2] / "p4" / "thc.p4"
THC_TNA = THC.with_name("thc_tna.p4")
MEMBERS, RECEIVERS, ROUTES = "ThcIngress.members", "ThcEgress.receivers", "ThcIngress.routes"
SMALL = (0, 1, 4)
TABLE = (0, 1, 2, 4, 6, 8, 11, 13, 17, 19, 22, 24, 26, 28, 29, 30)


def pipeline_of(program, **defines):
    folders = (program.parent, program.parent / "include")
    info = p4info_text(build_p4info(load_program(program, folders, defines)))
    return Pipeline(info.encode(), device_config(program, folders, defines))


def thc_pipeline(**defines):
    return pipeline_of(THC, **defines)


class Server:
    """The embedded switch under P4Runtime on a free port; few tests pass packets through it."""

    def __init__(self, server=P4RuntimeServer, engine="interpreter"):
        self.device = Device(load_source, partial(Switch, engine=engine), id=0)
        self._server = server(self.device, "127.0.0.1:0")

    @property
    def address(self):
        return self._server.address

    @property
    def state(self):
        return self.device.pipeline.state

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *error):
        self._server.stop()

    def entries(self, table):
        """Return matches -> (action's position, arguments)."""
        entries = self.state.tables[table].entries()
        return {
            tuple(m[0] for m in e.matches): (e.action.index, tuple(e.action.args)) for e in entries
        }

    def lookup_entries(self, job):
        """Return the value for each index of a job; all lookup tables have the same ones."""
        found = []
        for name in self.state.tables:
            if ".lookup" in name:
                rows = self.entries(name).items()
                found.append({key[1]: args[0] for key, (_, args) in rows if key[0] == job})
        assert len(found) == 128 and all(rows == found[0] for rows in found)
        return found[0]


def check_installed(switch):
    """Check that a switch has all of job 3, of two workers and slots from 16 on, and its routes."""
    assert switch.lookup_entries(3) == dict(enumerate(TABLE))
    assert switch.entries(MEMBERS) == {
        (3, 0, 1): (0, (2, 2, 16, 8, 4, 1, 1, 0)),
        (3, 1, 2): (0, (2, 2, 16, 8, 4, 2, 1, 0)),
    }
    source = (0xFE, 1, 0x0A0000FE, 0x0A000001, 20000)
    assert switch.entries(RECEIVERS)[3, 0] == (0, source)
    assert [(r.port, r.instance) for r in switch.state.multicast[4]] == [(1, 1), (2, 2)]
    assert switch.entries(ROUTES) == {(0x0A000001,): (0, (1, 1)), (0x0A0000FE,): (1, ())}


def member(worker, port=None, udp_port=20000):
    port = worker + 1 if port is None else port
    return Member(worker, port, f"00:00:00:00:00:{port:02x}", f"10.0.0.{port}", udp_port)


def plan(number=0, workers=4, quorum=None, **fields):
    values = {
        "quorum": workers if quorum is None else quorum,
        "slots": 8,
        "slot_base": 0,
        "sum_bits": 8,
        "table": TABLE,
        "granularity": 30,
    }
    members = tuple(member(worker) for worker in range(workers))
    return JobPlan(number, members, **(values | fields))


def small(number=0, **fields):
    """Return the plan of a job whose lookup tables, of which a switch has 128, are short."""
    return plan(number, **{"table": SMALL, "granularity": 4} | fields)


def session(server, steps, **options):
    """Run `steps(controller)` in a session of its own."""

    async def run():
        async with Controller(server.address, **options) as controller:
            return await steps(controller)

    return asyncio.run(run())


OTHER = """
#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct meta_t {}
parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply {} }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply {} }
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply {} }
control C(inout headers_t h, inout meta_t m) { apply {} }
control D(packet_out p, in headers_t h) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
