"""The rules of memory shared by jobs as a small model, and a checker of it.

Workers of several jobs send to one switch, whose slots nobody owns: a packet's slot is a hash of
its job and chunk. The switch adds a packet that finds its slot free or with its own chunk, and
sends the job's server what is complete. Where the slot has another chunk, the packet goes on to the
server as it is, or takes the slot and carries its content away. Servers alone know what is
complete, and workers' timers alone are needed: any slot may be lost at any time. A packet needs
several passes through the pipeline, between which others come and which packets may not survive, so
that each pass has a cell of its own.

`explore` visits all states of a Model and raises Violation, with the events that led there, at

- a sum that counts a contribution twice, or has one of another chunk, job or life of the job,
- a sum at a server that is not of the workers that it names,
- a state from which fair delivery (nothing is lost any more, timers run out) does not end all jobs.

A sum in the model is a sorted tuple of contributions. docs/shared-memory.md has the rules in words.
`python tests/aggregations/shared_model.py` checks all CASES, and the same ON_CHIP.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from model_cases import check

T = TypeVar("T")
RESULTS = 2  # that a server keeps: of a chunk, until the next but one begins
LONGEST = 300  # events of a fair end; those of the cases take some 60
CODES, PASSED, PASSES, PARTIAL = "codes", "passed on", "between passes", "partial"
RESULT, ASK = "result", "ask"
START, ADD, TAKE = "start", "add", "take"


class Tag(NamedTuple):
    """What a cell or a packet is about: a chunk of a job, in one of the job's lives."""

    job: int
    life: int
    chunk: int


class Cell(NamedTuple):
    """A slot's cell of one pass; with no workers in it, it is free."""

    tag: Tag | None = None
    bitmap: int = 0
    sums: tuple[int, ...] = ()


FREE = Cell()


class Work(NamedTuple):
    """What a packet does to its slot, in each pass: decided in the first, carried to the others.

    before: what cells must have, without their sums; after: what they get. adds: its contribution.
    sums: those that it has taken along. leaves: it becomes a partial, of `tag` and `bitmap`."""

    does: str
    slot: int
    before: Cell
    after: Cell
    adds: int
    leaves: bool
    sums: tuple[tuple[int, ...], ...] = ()


class Packet(NamedTuple):
    """A packet under way. bitmap: the workers in it, of a question those that are asked.

    direct: sent again, so that no switch may add it; of a partial: `sender` waits for an answer.
    to: a worker, of results and questions. copy: of a packet that arrives more than once."""

    kind: str
    tag: Tag
    bitmap: int
    sender: int = 0
    direct: bool = False
    sums: tuple[tuple[int, ...], ...] = ()
    to: int = 0
    work: Work | None = None
    copy: int = 0


class Worker(NamedTuple):
    """A worker. turn: the chunk that it waits for; -1: it has not started. asked: bits of chunks
    that the server has asked for."""

    turn: int = -1
    asked: int = 0


class Entry(NamedTuple):
    """A chunk at its server: the sums that it has, in the end the result."""

    chunk: int = -1
    bitmap: int = 0
    sums: tuple[tuple[int, ...], ...] = ()


class Faults(NamedTuple):
    """How often what may happen. timers: of workers and servers while packets are under way;
    restarts: of the switch; deaths: of a job, for ever; lives: a job starts anew."""

    losses: int = 0
    copies: int = 0
    timers: int = 0
    restarts: int = 0
    deaths: int = 0
    lives: int = 0


class State(NamedTuple):
    """All there is. lives: by job, as the switch's tables have it; -1: the job is dead."""

    workers: tuple[tuple[Worker, ...], ...]
    servers: tuple[tuple[Entry, ...], ...]
    slots: tuple[tuple[Cell, ...], ...]
    lives: tuple[int, ...]
    packets: frozenset[Packet]
    faults: Faults


class Rules(NamedTuple):
    """The rules that correctness needs; without one, the checker has a counterexample."""

    direct: bool = True  # what is sent again is added by no switch
    disjoint: bool = True  # the server merges what has none of the workers that it has
    lives: bool = True  # cells have the job's life, and packets of another one are refused
    checks: bool = True  # a later pass looks at what its cell has
    keeps: bool = True  # the server keeps a result until the next chunk but one begins


