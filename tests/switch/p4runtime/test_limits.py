"""What one client may use of a server: limits of calls, sizes, roles and streams, and whose turn it
is."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import grpc
import pytest
from finsy.proto import U128, p4r
from hand_made_device import service

from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import OptionError, SwitchOptions, parse_options
from gradplane.switch.p4runtime.arbitration import Arbitration
from gradplane.switch.p4runtime.device import FairLock
from gradplane.switch.p4runtime.grpc_methods import Gate, Patience, RpcMethod
from gradplane.switch.p4runtime.limits import DEFAULT_LIMITS, Limits
from gradplane.switch.p4runtime.response_streams import ResponseStream, StreamSlots
from gradplane.switch.p4runtime.server import P4RuntimeServer
from gradplane.switch.p4runtime.status_errors import RpcError

DOCS = Path(__file__).parents[3] / "docs" / "switch.md"
WRITE = "/p4.v1.P4Runtime/Write"


def test_the_options_are_documented() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \| (.*) \|$", DOCS.read_text(), re.M)
    stated = [
        (f.name.replace("_", "-"), str(f.default), f.metadata["text"]) for f in fields(Limits)
    ]
    assert rows == stated


def test_options() -> None:
    options = parse_options(["--limit", "small-message=5", "--limit", "roles=2"])
    assert (options.limits.small_message, options.limits.roles) == (5, 2)
    assert options.limits.calls == DEFAULT_LIMITS.calls
    with pytest.raises(
        OptionError, match=r"--limit rolls=2: expected NAME=N; the limits are calls"
    ):
        parse_options(["--limit", "rolls=2"])
    with pytest.raises(
        OptionError, match="--limit roles=0: expected a number from 1 to 2147483647"
    ):
        parse_options(["--limit", "roles=0"])


def test_the_call_that_waits_for_longest_is_ended() -> None:
    patience, ended = Patience(2, 60), list[str]()
    with (
        patience.wait(lambda: ended.append("first")),
        patience.wait(lambda: ended.append("second")),
    ):
        patience.tick()
        assert ended == []
        with patience.wait(lambda: ended.append("third")):
            assert ended == ["first"]


def test_a_call_that_waits_for_too_long_is_ended() -> None:
    patience, ended = Patience(2, 0.01), list[str]()
    with patience.wait(lambda: ended.append("slow")):
        time.sleep(0.02)
        patience.tick()
    assert ended == ["slow"]


def test_a_fair_lock_is_taken_in_turn() -> None:
    lock, order = FairLock(), list[int]()

    def take(number: int) -> None:
        with lock, lock:
            order.append(number)

    threads = [threading.Thread(target=take, args=(i,)) for i in range(5)]
    with lock:
        for i, thread in enumerate(threads):
            thread.start()
            while len(lock._waiting) <= i:
                time.sleep(0.001)
    with lock:
        assert order == [0, 1, 2, 3, 4]
    for thread in threads:
        thread.join()


def write_request(updates: int, election_id: int = 5) -> bytes:
    request = p4r.WriteRequest(device_id=1, election_id=U128.encode(election_id))
    for i in range(updates):
        entry = request.updates.add(type=p4r.Update.INSERT).entity.table_entry
        entry.table_id, entry.metadata = i + 1, bytes(i % 50)
    request.role = "after the updates"
    return request.SerializeToString()


def gate(small: int) -> tuple[Gate, RpcMethod]:
    def primary(head: Any) -> bool:
        return U128.decode(head.election_id) == 5

    method = RpcMethod(lambda *_: None, p4r.WriteRequest, None, bulk=4, large=primary)
    return Gate(Limits(small_message=small)), method


def test_a_large_request_is_decoded_piece_by_piece() -> None:
    data = write_request(20_000)
    assert len(data) > 2 * (1 << 18)
    assert gate(100)[0].decoded(gate(100)[1], data) == p4r.WriteRequest.FromString(data)


def test_a_large_request_of_nobody_is_not_decoded() -> None:
    made, method = gate(1000)
    for data in (write_request(100, election_id=4), bytes(2000), b"\xff" * 2000):
        with pytest.raises(RpcError) as caught:
            made.decoded(method, data)
        assert caught.value.code in ("RESOURCE_EXHAUSTED", "INVALID_ARGUMENT")
    with pytest.raises(RpcError) as caught:
        made.decoded(method, write_request(100, election_id=4))
    assert re.fullmatch(
        r"the message has \d+ bytes; the limit is 1000 \(--limit small-message=N\) unless it starts"
        r" with the ids of a primary controller or a bound client", caught.value.message
    )  # fmt: skip


def announce(name: str, election_id: int | None = None) -> p4r.MasterArbitrationUpdate:
    update = p4r.MasterArbitrationUpdate(device_id=1)
    update.role.name = name
    if election_id is not None:
        update.election_id.CopyFrom(U128.encode(election_id))
    return update


def test_roles_are_limited() -> None:
    arbitration = Arbitration(1, Limits(roles=2, role_name=4, role_config=8))
    arbitration.announce("a", announce("one", 7))
    arbitration.announce("b", announce("two", 7))
    with pytest.raises(RpcError) as caught:
        arbitration.announce("c", announce("more", 7))
    assert caught.value.message == "2 roles have controllers, the limit (--limit roles=N)"
    with pytest.raises(RpcError) as caught:
        arbitration.announce("c", announce("three", 7))
    text = "the role's name has 5 bytes, the limit is 4 (--limit role-name=N)"
    assert caught.value.message == text
    with pytest.raises(RpcError) as caught:
        update = announce("four", 7)
        update.role.config.value = b"a config"
        arbitration.announce("c", update)
    assert "the role's config has 10 bytes" in caught.value.message


def test_a_role_is_remembered_until_there_are_too_many() -> None:
    arbitration = Arbitration(1, Limits(roles=2))
    for stream, role in (("a", "one"), ("b", "two")):
        arbitration.announce(stream, announce(role, 7))
        arbitration.leave(stream)
    ((_, notice),) = arbitration.announce("c", announce("one", 6))
    assert U128.decode(notice.election_id) == 7  # the highest id outlives the stream
    arbitration.announce("d", announce("three", 1))
    assert list(arbitration.roles) == ["one", "three"]


def test_a_role_without_a_primary_ever_is_forgotten() -> None:
    arbitration = Arbitration(1)
    arbitration.announce("a", announce("idle"))
    arbitration.announce("b", announce("idle"))
    arbitration.leave("a")
    assert "idle" in arbitration.roles
    arbitration.leave("b")
    assert "idle" not in arbitration.roles


@pytest.fixture
def served() -> Iterator[str]:
    device = make_device(SwitchOptions(device_id=1))
    limits = Limits(patience=1, silent_calls=8, small_message=1000, message=5000)
    with P4RuntimeServer(device, "127.0.0.1:0", limits=limits) as server:
        yield server.address


def test_calls_without_a_request_are_ended(served: str) -> None:
    forever = threading.Event()

    def nothing() -> Iterator[bytes]:
        forever.wait()
        yield from ()

    with grpc.insecure_channel(served) as channel:
        silent = [channel.stream_unary(WRITE).future(nothing()) for _ in range(40)]
        answer = channel.unary_unary("/p4.v1.P4Runtime/Capabilities")(b"", timeout=30)
        assert p4r.CapabilitiesResponse.FromString(answer).p4runtime_api_version
        assert {call.code() for call in silent} == {grpc.StatusCode.CANCELLED}
        with pytest.raises(grpc.RpcError) as caught:
            channel.stream_unary(WRITE)(iter(()))
        forever.set()
    assert caught.value.details() == f"{WRITE}: the call has no request; send one message"


def test_messages_that_are_too_long_are_refused(served: str) -> None:
    with grpc.insecure_channel(served) as channel:
        for size, text in ((2000, "the message has 2000 bytes"), (9000, "larger than max")):
            with pytest.raises(grpc.RpcError) as caught:
                channel.unary_unary("/p4.v1.P4Runtime/Read")(b"\x12\x00" * (size // 2))
            assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert text in (caught.value.details() or "")


def test_a_long_read_gives_the_device_back() -> None:
    device = service().device
    seen = list[int]()

    def answers() -> Iterator[int]:
        for i in range(3):
            assert device.busy
            yield i

    for part in device.parts(answers()):
        assert not device.busy
        with device.turn():  # a write of another client
            seen.append(part)
    assert seen == [0, 1, 2]


def test_saving_gives_the_device_back() -> None:
    """Another thread gets its turn before the state is complete."""
    device = make_device(SwitchOptions(program=Path(__file__).parent / "programs" / "router.p4"))
    assert device.pipeline is not None
    table = device.pipeline.state.tables["MyIngress.ipv4_lpm"]
    switch: Any = device.pipeline.switch
    for i in range(600):
        switch.table("ipv4_lpm").add({"dst": (i << 8, 24)}, "drop")
    paused = threading.Event()

    def write() -> None:
        with device.turn():
            paused.set()

    begun = table.entries

    def entries() -> Iterator[Any]:
        for i, entry in enumerate(begun()):
            if i == 10:
                threading.Thread(target=write).start()
            assert i < 300 or paused.wait(30)
            yield entry

    table.entries = entries  # type: ignore[method-assign]
    assert len(device.save_state()) > 600


def test_streams_beyond_a_limit_are_told_its_name() -> None:
    slots, first = StreamSlots(1, "subscriptions"), ResponseStream()
    expected = r"1 subscriptions are open, the limit \(--limit subscriptions=N\)"
    with slots.use(first):
        slots.settle(first)
        with pytest.raises(RpcError, match=expected), slots.use(ResponseStream()):
            pass
