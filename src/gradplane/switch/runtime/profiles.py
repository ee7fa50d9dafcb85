"""Action profiles and selectors: members shared by entries, groups that spread over members."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData, EntryAction, GroupRef, MemberRef, OneShot
from gradplane.switch.runtime.links import Links


@dataclass(frozen=True, slots=True)
class Weighted:
    """A member in a group, left out while its `watch_port` is down."""

    member: int
    weight: int = 1
    watch_port: bytes = b""


@dataclass(slots=True)
class Group:
    members: list[Weighted]
    max_size: int


class ActionProfile:
    """The members and groups of an action profile or selector.

    Members are actions of the tables that share the profile, which list the same actions.

    `algorithm` is the selector's hash ("" for a plain profile), `output_width` its bits; `links`
    says which ports are down.
    """

    def __init__(
        self,
        name: str,
        size: int,
        algorithm: str = "",
        output_width: int = 0,
        links: Links | None = None,
    ) -> None:
        self.name = name
        self.links = links or Links()
        self.size = size
        self.algorithm = algorithm
        self.output_width = output_width
        self.members: dict[int, ActionData] = {}
        self.groups: dict[int, Group] = {}
        self.changes = 0  # so that mirrors can detect changes

    @property
    def has_groups(self) -> bool:
        return bool(self.algorithm)

    def member(self, id: int) -> ActionData:
        """Return a member's action; raises TableError if there is none."""
        self._need_member(id)
        return self.members[id]

    def group(self, id: int) -> Group:
        """Return a group; raises TableError if there is none."""
        self._need_group(id)
        return self.groups[id]

    def add_member(self, id: int, action: ActionData) -> None:
        if id in self.members:
            raise self._error("ALREADY_EXISTS", f"member {id} exists")
        if len(self.members) >= self.size:
            raise self._error("RESOURCE_EXHAUSTED", f"all {self.size} members are in use")
        self.members[id] = action
        self.changes += 1

    def modify_member(self, id: int, action: ActionData) -> None:
        self._need_member(id)
        self.members[id] = action
        self.changes += 1

    def delete_member(self, id: int) -> None:
        self._need_member(id)
        for group_id, group in self.groups.items():
            if any(w.member == id for w in group.members):
                raise self._error("FAILED_PRECONDITION", f"member {id} is in group {group_id}")
        del self.members[id]
        self.changes += 1

    def add_group(self, id: int, members: Iterable[Weighted], max_size: int = 0) -> None:
        if not self.has_groups:
            raise self._error("INVALID_ARGUMENT", "it is not a selector, so it has no groups")
        if id in self.groups:
            raise self._error("ALREADY_EXISTS", f"group {id} exists")
        self.groups[id] = self._group(list(members), max_size)
        self.changes += 1

    def modify_group(self, id: int, members: Iterable[Weighted], max_size: int = 0) -> None:
        self._need_group(id)
        self.groups[id] = self._group(list(members), max_size or self.groups[id].max_size)
        self.changes += 1

    def delete_group(self, id: int) -> None:
        self._need_group(id)
        del self.groups[id]
        self.changes += 1

    def clear(self) -> None:
        """Remove all groups and members, which no entry may use."""
        self.groups.clear()
        self.members.clear()
        self.changes += 1

    def choices(self, target: EntryAction) -> list[ActionData]:
        """Return the actions that an entry's hash chooses among, each as often as its weight."""
        match target:
            case ActionData():
                return [target]
            case MemberRef(id=id):
                return [self.members[id]] if id in self.members else []
            case GroupRef(id=id):
                group = self.groups.get(id)
                members = () if group is None else group.members
                weighted = [(self.members[w.member], w.weight, w.watch_port) for w in members]
            case OneShot(actions=actions):
                weighted = list(actions)
        up = self.links.watched
        return [action for action, weight, port in weighted if up(port) for _ in range(weight)]

    def check(self, target: EntryAction) -> None:
        """Raise TableError unless the member or group exists."""
        if isinstance(target, MemberRef):
            self._need_member(target.id)
        elif isinstance(target, GroupRef):
            self._need_group(target.id)

    def _group(self, members: list[Weighted], max_size: int) -> Group:
        for weighted in members:
            self._need_member(weighted.member)
            if weighted.weight < 1:
                what = f"member {weighted.member} has weight {weighted.weight}, below 1"
                raise self._error("INVALID_ARGUMENT", what)
        if max_size and len(members) > max_size:
            what = f"{len(members)} members in a group of at most {max_size}"
            raise self._error("RESOURCE_EXHAUSTED", what)
        return Group(members, max_size)

    def _need_member(self, id: int) -> None:
        if id not in self.members:
            raise self._error("NOT_FOUND", f"no member {id}; members: {_ids(self.members)}")

    def _need_group(self, id: int) -> None:
        if id not in self.groups:
            raise self._error("NOT_FOUND", f"no group {id}; groups: {_ids(self.groups)}")

    def _error(self, code: str, what: str) -> TableError:
        return TableError(code, f"action profile {self.name}: {what}")


def _ids(known: Iterable[int]) -> str:
    ids = sorted(known)
    shown = ", ".join(map(str, ids[:8])) or "none"
    return shown + (", ..." if len(ids) > 8 else "")
