"""The search for tests: runs, their branches turned, until all is covered or time is up."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

from gradplane.switch.interpreted_passes import InterpretedPasses
from gradplane.switch.machine.model import Pass
from gradplane.switch.runtime.packet_passes import Arrival, Output
from gradplane.switch.switch import Switch
from gradplane.switch.testgen.concolic import ConcolicStatements
from gradplane.switch.testgen.goals import Goals
from gradplane.switch.testgen.recorder import Given, Goal, Inputs, Recorder, Run, Way
from gradplane.switch.testgen.solving import Solver

FIRST_LENGTH = 64  # bytes of the first packet
REPAIRS = 4  # of one run
PATIENCE = 12  # times that the way to a goal is tried before it counts as any other
UNCOVERED, NEW, BEHIND, LONGER, OTHER = range(5)  # how promising a step is


class Runner:
    """Runs inputs on a program's interpreter, from the state that the program starts with."""

    def __init__(self, switch: Switch) -> None:
        self.switch = switch
        self.recorder = Recorder(switch)
        self._model: Any = switch.architecture.interpreter(switch.program, switch.state, None)
        self._pipes = self._model.compile(partial(ConcolicStatements, recorder=self.recorder))
        self._passes = InterpretedPasses(switch.state)

    def run(self, inputs: Inputs) -> tuple[Run, list[list[Output]]]:
        """Return the run, and the packets that left because of each packet."""
        self.switch.reset()
        self.switch.state.messages.clear()
        self.recorder.begin(inputs)
        outputs = []
        for number in range(len(inputs.packets)):
            given = self.recorder.arrive(number)
            result = self._passes.run(self._pass, Arrival(given.port, given.data))
            outputs.append(list(result.outputs))
        return self.recorder.run, outputs

    def _pass(self, arrival: Arrival) -> Any:
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


@dataclass
class Found:
    """What a search has found: the runs to make tests of, and what they cover."""

    runs: list[Run]
    goals: Goals
    covered: set[Goal]
    exhausted: bool
    tried: int
    seconds: float = 0.0
    unreachable: set[Goal] = field(default_factory=set)


class Explorer:
    """Searches for inputs that cover a program."""

    def __init__(self, switch: Switch, limits: Limits) -> None:
        self.switch = switch
        self.limits = limits
        self.runner = Runner(switch)
        self.recorder = self.runner.recorder
        self.solver = Solver(switch.architecture.ports - 1, limits.seed)
        self.goals = Goals(switch.state.tables).of(switch.program)
        self.covered: set[Goal] = set()
        self.kept: list[Run] = []
        self._heap: list[tuple[int, int, int, int, Any]] = []
        self._serial = count()
        self._tries: Counter[Hashable] = Counter()
        self._seen: set[Hashable] = set()

    def explore(self) -> Found:
        """Search until everything is covered, nothing is left to try, or a limit is reached."""
        began = time.process_time()
        self._run(Inputs((Given(0, self.solver.filler(0, FIRST_LENGTH)),)))
        tried = 1
        while self._heap and self.goals.all - self.covered:
            over = time.process_time() - began > self.limits.seconds
            if over or len(self.kept) >= self.limits.tests or tried >= self.limits.runs:
                break
            tried += self._next()
        left = bool(self._heap) or self.solver.gave_up > 0
        covered = self.covered & self.goals.all
        seconds = time.process_time() - began
        return Found(self._needed(), self.goals, covered, not left, tried, seconds)

    def _next(self) -> bool:
        """Take the most promising step; return whether it led to a run."""
        level, tries, _, _, step = heapq.heappop(self._heap)
        run, index, way = step
        now = self._level(way), self._tries[way and way.goal]
        if now > (level, tries):
            self._push(run, index, way)
            return False
        if way is None:
            last = run.inputs.packets[-1]
            self._run(replace(run.inputs, packets=(*run.inputs.packets, last)))
            return True
        self._tries[way.goal] += 1
        inputs = self.solver.turned(run, index, way)
        if inputs is None:
            return False
        wanted = [b.goal for b in run.path[:index] if b.goal is not None]
        self._repaired([*wanted, way.goal], self._run(inputs))
        return True

    def _repaired(self, wanted: Sequence[Hashable], run: Run) -> None:
        """Turn a run back onto the path that it should have taken: a value that was fixed, such as
        a checksum, may have followed what was changed."""
        for _ in range(REPAIRS):
            strayed = _strayed(wanted, run)
            inputs = strayed and self.solver.turned(run, *strayed)
            if inputs is None:
                return
            run = self._run(inputs)

    def _level(self, way: Way | None) -> int:
        if way is None:
            return LONGER
        goal: Any = way.goal
        if self._tries[goal] >= PATIENCE:
            return BEHIND if goal in self.goals.all - self.covered else OTHER
        if goal in self.goals.all and goal not in self.covered:
            return UNCOVERED
        if goal is not None and goal not in self.covered:
            return NEW
        if self.goals.behind.get(goal, frozenset()) - self.covered:
            return BEHIND
        return OTHER

    def _push(self, run: Run, index: int, way: Way | None) -> None:
        tries = self._tries[way and way.goal]
        step = run, index, way
        order = self._level(way), tries, -len(run.covered), next(self._serial), step
        heapq.heappush(self._heap, order)

    def _run(self, inputs: Inputs) -> Run:
        """Run inputs; keep the run if it covers anything new, and note the ways beside its path."""
        run, _ = self.runner.run(inputs)
        useful = run.covered & self.goals.all
        self.recorder.end(len(useful))
        if useful - self.covered:
            self.kept.append(run)
        self.covered |= run.covered
        signature: Hashable = ()
        for index, branch in enumerate(run.path):
            for way in branch.others:
                beside = (signature, way.goal, way.choice)
                if beside not in self._seen:
                    self._seen.add(beside)
                    self._push(run, index, way)
            if branch.goal is not None:
                signature = hash((signature, branch.goal))
        longer = run.remembers and len(run.inputs.packets) < self.limits.packets
        if longer and ("longer", signature) not in self._seen:
            self._seen.add(("longer", signature))
            self._push(run, len(run.path), None)
        return run

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


def _strayed(wanted: Sequence[Hashable], run: Run) -> tuple[int, Way] | None:
    """Return the first step at which a run left a path, with the way back; None without."""
    steps = ((i, b) for i, b in enumerate(run.path) if b.goal is not None)
    for goal, (i, branch) in zip(wanted, steps, strict=False):
        if goal != branch.goal and goal is not None:
            return next(((i, way) for way in branch.others if way.goal == goal), None)
    return None
