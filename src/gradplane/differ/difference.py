"""The first difference between the embedded switch and BMv2, with a trace of the packet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from gradplane._p4runtime import p4i, p4r
from gradplane._shipped_programs import INCLUDE_DIRS
from gradplane._whole_files import write_output
from gradplane.controller import targets
from gradplane.controller.targets.bmv2 import Bmv2
from gradplane.differ.bmv2_switch import Bmv2Switch, DiffError
from gradplane.differ.inputs import Inputs
from gradplane.differ.operations import (
    CPU_PORT,
    Comparison,
    Ours,
    Theirs,
    compare,
    parse,
    special,
    units,
)
from gradplane.differ.random_operations import RandomOperations
from gradplane.experiment import p4_programs
from gradplane.switch import backends
from gradplane.switch.compiler import Compiled
from gradplane.switch.p4runtime.device import Device
from gradplane.switch.p4runtime.device_config import device_config
from gradplane.switch.p4runtime.read import read
from gradplane.switch.p4runtime.write import write
from gradplane.switch.switch import Switch

TARGETS = ("embedded", "bmv2")
Outputs = list[tuple[int, bytes]]
_TRIES = 3  # packets for each operation of a script, at most


@dataclass(frozen=True)
class DiffResult:
    """The result. packets: how many were equal. refused: BMv2's messages about refused entries."""

    packets: int
    entries: int
    refused: tuple[str, ...]
    difference: str = ""

    def text(self) -> str:
        """Return the result in words."""
        lines = [self.difference] if self.difference else []
        how = "equal" if not self.difference else "different, after"
        lines.append(f"{how}: {self.packets} packets, {self.entries} entries")
        if self.refused:
            number = len(self.refused)
            lines.append(f"{number} entries that bmv2 refuses were left out: {self.refused[0]}")
        return "\n".join(lines)


def diff(
    program: Path,
    entries: Path | None = None,
    packets: int = 200,
    seed: int = 0,
    folders: Sequence[Path] = (),
    macros: Mapping[str, str] | Sequence[str] = (),
    compiler: str = "gradplane",
) -> DiffResult:
    """Give random packets to the embedded switch and to simple_switch_grpc; both have the same
    entries: those of a file of commands (or runtime JSON), else random ones.

    The order of what leaves for one packet does not count. compiler: of BMv2's JSON, "gradplane" or
    "p4c". Raises DiffError where BMv2 or p4c is not there, ControllerError where p4c refuses the
    program, and CompileError, also for programs of another architecture than v1model.
    """
    target, found, p4info, config = _loadable(program, folders, macros, compiler)
    devices = [_device(found.program), _device(found.program)]  # the second one chooses packets
    (ours, guide), inputs = map(_switch, devices), Inputs(found.program, seed)
    in_source = _transferred(devices[0])
    _populate(ours, entries, inputs)
    with Bmv2Switch(target) as theirs:
        theirs.load(p4info, config)
        added = [e for e in transferable(devices[0]) if _key(e) not in in_source]
        count, refused = _transfer(added, devices[0], devices[1], theirs)
        compared = 0
        for port, packet in inputs.packets(guide, packets):
            expected = ours.process(port, packet)
            if there := _differs(theirs, port, packet, expected):
                text = _difference(ours, port, packet, expected, there)
                return DiffResult(compared, count, refused, text)
            compared += 1
    return DiffResult(compared, count, refused)


def diff_operations(
    program: Path,
    script: Path | None = None,
    count: int = 200,
    seed: int = 0,
    folders: Sequence[Path] = (),
    macros: Mapping[str, str] | Sequence[str] = (),
    compiler: str = "gradplane",
    save: Path | None = None,
) -> Comparison:
    """Run one script of operations on the embedded switch and simple_switch_grpc: a file's, or a
    random one, which is written to the file `save`. Raises as diff() does."""
    target, found, p4info, config = _loadable(program, folders, macros, compiler)
    if script is not None:
        operations = parse(script.read_text("utf-8-sig", errors="replace"), p4info, str(script))
    else:
        guide, inputs = _device(found.program, CPU_PORT), Inputs(found.program, seed)
        in_source = _transferred(guide)
        inputs.populate(_switch(guide))
        entities = [e for e in transferable(guide) if _key(e) not in in_source]
        packets = inputs.packets(_switch(guide), _TRIES * count)
        made = RandomOperations(p4info, entities, packets, seed)
        operations = list(made.script(count))
    if save is not None:
        write_output(save, "".join(f"{operation}\n" for operation in operations))
    with Bmv2Switch(target, CPU_PORT) as theirs:
        theirs.load(p4info, config)
        ours = Ours(_device(found.program, CPU_PORT), units(p4info))
        return compare(operations, ours, Theirs(theirs, units(p4info)), special(p4info))


