"""The rules of aggregation over levels of switches as a small model, and a checker of it.

Workers send to their leaf, a leaf sends its partial to its parent, the root multicasts the result.
A switch is the same thing at each level: it counts each child once. The state of a cell (the sums
or the norm of a slot) is what registers of a P4 program hold. Packets may be lost, copied and
delivered in any order; a switch may lose its state; a worker may start as late as it likes.

`explore` visits all states of a Model and raises Violation, with the events that led there, at

- a contribution that is counted twice, or a sum that has one of another chunk,
- a result that lacks a worker of a full quorum, or that is not the one that others had,
- a state from which fair delivery (nothing is lost any more, timers run out) ends no reduce,
- a retransmission that causes two packets on a link, or one off its path.

A value in the model is a set of bits, one for each worker and chunk, instead of a sum. A job has
two slots, so that one chunk of each worker is in flight. docs/several-switches.md has the rules in
words. `python tests/aggregations/tree_model.py` checks all CASES.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from model_cases import check

SLOTS = 2
LONGEST = 1000  # events of a fair end; those of the cases take some 200
SUMS, NORM = 0, 1  # what a packet is about
DATA, ASK = "data", "ask"  # from a child: codes, a partial or a norm; a question for the result
RESULT, NOTICE, EPOCH = "result", "notice", "epoch"  # from the parent
UPWARDS = {DATA, ASK}


class Message(NamedTuple):
    """A packet on a link. `to`: a node. child: the sender's number at its parent, upwards.

    path: the children's numbers that an answer takes down, the last first; empty: to all workers.
    """

    to: int
    kind: str
    what: int
    epoch: int
    slot: int = 0
    round: int = 0
    child: int = 0
    value: int = 0
    norm: int = 0
    path: tuple[int, ...] = ()


class Cell(NamedTuple):
    """The state of a slot's sums, or of its norm. epoch 0: none has used it."""

    epoch: int = 0
    round: int = 0
    bitmap: int = 0
    closed: bool = False
    value: int = 0
    norm: int = 0


class Switch(NamedTuple):
    """A switch. epoch: the job's, as its tables have it; 0: it has no entries, and drops all."""

    epoch: int
    cells: tuple[Cell, ...]


class Worker(NamedTuple):
    """A worker. turn: the chunk that it waits for; -1: not started. norm: its partition's, 0: none.

    asking: its norm is to be sent until there is an answer. redo: so is the chunk before `turn`.
    lost: it gives up at its timeout, as results may be lost that nobody sends again.
    """

    epoch: int = 1
    turn: int = -1
    norm: int = 0
    asking: bool = False
    redo: bool = False
    lost: bool = False


class Faults(NamedTuple):
    """How often what may happen. timers: retransmissions while packets are under way."""

    losses: int = 0
    copies: int = 0
    timers: int = 0
    restarts: int = 0


class State(NamedTuple):
    """All there is. epoch: what the controller installs. used: the results that workers took."""

    nodes: tuple[Switch | Worker, ...]
    packets: frozenset[Message]
    epoch: int
    faults: Faults
    used: frozenset[tuple[int, int, int, int]]


class Rules(NamedTuple):
    """The rules that the model was found to need; without one, the checker has a counterexample."""

    asks: bool = True  # a packet counted before goes up as a question from an open slot
    paths: bool = True  # an answer goes down to the sender alone
    raised: bool = True  # a restart raises the epoch
    serial: bool = True  # an epoch notice of an earlier epoch is ignored
    keeps: bool = True  # a worker sends the chunk before again, too, in a new epoch
    norms: bool = True  # and its norm, as long as it lacks the first chunk's result
    told: bool = True  # the controller tells all workers of a new epoch
    gives_up: bool = True  # below a full quorum, a worker gives up after a change of epoch


class Violation(AssertionError):
    """A rule is broken; `events` led there."""

    events: Sequence[str] = ()


