"""The scopes of tables and externs: which pipes of a chip share one.

At first all pipes share all of them. A table and its action profile have one scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gradplane.switch.ir import nodes as ir
from gradplane.switch.runtime.arrays import Counter, Homes, Register, one_pipe
from gradplane.switch.runtime.byte_adjustments import METERS, ByteAdjustment
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.filters import Filter
from gradplane.switch.runtime.links import Links
from gradplane.switch.runtime.match_table import MatchTable
from gradplane.switch.runtime.meters import Meter
from gradplane.switch.runtime.profiles import ActionProfile
from gradplane.switch.runtime.valuesets import ParserValueSet
from gradplane.switch.runtime.written_tables import ExpireTimes, WrittenTable

Groups = tuple[tuple[int, ...], ...]
"""The pipes, those together that share."""

_MEMBERS = 120  # of a group with states, where the program does not say how many
KINDS = ("tables", "profiles", "counters", "meters", "filters", "value_sets", "adjustments")


@dataclass(slots=True)
class Resources:
    """The objects that the packets of one pipe use, by name."""

    tables: dict[str, MatchTable]
    profiles: dict[str, ActionProfile]
    counters: dict[str, Counter]
    meters: dict[str, Meter]
    filters: dict[str, Filter]
    value_sets: dict[str, ParserValueSet]
    adjustments: dict[str, ByteAdjustment]

    def of(self, kind: str) -> dict[str, Any]:
        """Return the objects of one of KINDS."""
        found: dict[str, Any] = getattr(self, kind)
        return found


def make_resources(
    program: ir.Program,
    links: Links,
    clock: Callable[[], int],
    registers: Mapping[str, Register],
    pipes: int,
    times: ExpireTimes,
) -> Resources:
    """Make a program's tables and externs as they are at the start. pipes: how many share them, or
    have some of their own. times: of entries that packets write."""
    made = Resources({}, {}, {}, {}, {}, {}, {})
    for instance in program.externs:
        name = instance.name
        if instance.kind in METERS:
            made.adjustments[name] = ByteAdjustment(name)
        match instance.kind:
            case "counter":
                made.counters[name] = Counter(name, _size(instance), instance.word("unit"))
            case "meter":
                made.meters[name] = Meter(name, _size(instance), instance.word("unit"))
            case "lpf" | "wred":
                made.filters[name] = Filter(name, _size(instance))
            case "action_profile":
                made.profiles[name] = ActionProfile(name, _size(instance))
            case "action_selector":
                algorithm, width = instance.word("algorithm"), instance.number("width")
                states = registers[instance.register.name] if instance.register else None
                most = instance.number("most", _MEMBERS)
                resilient = instance.word("mode") == "resilient"
                made.profiles[name] = ActionProfile(
                    name, _size(instance), algorithm, width, links, states, most, resilient
                )
    for value_set in program.value_sets:
        made.value_sets[value_set.name] = ParserValueSet(value_set)
    for table in program.tables:
        profile = made.profiles[table.implementation.name] if table.implementation else None
        if table.add_on_miss or table.auto_delete or table.timed_by_calls:
            made.tables[table.name] = WrittenTable(table, times, profile, clock, pipes)
        else:
            made.tables[table.name] = MatchTable(table, profile, clock, pipes)
    return made


class ScopeMemory(NamedTuple):
    """The names of resources that have one scope, by kind; each pipe's, by kind, name and pipe; and
    their groups of pipes, None where all pipes share them."""

    names: Mapping[str, list[str]]
    objects: dict[tuple[str, str, int], Any]
    groups: Mapping[str, Groups | None]


class PipeScopes:
    """The resources of each pipe.

    make: returns new ones, as at the program's start. homes: the pipes in which packets reach a
    resource, by its name; it is theirs only. `pipes`: the resources of each pipe. `changed`: called
    after each change, so that engines follow.
    """

    def __init__(self, make: Callable[[], Resources], pipes: int, homes: Homes = one_pipe) -> None:
        self._make = make
        self.homes = homes
        first = make()
        self.pipes = [first, *(_shared(first) for _ in range(pipes - 1))]
        self._groups: dict[str, Groups] = {}
        self.changed: list[Callable[[], None]] = []

    @property
    def differ(self) -> bool:
        """Whether some pipe has a resource of its own."""
        return bool(self._groups)

    def together(self, name: str) -> Groups:
        """Return the scope of a resource that all its pipes share."""
        return (self.homes(name),)

    def apart(self, name: str) -> Groups:
        """Return the scope of a resource of which each pipe has one of its own."""
        return tuple((pipe,) for pipe in self.homes(name))

    @property
    def own(self) -> Mapping[str, Groups]:
        """The groups of what not all pipes share, by name."""
        return self._groups

    def has(self, name: str) -> bool:
        """Return whether there is a resource of this name."""
        return any(name in self.pipes[0].of(kind) for kind in KINDS)

    def groups(self, name: str) -> Groups:
        """Return the groups of pipes that share a resource, by their lowest pipe."""
        return self._groups.get(name) or self.together(name)

    def every(self, kind: str) -> Iterator[Any]:
        """Iterate over the objects of one of KINDS in all pipes, each once."""
        for name in self.pipes[0].of(kind):
            for pipes in self.groups(name):
                yield self.pipes[pipes[0]].of(kind)[name]

    def set(self, name: str, groups: Iterable[Iterable[int]]) -> None:
        """Let groups of pipes share a resource, each group one of its own.

        Tables begin with the source's entries; cells in the first pipe's group keep their values.
        Raises TableError FAILED_PRECONDITION while tables or profiles have other entries,
        INVALID_ARGUMENT unless each pipe is in one group.
        """
        wanted = tuple(sorted(tuple(sorted(set(group))) for group in groups))
        home = self.homes(name)
        if sorted(pipe for group in wanted for pipe in group) != list(home):
            whole = home == tuple(range(len(self.pipes)))
            own = f"0 to {len(self.pipes) - 1}" if whole else ", ".join(map(str, home))
            what = f"each of the pipes {own} must be in one scope"
            raise TableError("INVALID_ARGUMENT", f"{name}: {what}, not {wanted}")
        together = self._together(name)
        self._check_empty(together)
        if wanted == self.groups(name):
            return
        for group in wanted:
            made = self.pipes[home[0]] if home[0] in group else self._make()
            for kind, names in together.items():
                for each in names:
                    if kind == "tables":
                        made.of(kind)[each].reset()
                    for pipe in group:
                        self.pipes[pipe].of(kind)[each] = made.of(kind)[each]
        for names in together.values():
            for each in names:
                self._set_groups(each, None if wanted == (home,) else wanted)
        for follow in self.changed:
            follow()

    def memory(self, name: str) -> ScopeMemory:
        """Return what `restore` needs to give a resource, and what has one scope with it, the scope
        of now."""
        names = self._together(name)
        each = [(kind, one) for kind, found in names.items() for one in found]
        objects = {
            (kind, one, pipe): self.pipes[pipe].of(kind)[one]
            for kind, one in each for pipe in self.homes(name)
        }  # fmt: skip
        return ScopeMemory(names, objects, {one: self._groups.get(one) for _, one in each})

    def restore(self, former: ScopeMemory) -> None:
        """Put former resources back, unchecked."""
        for (kind, one, pipe), found in former.objects.items():
            self.pipes[pipe].of(kind)[one] = found
        for one, groups in former.groups.items():
            self._set_groups(one, groups)
        for follow in self.changed:
            follow()

    def _set_groups(self, name: str, groups: Groups | None) -> None:
        if groups is None:
            self._groups.pop(name, None)
        else:
            self._groups[name] = groups

    def _together(self, name: str) -> Mapping[str, list[str]]:
        """Return the names, by kind, of what has one scope with a resource."""
        first = self.pipes[0]
        profile = first.profiles.get(name)
        if name in first.tables:
            profile = first.tables[name].profile
        if profile is None and name not in first.tables:
            return {kind: [name] for kind in KINDS if name in first.of(kind)}
        users = [
            n for n, table in first.tables.items()
            if n == name or (profile is not None and table.profile is profile)
        ]  # fmt: skip
        meters = [m.name for n in users if (m := first.tables[n].table.meter) is not None]
        profiles = [] if profile is None else [profile.name]
        return {"profiles": profiles, "tables": users, "adjustments": meters}

    def _check_empty(self, together: Mapping[str, list[str]]) -> None:
        for pipe in self.pipes:
            for name in together.get("tables", ()):
                if pipe.tables[name].has_added_entries:
                    what = "its scope can change while it has no entries: clear it"
                    raise TableError("FAILED_PRECONDITION", f"table {name}: {what}")
            for name in together.get("profiles", ()):
                if pipe.profiles[name].members:
                    what = "its scope can change while it has no members: clear it"
                    raise TableError("FAILED_PRECONDITION", f"action profile {name}: {what}")
            for name in together.get("value_sets", ()):
                if pipe.value_sets[name].members or pipe.value_sets[name].own:
                    what = "its scope can change while it has no members: clear it"
                    raise TableError("FAILED_PRECONDITION", f"value set {name}: {what}")


def _size(instance: ir.ExternInstance) -> int:
    return instance.number("size")


def _shared(resources: Resources) -> Resources:
    """Return the same objects in dictionaries of their own."""
    return replace(resources, **{kind: dict(resources.of(kind)) for kind in KINDS})
