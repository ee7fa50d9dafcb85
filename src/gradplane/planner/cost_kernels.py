"""The arithmetic of `costs`, in machine code: all options of all sizes in a few milliseconds.

They are in one module because Numba's cache of a function does not notice when a function that it
calls changes in another module.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradplane._kernels import njit

PIECES = 200.0  # of a message to servers, at most
BLOCK = 1 << 10  # lanes, of which a padding codec encodes a whole number
DIGITS = 8  # of a value, where the switch adds digits of four bits
HEADERS = 90  # bytes: Ethernet with its gap, IPv4, UDP, the aggregation header

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Link(NamedTuple):
    """The numbers of a codec and a system that the costs depend on, all of them floats.

    Bytes, bytes a second and seconds. Where a system has no framing, a packet has no header and no
    end, and nothing is stored on the way.
    """

    machines: float
    gpus: float
    inside_rate: float  # inside a machine
    inside_latency: float
    rate: float  # between machines: the slower of a host's link and the fabric
    latency: float
    ratio: float  # of the codec: compressed bytes over those before
    header: float  # of a compressed piece, its framing included
    code_bytes: float  # of a code that a switch adds, and of its sum
    sum_bytes: float
    window: float  # the rate at which the switch's slots are used again
    recirculation: float
    passes: float  # of a large packet through the switch
    host: float  # the rates of a host's link, and of the links between switches
    fabric: float
    tos_ratio: float  # of values that the edge switches compress
    servers: float
    between: float  # the resource of what passes between machines
    payload: float  # of a packet that a switch adds
    message_payload: float  # of a packet of a message, its headers, and what each message adds
    packet: float
    message: float
    stored: float  # how often a message's first packet between machines is stored whole
    acknowledgement: float
    padded: float  # 1 where the codec pads a piece, as THC does
    sums: float  # of a packet of sums of the emulated switch: its bytes, and those of its headers
    aggregation: float
    marked: float  # of a packet of values that edge switches compress: its payload and its headers
    marked_packet: float
    shim: float  # what compression adds to it


@njit(cache=True, nogil=True, general=True)
def _curve(curves: Floats, row: int, size: float) -> float:
    sizes, times = curves[row // 3 * 3], curves[row]
    last = sizes.size - 1
    at = 1
    while at < last and sizes[at] < size:
        at += 1
    slope = (times[at] - times[at - 1]) / (sizes[at] - sizes[at - 1])
    time: float = max(times[at] + slope * (size - sizes[at]), 0.0)
    return time


@njit(cache=True, nogil=True, general=True)
def _encoded(values: float, link: Link) -> float:
    """Return how many values a codec encodes for a piece: some pad it to a whole number of blocks,
    or to a power of two where it is less than one."""
    if link.padded == 0 or values < 1:
        return values
    if values <= BLOCK:
        power: float = 2.0 ** math.ceil(math.log2(values))
        return power
    return float(BLOCK * math.ceil(values / BLOCK))


@njit(cache=True, nogil=True, general=True)
def _switched(up: float, down: float, members: float, rate: float, link: Link) -> float:
    """Return the time in which a switch adds `up` bytes per machine and sends `down` to each."""
    most, passes = max(up, down), link.passes
    large = most * (1 + HEADERS / link.payload) / min(rate, link.window)
    again = members * up * (passes - 1) / link.recirculation
    small = most * (1 + HEADERS * passes / link.payload) / min(rate, link.window / passes)
    time: float = min(max(large, again), small)
    return time


@njit(cache=True, nogil=True, general=True)
def _emulated(lanes: float, flows: float, rate: float, latency: float, link: Link) -> float:
    """Return the time of `_switched` on the emulated switch, for `lanes` codes of each GPU.

    The workers agree on the norm first. Packets of sums fill the link to each machine; the first
    one follows when the spine has a whole packet of codes.
    """
    sums, header = link.sums, link.aggregation
    codes = sums * link.code_bytes / link.sum_bytes
    chunks = math.ceil(lanes * link.sum_bytes / sums)
    wire = 2 * flows * header + codes + header + flows * chunks * (sums + header)
    time: float = 4 * latency + wire / rate
    return time


@njit(cache=True, nogil=True, general=True)
def _message(
    size: float, flows: float, rate: float, latency: float, inside: bool, link: Link
) -> float:
    """Return the time of a message of `size` bytes, beside others of `flows` - 1 on its link.

    In a network of packets the flows get out of step now and then: while one waits for its last
    packet, further packets of the others fill the link. Half of that is counted (measured).
    """
    payload, packet = link.message_payload, link.packet
    size += link.message
    packets = max(math.ceil(size / payload), 1.0)
    forwarded = 0.0 if inside else link.stored
    first = (min(size, payload) + packet) * forwarded if forwarded > 0 else 0.0
    whole = flows * (size + packets * packet) + (flows * packets - 1) * link.acknowledgement
    waiting = latency + first / rate
    filled = 0.0
    if first > 0:
        filled = (flows - 1) * (size + packets * packet - first) / rate
    time: float = waiting + whole / rate - min(waiting, max(filled, 0.0)) / 2
    return time


@njit(cache=True, nogil=True, general=True)
def _marked(size: float, flows: float, latency: float, link: Link) -> float:
    """Return the time of `size` bytes of values that the edge switches compress, as in `_message`.

    The host's link carries them as they are, the links between edge switches compressed; the slower
    of both decides.
    """
    ratio, host, fabric = link.tos_ratio, link.host, link.fabric
    time: float = latency + size * flows * max(1 / host, ratio / fabric)
    if link.packet == 0:
        return time
    packets = math.ceil(size / link.marked)
    start, header = link.message + link.packet, link.marked_packet
    last = size - (packets - 1) * link.marked
    packed = link.shim + ratio * min(size, link.marked) + header
    small = (packets - 1) * min(packed, link.marked + header)
    small += min(link.shim + ratio * last, last) + header
    answers = (flows * (packets + 1) - 1) * link.acknowledgement
    plain = (flows * (start + size + packets * header) + answers) / host
    shrunk = (flows * (start + small) + answers) / fabric
    first = min(size, link.marked) + header
    stored = first / host + min(packed, first) / fabric
    time = latency + max(plain, shrunk) + (stored if plain > shrunk else 2 * first / host)
    return time


@njit(cache=True, nogil=True, general=True)
def _served(size: float, load: float, rate: float, latency: float, link: Link) -> float:
    """Return the time in which servers add `size` bytes; `load`: such messages on their links.

    In a network of packets, servers answer piece by piece, and both directions carry values and
    acknowledgements. The last piece's answer follows when all of it has arrived.
    """
    payload, packet = link.message_payload, link.packet
    if packet == 0:
        return 2 * latency + load * size / rate
    pieces = min(max(math.ceil(size / (payload - link.message)), 1.0), PIECES)
    pieces = math.ceil(pieces / link.servers) * link.servers  # as many for each server
    piece = size / pieces + link.message
    packets = math.ceil(piece / payload)
    each = piece + packets * packet
    wire = load * pieces * (each + packets * link.acknowledgement)
    time: float = 2 * latency + (wire + load * each + 2 * (min(piece, payload) + packet)) / rate
    return time


@njit(cache=True, nogil=True, general=True)
def task_times(
    codes: Ints, values: float, link: Link, curves: Floats, resources: Ints, seconds: Floats,
    before: Floats, known: int,
) -> int:  # fmt: skip
    """Write the resource and the seconds of each task of an encoded option; return their number.

    length: values in a piece of one holder; pieces: how many, not yet added; holders: GPUs of a
    machine with different values; wide: bytes of sums over those of codes. `before` keeps them
    before each task: [task, 5]. An option whose first `known` tasks are those of the one before it
    goes on from there.
    """
    machines, gpus, header, ratio = link.machines, link.gpus, link.header, link.ratio
    length, pieces, holders, wide, compressed = values, 1.0, gpus, 1.0, False
    if known > 0:
        length, pieces, holders = before[known, 0], before[known, 1], before[known, 2]
        wide, compressed = before[known, 3], before[known, 4] > 0
    count = known
    for code in codes[known:]:
        before[count, 0], before[count, 1], before[count, 2] = length, pieces, holders
        before[count, 3], before[count, 4] = wide, 1.0 if compressed else 0.0
        if code < 0:
            break
        task, phase = code // 4, code % 4
        if task < 4:
            device = task % 2
            held = length * holders if device == 1 else length
            if task < 2:
                time = _curve(curves, 3 * device + 1, held)
                compressed = True
            else:
                time = pieces * _curve(curves, 3 * device + 2, held)
                compressed, pieces, wide = False, 1.0, 1.0
            resources[count], seconds[count] = device, time
            count += 1
            continue
        inside = phase == 1 or phase == 3
        members = gpus if inside else machines if phase == 2 else machines * gpus
        rate = link.inside_rate if inside else link.rate
        latency = link.inside_latency if inside else link.latency
        if phase == 0 and machines > 1 and gpus > 1:
            rate = min(link.inside_rate, link.rate)
            latency = max(link.inside_latency, link.latency)
        flows = holders if phase == 2 else 1.0  # on a machine's interface at once
        each = 4 * length
        if compressed:
            each = wide * pieces * (header + 4 * ratio * _encoded(length, link))
        away = (members - 1) / members
        if phase == 0 and machines > 1:
            away = gpus * (machines - 1) / machines  # what a machine's GPUs send elsewhere
        steps, tree = members - 1, math.ceil(math.log2(members))
        if task == 4:
            time = 2 * steps * _message(each / members, flows, rate, latency, inside, link)
        elif task == 5:
            time = steps * _message(each / members, flows, rate, latency, inside, link)
            length /= members
        elif task == 6 or task == 8:
            time = (tree - 1) * latency + _message(each, flows, rate, latency, inside, link)
        elif task == 7:
            time = steps * _message(each, flows, rate, latency, inside, link)
            length *= members
        elif task == 9:
            time = steps * _message(each, flows, rate, latency, inside, link)
            pieces *= members
        elif task == 10:
            part = wide * pieces * (header + 4 * ratio * _encoded(length / members, link))
            time = steps * latency
            if steps > 0:
                part *= away * members / steps
                time = steps * _message(part, flows, rate, latency, inside, link)
            length /= members
            pieces *= members
        elif task == 11:
            time = steps * latency
            if steps > 0:
                part = away * members * each / steps
                time = steps * _message(part, flows, rate, latency, inside, link)
            pieces *= members
        elif task == 12:
            wire = each * flows
            if link.sums > 0:
                time = _emulated(DIGITS * length, flows, rate, latency, link)
            else:
                time = 2 * latency + _switched(wire, wire, members, rate, link)
        elif task == 13:
            time = 2 * steps * _marked(each / members, flows, latency, link)
        elif task == 14:
            time = _served(each, max(1.0, members / link.servers) * flows, rate, latency, link)
        else:
            indices = _encoded(length, link)
            if link.sums > 0:
                time = _emulated(indices, flows, rate, latency, link)
            else:
                up, down = link.code_bytes * indices * flows, link.sum_bytes * indices * flows
                time = 4 * latency + _switched(up, down, members, rate, link)
            wide = link.sum_bytes / link.code_bytes
        if phase == 1 and (task == 6 or task == 11):
            holders = 1.0
        if phase == 3 or (phase == 0 and (task == 4 or 6 <= task <= 9 or task >= 11)):
            holders = 1.0  # all GPUs of the machine hold the same
        resources[count] = 2 if inside else int(link.between)
        seconds[count] = time
        count += 1
    return count


@njit(cache=True, nogil=True, general=True)
def loads(codes: Ints, sizes: Floats, link: Link, curves: Floats) -> Floats:
    """Return [size, option, 5]: the time on each resource, and the sum."""
    found = np.zeros((sizes.size, codes.shape[0], 5))
    longest = codes.shape[1]
    resources, seconds = np.empty(longest, np.int64), np.empty(longest)
    before = np.empty((longest, 5))
    for at in range(sizes.size):
        for option in range(codes.shape[0]):
            known = 0
            while option > 0 and codes[option, known] == codes[option - 1, known] >= 0:
                known += 1
            count = task_times(
                codes[option], sizes[at], link, curves, resources, seconds, before, known
            )
            for task in range(count):
                found[at, option, resources[task]] += seconds[task]
                found[at, option, 4] += seconds[task]
    return found


@njit(cache=True, nogil=True, general=True)
def cheapest(times: Floats, kinds: Ints, weights: Floats) -> Ints:
    """Return [kind, weights]: the option with the least weighted time among kinds up to this one.

    times: of one size, as `loads` gives them; -1 where there is no such option.
    """
    best = np.full((3, weights.shape[0]), np.inf)
    found = np.full((3, weights.shape[0]), -1)
    front, length = np.empty(times.shape[0], np.int64), 0  # no other is as quick on all resources
    for option in range(times.shape[0]):
        if _is_beaten(option, times, kinds, front[:length]):
            continue
        front[length] = option
        length += 1
        for at in range(weights.shape[0]):
            cost = 1e-6 * times[option, 4]
            for r in range(4):
                cost += weights[at, r] * times[option, r]
            for last in range(kinds[option], 3):
                if cost < best[last, at]:
                    best[last, at] = cost
                    found[last, at] = option
    return found


@njit(cache=True, nogil=True, general=True)
def few_cheapest(times: Floats, prices: Floats, count: int) -> Ints:
    """Return [price, count]: the options whose times cost the least at each price, in order.

    times: of one size, as `loads` gives them. prices: [price, resource].
    """
    found = np.full((prices.shape[0], count), -1)
    costs = np.full((prices.shape[0], count), np.inf)
    for option in range(times.shape[0]):
        for at in range(prices.shape[0]):
            cost = 0.0
            for r in range(4):
                cost += prices[at, r] * times[option, r]
            place = count
            while place > 0 and cost < costs[at, place - 1]:
                place -= 1
                if place < count - 1:
                    costs[at, place + 1] = costs[at, place]
                    found[at, place + 1] = found[at, place]
            if place < count:
                costs[at, place], found[at, place] = cost, option
    return found


@njit(cache=True, nogil=True, general=True)
def _is_beaten(option: int, times: Floats, kinds: Ints, others: Ints) -> bool:
    """Whether one of the others is not slower on any resource, and of no higher kind."""
    for other in others[::-1]:
        beaten = kinds[other] <= kinds[option]
        for r in range(4):
            beaten = beaten and times[other, r] <= times[option, r]
        if beaten:
            return True
    return False


@njit(cache=True, nogil=True, general=True)
def compile_steps(
    chosen: Ints, codes: Ints, sizes: Floats, link: Link, curves: Floats
) -> tuple[Ints, Ints, Floats]:
    """Return where each candidate's steps begin, and all steps; neighbours on a resource merged."""
    longest = codes.shape[1] + 1
    first = np.zeros(chosen.shape, np.int64)
    resource = np.empty(chosen.size * longest, np.int64)
    seconds = np.zeros(chosen.size * longest)
    resources, times = np.empty(longest, np.int64), np.empty(longest)
    before = np.empty((longest, 5))
    end = 0
    for group in range(chosen.shape[0]):
        for slot in range(chosen.shape[1]):
            if chosen[group, slot] < 0:
                continue
            first[group, slot] = end
            count = task_times(
                codes[chosen[group, slot]], sizes[group], link, curves, resources, times, before, 0
            )
            for task in range(count):
                if times[task] <= 0:
                    continue
                if end > first[group, slot] and resource[end - 1] == resources[task]:
                    seconds[end - 1] += times[task]
                else:
                    resource[end], seconds[end] = resources[task], times[task]
                    end += 1
            resource[end] = -1
            end += 1
    return first, resource[:end], seconds[:end]


@njit(cache=True, nogil=True, general=True)
def demands(first: Ints, count: Ints, resource: Ints, seconds: Floats) -> Floats:
    """Return [group, slot, 6]: the seconds of a slot's steps on each resource, on all, and of a GPU
    step at the start; infinity beyond `count`.
    """
    found = np.full((first.shape[0], first.shape[1], 6), np.inf)
    for group in range(first.shape[0]):
        for slot in range(count[group]):
            found[group, slot] = 0.0
            at = first[group, slot]
            if resource[at] == 0:
                found[group, slot, 5] = seconds[at]
            while resource[at] >= 0:
                found[group, slot, resource[at]] += seconds[at]
                found[group, slot, 4] += seconds[at]
                at += 1
    return found
