"""The controller against the embedded switch's own P4Runtime server."""

import asyncio
import contextlib
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import finsy
import grpc
import pytest
from controller_cases import (
    MEMBERS,
    OTHER,
    RECEIVERS,
    SMALL,
    TABLE,
    THC,
    Server,
    check_installed,
    pipeline_of,
    plan,
    session,
    small,
    thc_pipeline,
)
from finsy.p4schema import P4SchemaCache
from finsy.proto import p4r

from gradplane._connection_reasons import short_reason
from gradplane._plugins import OWN
from gradplane.controller import (
    Capacity,
    Controller,
    ControllerError,
    PlanError,
    RequestError,
    Route,
    Setup,
    capacity_of,
    configure,
    events,
    read_counters,
    targets,
)
from gradplane.controller.connection import Connection
from gradplane.controller.controller_errors import NoAnswerError
from gradplane.controller.plan import LIFE
from gradplane.controller.thc import EVENT_NAMES, SHARED_EVENT_NAMES
from gradplane.hosts.wire import aggregation

IP, MAC = "10.0.0.254", "00:00:00:00:00:fe"
ROUTE = Route("10.0.0.1", 32, 1, "00:00:00:00:00:01")


def setup(*jobs, routes=(ROUTE,)):
    return Setup(IP, MAC, routes, jobs)


def test_all_that_a_job_needs_is_installed(server, pipeline):
    configure(server.address, pipeline, setup(plan(3, workers=2, slot_base=16)))
    check_installed(server)


def test_a_short_table_leaves_the_rest_of_the_indices_to_the_default(server, pipeline):
    configure(server.address, pipeline, setup(plan(table=(0, 2, 5, 7), granularity=7)))
    assert server.lookup_entries(0) == {0: 0, 1: 2, 2: 5, 3: 7}


def test_installing_twice_changes_nothing(server, pipeline):
    for _ in range(2):
        configure(server.address, pipeline, setup(small()))
        first = server.state
    assert server.lookup_entries(0) == dict(enumerate(SMALL))
    assert server.state is first


def test_the_switch_keeps_its_state_while_no_controller_is_there(server, pipeline):
    configure(server.address, pipeline, setup(small(2)))
    server.state.registers["ThcIngress.norm_round"].write(5, 77)

    async def back(controller):
        assert [claim.number for claim in await controller.jobs()] == [2]
        await controller.load(pipeline)
        return await controller.jobs()

    assert [claim.slots for claim in session(server, back)] == [range(0, 8)]
    assert server.state.registers["ThcIngress.norm_round"].read(5) == 77


def test_a_job_that_starts_anew_gets_an_epoch_that_nothing_on_the_switch_has(server, pipeline):
    def begin(*jobs):
        return [p.epoch for p in configure(server.address, pipeline, setup(*jobs), anew=True)]

    assert begin(small(0), small(1, slot_base=8)) == [1, 1]
    registers = server.state.registers
    registers["ThcIngress.slot_state"].write(9, 2 << 24 | 5)
    registers["ThcIngress.norm_epoch"].write(3, 3)
    assert begin(small(0)) == [16]
    assert {args[6] for key, (_, args) in server.entries(MEMBERS).items() if key[0] == 0} == {16}
    registers["ThcIngress.norm_epoch"].write(4, 255)
    session(server, lambda controller: controller.remove_job(0))
    assert begin(small(0)) == [16]
    configure(server.address, pipeline, setup(small(0, epoch=239)))
    assert begin(small(0)) == [16]
    registers["ThcIngress.norm_epoch"].write(4, 17)
    assert begin(small(0)) == [32]
    with pytest.raises(PlanError) as error:
        small(0).anew(range(1, 256, 16))
    text = "job 0: the slots hold epochs of all lives: load the program anew (force)"
    assert str(error.value) == text


def test_workers_and_the_controller_mean_the_same_life():
    assert LIFE == aggregation.LIFE


def test_a_life_has_16_epochs():
    assert plan(epoch=16).raised().epoch == 17
    with pytest.raises(PlanError) as error:
        plan(epoch=31).raised()
    assert str(error.value) == (
        "job 0: epoch 31 is the last of its life, as switches have lost their state 15 times or"
        " more: start the job anew"
    )


