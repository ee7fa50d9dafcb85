"""The statements outside tables that share an action: those that the chip can do at once."""

from __future__ import annotations

from collections.abc import Sequence

from gradplane.fit.values import Operation, Use


def in_another_action(operation: Operation, group: Sequence[Operation]) -> bool:
    """Return whether an operation is in another action than those before it."""
    if operation.at_once_with or group[-1].at_once_with:
        again = any(o.span == operation.span and o.writes == operation.writes for o in group)
        return again or operation.at_once_with != group[-1].at_once_with
    return _depends(operation, group) or _both_use(operation, group)


def _depends(operation: Operation, group: Sequence[Operation]) -> bool:
    taken = (*operation.reads, *operation.writes)
    return any(w.overlaps(p) for before in group for w in before.writes for p in taken)


def _both_use(operation: Operation, group: Sequence[Operation]) -> bool:
    return bool(_externs([operation])) and bool(_externs(group))


def _externs(group: Sequence[Operation]) -> list[Use]:
    return [use for op in group for use in op.value.uses if use.instance.kind != "hash"]


def purpose(group: Sequence[Operation]) -> str:
    """Return what statements are for, in short: the register they use, or what they set."""
    names = [use.instance.name.rpartition(".")[2] for use in _externs(group)]
    names += [place.name for op in group for place in op.writes]
    return names[0] if names else "statement"
