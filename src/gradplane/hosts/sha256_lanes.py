"""SHA-256 (FIPS 180-4) of many messages, sixteen at a time: lane k of a vector is of message k.

A hash function of one message has to wait for each of its steps; with vectors of 512 bits a
processor hashes two and a half times as many bytes a second as with its instructions for SHA-256.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gradplane._addresses import address_of
from gradplane._kernels import intrinsic, njit
from gradplane._lazy_names import LazyModule

if TYPE_CHECKING:
    from llvmlite import ir
    from numba import types
else:
    ir, types = map(LazyModule, ("llvmlite.ir", "numba.core.types"))

LANES = 16
_BLOCK = 64  # bytes
_PRIMES = [p for p in range(2, 312) if all(p % q for q in range(2, p))]


@cache
def worthwhile() -> bool:
    """Return whether this processor has vectors of as many lanes."""
    import llvmlite.binding as llvm

    return bool(llvm.get_host_cpu_features().get("avx512f", False))


def _fraction(prime: int, power: int) -> int:
    """Return the first 32 bits behind the point of a prime's root."""
    low, high = 0, prime << 32
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**power <= prime << 32 * power else (low, middle - 1)
    return low & 0xFFFFFFFF


_CONSTANTS = [_fraction(prime, 3) for prime in _PRIMES]
_START = np.array([_fraction(prime, 2) for prime in _PRIMES[:8]], np.uint32)


@intrinsic
def _take(typing: Any, states: Any, places: Any, blocks: Any) -> Any:
    """Take so many blocks, one at least, of each lane's message.

    states: the address of uint32[8, LANES]; places: of int64[LANES], where the messages are."""
    return types.void(types.int64, types.int64, types.int64), _write_loop


