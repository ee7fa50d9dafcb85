"""The compiled event loop: links, switches and the hosts' ordinary packets, without Python.

run() runs events until one needs Python, and returns the reason (`loop_layout`). It does what
`EventQueue`, `Channel` and `SimSwitch` do, event by event in the same order, so that virtual times
are the same. Passes through a switch are calls of the JIT's machine code.
"""

import numpy as np

from gradplane._addresses import call_six, carray, copy, load, pointer, store
from gradplane._kernels import njit
from gradplane.hosts.protocols.fast_results import NO_ANSWER, UNTAKEN, take
from gradplane.switch.jit.entry_points import NODE, NODE_META
from gradplane.topologies.sim import loop_layout as at
from gradplane.topologies.sim.frames import HEADERS

_HEADERS = HEADERS
# Frames of UDP datagrams in kernels: the same bytes and checks as in `frames`

_ETHERNET, _IPV4 = 14, 20
_UDP_AT = _ETHERNET + _IPV4


@njit(cache=True, nogil=True, general=True)
def put(row, at, size, value):  # type: ignore[no-untyped-def]
    """Write a number of so many bytes, in network order."""
    for i in range(size):
        row[at + i] = np.uint8((value >> 8 * (size - 1 - i)) & 255)


@njit(cache=True, nogil=True, general=True)
def get(row, at, size):  # type: ignore[no-untyped-def]
    """Return the number of so many bytes."""
    value = np.int64(0)
    for i in range(at, at + size):
        value = value << 8 | np.int64(row[i])
    return value


@njit(cache=True, nogil=True, general=True)
def words_sum(row, start, stop):  # type: ignore[no-untyped-def]
    """Return the sum of 16-bit words in network order; an odd byte is the high half of a word."""
    high, low = np.int64(0), np.int64(0)
    pairs = (stop - start) // 2
    some = row[start : start + 2 * pairs]
    for i in range(pairs):
        high += np.int64(some[2 * i])
        low += np.int64(some[2 * i + 1])
    if (stop - start) % 2:
        high += np.int64(row[stop - 1])
    return (high << 8) + low


@njit(cache=True, nogil=True)
def checksum(total):  # type: ignore[no-untyped-def]
    """Return the Internet checksum of a sum of words, as `frames.internet_checksum` does."""
    if total == 0:
        return 0xFFFF
    folded = total % 0xFFFF
    return 0xFFFF - (folded if folded else 0xFFFF)


@njit(cache=True, nogil=True, general=True)
def build(frame, size, from_mac, from_ip, from_port, mac, ip, port, tos):  # type: ignore[no-untyped-def]
    """Write the headers before a payload of so many bytes, which is at frame[HEADERS:]."""
    put(frame, 0, 6, mac)
    put(frame, 6, 6, from_mac)
    put(frame, 12, 2, 0x0800)
    put(frame, 14, 2, 0x4500 | tos)
    put(frame, 16, 2, _HEADERS - _ETHERNET + size)
    put(frame, 18, 4, 0x4000)
    put(frame, 22, 2, 64 << 8 | 17)
    put(frame, 24, 2, 0)
    put(frame, 26, 4, from_ip)
    put(frame, 30, 4, ip)
    put(frame, 24, 2, checksum(words_sum(frame, _ETHERNET, _UDP_AT)))
    put(frame, 34, 2, from_port)
    put(frame, 36, 2, port)
    put(frame, 38, 2, 8 + size)
    put(frame, 40, 2, 0)
    found = checksum(words_sum(frame, 26, _HEADERS + size) + 17 + 8 + size)
    put(frame, 40, 2, found if found else 0xFFFF)


