"""The bytes that a pass keeps, as machine code. They lie in blocks of memory that do not move while
it runs, each packet's behind room for the headers that the path puts in front of it."""

from __future__ import annotations

from gradplane.switch.jit import native_memory
from gradplane.switch.jit.llvm_text import Function, Module, Operand

ROOM = 16  # bytes that may be written behind a packet's end


def keep(f: Function, room: Operand | int) -> Operand:
    """Return an address with room for so many bytes, which `kept` takes."""
    return f.call("ptr", "keep", ("i64", room))


def kept(f: Function, size: Operand) -> None:
    """Take bytes that were written where `keep` said."""
    f.call("void", "kept", ("i64", size))


def forget(f: Function) -> None:
    """Begin a pass, which has kept nothing."""
    f.call("void", "forget")


def write_functions(module: Module, front: int) -> None:
    """Write the functions; front: the bytes of room, a multiple of 16.

    A block that is full stays where it is until then: its address is at the start of the next."""
    f = module.function("keep", "ptr", [("i64", "%size")])
    native_memory.vector_words(module, "kept")
    length = native_memory.length(f, "kept")
    need = f.binary("add", "i64", f.binary("add", "i64", length, "%size"), ROOM + front)
    capacity = f.word("kept:capacity", "i64", fixed=False)
    with f.when(f.compare("ugt", "i64", need, capacity)):
        more = f.binary("add", "i64", f.binary("shl", "i64", need, 1), 4096)
        block = f.intrinsic("malloc", "ptr", ("i64", more))
        f.store("ptr", native_memory.data(f, "kept"), block, 8)
        f.store("ptr", block, f.word_address("kept:data"), 8)
        f.store("i64", more, f.word_address("kept:capacity"), 8)
        f.store("i64", ROOM, f.word_address("kept:length"), 8)
    at = f.binary("add", "i64", native_memory.length(f, "kept"), front)
    f.ret(f.add(native_memory.data(f, "kept"), at))
    f = module.function("kept", "void", [("i64", "%size")])
    whole = f.binary("add", "i64", "%size", 2 * ROOM - 1 + front)
    native_memory.extend(f, "kept", f.binary("and", "i64", whole, -ROOM))
    f.ret()
    _forget(module)


def _forget(module: Module) -> None:
    f = module.function("forget", "void", [])
    f.store("i64", ROOM, f.word_address("kept:length"), 8)
    block = native_memory.data(f, "kept")
    with f.when(f.compare("eq", "ptr", block, "null")):
        f.ret()
    with f.loop() as end:
        older, more = f.load("ptr", block, 8), f.label()
        f.branch(f.compare("eq", "ptr", older, "null"), end, more)
        f.at(more)
        f.store("ptr", f.load("ptr", older, 8), block, 8)
        f.intrinsic("free", "void", ("ptr", older))
    f.ret()