def test_loading_by_force_starts_anew(server, pipeline):
    configure(server.address, pipeline, setup(small()))
    session(server, lambda controller: controller.load(pipeline, force=True))
    assert server.entries(MEMBERS) == {}


def test_a_changed_job_leaves_nothing_of_the_old(server, pipeline):
    configure(server.address, pipeline, setup(small(workers=4), small(1, slot_base=8)))
    smaller = small(workers=2, table=(0, 9), granularity=9, group=40)
    configure(server.address, pipeline, setup(smaller, small(1, slot_base=8)))
    assert {key for key in server.entries(MEMBERS) if key[0] == 0} == {(0, 0, 1), (0, 1, 2)}
    assert len(server.entries(RECEIVERS)) == 2 + 4
    assert server.lookup_entries(0) == {0: 0, 1: 9}
    assert sorted(server.state.multicast) == [2, 40]


def test_a_removed_job_is_gone_and_the_other_stays(server, pipeline):
    configure(server.address, pipeline, setup(small(0), small(1, slot_base=8)))

    async def remove(controller):
        await controller.remove_job(0)
        await controller.remove_job(0)
        return await controller.jobs()

    assert [claim.number for claim in session(server, remove)] == [1]
    assert server.lookup_entries(0) == {}
    assert server.lookup_entries(1) == dict(enumerate(SMALL))
    assert sorted(server.state.multicast) == [2]
    assert all(key[0] == 1 for key in server.entries(RECEIVERS))


def test_a_job_that_overlaps_one_on_the_switch_is_refused_and_nothing_installed(server, pipeline):
    configure(server.address, pipeline, setup(small(0)))

    async def install(controller):
        await controller.install_local(IP, MAC)
        await controller.install_job(small(1, slot_base=4))

    with pytest.raises(PlanError) as error:
        session(server, install)
    assert str(error.value) == (
        "job 1 (slots 4 to 11) overlaps job 0 (slots 0 to 7): start job 1 at slot 8"
    )
    assert server.lookup_entries(1) == {}


def test_a_job_is_checked_beside_each_on_the_switch_but_itself(server, pipeline):
    configure(server.address, pipeline, setup(small(0), small(1, slot_base=8)))

    async def install(controller, new):
        await controller.install_local(IP, MAC)
        await controller.install_job(new)

    session(server, lambda controller: install(controller, small(1, slot_base=10)))  # it moves
    for new, message in (
        (small(2, slot_base=16), "job 2 (slots 16 to 23) overlaps job 1 (slots 10 to 17)"),
        (small(2, slot_base=18, group=1), "jobs 0 and 2 share multicast group 1"),
    ):
        with pytest.raises(PlanError) as error:
            session(server, lambda controller, new=new: install(controller, new))
        assert str(error.value).startswith(message)
        assert server.lookup_entries(2) == {}
    session(server, lambda controller: install(controller, small(2, slot_base=18)))
    assert server.lookup_entries(2) == dict(enumerate(SMALL))


def test_all_jobs_are_checked_before_the_first_is_installed(server, pipeline):
    with pytest.raises(PlanError):
        configure(server.address, pipeline, setup(small(0), small(1, slot_base=300)))
    assert server.entries(MEMBERS) == {}


def test_a_job_needs_the_switchs_address(server, pipeline):
    async def install(controller):
        await controller.load(pipeline)
        await controller.install_job(small())

    with pytest.raises(ControllerError) as error:
        session(server, install)
    assert str(error.value) == "install_local first: results need an address to come from"


def test_counters_by_name(server, pipeline):
    configure(server.address, pipeline, setup(small()))
    counters = server.state.counters
    counters["ThcIngress.events"].write(2 * 16 + 5, 7, 0)
    counters["ThcIngress.events"].write(2 * 16 + 15, 1, 0)
    counters["ThcIngress.port_in"].write(3, 2, 128)
    found = read_counters(server.address)
    assert found == {
        "ThcIngress.events": {37: {"packets": 7, "bytes": 0}, 47: {"packets": 1, "bytes": 0}},
        "ThcIngress.port_in": {3: {"packets": 2, "bytes": 128}},
    }
    assert events(found) == {2: {"straggler notice": 7, "passed down": 1}}


