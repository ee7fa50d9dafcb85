"""Growable memory of the native code: a pointer, a length and a capacity among the state words."""

from __future__ import annotations

from gradplane.switch.jit.llvm_text import Function, Module, Operand

NAMES = (
    "again",
    "arriving",
    "between",
    "digests",
    "kept",
    "messages",
    "out",
    "queue",
    "scratch",
    "sent",
    "waiting",
)


def vector_words(module: Module, name: str) -> None:
    """Allot a vector's words, next to each other."""
    for part in ("data", "length", "capacity"):
        module.word(f"{name}:{part}")


def reserve(f: Function, name: str, size: Operand | int) -> Operand:
    """Return the address of the vector's end, with room for `size` bytes behind it."""
    module = f.module
    if not module.has("grow"):
        _grow(module)
    vector_words(module, name)
    return f.call("ptr", "reserve", ("ptr", f.word_address(f"{name}:data")), ("i64", size))


def length(f: Function, name: str) -> Operand:
    vector_words(f.module, name)
    return f.word(f"{name}:length", "i64", fixed=False)


def set_length(f: Function, name: str, value: Operand | int) -> None:
    vector_words(f.module, name)
    f.store("i64", value, f.word_address(f"{name}:length"), 8)


def extend(f: Function, name: str, size: Operand | int) -> None:
    """Take bytes written behind the end into the vector."""
    set_length(f, name, f.binary("add", "i64", length(f, name), size))


def data(f: Function, name: str) -> Operand:
    vector_words(f.module, name)
    return f.word(f"{name}:data", "ptr", fixed=False)


def _grow(module: Module) -> None:
    """Write ptr reserve(ptr vector, i64 size), and its slow path ptr grow(...)."""
    params = [("ptr", "%vector"), ("i64", "%size")]
    f = module.function("grow", "ptr", params, attributes="noinline cold ")
    old = f.load("i64", f.add("%vector", 8))
    need = f.binary("add", "i64", old, "%size")
    capacity = f.binary("add", "i64", f.binary("shl", "i64", need, 1), 4096)
    start = f.intrinsic("realloc", "ptr", ("ptr", f.load("ptr", "%vector")), ("i64", capacity))
    f.store("ptr", start, "%vector")
    f.store("i64", capacity, f.add("%vector", 16))
    f.ret(f.add(start, old))
    f = module.function("reserve", "ptr", params, attributes="alwaysinline ")
    old = f.load("i64", f.add("%vector", 8))
    need = f.binary("add", "i64", old, "%size")
    full = f.compare("ugt", "i64", need, f.load("i64", f.add("%vector", 16)))
    with f.when(full):
        f.ret(f.call("ptr", "grow", ("ptr", "%vector"), ("i64", "%size")))
    f.ret(f.add(f.load("ptr", "%vector"), old))
