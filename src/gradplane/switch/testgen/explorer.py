"""The search for tests: runs, their branches turned, until all is covered or time is up."""

from __future__ import annotations

import heapq
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

from gradplane.switch.interpreted_passes import InterpretedPasses
from gradplane.switch.machine.model import Pass
from gradplane.switch.runtime.packet_passes import Arrival, Output, PassResult
from gradplane.switch.switch import Switch
from gradplane.switch.testgen.concolic import ConcolicStatements
from gradplane.switch.testgen.goals import Goals
from gradplane.switch.testgen.recorder import Recorder
from gradplane.switch.testgen.runs import Branch, Given, Goal, Inputs, Run, Way
from gradplane.switch.testgen.solving import Solver, Turned
from gradplane.switch.testgen.unreachable import unreachable

# The first packet. As a replica's port, BMv2 refuses 0.
FIRST_LENGTH, FIRST_PORT = 64, 1
REPAIRS, MOST_REPAIRS = 4, 24  # of one run; of one that an earlier branch led to
REPAIRED = 6000  # steps of paths that all repairs of such a run may have together
MOST_PASSES = 20  # of one packet that are followed: tests expect what all of them lead to
# How promising a step is: so many tries is it behind one to something uncovered.
# Steps without anything new, after which registers hold what was written, too, and every other step
# goes back to what has decided a condition.
PATIENCE = 200
UNCOVERED, SHORTER, LONGER, NEW, PARSES, PASSED_BY, BEHIND = range(7)
LONGER_YET, OTHER = 12, 20
DIRECTED = 3  # runs that a goal is decided in alike, of which steps are taken to decide otherwise
Wanted = dict[Hashable, Hashable]


class Runner:
    """Runs inputs on a program's interpreter, from the state that the program starts with.

    Packets are not followed for more than `most_passes`, nor after `deadline`, in seconds of
    processor time."""

    def __init__(self, switch: Switch, most_passes: float = math.inf) -> None:
        self.switch, self.most_passes, self.deadline = switch, most_passes, math.inf
        self.recorder = Recorder(switch)
        self._model: Any = switch.architecture.interpreter(switch.program, switch.state, None)
        self._pipes = self._model.compile(partial(ConcolicStatements, recorder=self.recorder))
        self.passes = InterpretedPasses(switch.state)

    def run(self, inputs: Inputs) -> tuple[Run, list[list[Output]]]:
        """Return the run, and the packets that left because of each packet."""
        self.switch.reset()
        self.switch.state.messages.clear()
        self.switch.state.drops.clear()
        self.recorder.begin(inputs)
        outputs = []
        for number in range(len(inputs.packets)):
            given = self.recorder.arrive(number)
            result = self.passes.run(self._pass, Arrival(given.port, given.data))
            outputs.append(list(result.outputs))
        return self.recorder.run, outputs

    def _pass(self, arrival: Arrival) -> PassResult:
        if self.recorder.fixed and arrival.passes and not self.recorder.comes_back(arrival.port):
            return PassResult()
        if arrival.passes >= self.most_passes or time.process_time() > self.deadline:
            return PassResult()
        return Pass(self._model, self._pipes, None).run(arrival)


@dataclass(frozen=True)
class Limits:
    """When a search ends. seconds: of processor time. packets: of one test. seed: of the bytes that
    decide nothing; 0: they are zero."""

    seconds: float = 60.0
    tests: int = 1000
    packets: int = 3
    runs: int = 100_000
    seed: int = 0


@dataclass(frozen=True)
class Refusal:
    """Why a goal was not reached from a path. contradicts: goals of the path that exclude it; none:
    it is excluded whatever a test gives. gave_up: z3 did."""

    contradicts: frozenset[Goal] = frozenset()
    gave_up: bool = False


@dataclass
class Found:
    """The result of a search: the runs to make tests of, and what they cover. refused: of goals
    that were aimed at."""

    runs: list[Run]
    goals: Goals
    covered: set[Goal]
    tried: int
    seconds: float = 0.0
    unreachable: set[Goal] = field(default_factory=set)
    refused: dict[Hashable, Refusal] = field(default_factory=dict)


Progress = Callable[[int, int, float], None]
"""Is called at the start and about once a second, with the numbers of goals that are covered and
that there are, and the seconds of processor time."""