def test_from_within_an_event_loop_as_in_a_notebook(server, pipeline):
    async def notebook():
        configure(server.address, pipeline, setup(small(4)))

    asyncio.run(notebook())
    assert server.lookup_entries(4) == dict(enumerate(SMALL))


def test_what_is_made_of_a_p4info_is_shared(pipeline):
    with P4SchemaCache():  # a user's own one
        assert pipeline.schema.tables["ThcIngress.routes"]
    one, other = (each.schema.tables["ThcIngress.routes"] for each in (pipeline, thc_pipeline()))
    assert one is other


def test_many_switches_at_once(pipeline, caplog):
    """Event loops of several threads share grpc's queue: they must not get in each other's way."""
    with ExitStack() as stack, ThreadPoolExecutor(4) as threads:
        servers = [stack.enter_context(Server()) for _ in range(4)]
        list(threads.map(lambda s: configure(s.address, pipeline, setup(small(4))), servers))
        for running in servers:
            assert running.lookup_entries(4) == dict(enumerate(SMALL))
    assert caplog.text == ""


def test_there_is_a_name_for_each_event_of_the_programs():
    text = THC.with_name("include").joinpath("aggregation_events.p4").read_text()
    common, shared, alone = (
        [int(n) for n in re.findall(r"const event_t EVENT_\w+ = (\d+);", part)]
        for part in re.split("#ifdef SHARES_SLOTS|#else", text)
    )
    assert sorted(common + alone) == list(range(len(EVENT_NAMES)))
    assert sorted(common + shared) == list(range(len(SHARED_EVENT_NAMES)))


@pytest.mark.parametrize(
    ("defines", "capacity"),
    [
        ({}, Capacity(256, 8, 64)),
        ({"SUM_BITS": "16", "SLOTS": "512"}, Capacity(512, 16, 64)),
    ],
)
def test_capacity_is_read_from_the_p4info(defines, capacity):
    assert capacity_of(thc_pipeline(**defines).p4info) == capacity


def test_sixteen_bit_sums(server):
    wide = plan(workers=16, sum_bits=16)
    configure(server.address, thc_pipeline(SUM_BITS="16"), setup(wide))
    assert server.lookup_entries(0) == dict(enumerate(TABLE))


def test_a_switch_that_is_not_there():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(RequestError) as error:
        read_counters(address)
    text = str(error.value)
    assert text.startswith(f"{address}: connect refused: UNAVAILABLE: ")
    assert text.endswith(" (is the switch running, and is this its P4Runtime address?)")


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        (
            "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to"
            " connect to remote host: Connection refused",
            "Connection refused",
        ),
        (
            "errors resolving s9:1: [field:hostname lookup error:address lookup failed for s9:1:"
            " Could not contact DNS servers]",
            "no machine has this name, or the name servers do not answer",
        ),
        (
            "DNS resolution failed for s9:1: C-ares status is not ARES_SUCCESS",
            "no machine has this name, or the name servers do not answer",
        ),
        ("Socket closed", "Socket closed"),
    ],
)
def test_why_nobody_was_reached(details: str, reason: str) -> None:
    assert short_reason(details) == reason


def test_a_switch_without_a_program(server):
    async def install(controller):
        await controller.install_local(IP, MAC)

    with pytest.raises(RequestError) as error:
        session(server, install)
    assert str(error.value) == (f"{server.address}: the switch runs no program yet: load one first")


def test_another_program(server, tmp_path):
    program = tmp_path / "other.p4"
    program.write_text(OTHER)

    async def install(controller):
        await controller.load(pipeline_of(program))
        return controller.capacity

    with pytest.raises(ControllerError) as error:
        session(server, install)
    assert str(error.value) == (
        "the program on the switch is not p4/thc.p4, which this controller needs:"
        " no P4Registers present; you asked for 'ThcIngress.norm_max'?"
    )


def test_a_program_with_an_error(server, pipeline):
    with pytest.raises(RequestError) as error:
        session(server, lambda c: c.load(replace(pipeline, device_config=b"control C() {")))
    assert str(error.value).startswith(
        f"{server.address}: load the program refused: INVALID_ARGUMENT: pushed.p4:1:"
    )


def test_p4info_that_is_none(server, pipeline):
    with pytest.raises(ControllerError) as error:
        session(server, lambda c: c.load(replace(pipeline, p4info=b"tables { nonsense }")))
    assert str(error.value).startswith("the P4Info is not protobuf text: 1:")