def _loadable(
    program: Path, folders: Sequence[Path], macros: Mapping[str, str] | Sequence[str], compiler: str
) -> tuple[Bmv2, Compiled, p4i.P4Info, bytes]:
    """Return BMv2's target, the program, and P4Info and device config of it."""
    target = targets.get("bmv2", compiler=compiler)
    assert isinstance(target, Bmv2)
    if missing := target.missing():
        raise DiffError(missing)
    given = macros if isinstance(macros, Mapping) else dict(_macro(text) for text in macros)
    defines = {**backends.macros("bmv2"), **given}
    found = p4_programs.compiled(program, folders, defines)
    p4_programs.check(found, "v1model")
    return target, found, *target.pipeline(_Loadable(program, folders, defines, found))


def _key(entity: Any) -> bytes:
    key: bytes = entity.SerializeToString(deterministic=True)
    return key


def _transferred(device: Device) -> set[bytes]:
    return {_key(entity) for entity in transferable(device)}


def _differs(theirs: Bmv2Switch, port: int, packet: bytes, expected: Outputs) -> str:
    """Return what the packet becomes in BMv2, as lines; "" if that is what is expected."""
    try:
        got = theirs.process(port, packet)
    except DiffError as error:
        return str(error)
    if sorted(got) == sorted(expected):
        return ""
    return "\n".join(["bmv2 sends:", *_shown(got)])


@dataclass(frozen=True)
class _Loadable:
    """A program as targets take it."""

    path: Path
    folders: Sequence[Path]
    defines: Mapping[str, str]
    compiled: Compiled

    @property
    def include_dirs(self) -> Sequence[Path]:
        return (*self.folders, *INCLUDE_DIRS)

    def p4info(self, switch: str = "") -> p4i.P4Info:
        return p4_programs.p4info_message(self.compiled.program, switch)

    def packed_source(self) -> bytes:
        return device_config(self.path, self.include_dirs, self.defines)

    def compiled_for(self, switch: str) -> bytes:
        if self.path.suffix == ".json":
            return self.path.read_bytes()
        return p4_programs.compiled_for(switch, self.compiled).encode()


def _macro(text: str) -> tuple[str, str]:
    """Return name and value of NAME[=VALUE]."""
    name, _, value = text.partition("=")
    return name, value or "1"


def _device(program: Any, cpu_port: int | None = None) -> Device:
    def compile(source: object) -> Any:
        raise AssertionError("nothing is pushed")

    start: Callable[[Any], Switch] = lambda p: Switch(  # noqa: E731
        p, engine="interpreter", cpu_port=cpu_port
    )
    device = Device(compile, start, restricted=False)  # as BMv2 takes entries
    device.load(program)
    return device


def _switch(device: Device) -> Switch:
    assert device.pipeline is not None and isinstance(device.pipeline.switch, Switch)
    return device.pipeline.switch


def _populate(switch: Switch, file: Path | None, inputs: Inputs) -> None:
    if file is None:
        inputs.populate(switch)
    else:
        switch.run_commands(file.read_text("utf-8-sig", errors="replace"), str(file))


def _transfer(
    entities: Sequence[Any], ours: Device, guide: Device, theirs: Bmv2Switch
) -> tuple[int, tuple[str, ...]]:
    """Copy entities of our switch; those that BMv2 refuses are removed from ours."""
    refused, count = list[tuple[Any, str]](), 0
    for entity in entities:
        try:
            said = theirs.insert(entity)
        except DiffError as error:
            line = text_format.MessageToString(entity, as_one_line=True)
            raise DiffError(f"{error}, at the entry {line}") from error
        if said:
            refused.append((entity, said))
        else:
            count += 1
            update = p4r.Update(type=p4r.Update.INSERT, entity=entity)
            write(guide.target, [update], p4r.WriteRequest.CONTINUE_ON_ERROR)
    for entity, _ in reversed(refused):  # entries before the groups and members that they use
        update = p4r.Update(type=p4r.Update.DELETE, entity=entity)
        write(ours.target, [update], p4r.WriteRequest.CONTINUE_ON_ERROR)
    return count, tuple(said for _, said in refused)


def transferable(device: Device) -> list[Any]:
    """Return everything that a controller could have inserted, in an order in which it could."""
    queries = [p4r.Entity() for _ in range(5)]
    queries[0].action_profile_member.SetInParent()
    queries[1].action_profile_group.SetInParent()
    queries[2].table_entry.SetInParent()
    queries[3].packet_replication_engine_entry.multicast_group_entry.SetInParent()
    queries[4].packet_replication_engine_entry.clone_session_entry.SetInParent()
    found = [entity for answer in read(device.target, queries) for entity in answer.entities]
    return [e for e in found if not (e.table_entry.is_const or e.table_entry.is_default_action)]


def _difference(ours: Switch, port: int, packet: bytes, expected: Outputs, there: str) -> str:
    """Return the packet, what became of it in both, and our trace (of its second pass)."""
    lines = [f"first difference: port {port}, packet {packet.hex()}"]
    lines += ["embedded sends:", *_shown(expected), there]
    lines += ["trace of the embedded switch, given the packet again:"]
    return "\n".join([*lines, ours.trace(port, packet).text().rstrip("\n")])


def _shown(outputs: Outputs) -> list[str]:
    return [f"  port {port}: {packet.hex()}" for port, packet in sorted(outputs)] or ["  nothing"]