class Explorer:
    """Searches for inputs that cover a program."""

    def __init__(self, switch: Switch, limits: Limits) -> None:
        self.switch = switch
        self.limits = limits
        self.runner = Runner(switch, MOST_PASSES)
        self.recorder = self.runner.recorder
        self.solver = Solver(switch.architecture.ports - 1, limits.seed, self.recorder.sums)
        self.goals = Goals(switch.state.tables).of(switch.program)
        self.covered: set[Goal] = set()
        self._never: set[Goal] = set()  # the unreachable ones, once it is known
        self._proved = False
        self._settled: set[Goal] = set()  # covered or unreachable
        self.kept: list[Run] = []
        self._heap: list[tuple[int, int, int, Any]] = []
        self._back: list[tuple[int, int, int, Any]] = []  # the steps to what has decided conditions
        self._serial = count()
        self._tries: Counter[Hashable] = Counter()
        self._noted: dict[Hashable, int] = {}  # the ranks of steps that are in the heap
        self._done: set[Hashable] = set()
        self._passed: Counter[Goal] = Counter()  # how many runs have passed by a goal
        # What paths had written that then excluded a goal, from all that may decide it.
        self._excluded: dict[Goal, Counter[frozenset[Goal]]] = defaultdict(Counter)
        self._passing: list[tuple[Run, set[Goal]]] = []  # runs, with what was excluded on their way
        self._known_deciders: dict[Goal, frozenset[Goal]] = {}
        self.refused: dict[Hashable, Refusal] = {}
        self._excluding: dict[Hashable, set[frozenset[Goal]]] = {}  # goals of paths, by goal

    def explore(self, progress: Progress | None = None) -> Found:
        """Search until everything is covered, nothing is left to try, or a limit is reached."""
        began = time.process_time()
        self.runner.deadline = began + self.limits.seconds
        self._run(Inputs((Given(FIRST_PORT, self.solver.filler(0, FIRST_LENGTH)),)))
        tried, idle, known, shown = 1, 0, 0, -1.0
        while self.goals.all - self._settled:
            seconds = time.process_time() - began
            if progress is not None and seconds - shown >= 1:
                shown = seconds
                progress(len(self.covered & self.goals.all), len(self.goals.all), seconds)
            over = seconds > self.limits.seconds
            if over or self._enough() or tried >= self.limits.runs:
                break
            idle = idle + 1 if len(self.covered) == known else 0
            known = len(self.covered)
            if idle > PATIENCE or not self._heap or seconds > self.limits.seconds / 2:
                self._prove()
                tried += self._fill_registers()
            if self._proved:
                self._decide_otherwise()
            if self._back and (idle % 2 or not self._heap):
                tried += self._go_back()
            elif self._heap:
                tried += self._next()
            else:
                break
        self._prove()
        covered = self.covered & self.goals.all
        seconds = time.process_time() - began
        found = Found(self._needed(), self.goals, covered, tried, seconds)
        found.refused, found.unreachable = self.refused, self._never
        return found

    def _prove(self) -> None:
        """Find the goals that no packet can reach, once, so that no step aims at them."""
        if not self._proved:
            self._proved = True
            self._never = unreachable(self.switch.program, self.goals, self.covered)
            self._settled |= self._never

    def _fill_registers(self) -> int:
        """Let registers hold anything from now on, and run what was useful so far again, which
        then has steps for that; return how many runs that were."""
        if self.recorder.contents or not self.switch.state.registers:
            return 0
        self.recorder.contents = True
        runs = self._needed()
        for run in runs:
            self._run(run.inputs)
        return len(runs)

    def _next(self) -> bool:
        """Take the most promising step; return whether it led to a run."""
        rank, _, _, step = heapq.heappop(self._heap)
        run, index, way, times, beside = step
        if beside in self._done:
            return False
        if self._rank(run, index, way, times) > rank:
            self._push(*step)
            return False
        self._done.add(beside)
        if way is None:
            last = run.inputs.packets[-1]
            self._run(replace(run.inputs, packets=(*run.inputs.packets, last)))
            return True
        leaps = self._level(way) != OTHER
        aim = self._aim(run, way)
        self._tries[aim] += 1
        turned = self.solver.turned(
            run, index, way, partial(self._needed_for, way) if leaps else None, not leaps
        )
        if turned.inputs is None:
            self._refuse(run, way.goal, turned)
            if turned.gave_up and self._proved:
                self._shorten(run, index)
            self._tries[aim] -= not (turned.dropped or turned.gave_up)  # it is always false
            return False
        self._repaired(_wanted(run, index, way, turned.dropped), self._run(turned.inputs))
        if way.goal not in self.covered:
            self._refuse(run, way.goal, turned)
        return True

    def _shorten(self, run: Run, index: int) -> None:
        """Aim at ways out of the loops before a step: z3 gave up on so long a path."""
        times: Counter[Hashable] = Counter()
        signature = 0
        for i, branch in enumerate(run.path[:index]):
            times[branch.goal] += 1
            if times[branch.goal] == 2 and branch.goal in self.goals.loops:
                run.repeated.add(i)
                for way in branch.others:
                    self._note(run, i, way, 0, (signature, way.goal, way.choice))
            if branch.goal is not None:
                signature = hash((signature, branch.goal))

    def _refuse(self, run: Run, goal: Hashable, turned: Turned) -> None:
        """Note why a goal was not reached; what excludes it says more than that it is excluded."""
        goals: list[Any] = [run.path[i].goal for i in turned.dropped]
        why = Refusal(frozenset(g for g in goals if g in self.goals.all), turned.gave_up)
        if why.contradicts:
            self._excluding.setdefault(goal, set()).add(why.contradicts)
        if goal not in self.refused or why != Refusal():
            self.refused[goal] = why

    def _aim(self, run: Run, way: Way) -> Hashable:
        """Return what tries of a way are counted by: its goal, and whether the run's path is known
        to exclude it, so that failures there do not count elsewhere."""
        known = self._excluding.get(way.goal, ())
        return way.goal, any(goals <= run.covered for goals in known)

    def _needed_for(self, way: Way, branch: Branch) -> bool:
        """Return whether a packet must pass a step in order to take a way."""
        goal: Any = branch.goal
        return goal is None or way.goal in self.goals.behind.get(goal, frozenset())

    def _go_back(self) -> bool:
        """Take the next step that may let a run reach a goal which it passed by, and stay on its
        path to there otherwise; return whether it led to a run."""
        _, _, _, (run, index, way, goal, beside) = heapq.heappop(self._back)
        if goal in self._settled or beside in self._done:
            return False
        self._done.add(beside)
        turned = self.solver.turned(run, index, way, keeps=True)
        if turned.inputs is None:
            return False
        near = [i for i, branch in enumerate(run.path) if goal in self._reached(branch.goal)]
        wanted = _wanted(run, index, way, turned.dropped, max(near, default=len(run.path)))
        times = min(MOST_REPAIRS, REPAIRS + REPAIRED // len(run.path))
        self._repaired(wanted, self._run(turned.inputs), times, goal)
        return True

    def _repaired(
        self, wanted: Wanted, run: Run, times: int = REPAIRS, goal: Goal | None = None
    ) -> None:
        """Turn a run back onto the path that it should have taken: a value that was fixed, such as
        a checksum, may have followed what was changed. goal: what the path is to reach, with
        lookups that stay."""
        keeps = goal is not None
        for _ in range(times):
            strayed = [] if goal in self.covered else list(_strayed(wanted, run))
            strayed = strayed[: None if keeps else 1]
            turns = (self.solver.turned(run, *one, keeps=keeps).inputs for one in strayed)
            inputs = next((found for found in turns if found is not None), None)
            if inputs is None:
                return
            run = self._run(inputs)

    def _rank(self, run: Run, index: int, way: Way | None, times: int) -> int:
        if way is None:
            return LONGER if run.fresh else LONGER_YET
        level = self._level(way)
        if level == OTHER and run.missing:
            level = min(level, self._beside(run, index))
        if level > SHORTER and index in run.repeated:
            level = SHORTER
        return level + self._tries[self._aim(run, way)] + times

    def _decide_otherwise(self) -> None:
        """Note the steps that may let runs reach goals which were excluded where they passed them:
        those that change what decides it, with later lookups as they were."""
        passing, self._passing = self._passing, []
        for run, goals in passing:
            for goal in sorted(goals - self._settled, key=repr):  # in the same order every time
                self._decided_by(run, goal)

    def _decided_by(self, run: Run, goal: Goal) -> None:
        """Note the steps of a run that change what decides a goal."""
        deciders = self._deciders(goal)
        context = deciders & run.covered
        times = self._excluded[goal][context]
        self._excluded[goal][context] += 1
        if times >= DIRECTED:
            return
        for index in reversed(range(len(run.path))):  # what has decided it last, first
            kept = self._reached(run.path[index].goal)
            differ = False
            for way in run.path[index].others:
                other = self._reached(way.goal)
                leaves = goal in kept and goal not in other
                if not leaves and deciders & kept != deciders & other:
                    beside = goal, way.goal, way.choice, context
                    step = run, index, way, goal, beside
                    place = times, -len(run.covered), next(self._serial), step
                    heapq.heappush(self._back, place)
                    differ = True
            times += differ

    def _reached(self, goal: Any) -> set[Goal]:
        """Return a goal, and what is behind it."""
        return {goal} | self.goals.behind.get(goal, set())

    def _deciders(self, goal: Goal) -> frozenset[Goal]:
        if goal not in self._known_deciders:
            self._known_deciders[goal] = self.goals.deciders(goal)
        return self._known_deciders[goal]

    def _beside(self, run: Run, index: int) -> int:
        """Return how promising any step of a run is, since the run passed by goals that no run has
        reached: the fewer runs pass by there, the more. A step that ends a parser's error is more
        promising than others."""
        run.missing -= self._settled
        if not run.missing:
            return OTHER
        rare = min(self._passed[goal] for goal in run.missing)
        return (PARSES if index in run.rejected else PASSED_BY) + rare.bit_length()

    def _level(self, way: Way) -> int:
        goal: Any = way.goal
        if goal in self.goals.all and goal not in self.covered:
            return UNCOVERED
        if goal is not None and goal not in self.covered:
            return NEW
        return BEHIND if self.goals.behind.get(goal, frozenset()) - self._settled else OTHER

    def _note(self, run: Run, index: int, way: Way | None, times: int, beside: Hashable) -> None:
        """Note a step for later, also where another run has it whose rank is higher. times: how
        often its goal was noted of this path already. beside: what the step is, whatever run."""
        rank = self._rank(run, index, way, times)
        if beside not in self._done and rank < self._noted.get(beside, rank + 1):
            self._push(run, index, way, times, beside)

    def _push(self, run: Run, index: int, way: Way | None, times: int, beside: Hashable) -> None:
        rank = self._noted[beside] = self._rank(run, index, way, times)
        step = run, index, way, times, beside
        heapq.heappush(self._heap, (rank, -len(run.covered), next(self._serial), step))

    def _run(self, inputs: Inputs) -> Run:
        """Run inputs; keep the run if it covers anything new, and note the ways beside its path."""
        run, _ = self.runner.run(inputs)
        useful = run.covered & self.goals.all
        self.recorder.end(len(useful))
        if useful - self.covered:
            self.kept.append(run)
        run.fresh = bool(run.covered - self.covered)
        self.covered |= run.covered
        self._settled |= run.covered
        passed = set[Goal]().union(*(self.goals.others.get(goal, ()) for goal in useful))
        passed = (passed & self.goals.all) - self._settled
        run.missing = {goal for goal in passed if goal[0] == "branch"}
        self._passed.update(run.missing)
        excluded = passed - {way.goal for branch in run.path for way in branch.others}
        if excluded:
            self._passing.append((run, excluded))
        signature = 0
        times: Counter[Hashable] = Counter()
        for index, branch in enumerate(run.path):
            for way in branch.others:
                beside = (signature, way.goal, way.choice)
                self._note(run, index, way, times[way.goal], beside)
                times[way.goal] += beside not in self._done
            if branch.goal is not None:
                signature = hash((signature, branch.goal))
        longer = run.remembers and len(run.inputs.packets) < self.limits.packets
        if longer:
            self._note(run, len(run.path), None, 0, ("longer", signature))
        return run

    def _enough(self) -> bool:
        """Return whether there are as many tests as are wanted."""
        tests = self.limits.tests
        return len(self.kept) >= tests and len(self._needed()) >= tests

    def _needed(self) -> list[Run]:
        """Return the kept runs without those that the others make superfluous."""
        needed: list[Run] = []
        left = self.covered & self.goals.all
        for run in sorted(self.kept, key=lambda r: -len(r.covered & self.covered)):
            if run.covered & left:
                needed.append(run)
                left -= run.covered
        order = {id(run): i for i, run in enumerate(self.kept)}
        return sorted(needed, key=lambda r: order[id(r)])


def _numbered(path: Sequence[Branch]) -> Iterator[tuple[int, Hashable, Any]]:
    """Yield the steps that have goals with their indices, and a key: the place, and how often the
    path has been there."""
    times: Counter[Hashable] = Counter()
    for i, branch in enumerate(path):
        if branch.goal is not None:
            goal: Any = branch.goal
            place = goal[0], goal[1].file, goal[1].line
            times[place] += 1
            yield i, (place, times[place]), branch


def _wanted(
    run: Run, index: int, way: Way, dropped: frozenset[int], last: int | None = None
) -> Wanted:
    """Return the goals of a turned path, by the keys of its steps; last: up to which."""
    wanted = {}
    for i, key, branch in _numbered(run.path[: (index if last is None else last) + 1]):
        if i not in dropped:
            wanted[key] = way.goal if i == index else branch.goal
    return wanted


def _strayed(wanted: Wanted, run: Run) -> Iterator[tuple[int, Way]]:
    """Yield the steps at which a run went beyond a register's end or, if it has not come to the
    last that is wanted, left its path, with the ways back."""
    steps = list(_numbered(run.path))
    taken = {key: branch.goal for _, key, branch in steps}
    there = all(taken.get(key) == goal for key, goal in list(wanted.items())[-1:])
    for i, key, branch in steps:
        kind, place, outcome = branch.goal
        goal = branch.goal if there else wanted.get(key, branch.goal)
        if outcome == "outside":
            goal = kind, place, "inside"
        if goal != branch.goal and goal is not None:
            yield from [(i, way) for way in branch.others if way.goal == goal][:1]
