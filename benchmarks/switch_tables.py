"""Measure large tables: python benchmarks/switch_tables.py.

The program is router.p4 with other keys and many entries. Measured are the time of a packet on
arrays (Switch.process_buffer, one core) beside the same program with a few entries, and the time
of 10,000 inserts over P4Runtime from a client in another process, while traffic runs.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from finsy.proto import U128, p4r, p4r_grpc
from switch_memory import ROUTER, best, router_packets

from gradplane.switch import Switch
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.p4runtime.server import P4RuntimeServer
from gradplane.switch.runtime.hashes import csum16

EXACT = "hdr.ipv4.dst_addr : exact;"
LPM = "hdr.ipv4.dst_addr : lpm;"
TERNARY = "hdr.ipv4.src_addr : ternary; hdr.ipv4.dst_addr : ternary;"
RANGE = TERNARY + " hdr.ipv4.total_length : range;"
LENGTHS = (0, 8, 16, 24, 32)  # of the prefixes that the ternary entries ask for
FEW, MANY = 10, 10_000
INSERTS, BATCH = 10_000, 100

Matches = Iterator[tuple[tuple[int, ...], ...]]
"""For each entry, one match per field, as in gradplane.switch.runtime.match_fields."""


def main() -> None:
    for name, key, matches, count in (
        ("exact", EXACT, exact, MANY),
        ("lpm", LPM, lpm, MANY),
        ("lpm", LPM, lpm, 10 * MANY),
        ("ternary, 25 masks", TERNARY, ternary, MANY),
        ("ternary, 1089 masks", TERNARY, any_masks, MANY),
        ("with a range", RANGE, with_range, MANY),
    ):
        lookups(name, key, matches, count)
    for name, key in (("exact", EXACT), ("lpm", LPM), ("ternary", TERNARY)):
        inserts(name, key)


# -- entries ------------------------------------------------------------------------------------


def exact(rng: np.random.Generator) -> Matches:
    for address in rng.permutation(1 << 20).tolist():
        yield ((10 << 24 | address,),)


def lpm(rng: np.random.Generator) -> Matches:
    """Make prefixes, half of them /24, as in the Internet's tables."""
    seen = set()
    while True:
        length = 24 if rng.random() < 0.5 else int(rng.integers(8, 33))
        route = _prefix(rng, length), length
        if route not in seen:
            seen.add(route)
            yield (route,)


def ternary(rng: np.random.Generator) -> Matches:
    while True:
        source, target = (int(length) for length in rng.choice(LENGTHS, 2))
        yield (_prefix(rng, source), _mask(source)), (_prefix(rng, target), _mask(target))


def any_masks(rng: np.random.Generator) -> Matches:
    while True:
        source, target = rng.integers(0, 33, 2).tolist()
        yield (_prefix(rng, source), _mask(source)), (_prefix(rng, target), _mask(target))


def with_range(rng: np.random.Generator) -> Matches:
    for masks in ternary(rng):
        low = int(rng.integers(0, 60_000))
        yield *masks, (low, low + int(rng.integers(1, 5_000)))


def _mask(length: int) -> int:
    return (1 << 32) - (1 << 32 - length)


def _prefix(rng: np.random.Generator, length: int) -> int:
    return int(rng.integers(0, 1 << 32)) & _mask(length)


# -- packets ------------------------------------------------------------------------------------


def lookups(name: str, key: str, matches: Callable[..., Matches], count: int) -> None:
    packets = _packets(matches)
    runs, loading = [], 0.0
    for entries in (FEW, count):
        switch = Switch(ROUTER, defines={"ROUTE_KEY": key, "ROUTES": str(entries)})
        start = time.process_time()
        _fill(switch, matches, entries)
        loading = time.process_time() - start
        runs.append(lambda switch=switch: switch.process_buffer(*packets))
    few, many = (t / len(packets[0]) * 1e9 for t in best(*runs, runs=100))
    print(
        f"{name}, {count} entries: {many:.0f} ns a packet (with {FEW}: {few:.0f});"
        f" filled in {loading:.1f} s"
    )


def _fill(switch: Switch, matches: Callable[..., Matches], count: int) -> None:
    table = switch.table("routes")
    names = [field.name for field in table.state.fields]
    found = islice(matches(np.random.default_rng(1)), count)
    for number, values in enumerate(found):
        match = {n: v if len(v) > 1 else v[0] for n, v in zip(names, values, strict=True)}
        priority = number + 1 if table.state.with_priority else 0
        table.add(match, "forward", {"mac": number, "port": 2}, priority=priority)