def _write_loop(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
    lanes, (states, places, blocks) = _Lanes(builder), arguments
    words = [lanes.pointer(states, 4 * LANES * k, lanes.kind) for k in range(8)]
    start = [builder.load(word, align=4) for word in words]
    whole = ir.IntType(64)
    data = [builder.load(lanes.pointer(places, 8 * k, whole)) for k in range(LANES)]
    before, loop, after = builder.block, *map(builder.append_basic_block, ("block", "end"))
    builder.branch(loop)
    builder.position_at_end(loop)
    at, state = builder.phi(whole), [builder.phi(lanes.kind) for _ in range(8)]
    offset = builder.mul(at, ir.Constant(whole, _BLOCK))
    schedule = lanes.transposed([lanes.block(builder.add(place, offset)) for place in data])
    ended = [builder.add(a, b) for a, b in zip(state, lanes.rounds(state, schedule), strict=True)]
    following = builder.add(at, ir.Constant(whole, 1))
    builder.cbranch(builder.icmp_signed("<", following, blocks), loop, after)
    pairs = zip([at, *state], [ir.Constant(whole, 0), *start], [following, *ended], strict=True)
    for phi, first, later in pairs:
        phi.add_incoming(first, before)
        phi.add_incoming(later, loop)
    builder.position_at_end(after)
    for word, value in zip(words, ended, strict=True):
        builder.store(value, word, align=4)
    return context.get_dummy_value()


class _Lanes:
    """Operations on the words of sixteen messages."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self._builder = builder
        self.kind = ir.VectorType(ir.IntType(32), LANES)
        module, name = builder.module, f"llvm.fshl.v{LANES}i32"
        form = ir.FunctionType(self.kind, [self.kind] * 3)
        self._rotate = module.globals.get(name) or ir.Function(module, form, name)

    def pointer(self, address: Any, offset: int, kind: Any) -> Any:
        """Return an address as a pointer."""
        place = self._builder.add(address, ir.Constant(address.type, offset))
        return self._builder.inttoptr(place, kind.as_pointer())

    def _all(self, value: int) -> Any:
        return ir.Constant(self.kind, [value] * LANES)

    def _mixed(self, a: Any, b: Any, order: Sequence[int]) -> Any:
        places = ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order)
        return self._builder.shuffle_vector(a, b, places)

    def block(self, address: Any) -> Any:
        """Return the sixteen words of a message's block, which are in network order."""
        loaded = self._builder.load(self.pointer(address, 0, self.kind), align=1)
        octets = self._builder.bitcast(loaded, ir.VectorType(ir.IntType(8), _BLOCK))
        swapped = self._mixed(octets, octets, [k ^ 3 for k in range(_BLOCK)])
        return self._builder.bitcast(swapped, self.kind)

    def transposed(self, rows: list[Any]) -> list[Any]:
        """Return the columns of sixteen rows."""
        for distance in (1, 2, 4, 8):
            low = [j if not j & distance else LANES + j - distance for j in range(LANES)]
            high = [j + distance if not j & distance else LANES + j for j in range(LANES)]
            after = list(rows)
            for i in range(LANES):
                if not i & distance:
                    pair = rows[i], rows[i + distance]
                    after[i], after[i + distance] = (
                        self._mixed(*pair, low),
                        self._mixed(*pair, high),
                    )
            rows = after
        return rows

    def _sum(self, *terms: Any) -> Any:
        total, *others = terms
        for term in others:
            total = self._builder.add(total, term)
        return total

    def _turned(self, word: Any, first: int, second: int, third: int, shift: bool = False) -> Any:
        """Return the exclusive or of a word turned right by three numbers, or shifted by one."""
        turned = [
            self._builder.call(self._rotate, [word, word, self._all(32 - by)])
            for by in (first, second, third)
        ]
        if shift:
            turned[2] = self._builder.lshr(word, self._all(third))
        return self._builder.xor(self._builder.xor(turned[0], turned[1]), turned[2])

    def rounds(self, state: Sequence[Any], schedule: list[Any]) -> list[Any]:
        """Return the state after the rounds of a block; `schedule`: its words."""
        builder, words = self._builder, list(schedule)
        a, b, c, d, e, f, g, h = state
        for t, constant in enumerate(_CONSTANTS):
            if t >= 16:
                words.append(
                    self._sum(
                        words[t - 16], self._turned(words[t - 15], 7, 18, 3, shift=True),
                        words[t - 7], self._turned(words[t - 2], 17, 19, 10, shift=True),
                    )
                )  # fmt: skip
            chosen = builder.xor(g, builder.and_(e, builder.xor(f, g)))
            keyed = builder.add(words[t], self._all(constant))
            first = self._sum(h, keyed, self._turned(e, 6, 11, 25), chosen)
            most = builder.or_(builder.and_(a, b), builder.and_(c, builder.or_(a, b)))
            second = builder.add(self._turned(a, 2, 13, 22), most)
            a, b, c, d, e, f, g, h = self._sum(first, second), a, b, c, self._sum(d, first), e, f, g
        return [a, b, c, d, e, f, g, h]


@njit(cache=True, nogil=True)
def _hash(segments, ends, states):  # type: ignore[no-untyped-def]
    """Take messages into their states, uint32[messages, 8].

    segments: int64[k, 2], address and blocks of each part of a message, one after the other. ends:
    int64[messages], behind each one's last part.
    """
    rows = np.zeros((8, LANES), np.uint32)
    message, part = np.full(LANES, -1), np.zeros(LANES, np.int64)
    places, left = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    following = 0
    while True:
        blocks, busy = np.int64(0), -1
        for lane in range(LANES):
            while left[lane] == 0:
                own = message[lane]
                if own >= 0 and part[lane] < ends[own]:
                    places[lane], left[lane] = segments[part[lane], 0], segments[part[lane], 1]
                    part[lane] += 1
                    continue
                if own >= 0:
                    for k in range(8):
                        states[own, k] = rows[k, lane]
                message[lane] = -1
                if following == len(ends):
                    break
                message[lane] = following
                part[lane] = ends[following - 1] if following else 0
                for k in range(8):
                    rows[k, lane] = states[following, k]
                following += 1
            if message[lane] >= 0:
                blocks = min(blocks, left[lane]) if busy >= 0 else left[lane]
                busy = lane
        if busy < 0:
            return
        for lane in range(LANES):
            if message[lane] < 0:  # repeats another, for nothing
                places[lane] = places[busy]
        _take(rows.ctypes.data, places.ctypes.data, blocks)
        for lane in range(LANES):
            places[lane] += 64 * blocks
            if message[lane] >= 0:
                left[lane] -= blocks


def digests(messages: Sequence[Sequence[npt.NDArray[np.uint8]]]) -> list[str]:
    """Return the first 16 hex digits of each message's hash. The best order is the longest first.

    A message is arrays of bytes, contiguous, one after the other, all but the last of whole blocks
    of 64. It holds no lock of Python's while it hashes."""
    segments, ends, kept = [], [], []
    for parts in messages:
        last = parts[-1] if parts else np.empty(0, np.uint8)
        whole = last.size // _BLOCK * _BLOCK
        rest, size = last[whole:].tobytes(), sum(part.size for part in parts)
        padded = rest + b"\x80" + bytes(-(len(rest) + 9) % _BLOCK) + struct.pack(">Q", 8 * size)
        end = np.frombuffer(bytearray(padded), np.uint8)
        for part in (*parts[:-1], last[:whole], end):
            segments.append((address_of(part), part.size // _BLOCK))
        kept.append(end)
        ends.append(len(segments))
    states = np.tile(_START, (len(messages), 1))
    table = np.array(segments, np.int64).reshape(-1, 2)
    _hash(table, np.array(ends, np.int64), states)
    return [f"{first:08x}{second:08x}" for first, second in states[:, :2].tolist()]