class Violation(AssertionError):
    """A rule is broken; `events` led there."""

    events: Sequence[str] = ()


Step = tuple[str, State]


@dataclass(frozen=True)
class Model:
    """Jobs of `workers` workers each. places[job][chunk]: the slot, as the hash gives it.

    norms: chunk 0 of each job is one that no switch adds, as servers find the largest norm."""

    places: tuple[tuple[int, ...], ...]
    faults: Faults = Faults()
    workers: int = 2
    passes: int = 1
    norms: bool = False
    rules: Rules = field(default_factory=Rules)

    @property
    def everyone(self) -> int:
        return (1 << self.workers) - 1

    def start(self) -> State:
        jobs, slots = len(self.places), 1 + max(map(max, self.places))
        return State(
            ((Worker(),) * self.workers,) * jobs,
            ((Entry(),) * RESULTS,) * jobs,
            ((FREE,) * self.passes,) * slots,
            (0,) * jobs,
            frozenset(),
            self.faults,
        )

    # -- the switch -------------------------------------------------------------------------------

    def at_switch(self, state: State, packet: Packet) -> Iterator[Step]:
        """Yield what may become of a worker's packet."""
        life = state.lives[packet.tag.job]
        if life < 0 or (self.rules.lives and packet.tag.life != life):
            yield "refused", state
            return
        passed = _sent(state, packet._replace(kind=PASSED))
        place = self.places[packet.tag.job][packet.tag.chunk]
        cell, bits = state.slots[place][0], packet.bitmap
        own = self._same(cell.tag, packet.tag)
        if packet.direct and (self.rules.direct or self._is_norm(packet.tag)):
            if own and cell.bitmap & bits:
                yield "with its slot's content", self._first(state, packet, TAKE, cell, FREE)
            else:
                yield "passed on", passed
        elif not cell.bitmap:
            after = Cell(packet.tag, bits)
            yield "begins its slot", self._first(state, packet, START, FREE, after)
        elif own and cell.bitmap & bits:
            yield "known", state
        elif own:
            both = cell.bitmap | bits
            after = FREE if both == self.everyone else Cell(cell.tag, both)
            yield "added", self._first(state, packet, ADD, cell, after)
        else:
            yield "passed on, as its slot is taken", passed
            after = Cell(packet.tag, bits)
            yield "takes its slot", self._first(state, packet, START, cell, after)

    def _same(self, one: Tag | None, other: Tag) -> bool:
        if one is not None and not self.rules.lives:
            other = other._replace(life=one.life)
        return one == other

    def _is_norm(self, tag: Tag) -> bool:
        return self.norms and tag.chunk == 0

    def _first(self, state: State, packet: Packet, does: str, before: Cell, after: Cell) -> State:
        """Return the state after the first pass of a packet."""
        place = self.places[packet.tag.job][packet.tag.chunk]
        leaves = not after.bitmap if does == ADD else before.bitmap != 0
        plain = before._replace(sums=())
        work = Work(does, place, plain, after, _contribution(packet.tag, packet.sender), leaves)
        tag = before.tag if leaves and before.tag is not None else packet.tag
        bits = before.bitmap | (packet.bitmap if does == ADD else 0)
        return self.next_pass(state, packet._replace(kind=PASSES, tag=tag, bitmap=bits, work=work))

    def next_pass(self, state: State, packet: Packet) -> State:
        """Return the state after a packet's next pass.

        Where a later cell is not as the first one was, the packet adds nothing and is lost in the
        end; it may still begin."""
        assert packet.work is not None
        work, number = packet.work, len(packet.work.sums)
        cell = state.slots[work.slot][number]
        same = number == 0 or not self.rules.checks or cell[:2] == work.before[:2]
        out = kept = cell
        if work.does == START:
            kept = work.after._replace(sums=(work.adds,))
        elif work.does == ADD and same:
            out = cell._replace(sums=tuple(sorted((*cell.sums, work.adds))))
            kept = work.after._replace(sums=out.sums) if work.after.bitmap else FREE
        elif same:
            kept = FREE
        state = _put(state, work.slot, number, kept)
        work = work._replace(sums=(*work.sums, out.sums), leaves=work.leaves and same)
        if number + 1 < self.passes:
            return _sent(state, packet._replace(work=work))
        if not work.leaves:
            return state
        partial = packet._replace(kind=PARTIAL, sums=work.sums, work=None)
        return _sent(state, partial)

    # -- a server ---------------------------------------------------------------------------------

    def at_server(self, state: State, packet: Packet) -> State:
        """Return the state after a packet that was passed on, or a partial."""
        tag = packet.tag
        if tag.life != state.lives[tag.job] and (self.rules.lives or state.lives[tag.job] < 0):
            return state
        entry = state.servers[tag.job][tag.chunk % RESULTS]
        if tag.chunk < entry.chunk:
            return state
        if tag.chunk > entry.chunk:
            if entry.chunk >= 0 and entry.bitmap != self.everyone:
                raise Violation(f"{packet} comes before chunk {entry.chunk} is complete")
            entry = Entry(tag.chunk, 0, ((),) * self.passes)
        if entry.bitmap == self.everyone:
            result = Packet(RESULT, tag, entry.bitmap, sums=entry.sums, to=packet.sender)
            return _sent(state, result) if packet.direct and self.rules.keeps else state
        given = packet.sums or ((_contribution(tag, packet.sender),),) * self.passes
        if packet.bitmap & entry.bitmap and self.rules.disjoint:
            return self.ask(state, tag, packet.bitmap & ~entry.bitmap)
        sums = tuple(tuple(sorted(a + b)) for a, b in zip(entry.sums, given, strict=True))
        entry = Entry(tag.chunk, entry.bitmap | packet.bitmap, sums)
        entries = _with(state.servers[tag.job], tag.chunk % RESULTS, entry)
        state = state._replace(servers=_with(state.servers, tag.job, entries))
        self._check(tag._replace(life=state.lives[tag.job]), entry)
        if entry.bitmap != self.everyone:
            return state
        results = [Packet(RESULT, tag, entry.bitmap, sums=sums, to=w) for w in range(self.workers)]
        return _sent(state, *results)

    def ask(self, state: State, tag: Tag, workers: int) -> State:
        """Return the state in which these workers are asked for packets that no switch adds."""
        asked = [w for w in range(self.workers) if workers >> w & 1]
        return _sent(state, *(Packet(ASK, tag, workers, to=worker) for worker in asked))

    def _check(self, tag: Tag, entry: Entry) -> None:
        workers = [worker for worker in range(self.workers) if entry.bitmap >> worker & 1]
        right = tuple(_contribution(tag, worker) for worker in workers)
        if any(sums != right for sums in entry.sums):
            raise Violation(f"a wrong sum of {tag}: {entry}, right is {right}")

    # -- a worker ---------------------------------------------------------------------------------

    def at_worker(self, state: State, packet: Packet) -> State:
        job, number = packet.tag.job, packet.to
        if packet.tag.life != state.lives[job]:
            return state
        worker = state.workers[job][number]
        if packet.kind == RESULT:
            return self.turned(state, job, number) if packet.tag.chunk == worker.turn else state
        if packet.tag.chunk == worker.turn:
            return _sent(state, self.codes(state, job, number, True))
        asked = worker.asked | 1 << packet.tag.chunk
        return _changed(state, job, number, worker._replace(asked=asked))

    def turned(self, state: State, job: int, number: int) -> State:
        """Return the state in which a worker goes on to its next chunk, if it has one."""
        worker = state.workers[job][number]
        turn = worker.turn + 1
        state = _changed(state, job, number, worker._replace(turn=turn))
        if turn == len(self.places[job]):
            return state
        direct = bool(worker.asked >> turn & 1) or (self.norms and turn == 0)
        return _sent(state, self.codes(state, job, number, direct))

    def codes(self, state: State, job: int, number: int, direct: bool) -> Packet:
        tag = Tag(job, state.lives[job], state.workers[job][number].turn)
        return Packet(CODES, tag, 1 << number, number, direct)

    # -- events -----------------------------------------------------------------------------------

    def deliver(self, state: State, packet: Packet) -> Iterator[Step]:
        """Yield the states after a packet has gone its next step."""
        state = state._replace(packets=state.packets - {packet})
        if packet.kind == CODES:
            yield from self.at_switch(state, packet)
        elif packet.kind == PASSES:
            yield "", self.next_pass(state, packet)
        elif packet.kind in (PASSED, PARTIAL):
            yield "", self.at_server(state, packet)
        else:
            yield "", self.at_worker(state, packet)

    def successors(self, state: State) -> Iterator[Step]:
        """Yield all that can happen next, with its description."""
        faults = state.faults
        for packet in state.packets:
            for how, after in self.deliver(state, packet):
                yield f"{packet}: {how or 'arrives'}", after
            if faults.losses:
                spent = faults._replace(losses=faults.losses - 1)
                lost = state._replace(packets=state.packets - {packet}, faults=spent)
                yield f"{packet}: lost", lost
            if faults.copies and not packet.work:
                spent = faults._replace(copies=faults.copies - 1)
                copy = packet._replace(copy=packet.copy + 1)
                packets = state.packets | {copy}
                yield f"{packet}: copied", state._replace(packets=packets, faults=spent)
        for job, workers in enumerate(state.workers):
            if state.lives[job] >= 0:
                for number, worker in enumerate(workers):
                    yield from self._of_worker(state, job, number, worker)
                yield from self._of_job(state, job)
        if faults.restarts:
            spent = faults._replace(restarts=faults.restarts - 1)
            slots = tuple((FREE,) * self.passes for _ in state.slots)
            yield "the switch loses its slots", state._replace(slots=slots, faults=spent)

    def _of_worker(self, state: State, job: int, number: int, worker: Worker) -> Iterator[Step]:
        if worker.turn < 0:
            yield f"job {job}: worker {number} starts", self.turned(state, job, number)
        elif state.faults.timers and worker.turn < len(self.places[job]):
            again = _sent(state, self.codes(state, job, number, True))
            yield f"job {job}: worker {number}'s timer", _spent(again, "timers")

    def _of_job(self, state: State, job: int) -> Iterator[Step]:
        if state.faults.timers:
            for entry in state.servers[job]:
                if missing := self.everyone & ~entry.bitmap if entry.bitmap else 0:
                    tag = Tag(job, state.lives[job], entry.chunk)
                    asked = self.ask(state, tag, missing)
                    yield f"job {job}: its server asks", _spent(asked, "timers")
        if state.faults.deaths:
            dead = state._replace(lives=_with(state.lives, job, -1))
            yield f"job {job} dies", _spent(dead, "deaths")
        if state.faults.lives and any(worker.turn >= 0 for worker in state.workers[job]):
            anew = state._replace(
                workers=_with(state.workers, job, (Worker(),) * self.workers),
                servers=_with(state.servers, job, (Entry(),) * RESULTS),
                lives=_with(state.lives, job, state.lives[job] + 1),
            )
            yield f"job {job} starts anew", _spent(anew, "lives")

    # -- what must hold ---------------------------------------------------------------------------

    def ended(self, state: State) -> bool:
        """Return whether all workers of jobs that live have had their last turn."""
        return all(
            life < 0 or all(worker.turn == len(places) for worker in workers)
            for life, workers, places in zip(state.lives, state.workers, self.places, strict=True)
        )

    def fair(self, state: State) -> State:
        """Return the state after the next event where nothing is lost any more."""
        if state.packets:
            _, after = next(self.deliver(state, min(state.packets, key=repr)))
            return after
        for job, workers in enumerate(state.workers):
            for number, worker in enumerate(workers if state.lives[job] >= 0 else ()):
                if worker.turn < 0:
                    state = self.turned(state, job, number)
                elif worker.turn < len(self.places[job]):
                    state = _sent(state, self.codes(state, job, number, True))
        return state

    def check_end(self, state: State, known: set[State]) -> None:
        """Raise Violation where fair delivery does not end the jobs; `known` states end them."""
        here = state._replace(faults=Faults())
        path = [here]
        while not self.ended(here) and here not in known:
            here = self.fair(here)
            path.append(here)
            if len(path) > LONGEST:
                raise Violation(f"no end after {LONGEST} events: {here.workers}")
        known.update(path)


