"""`levels_network.Network` with the same events in the same order, in a kernel that needs Python
only where a worker or the controller does something. It keeps no frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from levels_network import CROWD, PATIENCE, Network

from gradplane._addresses import address_of, carray, copy, pointer
from gradplane._kernels import njit
from gradplane.experiment.deployment import Deployment
from gradplane.switch import Switch
from gradplane.topologies.sim import loop
from gradplane.topologies.sim import loop_layout as at
from gradplane.topologies.sim.compiled_events import LoopMemory, columns

# The kernel's words. COUNT: frames under way. EVENTS: since `run` began. STARTS, RESTARTS, CHANGES:
# how many may come. PASSES: whether other frames come between them. SWITCHES, WORKERS: how many
# there are, which are the first nodes. WHO, REF: operands of the reason for which it returned.
COUNT, NOW, EVENTS, STARTS, RESTARTS, CHANGES, PASSES, SWITCHES, WORKERS, WHO, REF = range(11)
RECEIVE, TIMER, START, RESTART, CHANGE, GROW, SLOW, STUCK = range(8)

_AGAIN = -1  # in the place of the port of a frame that is between two passes
_SPARE = 128  # frames that one event makes, at most
_CROWD, _PATIENCE = CROWD, PATIENCE


class CompiledNetwork(Network):
    """A network of which only `run` makes events happen."""

    def __init__(self, deployed: Deployment, *given: Any) -> None:
        super().__init__(deployed, *given)
        self._loop = _loop(self, deployed)
        self._loop.clear()
        faults = self._faults
        self._rates = np.array([faults.losses, faults.copies, faults.timers, faults.cuts])
        self._loop.state[PASSES] = faults.passes
        self._take_random()

    def run(self, ticket: int) -> None:
        loop, state = self._loop, self._loop.state
        state[EVENTS] = 0
        while not self._ended(ticket):
            state[NOW], state[STARTS] = self.now, len(self._starts)
            state[RESTARTS] = self._faults.restarts - self.restarts
            state[CHANGES] = len(self._changes)
            reason = run(loop.memory.words, self._chance, loop.under_way, state, self._rates)
            self.now, who, reference = int(state[NOW]), int(state[WHO]), int(state[REF])
            if reason == RECEIVE:
                self._receive(who, loop.memory.frame(reference))
            elif reason == TIMER:
                self._timer(who)
            elif reason == START:
                self._start(who)
            elif reason == CHANGE:
                self._change(self._changes.pop(0))
                loop.refresh()
            elif reason == RESTART:
                self._give_random()
                self.lose_state(self._random.choice(list(self.switches)))
                self._take_random()
                loop.refresh()
            elif reason == GROW:
                loop.grow()
            else:
                assert reason != SLOW, "a switch has something for its controller"
                raise AssertionError(f"stuck: {[w.waits for w in self.workers]}")
        self._give_random()

    def _leave(self, node: str, port: int, frame: bytes) -> None:
        self._loop.put(*self.ends[node, port], frame)

    def _lose_passes(self, switch: str) -> None:
        lose_passes(
            self._loop.memory.words, self._loop.under_way, self._loop.state,
            self._loop.numbers[switch],
        )  # fmt: skip

    def _take_random(self) -> None:
        """Let the kernel go on with the random numbers."""
        self._chance = np.array(self._random.getstate()[1], np.int64)

    def _give_random(self) -> None:
        version, _, gauss = self._random.getstate()
        self._random.setstate((version, tuple(self._chance.tolist()), gauss))


class _Loop:
    """The state of one tree, on which the kernel works."""

    def __init__(self, network: Network, deployed: Deployment) -> None:
        switches: list[Switch] = list(network.switches.values())
        names = [*network.switches, *network.worker_of]
        names += [node.name for node in (*deployed.topology.switches, *deployed.topology.hosts)]
        self.deployed, self._switches = deployed, switches
        self.numbers = {name: n for n, name in enumerate(dict.fromkeys(names))}
        self.memory, self.under_way = LoopMemory(), np.zeros((1 << 12, 3), np.int64)
        self.state = np.zeros(REF + 1, np.int64)
        self.state[SWITCHES], self.state[WORKERS] = len(switches), len(network.workers)
        self._placed = np.zeros(1, np.int64)
        for switch in switches:
            native = switch.native_pass()
            assert native is not None
            self.memory.need_meta(native.meta_size)
            self.memory.append(at.SWITCHES, [1, 0, 0, *columns(native), address_of(self._placed)])
        ends = network.ends
        ports = np.full((len(switches), 1 + max(port for _, port in ends)), -1)
        for (name, port), (other, there) in ends.items():
            if name in network.switches:
                ports[self.numbers[name], port] = self.numbers[other] << 16 | there
        self.memory.replace(at.PORTS, ports)

    def clear(self) -> None:
        """Begin a schedule."""
        self.state[COUNT] = 0
        self.memory.free_packets()
        self.refresh()

    def refresh(self) -> None:
        """Show the kernel what the controller has changed."""
        for switch in self._switches:
            with switch.native_passes():
                pass

    def grow(self) -> None:
        """Have room for twice as many frames."""
        self.memory.need_packets(2 * len(self.under_way), 0)
        self.under_way = np.concatenate((self.under_way, np.zeros_like(self.under_way)))

    def put(self, node: str, port: int, frame: bytes) -> None:
        """Let a frame of a worker be under way."""
        if int(self.state[COUNT]) + 1 == len(self.under_way):
            self.grow()
        self.memory.need_packets(1, len(frame))
        packet = int(loop.allocate(self.memory.words))
        self.memory.put_frame(packet, frame)
        self.under_way[self.state[COUNT]] = self.numbers[node], port, packet
        self.state[COUNT] += 1


_last: list[_Loop] = []


def _loop(network: Network, deployed: Deployment) -> _Loop:
    if not _last or _last[0].deployed is not deployed:
        _last[:] = [_Loop(network, deployed)]
    return _last[0]


# Python's random numbers: the Mersenne Twister of `random.Random.getstate`

_N, _M, _LOW = 624, 397, 0xFFFFFFFF


@njit(cache=True)
def word(chance):  # type: ignore[no-untyped-def]
    """Return the next 32 bits."""
    if chance[_N] >= _N:
        for i in range(_N):
            both = (chance[i] & 0x80000000) | (chance[(i + 1) % _N] & 0x7FFFFFFF)
            odd = 0x9908B0DF if both & 1 else 0
            chance[i] = chance[(i + _M) % _N] ^ (both >> 1) ^ odd
        chance[_N] = 0
    y = chance[chance[_N]]
    chance[_N] += 1
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680
    y ^= (y << 15) & 0xEFC60000
    return (y ^ (y >> 18)) & _LOW


@njit(cache=True)
def fraction(chance):  # type: ignore[no-untyped-def]
    """Return what random() does."""
    high, low = word(chance) >> 5, word(chance) >> 6
    return (high * 67108864.0 + low) / 9007199254740992.0


@njit(cache=True)
def below(chance, count):  # type: ignore[no-untyped-def]
    """Return what randrange(count) does."""
    bits = 0
    while count >> bits:
        bits += 1
    drawn = word(chance) >> (32 - bits)
    while drawn >= count:
        drawn = word(chance) >> (32 - bits)
    return drawn


# Events


@njit(cache=True)
def run(owned, chance, under_way, state, rates):  # type: ignore[no-untyped-def]
    """Let events happen until one needs Python; return the reason."""
    words = carray(pointer(np.int64(owned.ctypes.data)), (at.WORDS,), np.int64)
    packets = carray(
        pointer(words[at.PACKETS]), (words[at.PACKETS + 1], at.PACKET_COLUMNS), np.int64
    )
    losses, copies, timers, cuts = rates[0], rates[1], rates[2], rates[3]
    while True:
        if words[at.FREE_COUNT] < _SPARE or state[COUNT] + _SPARE > len(under_way):
            return GROW
        state[EVENTS] += 1
        if state[EVENTS] >= _PATIENCE:
            return STUCK
        early = state[COUNT] < _CROWD and fraction(chance) < timers
        happens, idle = fraction(chance), state[COUNT] == 0
        if state[STARTS] and (idle or happens < 0.02):
            state[WHO] = below(chance, state[STARTS])
            return START
        if state[RESTARTS] > 0 and happens < 0.03:
            return RESTART
        if state[CHANGES] and (idle or happens < 0.2):
            return CHANGE
        if idle or early:
            state[WHO] = below(chance, state[WORKERS])
            return TIMER
        drawn = below(chance, state[COUNT])
        node, again = under_way[drawn, 0], under_way[drawn, 1] == _AGAIN
        if again:  # those of one switch keep their order
            drawn = 0
            while under_way[drawn, 0] != node or under_way[drawn, 1] != _AGAIN:
                drawn += 1
        port, packet = under_way[drawn, 1], under_way[drawn, 2]
        _remove(under_way, state, drawn)
        if again and cuts > 0 and fraction(chance) < cuts:
            loop.release(words, packet)
            continue
        fate = 1.0 if again else fraction(chance)
        if fate < losses:
            loop.release(words, packet)
            continue
        if fate < losses + copies:
            twin = loop.allocate(words)
            size = packets[packet, at.SIZE]
            stride = words[at.STRIDE]
            copy(words[at.DATA] + twin * stride, words[at.DATA] + packet * stride, size)
            packets[twin, at.SIZE] = size
            _append(under_way, state, node, port, twin)
        state[NOW] += 1000
        if node < state[SWITCHES]:
            words[at.NOW] = state[NOW]
            if not _pass(words, under_way, state, node, port, packet):
                return SLOW
            continue
        loop.release(words, packet)  # what it holds stays until another is allocated
        if node < state[SWITCHES] + state[WORKERS]:
            state[WHO], state[REF] = node - state[SWITCHES], packet
            return RECEIVE


@njit(cache=True)
def _append(under_way, state, node, port, packet):  # type: ignore[no-untyped-def]
    row = under_way[state[COUNT]]
    row[0], row[1], row[2] = node, port, packet
    state[COUNT] += 1


@njit(cache=True)
def _remove(under_way, state, place):  # type: ignore[no-untyped-def]
    state[COUNT] -= 1
    for i in range(place, state[COUNT]):
        for column in range(3):
            under_way[i, column] = under_way[i + 1, column]


@njit(cache=True)
def _pass(words, under_way, state, number, port, packet):  # type: ignore[no-untyped-def]
    """Let a switch process a frame, with all passes unless others come between them; return whether
    it could without Python."""
    packets = carray(
        pointer(words[at.PACKETS]), (words[at.PACKETS + 1], at.PACKET_COLUMNS), np.int64
    )
    width = words[at.PORTS + 1]
    ports = carray(pointer(words[at.PORTS] + 8 * width * number), (width,), np.int64)
    ring = carray(pointer(words[at.LEAVES]), (words[at.LEAVES + 1], at.HEAP_COLUMNS), np.int64)
    first_again, last_again = np.int64(-1), np.int64(-1)
    while True:
        if loop.run_pass(words, number, port, packet) >= 0:
            return False
        chain = np.int64(-1)
        if words[at.LEAVES_COUNT]:
            chain = ring[words[at.LEAVES_FIRST], at.SUBJECT]
            words[at.LEAVES_FIRST] = (words[at.LEAVES_FIRST] + 1) % len(ring)
            words[at.LEAVES_COUNT] -= 1
        each = chain
        while state[PASSES] and each >= 0:  # before those that leave
            if packets[each, at.PORT] == at.RECIRCULATE:
                _append(under_way, state, number, _AGAIN, each)
            each = packets[each, at.NEXT]
        while chain >= 0:
            following, out = packets[chain, at.NEXT], packets[chain, at.PORT]
            if out == at.RECIRCULATE:
                if not state[PASSES]:
                    packets[chain, at.NEXT] = -1
                    if last_again >= 0:
                        packets[last_again, at.NEXT] = chain
                    else:
                        first_again = chain
                    last_again = chain
            elif 0 <= out < width and ports[out] >= 0:
                _append(under_way, state, ports[out] >> 16, ports[out] & 0xFFFF, chain)
            else:
                loop.release(words, chain)
            chain = following
        if first_again < 0:
            return True
        packet, port = first_again, np.int64(-1)
        first_again = packets[packet, at.NEXT]
        if first_again < 0:
            last_again = np.int64(-1)


@njit(cache=True)
def lose_passes(owned, under_way, state, node):  # type: ignore[no-untyped-def]
    """Lose what is between two passes in a switch."""
    words = carray(pointer(np.int64(owned.ctypes.data)), (at.WORDS,), np.int64)
    place = 0
    while place < state[COUNT]:
        if under_way[place, 0] == node and under_way[place, 1] == _AGAIN:
            loop.release(words, under_way[place, 2])
            _remove(under_way, state, place)
        else:
            place += 1