@dataclass(frozen=True)
class Model:
    """A tree and a job. parents: by node, workers first, the root last with itself as parent.

    quorums: by switch. chunks: how many the job has. norms: whether they begin with a norm.
    """

    parents: tuple[int, ...]
    quorums: tuple[int, ...]
    chunks: int
    faults: Faults
    norms: bool = False
    rules: Rules = field(default_factory=Rules)

    # -- the tree, which is table content ---------------------------------------------------------

    @cached_property
    def workers(self) -> int:
        return len(self.parents) - len(self.quorums)

    @cached_property
    def root(self) -> int:
        return len(self.parents) - 1

    @cached_property
    def children(self) -> dict[int, tuple[int, ...]]:
        nodes = range(self.root)
        return {
            switch: tuple(node for node in nodes if self.parents[node] == switch)
            for switch in range(self.workers, self.root + 1)
        }

    @cached_property
    def number(self) -> tuple[int, ...]:
        """By node: its number at its parent."""
        return tuple(self.children[self.parents[node]].index(node) for node in range(self.root))

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """By worker: those that start before it, as workers of a rack, and racks, are alike."""
        if self.norms or self.parents != TWO_RACKS:
            return ((),) * self.workers
        return ((), (0,), (0,), (2,))

    @cached_property
    def exact(self) -> bool:
        """Whether each switch waits for all of its children."""
        return all(
            self.quorums[switch - self.workers] == len(children)
            for switch, children in self.children.items()
        )

    def start(self) -> State:
        cells = (Cell(),) * (2 * SLOTS if self.norms else SLOTS)
        nodes = (Worker(),) * self.workers + (Switch(1, cells),) * len(self.quorums)
        return State(nodes, frozenset(), 1, self.faults, frozenset())

    # -- a switch ---------------------------------------------------------------------------------

    def at_switch(self, node: int, switch: Switch, packet: Message) -> tuple[Switch, list[Message]]:
        """Return the switch after a packet, and the packets that leave."""
        if switch.epoch == 0:
            return switch, []
        if packet.kind not in UPWARDS:
            return switch, self._down(node, switch, packet)
        if packet.epoch != switch.epoch:
            return switch, self._answer(node, packet, EPOCH, switch.epoch)
        place = packet.what * SLOTS + packet.slot
        cell = switch.cells[place]
        ahead = packet.round - cell.round if cell.epoch == packet.epoch else 1
        if ahead < 0:
            return switch, self._answer(node, packet, NOTICE, switch.epoch, cell)
        if packet.kind == ASK:
            return switch, self._asked(node, packet, cell, ahead)
        if ahead > 1 and self.exact and cell.epoch == packet.epoch and packet.what == SUMS:
            return switch, []
        if ahead > 0:
            cell = Cell(packet.epoch, packet.round, norm=packet.norm)
        elif packet.norm != cell.norm:
            if self.exact:
                raise Violation(f"{self.name(node)} refuses {packet}: its cell is {cell}")
            return switch, []
        if cell.closed or cell.bitmap >> packet.child & 1:
            return switch, self._asked(node, packet, cell, 0)
        cell = self._counted(node, cell, packet)
        cells = switch.cells[:place] + (cell,) + switch.cells[place + 1 :]
        out = self._closed(node, packet, cell) if cell.closed else []
        return Switch(switch.epoch, cells), out

    def _counted(self, node: int, cell: Cell, packet: Message) -> Cell:
        """Return the cell with a child's contribution; it closes at the quorum."""
        if packet.what == NORM:
            value = max(cell.value, packet.value)
        else:
            if cell.value & packet.value:
                raise Violation(f"{self.name(node)} counts {packet} twice: its cell is {cell}")
            value = cell.value | packet.value
        bitmap = cell.bitmap | 1 << packet.child
        closed = bitmap.bit_count() >= self.quorums[node - self.workers]
        return cell._replace(bitmap=bitmap, value=value, closed=closed)

    def _closed(self, node: int, packet: Message, cell: Cell) -> list[Message]:
        """Return what leaves when a cell closes: the partial, or the root's result."""
        if node != self.root:
            return [self._up(node, packet, DATA, cell, ())]
        self._check_result(packet, cell.value)
        return self._to_children(node, self._result(packet, cell))

    def _asked(self, node: int, packet: Message, cell: Cell, ahead: int) -> list[Message]:
        """Answer a packet whose child is counted already, comes too late, or asks."""
        known = ahead == 0 and cell.closed
        if node == self.root:
            if not known:
                return []
            result = self._result(packet, cell)
            return self._to_children(node, result._replace(path=packet.path), packet.child)
        if not known and (self.exact or not self.rules.asks):
            return []
        path = (*packet.path, packet.child) if self.rules.paths else ()
        return [self._up(node, packet, DATA if known else ASK, cell, path)]

    def _up(
        self, node: int, packet: Message, kind: str, cell: Cell, path: tuple[int, ...]
    ) -> Message:
        value, norm = (cell.value, cell.norm) if kind == DATA else (0, 0)
        place = (packet.what, packet.epoch, packet.slot, packet.round)
        return Message(self.parents[node], kind, *place, self.number[node], value, norm, path)

    def _result(self, packet: Message, cell: Cell) -> Message:
        place = (packet.what, packet.epoch, packet.slot, packet.round)
        return Message(packet.to, RESULT, *place, 0, cell.value, cell.norm)

    def _answer(
        self, node: int, packet: Message, kind: str, epoch: int, cell: Cell | None = None
    ) -> list[Message]:
        """Return the notice to a packet's sender; one to a partial goes where its path leads."""
        round = cell.round if cell else 0
        slot = packet.slot if cell else 0
        notice = Message(node, kind, packet.what, epoch, slot, round, path=packet.path)
        return self._to_children(node, notice, packet.child)

    def _down(self, node: int, switch: Switch, packet: Message) -> list[Message]:
        """Pass an answer from the parent on, to one child or to all."""
        if packet.kind != EPOCH and packet.epoch != switch.epoch:
            return []
        if packet.path:
            rest = packet._replace(path=packet.path[:-1])
            return self._to_children(node, rest, packet.path[-1])
        return self._to_children(node, packet)

    def _to_children(self, node: int, packet: Message, child: int | None = None) -> list[Message]:
        children = self.children[node]
        chosen = children if child is None else (children[child],)
        return [packet._replace(to=each) for each in chosen]

    def _check_result(self, packet: Message, value: int) -> None:
        if packet.what == NORM:
            right = not self.exact or value == self.workers
        else:
            everyone = (1 << self.workers) - 1 << self._chunk(packet) * self.workers
            right = value == everyone if self.exact else value & ~everyone == 0
        if not right:
            raise Violation(f"a wrong result: {packet}, value {value:b}")

    @staticmethod
    def _chunk(packet: Message) -> int:
        return (packet.round - 1) * SLOTS + packet.slot

    # -- a worker ---------------------------------------------------------------------------------

    def pending(self, number: int, worker: Worker) -> list[Message]:
        """Return what a worker sends when its timer runs out."""
        out = []
        if worker.asking:
            own = worker.norm or number + 1
            out.append(self._packet(number, worker, NORM, 0, own, 0))
        chunks = [worker.turn - 1] if worker.redo else []
        if 0 <= worker.turn < self.chunks and (worker.norm or not self.norms):
            chunks.append(worker.turn)
        for chunk in chunks:
            bit = 1 << chunk * self.workers + number
            out.append(self._packet(number, worker, SUMS, chunk, bit, worker.norm))
        return out

    def _packet(
        self, number: int, worker: Worker, what: int, chunk: int, value: int, norm: int
    ) -> Message:
        place = (what, worker.epoch, chunk % SLOTS, chunk // SLOTS + 1)
        return Message(self.parents[number], DATA, *place, self.number[number], value, norm)

    def at_worker(self, number: int, worker: Worker, packet: Message) -> Worker:
        """Return the worker after a packet; what it sends is what is newly pending."""
        if packet.kind == EPOCH:
            later = packet.epoch > worker.epoch
            other = packet.epoch != worker.epoch and not self.rules.serial
            return self._in_epoch(worker, packet.epoch) if later or other else worker
        if packet.epoch != worker.epoch or worker.turn < 0:
            return worker
        if packet.what == NORM:
            return self._norm(worker, packet)
        chunk = self._chunk(packet)
        if packet.kind == RESULT and chunk == worker.turn and (worker.norm or not self.norms):
            return self._next(worker)
        same_slot = (chunk - worker.turn) % SLOTS == 0
        if same_slot and chunk > worker.turn and not self.exact:
            return self._next(worker)
        if same_slot and chunk > worker.turn:
            raise Violation(f"worker {number} waits for chunk {worker.turn}, displaced by {packet}")
        if worker.redo and not same_slot:
            ended = chunk == worker.turn - 1 and packet.kind == RESULT
            overtaken = chunk > worker.turn - 1  # this only saves packets
            return worker._replace(redo=not (ended or overtaken))
        return worker

    def _norm(self, worker: Worker, packet: Message) -> Worker:
        if packet.kind != RESULT or not worker.asking:
            return worker
        if worker.norm and worker.norm != packet.value and self.exact:
            raise Violation(f"the norm was {worker.norm}, now {packet}")
        return worker._replace(norm=worker.norm or packet.value, asking=False)

    def _next(self, worker: Worker) -> Worker:
        """Go on to the next chunk, with a result or without."""
        norm = worker.norm or (-1 if self.norms else 0)  # -1: the partition is silent
        return worker._replace(turn=worker.turn + 1, norm=norm, asking=False, redo=False)

    def _in_epoch(self, worker: Worker, epoch: int) -> Worker:
        if not self.exact:  # one that has not started, too: the others may have ended
            return worker._replace(epoch=epoch, lost=self.rules.gives_up)
        if worker.turn < 0:
            return worker._replace(epoch=epoch)
        asking = worker.asking or (self.norms and worker.turn == 0 and self.rules.norms)
        redo = worker.turn > 0 and self.rules.keeps
        return worker._replace(epoch=epoch, asking=asking, redo=redo)

    # -- what can happen --------------------------------------------------------------------------

    def deliver(self, state: State, packet: Message, keep: bool = False) -> State:
        """Return the state after a packet's arrival; keep: a copy is still under way."""
        packets = state.packets if keep else state.packets - {packet}
        node = state.nodes[packet.to]
        if isinstance(node, Switch):
            switch, out = self.at_switch(packet.to, node, packet)
            if switch is node and not out:
                return state._replace(packets=packets)
            nodes = _with(state.nodes, packet.to, switch)
            return state._replace(nodes=nodes, packets=packets.union(out))
        worker = self.at_worker(packet.to, node, packet)
        if worker == node:
            return state._replace(packets=packets)
        used = state.used
        if packet.kind == RESULT and not self.exact:
            used = self._used(state.used, packet)
        return self._acted(state._replace(packets=packets, used=used), packet.to, worker)

    def _acted(self, state: State, number: int, worker: Worker) -> State:
        """Return the state with a worker that sends what is newly pending."""
        before = state.nodes[number]
        assert isinstance(before, Worker)
        old = set(self.pending(number, before))
        new = [packet for packet in self.pending(number, worker) if packet not in old]
        nodes = _with(state.nodes, number, worker)
        return state._replace(nodes=nodes, packets=state.packets.union(new))

    def _used(
        self, used: frozenset[tuple[int, int, int, int]], packet: Message
    ) -> frozenset[tuple[int, int, int, int]]:
        """Note a result that a worker took: in an epoch there is one for each chunk."""
        place = (packet.epoch, packet.what, self._chunk(packet))
        for *other, value in used:
            if tuple(other) == place and value != packet.value:
                raise Violation(f"two results of one chunk: {value:b} and {packet}")
        return used | {(*place, packet.value)}

    def successors(self, state: State) -> Iterator[tuple[str, Callable[[], State]]]:
        """Yield all that can happen next, with its description."""
        faults = state.faults
        for packet in state.packets:
            yield f"arrives: {packet}", lambda p=packet: self.deliver(state, p)
        if faults.copies:
            spent = state._replace(faults=faults._replace(copies=faults.copies - 1))
            for packet in state.packets:
                yield f"arrives twice: {packet}", lambda p=packet: self.deliver(spent, p, True)
        if faults.losses:
            spent = state._replace(faults=faults._replace(losses=faults.losses - 1))
            for packet in state.packets:
                lost = spent._replace(packets=state.packets - {packet})
                yield f"lost: {packet}", lambda s=lost: s
        for number in range(self.workers):
            yield from self._of_worker(state, number)
        for node in range(self.workers, self.root + 1):
            yield from self._of_controller(state, node)

    def _of_worker(self, state: State, number: int) -> Iterator[tuple[str, Callable[[], State]]]:
        worker, faults = state.nodes[number], state.faults
        assert isinstance(worker, Worker)
        if worker.turn < 0:
            if any(state.nodes[other] == Worker() for other in self.before[number]):
                return
            yield f"worker {number} starts", lambda: self.started(state, number)
        elif faults.timers and (packets := self.pending(number, worker)):
            spent = state._replace(faults=faults._replace(timers=faults.timers - 1))
            again = spent._replace(packets=state.packets.union(packets))
            if again.packets != state.packets:
                yield f"worker {number}'s timer", lambda: again
        if worker.lost and worker.turn < self.chunks:
            yield f"worker {number} gives up", lambda: self.given_up(state, number)

    def _of_controller(self, state: State, node: int) -> Iterator[tuple[str, Callable[[], State]]]:
        switch, faults = state.nodes[node], state.faults
        assert isinstance(switch, Switch)
        if faults.restarts:
            empty = Switch(0, (Cell(),) * len(switch.cells))
            epoch = state.epoch + 1 if self.rules.raised else state.epoch
            spent = faults._replace(restarts=faults.restarts - 1)
            nodes = _with(state.nodes, node, empty)
            after = state._replace(nodes=nodes, faults=spent, epoch=epoch)
            yield f"{self.name(node)} loses its state", lambda: after
        if switch.epoch != state.epoch:
            yield f"{self.name(node)} gets epoch {state.epoch}", lambda: self.installed(state, node)

    def started(self, state: State, number: int) -> State:
        worker = state.nodes[number]
        assert isinstance(worker, Worker)
        return self._acted(state, number, worker._replace(turn=0, asking=self.norms))

    def given_up(self, state: State, number: int) -> State:
        worker = state.nodes[number]
        assert isinstance(worker, Worker)
        return self._acted(state, number, self._next(worker))

    def installed(self, state: State, node: int) -> State:
        switch = state.nodes[node]
        assert isinstance(switch, Switch)
        return state._replace(nodes=_with(state.nodes, node, switch._replace(epoch=state.epoch)))

    def name(self, node: int) -> str:
        return "the root" if node == self.root else f"switch {node}"

    # -- what must hold ---------------------------------------------------------------------------

    def ended(self, state: State) -> bool:
        """Return whether every worker has had its last turn."""
        workers = state.nodes[: self.workers]
        return all(isinstance(each, Worker) and each.turn == self.chunks for each in workers)

    def fair(self, state: State) -> State:
        """Return the state after the next event where nothing is lost any more."""
        if state.packets:
            return self.deliver(state, min(state.packets))
        for node in range(self.workers, self.root + 1):
            if state.nodes[node].epoch != state.epoch:
                return self.installed(state, node)
        for number, worker in enumerate(state.nodes[: self.workers]):
            assert isinstance(worker, Worker)
            if self.rules.told and worker.epoch < state.epoch:
                state = self._acted(state, number, self._in_epoch(worker, state.epoch))
            elif worker.turn < 0:
                state = self.started(state, number)
            state = state._replace(packets=state.packets.union(self._timer(state, number)))
        return state

    def _timer(self, state: State, number: int) -> list[Message]:
        worker = state.nodes[number]
        assert isinstance(worker, Worker)
        return self.pending(number, worker)

    def after_timeouts(self, state: State) -> State:
        """Let those give up whose timers brought nothing."""
        for number, worker in enumerate(state.nodes[: self.workers]):
            assert isinstance(worker, Worker)
            if worker.lost and worker.turn < self.chunks:
                state = self.given_up(state, number)
        return state

    def check_end(self, state: State, known: set[State]) -> None:
        """Raise Violation where fair delivery does not end the job; `known` states end it."""
        here = state._replace(faults=Faults(), used=frozenset())
        path, still = [here], None
        while not self.ended(here) and here not in known:
            if not here.packets:
                if still == here.nodes:
                    after = self.after_timeouts(here)
                    if after == here:
                        raise Violation(f"stuck: {self.waiting(here)}")
                    here = after
                still = here.nodes
            here = self.fair(here)._replace(used=frozenset())
            path.append(here)
            if len(path) > LONGEST:
                raise Violation(f"no end after {LONGEST} events: {self.waiting(here)}")
        known.update(path)

    def waiting(self, state: State) -> str:
        workers = enumerate(state.nodes[: self.workers])
        return ", ".join(f"worker {n}: {worker}" for n, worker in workers)

    def check_cost(self, state: State, known: set[tuple[object, ...]]) -> None:
        """Raise Violation where one packet that is sent again causes too many."""
        switches = state.nodes[self.workers :]
        for number, worker in enumerate(state.nodes[: self.workers]):
            assert isinstance(worker, Worker)
            for packet in self.pending(number, worker) if worker.turn >= 0 else ():
                if (switches, packet) not in known:
                    known.add((switches, packet))
                    self._check_packet(switches, number, packet)

    def _check_packet(
        self, switches: tuple[Switch | Worker, ...], number: int, packet: Message
    ) -> None:
        links: Counter[tuple[int, int]] = Counter()
        nodes, packets = list(switches), [packet]
        while packets:
            each = packets.pop()
            source = self.children[each.to][each.child] if each.kind in UPWARDS else -1
            links[source, each.to] += 1
            if each.to >= self.workers:
                switch = nodes[each.to - self.workers]
                assert isinstance(switch, Switch)
                nodes[each.to - self.workers], out = self.at_switch(each.to, switch, each)
                packets += out
        if max(links.values()) > 1:
            raise Violation(f"{packet}, sent again, makes {dict(links)}")
        path = {number}
        while max(path) != self.root:
            path.add(self.parents[max(path)])
        if tuple(nodes) == switches and any(to not in path for _, to in links):
            raise Violation(f"{packet}, sent again, goes off its path: {dict(links)}")


def _with(
    nodes: tuple[Switch | Worker, ...], place: int, node: Switch | Worker
) -> tuple[Switch | Worker, ...]:
    return (*nodes[:place], node, *nodes[place + 1 :])


def explore(model: Model, limit: int = 2_000_000) -> int:
    """Visit all states; return how many there are. Raises Violation with the way there."""
    start = model.start()
    before: dict[State, tuple[State, str] | None] = {start: None}
    ends: set[State] = set()
    costs: set[tuple[object, ...]] = set()
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        event = ""
        try:
            model.check_end(state, ends)
            model.check_cost(state, costs)
            for event, make in model.successors(state):
                after = _without_dead(model, make())
                if after not in before:
                    before[after] = (state, event)
                    waiting.append(after)
        except Violation as violation:
            events = _events(before, state)
            violation.events = [*events, event] if event else events
            raise
        if len(before) > limit:
            raise OverflowError(f"more than {limit} states")
    return len(before)


def _without_dead(model: Model, state: State) -> State:
    """Drop packets that no worker will ever heed: of earlier epochs, or of chunks that it has."""
    dead = [
        packet
        for packet in state.packets
        if packet.to < model.workers and _is_dead(model, state.nodes[packet.to], packet)
    ]
    return state._replace(packets=state.packets.difference(dead)) if dead else state


def _is_dead(model: Model, worker: Switch | Worker, packet: Message) -> bool:
    assert isinstance(worker, Worker)
    if not model.rules.serial:
        return False
    if packet.kind == EPOCH:
        return packet.epoch <= worker.epoch
    if packet.epoch < worker.epoch:
        return True
    if packet.epoch > worker.epoch or worker.turn < 0 or worker.redo:
        return False
    if packet.what == NORM:
        return not worker.asking
    return model._chunk(packet) < worker.turn


def _events(before: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    events = []
    while (step := before[state]) is not None:
        state, event = step
        events.append(event)
    return events[::-1]


TWO_RACKS = (4, 4, 5, 5, 6, 6, 6)
"""Workers 0 and 1 at leaf 4, 2 and 3 at leaf 5; the root is 6."""
TWO_LEAVES = (2, 3, 4, 4, 4)
"""Worker 0 at leaf 2, 1 at leaf 3; the root is 4."""
THREE_LEVELS = (2, 3, 4, 4, 5, 5)
"""The same, with a switch between the leaves and the root."""
SMALL = {
    "two racks": Model(TWO_RACKS, (2, 2, 2), 3, Faults()),
    "a leaf is enough": Model(TWO_RACKS, (2, 2, 1), 1, Faults(losses=1)),
    "restart": Model(TWO_LEAVES, (1, 1, 2), 3, Faults(restarts=1)),
    "norm, restart": Model(TWO_LEAVES, (1, 1, 2), 1, Faults(restarts=1), norms=True),
    "three levels": Model(THREE_LEVELS, (1, 1, 2, 1), 2, Faults(1, 1, 1)),
}
"""Cases that take a second or so each."""
CASES = {
    **SMALL,
    "two racks, a loss": Model(TWO_RACKS, (2, 2, 2), 3, Faults(losses=1, timers=1)),
    "two racks, a copy": Model(TWO_RACKS, (2, 2, 2), 2, Faults(copies=1, timers=1)),
    "two racks, norm": Model(TWO_RACKS, (2, 2, 2), 1, Faults(losses=1), norms=True),
    "two racks, restart": Model(TWO_RACKS, (2, 2, 2), 2, Faults(restarts=1)),
    "two racks, a loss and a restart": Model(TWO_RACKS, (2, 2, 2), 1, Faults(1, 0, 0, 1)),
    "a leaf is enough, a loss": Model(TWO_RACKS, (2, 2, 1), 2, Faults(losses=1)),
    "a leaf is enough, restart": Model(TWO_RACKS, (2, 2, 1), 1, Faults(restarts=1)),
    "a worker of a rack is enough": Model(TWO_RACKS, (1, 1, 2), 1, Faults(losses=1)),
    "two leaves, a loss and a restart": Model(TWO_LEAVES, (1, 1, 2), 3, Faults(1, 0, 0, 1)),
    "three levels, restart": Model(THREE_LEVELS, (1, 1, 2, 1), 2, Faults(restarts=1)),
    "three levels, a child is enough": Model(THREE_LEVELS, (1, 1, 1, 1), 2, Faults(1)),
}


if __name__ == "__main__":
    sys.exit(check(CASES, explore, Violation, sys.argv[1:]))