def _packets(matches: Callable[..., Matches]) -> tuple[Any, ...]:
    """Make packets, half of them to addresses that match an entry."""
    rng = np.random.default_rng(7)
    ports, data, offsets = router_packets()
    data = data.copy()
    known = matches(np.random.default_rng(1))
    for number, at in enumerate(offsets[:-1].tolist()):
        values = next(known)
        target = values[0][0] if len(values) == 1 else values[1][0]
        address = rng.bytes(4) if number % 2 else target.to_bytes(4, "big")
        data[at + 30 : at + 34] = np.frombuffer(address, np.uint8)
        data[at + 24 : at + 26] = 0
        checksum = csum16(data[at + 14 : at + 34].tobytes()).to_bytes(2, "big")
        data[at + 24 : at + 26] = np.frombuffer(checksum, np.uint8)
    return ports, data, offsets


# -- inserts over P4Runtime ---------------------------------------------------------------------

_CLIENT = """
import sys
sys.path.insert(0, sys.argv[1])
import switch_tables
switch_tables.client(*sys.argv[2:])
"""


def inserts(name: str, key: str) -> None:
    defines = (f"ROUTE_KEY={key}", f"ROUTES={INSERTS}")
    device = make_device(SwitchOptions(program=ROUTER, defines=defines, device_id=1))
    packets, stop = router_packets(), threading.Event()
    processed = 0

    def traffic() -> None:
        nonlocal processed
        while not stop.is_set():
            device.target.switch.process_buffer(*packets)
            processed += len(packets[0])
            time.sleep(0.001)

    thread = threading.Thread(target=traffic)
    thread.start()
    with P4RuntimeServer(device, "127.0.0.1:0") as server:
        command = [sys.executable, "-c", _CLIENT, str(Path(__file__).parent), server.address, name]
        seconds = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    stop.set()
    thread.join()
    assert len(device.target.switch.table("routes")) == INSERTS
    taken = f"{float(seconds):.2f} s"
    print(f"{name}: {INSERTS} inserts over P4Runtime, {BATCH} per request, in {taken}")


def client(address: str, name: str) -> None:
    """Insert the entries and print the seconds it took."""
    matches = {"exact": exact, "lpm": lpm, "ternary": ternary}[name]
    with grpc.insecure_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        become = p4r.StreamMessageRequest(
            arbitration=p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
        )
        done = threading.Event()

        def requests() -> Iterator[p4r.StreamMessageRequest]:
            yield become
            done.wait()

        stream = stub.StreamChannel(requests())
        next(iter(stream))
        writes = _writes(stub, name, matches(np.random.default_rng(1)))
        start = time.perf_counter()
        for write in writes:
            stub.Write(write)
        print(time.perf_counter() - start)
        done.set()


def _add_match(entry: p4r.TableEntry, field: Any, match: tuple[int, ...]) -> None:
    value, second = _bytes(match[0]), match[-1]
    if field.match_type == field.EXACT:
        entry.match.add(field_id=field.id).exact.value = value
    elif field.match_type == field.LPM:
        made = entry.match.add(field_id=field.id)
        made.lpm.value, made.lpm.prefix_len = value, second
    elif second:
        made = entry.match.add(field_id=field.id)
        made.ternary.value, made.ternary.mask = value, _bytes(second)


def _writes(stub: Any, name: str, matches: Matches) -> list[p4r.WriteRequest]:
    request = p4r.GetForwardingPipelineConfigRequest(device_id=1)
    info = stub.GetForwardingPipelineConfig(request).config.p4info
    table = next(t for t in info.tables if t.preamble.alias == "routes")
    action = next(a for a in info.actions if a.preamble.alias == "forward")
    updates = []
    for number, values in enumerate(islice(matches, INSERTS)):
        entry = p4r.TableEntry(table_id=table.preamble.id)
        for field, match in zip(table.match_fields, values, strict=True):
            _add_match(entry, field, match)
        if name == "ternary":
            entry.priority = number + 1
        run = entry.action.action
        run.action_id = action.preamble.id
        for param, value in zip(action.params, (number, 2), strict=True):
            run.params.add(param_id=param.id, value=_bytes(value))
        updates.append(p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry)))
    batches = (updates[i : i + BATCH] for i in range(0, INSERTS, BATCH))
    return [
        p4r.WriteRequest(device_id=1, election_id=U128.encode(1), updates=batch)
        for batch in batches
    ]


def _bytes(value: int) -> bytes:
    return value.to_bytes(max(1, -(-value.bit_length() // 8)), "big")


if __name__ == "__main__":
    main()
