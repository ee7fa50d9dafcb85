"""The externs that PSA and PNA, the portable architectures, share by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gradplane.switch.arch.architecture import Architecture, Implementation, Prepare, Rule
from gradplane.switch.arch.load_checks import direct_calls, extern_calls, full_name, numbers_wanted
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Bits, Bool, bit_width
from gradplane.switch.runtime.meters import GREEN, RED, YELLOW
from gradplane.switch.runtime.replicas import CloneSession, Replica
from gradplane.switch.source import Diagnostic

if TYPE_CHECKING:
    from gradplane.switch.machine.extern_table import Externs
    from gradplane.switch.machine.weaving import Expansions

_PORT_CPU = 0xFFFF_FFFD
_SESSION_TO_CPU = 0
_COLOUR_CODES = {RED: 0, GREEN: 1, YELLOW: 2}  # PSA_MeterColor_t's and PNA_MeterColor_t's members
_RESULTS = ("Hash", "Checksum", "Random")
_STATES = {"Checksum": Bits(64), "InternetChecksum": Bits(16)}

_INSTANCES = {
    "Register": ir.InstanceKind("register", ("size", "initial")),
    "Counter": ir.InstanceKind("counter", ("size", "unit")),
    "DirectCounter": ir.InstanceKind("direct_counter", ("unit",)),
    "Meter": ir.InstanceKind("meter", ("size", "unit")),
    "DirectMeter": ir.InstanceKind("direct_meter", ("unit",)),
    "ActionProfile": ir.InstanceKind("action_profile", ("size",)),
    "ActionSelector": ir.InstanceKind("action_selector", ("algorithm", "size", "width")),
    "Digest": ir.InstanceKind("digest"),
    "Random": ir.InstanceKind("random", ("low", "high")),
    "Hash": ir.InstanceKind("hash", ("algorithm",)),
    "Checksum": ir.InstanceKind("checksum", ("algorithm",)),
    "InternetChecksum": ir.InstanceKind("internet_checksum"),
}


def record(
    name: str,
    package: str,
    parameters: tuple[str, ...],
    load: Callable[[], Implementation],
    more: Mapping[str, ir.InstanceKind] | None = None,
) -> Architecture:
    """Return a portable architecture's record. more: the extern types that only it has."""
    return Architecture(
        name=name,
        package=package,
        parameters=parameters,
        instances={**_INSTANCES, **(more or {})},
        load=load,
        ports=1 << 32,
        cpu_port=_PORT_CPU,
        clone_sessions={_SESSION_TO_CPU: CloneSession([Replica(_PORT_CPU)])},
    )


def implementation(
    folder: Path,
    places: Mapping[str, str],
    more: Externs,
    digests: Sequence[str],
    prepare: Sequence[Prepare] = (),
    rules: Sequence[Rule] = (),
    expansions: Callable[[ir.Program], Expansions] = lambda program: {},
) -> Implementation:
    """Return a portable architecture's implementation, whose path is the text in `folder`.

    more: the externs that only it has. digests: the blocks that may pack a digest. expansions: as
    of `text_path`. The names of its tables' properties begin with the folder's name."""
    from gradplane.switch.machine.externs.direct_resources import ON_CALL
    from gradplane.switch.machine.primitives import text_path

    owners = {kind: f"{folder.name}_{kind}" for kind in ("direct_counter", "direct_meter")}
    return Implementation(
        {**_externs(digests), **more}, ON_CALL, places, text_path(folder, expansions),
        prepare=(_checksum_states, *prepare),
        rules=(_arguments, _results, _entries, *rules, partial(direct_calls, properties=owners)),
    )  # fmt: skip


def _externs(digests: Sequence[str]) -> Externs:
    from gradplane.switch.machine.externs import arrays, checksums, messages, numbers

    return {
        ("Register", "read"): arrays.register_read(index=0),
        ("Register", "write"): arrays.REGISTER_WRITE,
        ("Counter", "count"): arrays.count(given=1),
        ("DirectCounter", "count"): arrays.count_direct(given=0),
        ("Meter", "execute"): arrays.meter_execute(index=0, before=1, codes=_COLOUR_CODES),
        ("DirectMeter", "execute"): arrays.direct_meter_execute(before=0, codes=_COLOUR_CODES),
        ("Random", "read"): numbers.RANDOM_READ,
        ("Hash", "get_hash"): numbers.GET_HASH,
        ("Checksum", "clear"): checksums.CLEAR,
        ("Checksum", "update"): checksums.UPDATE,
        ("Checksum", "get"): checksums.GET_CHECKSUM,
        ("InternetChecksum", "clear"): checksums.CLEAR,
        ("InternetChecksum", "add"): checksums.ADD,
        ("InternetChecksum", "subtract"): checksums.SUBTRACT,
        ("InternetChecksum", "get"): checksums.GET,
        ("InternetChecksum", "get_state"): checksums.GET_STATE,
        ("InternetChecksum", "set_state"): checksums.SET_STATE,
        ("Digest", "pack"): messages.digest(data=0).within(*digests),
    }


# -- preparation and rules ----------------------------------------------------------------------


def _checksum_states(program: ir.Program) -> Iterable[Diagnostic]:
    """Give checksums their state (`checksums.keep_state`)."""
    from gradplane.switch.machine.externs import checksums

    return checksums.keep_state(program, _STATES)


def _arguments(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse bounds of a hash that are no numbers, and internet checksums of data that are not in
    16-bit words."""
    for _, call in extern_calls(program):
        name = full_name(call)
        if name == "Hash.get_hash" and len(call.args) > 1:
            yield from numbers_wanted(call, name, (0, 2))
        if name in ("InternetChecksum.add", "InternetChecksum.subtract"):
            width = bit_width(call.args[-1].type)
            if width is not None and width % 16:
                what = f"{name}: the data has {width} bits, which is no multiple of 16"
                yield Diagnostic(call.span, what)


def _results(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse hashes, checksums and random numbers that are no numbers."""
    for instance in program.externs:
        if instance.type in _RESULTS and not isinstance(instance.type_args[0], Bits | Bool):
            what = f"{instance.type} of {instance.type_args[0]}: it must be bit<W> or int<W>"
            yield Diagnostic(instance.span, what)


def _entries(program: ir.Program) -> Iterable[Diagnostic]:
    """Refuse entries of a table with an action profile: they have members, which the source cannot
    make."""
    for table in program.tables:
        if table.entries and table.implementation is not None:
            what = f"table {table.name} has entries and the action profile"
            hint = "the control plane adds its entries, which refer to members"
            span = table.entries[0].span
            yield Diagnostic(span, f"{what} {table.implementation.name}", hint=hint)