class ChipModel(Model):
    """The rules of shared_tna.p4: a cell is free when it has no tag, and what leaves collects the
    content of all cells, the last one's first, after its own passes.

    In a Work that takes, `before` has the bitmap of the cell that was collected first."""

    def at_switch(self, state: State, packet: Packet) -> Iterator[Step]:
        """Yield what may become of a worker's packet."""
        life = state.lives[packet.tag.job]
        if life < 0 or packet.tag.life != life:
            yield "refused", state
            return
        passed = _sent(state, packet._replace(kind=PASSED))
        place = self.places[packet.tag.job][packet.tag.chunk]
        cell, bits = state.slots[place][0], packet.bitmap
        own = cell.tag == packet.tag
        if packet.direct:
            if own and cell.bitmap & bits:
                yield "collects its slot's content", self._collects(state, packet, place)
            else:
                yield "passed on", passed
        elif own and cell.bitmap & bits:
            yield "known", state
        elif own or cell.tag is None:
            does = ADD if own else START
            work = Work(does, place, FREE, FREE, _contribution(packet.tag, packet.sender), False)
            adding = packet._replace(kind=PASSES, work=work)
            yield "added" if own else "begins its slot", self.next_pass(state, adding)
        else:
            yield "passed on, as its slot is taken", passed
            copy = packet._replace(tag=cell.tag)
            round_again = _sent(state, packet)
            yield "goes round, and a copy collects", self._collects(round_again, copy, place)

    def _collects(self, state: State, packet: Packet, place: int) -> State:
        work = Work(TAKE, place, FREE, FREE, 0, True)
        return _sent(state, packet._replace(kind=PASSES, bitmap=0, work=work))

    def next_pass(self, state: State, packet: Packet) -> State:
        """Return the state after a packet's next pass."""
        work = packet.work
        assert work is not None
        if work.does == TAKE:
            return self._collect(state, packet, work)
        number, bits = len(work.sums), packet.bitmap
        cell = state.slots[work.slot][number]
        if work.does == START:
            cell = Cell(packet.tag, bits, (work.adds,))
        elif cell.tag == packet.tag and not cell.bitmap & bits:
            sums = tuple(sorted((*cell.sums, work.adds)))
            cell = Cell(packet.tag, cell.bitmap | bits, sums)
        else:
            return state  # lost between passes
        state = _put(state, work.slot, number, cell)
        if number + 1 < self.passes:
            again = work._replace(sums=(*work.sums, ()))
            return _sent(state, packet._replace(work=again))
        if cell.bitmap != self.everyone:
            return state
        return self._collects(state, packet, work.slot)

    def _collect(self, state: State, packet: Packet, work: Work) -> State:
        number = self.passes - 1 - len(work.sums)
        cell = state.slots[work.slot][number]
        leaves = work.leaves and cell.tag == packet.tag
        if work.sums:
            leaves = leaves and cell.bitmap == work.before.bitmap
        else:
            work = work._replace(before=Cell(bitmap=cell.bitmap))
        if cell.tag == packet.tag:
            state = _put(state, work.slot, number, FREE)
        work = work._replace(sums=(cell.sums if leaves else (), *work.sums), leaves=leaves)
        if number:
            return _sent(state, packet._replace(work=work))
        if not leaves:
            return state
        partial = packet._replace(kind=PARTIAL, bitmap=cell.bitmap, sums=work.sums, work=None)
        return _sent(state, partial)


