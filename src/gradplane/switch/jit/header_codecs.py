"""One function for each header type and direction: void get(source, target, varying), put(...)."""

from __future__ import annotations

from gradplane.switch.ir.types import Header
from gradplane.switch.jit.expressions import Unit
from gradplane.switch.jit.field_runs import Vector, in_vectors, pieces
from gradplane.switch.jit.headers import NativeHeaderCodec, Wire, copy_bits, wire
from gradplane.switch.jit.llvm_text import Function, Operand
from gradplane.switch.jit.value_layout import container

FEW = 8  # fields in vectors
_GET = [("ptr", "%source"), ("ptr noalias", "%target"), ("i64", "%varying")]
_PUT = [("ptr", "%source"), ("ptr noalias", "%target")]


class HeaderCodecs:
    """Writes calls of the functions, and each function on its first use."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def decode(
        self, f: Function, t: Header, source: Operand, target: Operand, varying: Operand | int
    ) -> None:
        """Decode fields from byte-aligned `source`; validity is not changed."""
        name = self._name("get", t)
        if not self.unit.module.has(name):
            form = wire(self.unit, t)
            made = self.unit.module.function(name, "void", _GET, attributes=_attributes(form))
            self._decode(made, form)
        f.call("void", name, ("ptr", source), ("ptr", target), ("i64", varying))

    def encode(self, f: Function, t: Header, source: Operand, target: Operand) -> None:
        """Encode fields to byte-aligned `target`, with zeros up to the next byte."""
        name = self._name("put", t)
        if not self.unit.module.has(name):
            form = wire(self.unit, t)
            made = self.unit.module.function(name, "void", _PUT, attributes=_attributes(form))
            self._encode(made, form)
        f.call("void", name, ("ptr", source), ("ptr", target))

    def _name(self, what: str, t: Header) -> str:
        return f"{what}.{self.unit.number(t)}"

    def _decode(self, f: Function, form: Wire) -> None:
        codec = NativeHeaderCodec(self.unit, f)
        codec.decode(form.front, "%source", "%target")
        if form.varbit is not None:
            self._decode_varbit(f, form)
            back = self._back(f, form, "%varying")
            codec.decode(form.back, back, "%target")
        f.ret()

    def _decode_varbit(self, f: Function, form: Wire) -> None:
        assert form.varbit is not None
        bits, start = container(form.limit), sum(leaf.width for leaf in form.front)
        buffer = f.alloca(bits // 8)
        f.clear(buffer, bits // 8)
        to = f.binary("sub", "i64", bits, "%varying")
        if start & 7:
            copy_bits(f, buffer, to, "%source", start, "%varying")
        else:
            end = f.add(buffer, f.binary("lshr", "i64", to, 3))
            f.copy(end, f.add("%source", start // 8), f.binary("lshr", "i64", "%varying", 3))
        NativeHeaderCodec(self.unit, f).reverse(
            buffer, f.add("%target", form.varbit + 8), bits // 8
        )
        length = f.resize("%varying", 64, 32)
        f.store("i32", length, f.add("%target", form.varbit), 4)

    def _back(self, f: Function, form: Wire, varying: Operand) -> Operand:
        """Return the start of the fields after the varbit, aligned to a byte if need be."""
        width = sum(leaf.width for leaf in form.back)
        start = f.binary("add", "i64", varying, sum(leaf.width for leaf in form.front))
        if form.aligned:
            return f.add("%source", f.binary("lshr", "i64", start, 3))
        buffer = f.alloca(width // 8 + 1)
        copy_bits(f, buffer, 0, "%source", start, width)
        return buffer

    def _encode(self, f: Function, form: Wire) -> None:
        codec = NativeHeaderCodec(self.unit, f)
        codec.encode(form.front, "%source", "%target")
        if form.varbit is not None:
            self._encode_varbit(f, codec, form)
        f.ret()

    def _encode_varbit(self, f: Function, codec: NativeHeaderCodec, form: Wire) -> None:
        assert form.varbit is not None
        bits, start = container(form.limit), sum(leaf.width for leaf in form.front)
        buffer = f.alloca(bits // 8)
        codec.reverse(f.add("%source", form.varbit + 8), buffer, bits // 8)
        varying = f.resize(f.load("i32", f.add("%source", form.varbit), 4), 32, 64)
        skipped = f.binary("sub", "i64", bits, varying)
        width = sum(leaf.width for leaf in form.back)
        end = f.binary("add", "i64", varying, start)
        if form.aligned:
            body = f.add(buffer, f.binary("lshr", "i64", skipped, 3))
            f.copy(f.add("%target", start // 8), body, f.binary("lshr", "i64", varying, 3))
            codec.encode(form.back, "%source", f.add("%target", f.binary("lshr", "i64", end, 3)))
        else:
            copy_bits(f, "%target", start, buffer, skipped, varying)
            back = f.alloca(width // 8 + 1)
            codec.encode(form.back, "%source", back)
            copy_bits(f, "%target", end, back, 0, width)


def _attributes(form: Wire) -> str:
    """Return the attributes of a codec's function. If vectors fill many fields, it is not inlined:
    LLVM would extract the fields from the vectors one by one instead of loading them."""
    found = in_vectors(pieces((*form.front, *form.back)))
    return "noinline " if sum(p.count for p in found if isinstance(p, Vector)) > FEW else ""
