"""The leaves of openconfig-interfaces that the ports of a live switch have, by their paths.

    /interfaces/interface[name=veth0]/config/enabled        false takes the interface down
    /interfaces/interface[name=veth0]/state/oper-status     UP, DOWN or NOT_PRESENT

An interface's `ifindex` and `id` are the switch's port number, as in Stratum, and not the kernel's
number: it is what a P4 program knows the port by. Counters are the interface's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from gradplane._p4runtime import gnmi
from gradplane.switch.p4runtime.status_errors import RpcError, invalid
from gradplane.switch.runtime.interfaces import Interface, Interfaces, flags, interface_counts

MODULE = "openconfig-interfaces"
TOP, LIST = "interfaces", "interface"

Value = bool | int | str
Leaf = tuple[str, str]
"""An interface's name, and the path below it: ("veth0", "state/oper-status")."""


class _Seen(NamedTuple):
    """An interface at one moment. flags: None if it does not exist. counts: of /proc/net/dev."""

    port: Interface
    flags: tuple[bool, bool] | None
    counts: list[int]

    @property
    def status(self) -> str:
        if self.flags is None:
            return "NOT_PRESENT"
        return "UP" if self.flags[1] else "DOWN"

    @property
    def enabled(self) -> bool:
        return self.flags is not None and self.flags[0]


def _count(*columns: int) -> Callable[[_Seen], Value]:
    """Return a counter: a column of /proc/net/dev, less the others."""
    first, *less = columns
    return lambda seen: seen.counts[first] - sum(seen.counts[column] for column in less)


_LEAVES: dict[str, Callable[[_Seen], Value]] = {
    "name": lambda seen: seen.port.interface,
    "config/name": lambda seen: seen.port.interface,
    "config/enabled": lambda seen: seen.enabled,
    "state/name": lambda seen: seen.port.interface,
    "state/enabled": lambda seen: seen.enabled,
    "state/ifindex": lambda seen: seen.port.number,
    "state/id": lambda seen: seen.port.number,
    "state/admin-status": lambda seen: "UP" if seen.enabled else "DOWN",
    "state/oper-status": lambda seen: seen.status,
    "state/counters/in-octets": _count(0),
    "state/counters/in-pkts": _count(1),
    "state/counters/in-unicast-pkts": _count(1, 7),  # the kernel tells no broadcasts apart
    "state/counters/in-multicast-pkts": _count(7),
    "state/counters/in-errors": _count(2),
    "state/counters/in-discards": _count(3),
    "state/counters/out-octets": _count(8),
    "state/counters/out-pkts": _count(9),
    "state/counters/out-unicast-pkts": _count(9),  # the kernel counts no multicasts that it sends
    "state/counters/out-errors": _count(10),
    "state/counters/out-discards": _count(11),
}
WRITABLE = "config/enabled"
COUNTERS = "state/counters/"


def leaves(ports: Interfaces) -> dict[Leaf, Value]:
    """Return all leaves of all interfaces."""
    counts = interface_counts()
    none = [0] * 16
    return {
        (port.interface, path): value(seen)
        for port in ports.status()
        for seen in [_Seen(port, flags(port.interface), counts.get(port.interface, none))]
        for path, value in _LEAVES.items()
    }