def test_only_one_controller_may_write(server, pipeline):
    configure(server.address, pipeline, setup())

    async def second(first):
        await first.install_routes([ROUTE])  # primary now: the last one may still be leaving
        async with Controller(server.address) as other:
            await other.install_routes([ROUTE])

    with pytest.raises(RequestError) as error:
        session(server, second)
    assert re.fullmatch(
        rf"{re.escape(server.address)}: another controller \(election id \d+\) is the primary one:"
        " stop it first",
        str(error.value),
    )


def test_a_controller_takes_over_from_one_that_is_leaving(server, pipeline):
    configure(server.address, pipeline, setup())

    async def leave(first, entered):
        async with first:
            entered.set()
            await asyncio.sleep(0.3)

    async def follow():
        entered = asyncio.Event()
        leaving = asyncio.create_task(leave(Controller(server.address), entered))
        await entered.wait()
        async with Controller(server.address) as second:
            await second.install_routes([ROUTE])
        await leaving

    asyncio.run(follow())


def test_others_may_read_meanwhile(server, pipeline):
    configure(server.address, pipeline, setup(small(2)))

    async def second(first):
        async with Controller(server.address) as other:
            return await other.jobs()

    assert [claim.number for claim in session(server, second)] == [2]


def test_a_refused_entry_is_named(server, pipeline):
    with pytest.raises(RequestError) as error:
        configure(server.address, pipeline, setup(routes=[Route("10.0.0.0", 33, 1, MAC)]))
    assert str(error.value).startswith(f"{server.address}: insert: 'ThcIngress.routes'")


def test_the_wrong_device(server, pipeline):
    with pytest.raises(RequestError) as error:
        session(server, lambda controller: controller.counters(), device_id=9)
    assert "device id 9 is not served here, only 0" in str(error.value)


def test_targets_are_found_by_file_name():
    assert "embedded" in targets.names()
    with pytest.raises(ControllerError) as error:
        targets.get("embeded")
    known = ", ".join(targets.names())
    near = 'no target "embeded": did you mean "embedded"?'
    assert str(error.value) == f"{near} known: {known}, {OWN}"


class LateAnswers:
    """A client of a switch that answers in time only after some attempts."""

    def __init__(self, late, code=grpc.StatusCode.DEADLINE_EXCEEDED):
        self.late, self.code, self.requests = late, code, 0

    async def request(self, message):
        self.requests += 1
        if self.requests <= self.late:
            nothing = grpc.aio.Metadata()
            error = grpc.aio.AioRpcError(self.code, nothing, nothing, details="")
            raise finsy.P4ClientError(error, "SetForwardingPipelineConfig")


@pytest.mark.parametrize(
    ("client", "error", "requests"),
    [
        (LateAnswers(3), None, 4),
        (LateAnswers(100), NoAnswerError, 30),
        (LateAnswers(1, grpc.StatusCode.UNAVAILABLE), RequestError, 1),
    ],
)
def test_loading_waits_for_a_switch_that_is_busy(client, error, requests):
    connection = Connection("127.0.0.1:1", 1, targets.get("embedded"))
    connection._client = client
    with pytest.raises(error) if error else contextlib.nullcontext():
        asyncio.run(connection._push(p4r.ForwardingPipelineConfig()))
    assert client.requests == requests


def test_entries_are_there_though_the_answer_came_too_late(server, pipeline, monkeypatch):
    """The first write takes effect, its answer is lost, and the second finds the entries there."""
    request, writes = finsy.P4Client.request, []

    async def late_once(client, message):
        answer = await request(client, message)
        if isinstance(message, p4r.WriteRequest):
            writes.append(len(message.updates))
            if len(writes) == 1:
                nothing = grpc.aio.Metadata()
                code = grpc.StatusCode.DEADLINE_EXCEEDED
                lost = grpc.aio.AioRpcError(code, nothing, nothing, details="")
                raise finsy.P4ClientError(lost, "WriteRequest")
        return answer

    monkeypatch.setattr(finsy.P4Client, "request", late_once)
    configure(server.address, pipeline, setup(small(3, workers=2, slot_base=16)))
    assert server.lookup_entries(3) == dict(enumerate(SMALL))
    assert writes[0] == writes[1]