def _put(state: State, slot: int, number: int, cell: Cell) -> State:
    cells = _with(state.slots[slot], number, cell)
    return state._replace(slots=_with(state.slots, slot, cells))


def _contribution(tag: Tag, worker: int) -> int:
    return ((tag.job * 4 + tag.life) * 8 + tag.chunk) * 4 + worker


def _with(items: tuple[T, ...], place: int, item: T) -> tuple[T, ...]:
    return (*items[:place], item, *items[place + 1 :])


def _sent(state: State, *packets: Packet) -> State:
    return state._replace(packets=state.packets.union(packets))


def _spent(state: State, fault: str) -> State:
    left = {fault: getattr(state.faults, fault) - 1}
    return state._replace(faults=state.faults._replace(**left))


def _changed(state: State, job: int, number: int, worker: Worker) -> State:
    workers = _with(state.workers[job], number, worker)
    return state._replace(workers=_with(state.workers, job, workers))


def _without_dead(state: State) -> State:
    """Drop packets that nobody will ever heed: to workers that have gone on, or of dead jobs."""
    dead = [packet for packet in state.packets if _is_dead(state, packet)]
    return state._replace(packets=state.packets.difference(dead)) if dead else state


def _is_dead(state: State, packet: Packet) -> bool:
    job = packet.tag.job
    if packet.kind in (CODES, PASSES):
        return False
    if state.lives[job] < 0:
        return True
    if packet.kind in (RESULT, ASK):
        other = packet.tag.life != state.lives[job]
        return other or packet.tag.chunk < state.workers[job][packet.to].turn
    return False


