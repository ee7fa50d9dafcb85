"""Searches in a run, such as "round 46 worker 2 lost"."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLACE = re.compile(r"\b(job|round|worker|slot)\s+([^\s,]+)", re.IGNORECASE)


class SearchError(ValueError):
    """A search that cannot be understood; the message says what can."""


@dataclass(frozen=True)
class Query:
    """Where to look, None: everywhere; and the words that must be there, in lower case."""

    job: int | None = None
    round: int | None = None
    worker: int | None = None
    slot: int | None = None
    words: tuple[str, ...] = ()

    @property
    def only_place(self) -> bool:
        """True if it names nothing but a round or a job."""
        return not self.words and self.worker is None and self.slot is None


def parse(text: str) -> Query:
    """Return the query of a text. Raises SearchError."""
    places: dict[str, int] = {}
    for name, value in _PLACE.findall(text):
        if not value.isdecimal():
            raise SearchError(f"{name} {value}: give its number, as in: round 46 worker 2 lost")
        places[name.lower()] = int(value)
    words = tuple(_PLACE.sub(" ", text).lower().replace(",", " ").split())
    if not places and not words:
        raise SearchError("write what to look for, as in: round 46 worker 2 lost")
    return Query(**places, words=words)


def matches(query: Query, worker: int, slot: int | None, text: str) -> bool:
    """Return whether an event of a worker, perhaps about a slot, is wanted."""
    if query.worker not in (None, worker) or query.slot not in (None, slot):
        return False
    lower = text.lower()
    return all(word in lower for word in query.words)