@njit(cache=True, nogil=True)
def payload_size(frame, size, mac):  # type: ignore[no-untyped-def]
    """Return the bytes of a frame's payload, which is at frame[HEADERS:]; -1 for a frame without IP
    options that the host with that MAC drops, and for any frame with options."""
    if size < _HEADERS or get(frame, 0, 6) != mac or get(frame, 12, 2) != 0x0800:
        return -1
    length, datagram = get(frame, 16, 2), get(frame, 38, 2)
    if frame[14] != 0x45 or length < _IPV4 + 8 or length > size - _ETHERNET:
        return -1
    if checksum(words_sum(frame, _ETHERNET, _UDP_AT)) != 0:
        return -1
    if get(frame, 20, 2) & 0xBFFF or frame[23] != 17:
        return -1
    if datagram < 8 or datagram > length - _IPV4:
        return -1
    if get(frame, 40, 2):
        total = words_sum(frame, 26, _UDP_AT + datagram) + 17 + datagram
        if checksum(total) != 0:
            return -1
    return datagram - 8


_NS = 10**9
_BUDGET = 1 << 15  # events, before other threads and signals get their turn
_SENT_ROW = 24
_DATA, _LENGTH, _KIND, _IN_PORT, _PASSES = (
    NODE[name] for name in ("data", "length", "kind", "port", "passes")
)
_META = NODE_META
_NO_ANSWER, _UNTAKEN = NO_ANSWER, UNTAKEN


@njit(cache=True, nogil=True)
def _table(words, which, columns):  # type: ignore[no-untyped-def]
    return carray(pointer(words[which]), (words[which + 1], columns), np.int64)


@njit(cache=True, nogil=True)
def _frame(words, packet):  # type: ignore[no-untyped-def]
    address = words[at.DATA] + packet * words[at.STRIDE]
    return carray(pointer(address), (words[at.STRIDE],), np.uint8)


# Events


@njit(cache=True, nogil=True, general=True)
def _move(heap, to, source):  # type: ignore[no-untyped-def]
    for column in range(at.HEAP_COLUMNS):
        heap[to, column] = heap[source, column]


@njit(cache=True, nogil=True)
def push(words, time, what, subject):  # type: ignore[no-untyped-def]
    """Schedule an event; the heap has room."""
    heap = _table(words, at.HEAP, at.HEAP_COLUMNS)
    words[at.ORDER] += 1
    hole = words[at.EVENTS]
    words[at.EVENTS] += 1
    while hole > 0:
        parent = (hole - 1) >> 1
        if heap[parent, at.TIME] <= time:  # the new event is the youngest
            break
        _move(heap, hole, parent)
        hole = parent
    heap[hole, at.TIME], heap[hole, at.CREATED] = time, words[at.ORDER]
    heap[hole, at.WHAT], heap[hole, at.SUBJECT] = what, subject


@njit(cache=True, nogil=True)
def push_leave(words, time, number, packet):  # type: ignore[no-untyped-def]
    """Schedule that a chain of packets leaves a switch; the ring has room."""
    ring = _table(words, at.LEAVES, at.HEAP_COLUMNS)
    first, count = words[at.LEAVES_FIRST], words[at.LEAVES_COUNT]
    last = first + count - 1
    last -= len(ring) if last >= len(ring) else 0
    what = at.LEAVE | number << 8
    if count and ring[last, at.TIME] > time:
        push(words, time, what, packet)
        return
    place = first + count
    place -= len(ring) if place >= len(ring) else 0
    words[at.ORDER] += 1
    words[at.LEAVES_COUNT] += 1
    ring[place, at.TIME], ring[place, at.CREATED] = time, words[at.ORDER]
    ring[place, at.WHAT], ring[place, at.SUBJECT] = what, packet


@njit(cache=True, nogil=True)
def _leave_first(words, heap):  # type: ignore[no-untyped-def]
    """Return whether the first event of all is in the ring of those that leave switches."""
    if words[at.LEAVES_COUNT] == 0:
        return False
    if words[at.EVENTS] == 0:
        return True
    event = _table(words, at.LEAVES, at.HEAP_COLUMNS)[words[at.LEAVES_FIRST]]
    if event[at.TIME] != heap[0, at.TIME]:
        return event[at.TIME] < heap[0, at.TIME]
    return event[at.CREATED] < heap[0, at.CREATED]


@njit(cache=True, nogil=True)
def _pop_leave(words):  # type: ignore[no-untyped-def]
    """Run the first event of the ring."""
    ring = _table(words, at.LEAVES, at.HEAP_COLUMNS)
    event = ring[words[at.LEAVES_FIRST]]
    words[at.LEAVES_FIRST] = (words[at.LEAVES_FIRST] + 1) % len(ring)
    words[at.LEAVES_COUNT] -= 1
    words[at.NOW] = event[at.TIME]
    _leave(words, event[at.WHAT] >> 8, event[at.SUBJECT])


