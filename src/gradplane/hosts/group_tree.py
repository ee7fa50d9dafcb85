"""The tree of a job's groups of workers, whose hosts sum level by level.

A group is a tuple of workers, or one of smaller groups; all workers are equally deep. The whole
tree is a group, too: its members are the groups that are summed last.
"""

from itertools import chain
from typing import Any

Group = tuple[Any, ...]
"""Numbers of workers, or groups."""


def levels(whole: Group) -> list[tuple[Group, ...]]:
    """Return the groups of each level below the whole, those of workers first; none where its
    members are workers."""
    found: list[tuple[Group, ...]] = []
    row = whole
    while row and isinstance(row[0], tuple):
        found.insert(0, row)
        row = tuple(chain.from_iterable(row))
    return found


def in_tuples(lists: Any) -> Any:
    """Return lists, with all that are in them, as tuples."""
    return tuple(map(in_tuples, lists)) if isinstance(lists, list | tuple) else lists


def members_of(group: Group) -> tuple[int, ...]:
    """Return the workers that a group's sum is made by: its own, or its groups' leaders."""
    return tuple(workers_of((member,))[0] for member in group)


def workers_of(group: Group) -> tuple[int, ...]:
    """Return the workers of a group, in order; its first one is its leader."""
    while isinstance(group[0], tuple):
        group = tuple(chain.from_iterable(group))
    return group
