"""The actions that a table, or the members of an action profile, can have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.ops import limits
from gradplane.switch.ir.types import Bits
from gradplane.switch.runtime.control_errors import TableError
from gradplane.switch.runtime.entries import ActionData

_PLACES = {"defaultonly": "an entry's", "tableonly": "the default"}
_GROUP = "groupaction"  # P4Runtime 1.6: of a one-shot set's group_action alone, which no table has


class ActionList(NamedTuple):
    """Actions by position, to which ActionData.index refers. owner: "table NAME", for errors."""

    owner: str
    choices: list[ir.TableAction]

    @property
    def names(self) -> list[str]:
        """The actions' control-plane names, in order."""
        return [choice.action.name for choice in self.choices]

    @property
    def for_entries(self) -> list[str]:
        """The names of those that an entry can have."""
        kept = (
            c for c in self.choices if not any(annotated(c, n) for n in ("defaultonly", _GROUP))
        )
        return [choice.action.name for choice in kept]

    def action(self, data: ActionData) -> ir.Action:
        """Return the action that `data` is for."""
        return self.choices[data.index].action

    def check(self, data: ActionData, forbidden: str = "defaultonly") -> None:
        """Raise TableError unless the action is listed, allowed here, and its data fits.

        forbidden: the annotation that an action for this place must not have.
        """
        if not 0 <= data.index < len(self.choices):
            known = ", ".join(self.names)
            raise self._error("INVALID_ARGUMENT", f"no action {data.index}; its actions: {known}")
        choice = self.choices[data.index]
        for note in (forbidden, _GROUP):
            if annotated(choice, note):
                what = f"action {choice.action.name} is @{note}: it cannot be"
                raise self._error("PERMISSION_DENIED", f"{what} {_PLACES[forbidden]} action")
        self._check_args(choice.action, data.args)

    def _check_args(self, action: ir.Action, args: Sequence[int]) -> None:
        """Raise TableError unless there is one fitting number for each of the parameters."""
        params = action.params
        if len(args) != len(params):
            names = ", ".join(p.name for p in params) or "none"
            what = f"action {action.name} takes {len(params)} parameters ({names}), not {len(args)}"
            raise self._error("INVALID_ARGUMENT", what)
        for param, value in zip(params, args, strict=True):
            low, high = _limits(param)
            if not low <= value <= high:
                what = f"action {action.name}: parameter {param.name}: value {value}"
                fits = f"does not fit {param.type} ({low} to {high})"
                raise self._error("INVALID_ARGUMENT", f"{what} {fits}")

    def _error(self, code: str, what: str) -> TableError:
        return TableError(code, f"{self.owner}: {what}")


def annotated(choice: ir.TableAction, name: str) -> bool:
    """Return whether an action is listed with an annotation."""
    return any(a.name == name for a in choice.annotations)


def _limits(param: ir.Var) -> tuple[int, int]:
    return limits(param.type) if isinstance(param.type, Bits) else (0, 1)