@njit(cache=True, nogil=True)
def _before(heap, a, b):  # type: ignore[no-untyped-def]
    if heap[a, at.TIME] != heap[b, at.TIME]:
        return heap[a, at.TIME] < heap[b, at.TIME]
    return heap[a, at.CREATED] < heap[b, at.CREATED]


@njit(cache=True, nogil=True)
def _pop(words):  # type: ignore[no-untyped-def]
    """Remove the first event of the heap."""
    heap = _table(words, at.HEAP, at.HEAP_COLUMNS)
    words[at.EVENTS] -= 1
    count = words[at.EVENTS]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= count:
            break
        if child + 1 < count and _before(heap, child + 1, child):
            child += 1
        if not _before(heap, child, count):
            break
        _move(heap, hole, child)
        hole = child
    _move(heap, hole, count)


# Packets and channels


@njit(cache=True, nogil=True)
def allocate(words):  # type: ignore[no-untyped-def]
    """Take a free packet; there is one."""
    packets = _table(words, at.PACKETS, at.PACKET_COLUMNS)
    packet = words[at.FREE]
    words[at.FREE] = packets[packet, at.NEXT]
    words[at.FREE_COUNT] -= 1
    return packet


@njit(cache=True, nogil=True)
def release(words, packet):  # type: ignore[no-untyped-def]
    """Give a packet back."""
    packets = _table(words, at.PACKETS, at.PACKET_COLUMNS)
    packets[packet, at.NEXT] = words[at.FREE]
    words[at.FREE] = packet
    words[at.FREE_COUNT] += 1


@njit(cache=True, nogil=True, general=True)
def send(words, number, packet):  # type: ignore[no-untyped-def]
    """Put a packet into the queue of a channel, or drop it where that is full."""
    now = words[at.NOW]
    channel = _table(words, at.CHANNELS, at.CHANNEL_COLUMNS)[number]
    limit = channel[at.LIMIT]
    leaving = carray(pointer(words[at.LEAVING] + 8 * channel[at.RING]), (limit,), np.int64)
    while channel[at.WAITING] and leaving[channel[at.FIRST]] <= now:
        first = channel[at.FIRST] + 1
        channel[at.FIRST] = first if first < limit else 0
        channel[at.WAITING] -= 1
    waiting = channel[at.WAITING]
    if waiting >= limit:
        channel[at.DROPPED] += 1
        release(words, packet)
        return
    packets = _table(words, at.PACKETS, at.PACKET_COLUMNS)
    size = packets[packet, at.SIZE]
    channel[at.SENT] += 1
    channel[at.BYTES] += size
    end = now
    if waiting:
        last = channel[at.FIRST] + waiting - 1
        end = leaving[last if last < limit else last - limit]
    if channel[at.RATE]:
        end += (size * 8 * _NS + channel[at.RATE] - 1) // channel[at.RATE]
    place = channel[at.FIRST] + waiting
    leaving[place if place < limit else place - limit] = end
    channel[at.WAITING] += 1
    channel[at.PEAK] = max(channel[at.PEAK], waiting + 1)
    packets[packet, at.NEXT] = -1
    if channel[at.LAST] < 0:
        push(words, end + channel[at.DELAY], at.ARRIVE | number << 8, packet)
    else:
        words[at.ORDER] += 1
        packets[packet, at.ARRIVES] = end + channel[at.DELAY]
        packets[packet, at.ARRIVAL] = words[at.ORDER]
        packets[channel[at.LAST], at.NEXT] = packet
    channel[at.LAST] = packet


