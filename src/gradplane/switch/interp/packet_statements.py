"""Statements of parsers and deparsers on the packet, as closures; `c` compiles their operands."""

from __future__ import annotations

from gradplane.switch.interp.expressions import Expressions, keep_only
from gradplane.switch.interp.frame_layout import Env, Load, Run
from gradplane.switch.interp.packet import (
    MOST_EMITTED,
    Abort,
    HeaderCodec,
    Reject,
    decoder,
    encoder,
)
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Header, bit_width

EMITTED_TOO_MUCH = f"more than {MOST_EMITTED} bytes of headers were emitted"


def extract(c: Expressions, s: ir.Extract) -> Run:
    assert isinstance(s.target.type, Header), s.target.type
    codec, too_short = HeaderCodec(s.target.type), c.error("PacketTooShort")
    too_long = c.error("HeaderTooShort")
    header, siblings = c.load(s.target), c.siblings(s.target)
    size = None if s.size is None else _whole_bytes(c, s.size)
    advance = _advance_next(c, s.target)

    def run(env: Env) -> None:
        packet, target = env[0], header(env)
        varying = 0 if size is None else size(env)
        end = packet.position + codec.fixed + varying
        if end > packet.bits:
            raise Reject(too_short)
        if varying > codec.limit:
            raise Reject(too_long)
        target.fields = codec.decode(packet, varying)
        target.valid = True
        packet.position = end
        if siblings is not None:
            keep_only(siblings(env), target)
        if advance is not None:
            advance(env)

    return run


def _whole_bytes(c: Expressions, size: ir.Expr) -> Load:
    """Return the function for a number of bits, which must be whole bytes, as in BMv2."""
    load, invalid = c.load(size), c.error("ParserInvalidArgument")

    def checked(env: Env) -> int:
        bits: int = load(env)
        if bits % 8:
            raise Reject(invalid)
        return bits

    return checked


def _advance_next(c: Expressions, target: ir.LValue) -> Run | None:
    """Advance stack.next after an extract to it, or to a member of a union there."""
    base = target.base if isinstance(target, ir.FieldOf) else target
    if not isinstance(base, ir.NextOf):
        return None
    stack = c.load(base.base)

    def run(env: Env) -> None:
        stack(env).next += 1

    return run


def lookahead(c: Expressions, s: ir.Lookahead) -> Run:
    width, store = bit_width(s.target.type), c.store(s.target)
    decode, too_short = decoder(s.target.type), c.error("PacketTooShort")
    assert width is not None, s.target.type

    def run(env: Env) -> None:
        packet = env[0]
        if packet.position + width > packet.bits:
            raise Reject(too_short)
        store(env, decode(packet))

    return run


def advance(c: Expressions, s: ir.Advance) -> Run:
    bits, too_short = _whole_bytes(c, s.bits), c.error("PacketTooShort")

    def run(env: Env) -> None:
        packet = env[0]
        end = packet.position + bits(env)
        if end > packet.bits:
            raise Reject(too_short)
        packet.position = end

    return run


def packet_length(c: Expressions, s: ir.PacketLength) -> Run:
    store = c.store(s.target)
    return lambda env: store(env, env[0].bits >> 3)


def verify(c: Expressions, s: ir.Verify) -> Run:
    cond, error = c.load(s.cond), c.load(s.error)

    def run(env: Env) -> None:
        if not cond(env):
            raise Reject(error(env))

    return run


def emit(c: Expressions, s: ir.Emit) -> Run:
    value, encode = c.load(s.value), encoder(s.value.type)

    def run(env: Env) -> None:
        packet = env[0]
        encode(packet, value(env))
        if packet.emitted > MOST_EMITTED * 8:
            raise Abort(EMITTED_TOO_MUCH)

    return run