def explore(model: Model, limit: int = 2_000_000) -> int:
    """Visit all states; return how many there are. Raises Violation with the way there."""
    start = model.start()
    before: dict[State, tuple[State, str] | None] = {start: None}
    ends: set[State] = set()
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        try:
            model.check_end(state, ends)
            for event, after in model.successors(state):
                after = _without_dead(after)
                if after not in before:
                    before[after] = (state, event)
                    waiting.append(after)
        except Violation as violation:
            violation.events = _events(before, state)
            raise
        if len(before) > limit:
            raise OverflowError(f"more than {limit} states")
    return len(before)


def _events(before: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    events = []
    while (step := before[state]) is not None:
        state, event = step
        events.append(event)
    return events[::-1]


ONE_SLOT = ((0,), (0,))
"""Two jobs of one chunk, which have the same slot."""
TWO_SLOTS = ((0, 1), (1, 0))
"""Two jobs of two chunks in two slots: each chunk has another one's."""
SMALL = {
    "one job": Model(((0, 0),)),
    "one slot": Model(ONE_SLOT),
    "three workers": Model(((0,),), Faults(losses=1, timers=1), workers=3),
    "two passes": Model(((0, 0),), passes=2),
    "two passes, a loss": Model(((0, 0),), Faults(losses=1, timers=1), passes=2),
    "restart": Model(((0, 0),), Faults(restarts=1)),
    "death": Model(ONE_SLOT, Faults(deaths=1)),
    "another life": Model(((0, 0),), Faults(lives=1)),
    "norms": Model(((0, 0), (0, 0)), norms=True),
}
"""Cases that take a second or less each."""
CASES = {
    **SMALL,
    "one slot, two passes": Model(ONE_SLOT, passes=2),
    "one slot, a loss": Model(ONE_SLOT, Faults(losses=1, timers=1)),
    "one slot, a copy": Model(ONE_SLOT, Faults(copies=1)),
    "one slot, restart": Model(ONE_SLOT, Faults(restarts=1)),
    "one slot, another life": Model(ONE_SLOT, Faults(lives=1)),
    "two slots": Model(TWO_SLOTS),
    "two slots, restart": Model(TWO_SLOTS, Faults(restarts=1)),
    "two slots, death": Model(TWO_SLOTS, Faults(deaths=1)),
    "three chunks, a copy": Model(((0, 0, 0),), Faults(copies=1, timers=1)),
    "three chunks, two losses": Model(((0, 0, 0),), Faults(losses=2, timers=1)),
    "two passes, a copy": Model(((0, 0),), Faults(copies=1), passes=2),
    "two passes, another life": Model(((0,),), Faults(lives=1, losses=1), passes=2),
}

ON_CHIP = {name: ChipModel(**vars(model)) for name, model in CASES.items()}
"""The same of the rules of the Tofino's program."""


if __name__ == "__main__":
    both = CASES | {f"chip, {name}": model for name, model in ON_CHIP.items()}
    sys.exit(check(both, explore, Violation, sys.argv[1:]))
