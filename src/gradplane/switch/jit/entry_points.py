"""The entry points of native code, and packets that are resubmitted or recirculated.

process(ptr ports, ptr data, ptr starts, ptr ends, i64 count): packets and all that they cause.
once(ptr data, i64 size, i64 port, i64 kind, ptr meta, i64 passes): one pass.
depart(ptr records, i64 count): egress of packets that leave queues of the switch's own.
release(): frees what the code allocated.

Packets that leave are appended to vector `out`, with a record (port, end in `out`, cause) in
`sent`. Those for a further pass are in vector `again`, as nodes: bytes (ptr, capacity, length),
kind, port, passes, metadata. Those that wait in a queue are in vector `waiting`, as records: a head
(WAITING), the architecture's record of the packet, the packet's bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gradplane.switch.jit import native_memory
from gradplane.switch.jit.externs import post
from gradplane.switch.jit.llvm_text import Function, Module, Operand

NODE = {"data": 0, "capacity": 8, "length": 16, "kind": 24, "port": 32, "passes": 40}
NODE_META = 48
WAITING = {"whole": 0, "port": 8, "priority": 16, "size": 24, "enq_timestamp": 32, "enq_qdepth": 40,
           "deq_timedelta": 48, "deq_qdepth": 56}  # fmt: skip
"""The head of a packet that waits. `whole`: bytes of the record, `size`: of the packet. The last
four are set when it leaves."""
WAITING_HEAD = 64
ARRIVE = [("ptr", "%data"), ("i64", "%size"), ("i64", "%port"), ("i64", "%kind"),
          ("ptr", "%meta"), ("i64", "%passes")]  # fmt: skip

RUN = [("ptr", "%ports"), ("ptr", "%data"), ("ptr", "%starts"), ("ptr", "%ends"),
       ("i64", "%count"), ("i64", "%cause"), *ARRIVE[3:], ("i1", "%whole")]  # fmt: skip


class Pipeline(NamedTuple):
    """The facts about the code that the engine needs: sizes of a node and of its metadata, reasons
    of drops by the state words that count them, the positions of the words that each pipe may have
    of its own, and where a packet that waits says that it is to be deflected from a full queue
    (Traffic.deflection)."""

    node_size: int
    meta_size: int
    drops: Mapping[str, str]
    pipe_words: range
    deflection: Mapping[str, int]


def write_entry_points(module: Module, node_size: int, storm: int, most: int) -> None:
    """Write the functions that the engine calls, but `depart`, over void arrive(ARRIVE): one pass
    of a packet, whose metadata may be null.

    node_size: bytes of a node. storm: the site that reports a packet that takes `most` passes."""
    _run(module)
    _process(module)
    _again(module, node_size, storm, most)
    _once(module)
    _release(module, node_size)


def write_make_node(module: Module, node_size: int) -> None:
    """Write ptr make_node(i64 bytes, i64 kind, i64 port, i64 passes)."""
    params = [("i64", "%room"), ("i64", "%kind"), ("i64", "%port"), ("i64", "%passes")]
    f = module.function("make_node", "ptr", params)
    node = native_memory.reserve(f, "again", node_size)
    end = f.binary("add", "i64", native_memory.length(f, "again"), node_size)
    with f.when(f.compare("ugt", "i64", end, f.word("nodes made", "i64", fixed=False))):
        f.store("ptr", "null", node, 8)
        f.store("i64", 0, f.add(node, NODE["capacity"]), 8)
        f.store("i64", end, f.word_address("nodes made"), 8)
    capacity = f.load("i64", f.add(node, NODE["capacity"]), 8)
    with f.when(f.compare("ult", "i64", capacity, "%room")):
        data = f.load("ptr", node, 8)
        bigger = f.binary("add", "i64", "%room", 512)
        data = f.intrinsic("realloc", "ptr", ("ptr", data), ("i64", bigger))
        f.store("ptr", data, node, 8)
        f.store("i64", bigger, f.add(node, NODE["capacity"]), 8)
    f.store("i64", "%kind", f.add(node, NODE["kind"]), 8)
    f.store("i64", "%port", f.add(node, NODE["port"]), 8)
    passes = f.binary("add", "i64", "%passes", 1)
    f.store("i64", passes, f.add(node, NODE["passes"]), 8)
    f.ret(node)


def _run(module: Module) -> None:
    """Write void run(RUN): packets with one kind, metadata and number of passes; whole: with all
    that they cause. It alone calls `arrive`, so that a short one is in its loop."""
    f = module.function("run", "void", RUN, attributes="noinline ")
    with f.count("%count") as i:
        f.store("i64", f.binary("add", "i64", "%cause", i), f.word_address("cause"), 8)
        port, start, end = (
            f.load("i64", f.item(array, "i64", i), 8) for array in ("%ports", "%starts", "%ends")
        )
        args = (f.add("%data", start), f.binary("sub", "i64", end, start), port)
        pairs = zip(ARRIVE, (*args, "%kind", "%meta", "%passes"), strict=True)
        f.call("void", "arrive", *((kind, arg) for (kind, _), arg in pairs))
        more = f.compare("ne", "i64", native_memory.length(f, "again"), 0)
        with f.when(f.binary("and", "i1", "%whole", more)):
            f.call("void", "again")
            native_memory.set_length(f, "again", 0)
    f.ret()


def _call_run(f: Function, *args: Operand) -> None:
    pairs = zip(RUN, args, strict=True)
    f.call("void", "run", *((kind, arg) for (kind, _), arg in pairs))


def _process(module: Module) -> None:
    f = module.function("process", "void", RUN[:5], exported=True)
    native_memory.set_length(f, "again", 0)
    _call_run(f, *(name for _, name in RUN[:5]), "0", "0", "null", "0", "true")
    f.ret()


def _again(module: Module, node_size: int, storm: int, most: int) -> None:
    """Write void again(): runs waiting packets until none is left, within a limit."""
    f = module.function("again", "void", [], attributes="noinline ")
    at, passes = f.variable("i64", 0), f.variable("i64", 1)
    with f.loop() as end:
        more = f.label()
        f.branch(f.compare("ult", "i64", at.get(), native_memory.length(f, "again")), more, end)
        f.at(more)
        full = f.compare("uge", "i64", passes.get(), most)
        with f.when(full):
            left = f.binary("sub", "i64", native_memory.length(f, "again"), at.get())
            count = f.alloca(8)
            f.store("i64", f.binary("udiv", "i64", left, node_size), count, 8)
            post(f, "messages", storm, count, 8)
            f.ret()
        node = f.add(native_memory.data(f, "again"), at.get())
        data = f.load("ptr", node, 8)
        length, port = (f.add(node, NODE[name]) for name in ("length", "port"))
        kind, passed = (f.load("i64", f.add(node, NODE[name]), 8) for name in ("kind", "passes"))
        cause = f.word("cause", "i64", fixed=False)
        meta = f.add(node, NODE_META)
        _call_run(f, port, data, module.zeros(8), length, "1", cause, kind, meta, passed, "false")
        at.increase(node_size)
        passes.increase()
    f.ret()


def _once(module: Module) -> None:
    f = module.function("once", "void", ARRIVE, exported=True)
    native_memory.set_length(f, "again", 0)
    port, size = f.alloca(8), f.alloca(8)
    f.store("i64", "%port", port, 8)
    f.store("i64", "%size", size, 8)
    packet = (port, "%data", module.zeros(8), size, "1", "0")
    _call_run(f, *packet, "%kind", "%meta", "%passes", "false")
    f.ret()


def _release(module: Module, node_size: int) -> None:
    f = module.function("release", "void", [], exported=True)
    nodes = native_memory.data(f, "again")
    made = f.binary("udiv", "i64", f.word("nodes made", "i64", fixed=False), node_size)
    with f.count(made) as i:
        node = f.add(nodes, f.binary("mul", "i64", i, node_size))
        f.intrinsic("free", "void", ("ptr", f.load("ptr", node, 8)))
    if module.has("forget"):
        f.call("void", "forget")
    for name in native_memory.NAMES:
        f.intrinsic("free", "void", ("ptr", native_memory.data(f, name)))
    f.ret()