class Pattern:
    """The leaves that a path names: an element "*" is any one, "..." any number of them, and a list
    without a key, or with the key "*", any entry.

    Raises RpcError for a path that can name none.
    """

    def __init__(self, prefix: gnmi.Path, path: gnmi.Path) -> None:
        for origin in (prefix.origin, path.origin):
            if origin not in ("", "openconfig", MODULE):
                raise invalid(f'origin "{origin}" is not openconfig')
        self.elems = [*prefix.elem, *path.elem]
        self.text = path_text(self.elems)
        self.name: str | None = None
        parts = []
        for position, elem in enumerate(self.elems):
            name = elem.name.removeprefix(f"{MODULE}:")
            keys = dict(elem.key)
            wanted = keys.pop("name", "*")
            if keys or (wanted != "*" and name != LIST):
                raise invalid(
                    f"{self.text}: element {position + 1} has no such key: only"
                    f" {LIST}[name=...] has one"
                )
            if wanted != "*":
                self.name = wanted
            parts.append(name)
        self._path = _expression(parts)
        if not any(map(self._names, _LEAVES)):
            raise RpcError(
                "NOT_FOUND",
                f"the switch has no {self.text}; it has /{TOP}/{LIST}[name=...] with"
                f" {', '.join(path for path in _LEAVES if '/' in path)}",
            )

    @property
    def depth(self) -> int:
        """The number of elements; without a meaning if some of them are "..."."""
        return len(self.elems)

    def _names(self, path: str) -> bool:
        return self._path.fullmatch(f"{TOP}/{LIST}/{path}/") is not None

    def of(self, values: dict[Leaf, Value]) -> dict[Leaf, Value]:
        """Return the leaves that it names. Raises RpcError if it names an unknown interface."""
        if self.name is not None and (self.name, "name") not in values:
            there = ", ".join(sorted({name for name, _ in values})) or "none"
            raise RpcError(
                "NOT_FOUND", f"{self.text}: no port has this interface; interfaces: {there}"
            )
        return {
            (name, path): value
            for (name, path), value in values.items()
            if self.name in (None, name) and self._names(path)
        }


def _expression(parts: Iterable[str]) -> re.Pattern[str]:
    """Return what the paths of leaves, each element with a slash behind it, must match."""
    special = {"*": "[^/]+/", "...": "(?:[^/]+/)*"}
    return re.compile("".join(special.get(p, re.escape(p) + "/") for p in parts) + ".*")


def path_of(leaf: Leaf) -> gnmi.Path:
    """Return the path of a leaf."""
    name, below = leaf
    head = [gnmi.PathElem(name=TOP), gnmi.PathElem(name=LIST, key={"name": name})]
    return gnmi.Path(elem=[*head, *(gnmi.PathElem(name=part) for part in below.split("/"))])


def path_text(elems: Iterable[gnmi.PathElem]) -> str:
    """Return a path as it is written: /interfaces/interface[name=veth0]/state."""
    return "/" + "/".join(
        e.name + "".join(f"[{key}={value}]" for key, value in sorted(e.key.items())) for e in elems
    )


def subtrees(pattern: Pattern, found: dict[Leaf, Value]) -> Iterator[tuple[gnmi.Path, object]]:
    """Yield a path and the value there, a leaf's or a tree of dicts, for each node that a path
    names.

    Lists are lists of dicts, as in JSON.
    """
    nodes: dict[str, tuple[gnmi.Path, dict[Leaf, Value]]] = {}
    wild = any(elem.name == "..." for elem in pattern.elems)
    for leaf, value in found.items():
        path = path_of(leaf)
        if not wild:
            del path.elem[pattern.depth :]
        nodes.setdefault(path_text(path.elem), (path, {}))[1][leaf] = value
    for path, below in nodes.values():
        yield path, _tree(path, below)


def _tree(path: gnmi.Path, below: dict[Leaf, Value]) -> object:
    """Return what stands at a path: its leaf, or a dict."""
    if len(path.elem) < 2:
        entries: dict[str, dict[str, object]] = {}
        for (name, below_name), value in below.items():
            _insert(entries.setdefault(name, {}), below_name.split("/"), value)
        members = {LIST: list(entries.values())}
        return members if path.elem else {TOP: members}
    depth = len(path.elem) - 2
    root: dict[str, object] = {}
    for (_, below_name), value in below.items():
        parts = below_name.split("/")[depth:]
        if not parts:
            return value
        _insert(root, parts, value)
    return root


def _insert(tree: dict[str, object], parts: Sequence[str], value: Value) -> None:
    for part in parts[:-1]:
        tree = tree.setdefault(part, {})  # type: ignore[assignment]
    tree[parts[-1]] = value