@njit(cache=True, nogil=True)
def _pop_arrival(words, channel, packet):  # type: ignore[no-untyped-def]
    """Remove the heap's first event, an arrival, whose place the channel's next one takes."""
    packets = _table(words, at.PACKETS, at.PACKET_COLUMNS)
    following = packets[packet, at.NEXT]
    if following < 0:
        channel[at.LAST] = -1
        _pop(words)
        return
    heap = _table(words, at.HEAP, at.HEAP_COLUMNS)
    time, created = packets[following, at.ARRIVES], packets[following, at.ARRIVAL]
    what, count, hole = heap[0, at.WHAT], words[at.EVENTS], 0
    while True:
        child = 2 * hole + 1
        if child >= count:
            break
        if child + 1 < count and _before(heap, child + 1, child):
            child += 1
        earlier = heap[child, at.TIME] < time
        if not earlier and (heap[child, at.TIME] > time or heap[child, at.CREATED] > created):
            break
        _move(heap, hole, child)
        hole = child
    heap[hole, at.TIME], heap[hole, at.CREATED] = time, created
    heap[hole, at.WHAT], heap[hole, at.SUBJECT] = what, following


# Switches


@njit(cache=True, nogil=True)
def _place(switch):  # type: ignore[no-untyped-def]
    """Put the words of a switch where the code that it shares with others works on them."""
    placed, own, size = load(switch[at.PLACED]), switch[at.OWN], switch[at.WORDS_SIZE]
    if placed == own:
        return
    if placed:
        copy(placed, switch[at.STATE], size)
    copy(switch[at.STATE], own, size)
    store(switch[at.PLACED], own)


@njit(cache=True, nogil=True)
def _put_back(switches):  # type: ignore[no-untyped-def]
    """Put all words back to where Python has them."""
    for i in range(len(switches)):
        at_rest = switches[i, at.OWN] == switches[i, at.STATE] or not switches[i, at.PLACED]
        if at_rest or load(switches[i, at.PLACED]) != switches[i, at.OWN]:
            continue
        copy(switches[i, at.OWN], switches[i, at.STATE], switches[i, at.WORDS_SIZE])
        store(switches[i, at.PLACED], 0)


