"""Errors of the topologies; each message suggests a remedy."""

from __future__ import annotations

from collections.abc import Iterable

from gradplane import _suggestions


class TopologyError(Exception):
    """A topology that cannot be built, or an option that does not exist.

    `key` is the option that it is about, empty where it is none alone.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class NoPlaceError(TopologyError):
    """More hosts than a network has places for."""


class NetworkError(Exception):
    """A network that could not be started, or a host or switch that failed while it ran."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the hint for a wrong name: the nearest name, if any, and the known names."""
    names = sorted(known)
    hint = _suggestions.did_you_mean(name, names, _suggestions.quoted)
    return f"{hint} known: {', '.join(names)}".lstrip()