@njit(cache=True, nogil=True)
def run_pass(words, number, port, packet):  # type: ignore[no-untyped-def]
    """Run one pass of a packet, and release it; `port` is that of its arrival, -1 for a further
    pass. Returns a reason to return, or -1."""
    switch = _table(words, at.SWITCHES, at.SWITCH_COLUMNS)[number]
    row = _table(words, at.PACKETS, at.PACKET_COLUMNS)[packet]
    now = words[at.NOW]
    if switch[at.STATE] != switch[at.OWN]:
        _place(switch)
    if switch[at.CLOCK]:
        store(switch[at.CLOCK], now)
    if switch[at.MICROSECONDS]:
        store(switch[at.MICROSECONDS], (now - switch[at.START]) // 1000)
    kind, passes, meta = np.int64(0), np.int64(0), np.int64(0)
    if port < 0:
        port, kind, passes = row[at.IN_PORT], row[at.KIND], row[at.PASSES]
        if row[at.HAS_META]:
            meta = words[at.METAS] + packet * words[at.META_STRIDE]
    frame = words[at.DATA] + packet * words[at.STRIDE]
    call_six(switch[at.ONCE], frame, row[at.SIZE], port, kind, meta, passes)
    release(words, packet)
    return _collect(words, number)


@njit(cache=True, nogil=True)
def _collect(words, number):  # type: ignore[no-untyped-def]
    """Take what a pass gave; it leaves the switch after its latency. Returns as run_pass."""
    switch = _table(words, at.SWITCHES, at.SWITCH_COLUMNS)[number]
    if switch[at.STATE] != switch[at.OWN]:
        _place(switch)
    words[at.WHO], words[at.PENDING] = number, -1
    if load(switch[at.MESSAGES_AT] + 8) or load(switch[at.WAITING_AT] + 8):
        return at.SLOW
    sent, again = load(switch[at.SENT_AT]), load(switch[at.AGAIN_AT])
    outputs = load(switch[at.SENT_AT] + 8) // _SENT_ROW
    nodes = load(switch[at.AGAIN_AT] + 8) // switch[at.NODE_SIZE]
    if outputs + nodes == 0:
        return -1
    largest, start = np.int64(0), np.int64(0)
    for i in range(outputs):
        if load(sent + i * _SENT_ROW) == switch[at.CPU_PORT]:
            return at.SLOW
        end = load(sent + i * _SENT_ROW + 8)
        largest, start = max(largest, end - start), end
    for i in range(nodes):
        largest = max(largest, load(again + i * switch[at.NODE_SIZE] + _LENGTH))
    too_few = words[at.FREE_COUNT] < outputs + nodes
    if too_few or largest > words[at.STRIDE] or switch[at.META_SIZE] > words[at.META_STRIDE]:
        words[at.NEED_PACKETS], words[at.NEED_STRIDE] = outputs + nodes, largest
        words[at.PENDING] = number
        return at.GROW

    packets = _table(words, at.PACKETS, at.PACKET_COLUMNS)
    first, last, start = np.int64(-1), np.int64(-1), np.int64(0)
    out = load(switch[at.OUT_AT])
    for i in range(outputs + nodes):
        packet = allocate(words)
        row = packets[packet]
        frame = words[at.DATA] + packet * words[at.STRIDE]
        if i < outputs:
            record = sent + i * _SENT_ROW
            end = load(record + 8)
            row[at.PORT], row[at.SIZE] = load(record), end - start
            copy(frame, out + start, end - start)
            start = end
        else:
            node = again + (i - outputs) * switch[at.NODE_SIZE]
            row[at.PORT], row[at.SIZE] = at.RECIRCULATE, load(node + _LENGTH)
            row[at.KIND], row[at.IN_PORT] = load(node + _KIND), load(node + _IN_PORT)
            row[at.PASSES], row[at.HAS_META] = load(node + _PASSES), 1
            copy(frame, load(node + _DATA), row[at.SIZE])
            meta = words[at.METAS] + packet * words[at.META_STRIDE]
            copy(meta, node + _META, switch[at.META_SIZE])
        if last < 0:
            first = packet
        else:
            packets[last, at.NEXT] = packet
        last = packet
    packets[last, at.NEXT] = -1
    store(switch[at.SENT_AT] + 8, 0)
    store(switch[at.OUT_AT] + 8, 0)
    store(switch[at.AGAIN_AT] + 8, 0)
    push_leave(words, words[at.NOW] + switch[at.LATENCY], number, first)
    return -1


@njit(cache=True, nogil=True)
def _leave(words, number, packet):  # type: ignore[no-untyped-def]
    """Send a chain of packets on, each to the channel of its port; drop those without one."""
    packets = _table(words, at.PACKETS, at.PACKET_COLUMNS)
    recirculation = _table(words, at.SWITCHES, at.SWITCH_COLUMNS)[number, at.RECIRCULATION]
    count = words[at.PORTS + 1]
    ports = carray(pointer(words[at.PORTS] + 8 * count * number), (count,), np.int64)
    while packet >= 0:
        following, port = packets[packet, at.NEXT], packets[packet, at.PORT]
        if port == at.RECIRCULATE:
            send(words, recirculation, packet)
        elif 0 <= port < count and ports[port] >= 0:
            send(words, ports[port], packet)
        else:
            release(words, packet)
        packet = following


# Hosts


@njit(cache=True, nogil=True)
def _taken(words, number, packet):  # type: ignore[no-untyped-def]
    """Let a host's kernel take a packet; if it does not, return False, with nothing changed but
    the description of the datagram for Python."""
    host = _table(words, at.HOSTS, at.HOST_COLUMNS)[number]
    row = _table(words, at.PACKETS, at.PACKET_COLUMNS)[packet]
    frame = _frame(words, packet)
    size = payload_size(frame, row[at.SIZE], host[at.MAC])
    if size < 0 or get(frame, 30, 4) != host[at.IP]:
        words[at.DATAGRAM] = -1
        return False
    ip, port = get(frame, 26, 4), get(frame, 34, 2)
    local = get(frame, 36, 2)
    words[at.DATAGRAM], words[at.TO_PORT] = size, local
    words[at.SOURCE_IP], words[at.SOURCE_PORT] = ip, port
    receivers = _table(words, at.RECEIVERS, at.RECEIVER_COLUMNS)
    for i in range(host[at.RECEIVER_COUNT]):
        receiver = receivers[host[at.FIRST_RECEIVER] + i]
        if receiver[at.LOCAL_PORT] != local:
            continue
        if receiver[at.PEER_IP] != ip or receiver[at.PEER_PORT] != port:
            return False
        payload = words[at.DATA] + packet * words[at.STRIDE] + _HEADERS
        now = words[at.NOW] - receiver[at.ORIGIN]
        answer, length = take(receiver[at.RECORD], payload, size, now)
        if answer == _UNTAKEN:
            return False
        if answer == _NO_ANSWER:
            release(words, packet)
            return True
        copy(payload, answer, length)
        row[at.SIZE] = _HEADERS + length
        build(frame, length, host[at.MAC], host[at.IP], local, receiver[at.PEER_MAC], ip, port, 0)
        send(words, host[at.LINK], packet)
        return True
    return False


@njit(cache=True, nogil=True)
def send_datagrams(words, number, local, mac, ip, port, tos, data, stride, sizes, count):  # type: ignore[no-untyped-def]
    """Send a host's datagrams: payload i, of the size at sizes + 8 i, is at data + i * stride.

    There are as many free packets, and buffers are large enough.
    """
    host = _table(words, at.HOSTS, at.HOST_COLUMNS)[number]
    packets = _table(words, at.PACKETS, at.PACKET_COLUMNS)
    for i in range(count):
        packet, size = allocate(words), load(sizes + 8 * i)
        frame = _frame(words, packet)
        target = words[at.DATA] + packet * words[at.STRIDE] + _HEADERS
        copy(target, data + i * stride, size)
        build(frame, size, host[at.MAC], host[at.IP], local, mac, ip, port, tos)
        packets[packet, at.SIZE] = _HEADERS + size
        send(words, host[at.LINK], packet)


# The loop


@njit(cache=True, nogil=True)
def run(owned):  # type: ignore[no-untyped-def]
    """Run events until Python is needed; return the reason."""
    # An array that nobody owns, since every call with one that is owned counts references.
    words = carray(pointer(np.int64(owned.ctypes.data)), (at.WORDS,), np.int64)
    reason = _run(words)
    _put_back(_table(words, at.SWITCHES, at.SWITCH_COLUMNS))
    return reason


@njit(cache=True, nogil=True)
def _run(words):  # type: ignore[no-untyped-def]
    """Run events, with the words of the last switch in place."""
    if words[at.PENDING] >= 0:
        reason = _collect(words, words[at.PENDING])
        if reason >= 0:
            return reason
    heap = _table(words, at.HEAP, at.HEAP_COLUMNS)
    channels = _table(words, at.CHANNELS, at.CHANNEL_COLUMNS)
    switches = _table(words, at.SWITCHES, at.SWITCH_COLUMNS)
    for _ in range(_BUDGET):
        if words[at.NOW] > words[at.UNTIL]:
            return at.LATE
        if _leave_first(words, heap):
            _pop_leave(words)
            continue
        if words[at.EVENTS] == 0:
            return at.EMPTY
        time, what, subject = heap[0, at.TIME], heap[0, at.WHAT], heap[0, at.SUBJECT]
        kind, number = what & 255, what >> 8
        if kind == at.CALL:
            _pop(words)
            words[at.AT], words[at.WHO] = time, subject
            return at.DUE
        if kind == at.LEAVE:
            _pop(words)
            words[at.NOW] = time
            _leave(words, number, subject)
            continue
        channel = channels[number]
        dest = channel[at.DEST]
        if channel[at.DEST_KIND] == at.TO_HOST:
            _pop_arrival(words, channel, subject)
            words[at.NOW] = time
            if not _taken(words, dest, subject):
                words[at.WHO], words[at.REF] = dest, subject
                return at.RECEIVE
            continue
        if not switches[dest, at.READY]:
            words[at.WHO] = dest
            return at.PREPARE
        _pop_arrival(words, channel, subject)
        words[at.NOW] = time
        port = channel[at.DEST_PORT] if channel[at.DEST_KIND] == at.TO_SWITCH else -1
        reason = run_pass(words, dest, port, subject)
        if reason >= 0:
            return reason
    return at.ENOUGH
