"""Random and mutated P4 source, compiled and run: python tests/switch/fuzz_source.py.

Every program of the repository, with words, lines and bytes replaced, cut and repeated; with whole
statements and pairs of brackets cut, repeated and exchanged; and random bytes. Whatever the text
is, the compiler answers with a program, which gets a P4Info and BMv2's JSON, and which both engines
run on random packets, or with errors that have a place; it never raises anything else and never
hangs.
The first failure ends it and leaves its source in fuzz-failure.p4.
"""

from __future__ import annotations

import argparse
import random
import re
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gradplane.experiment import p4_programs
from gradplane.switch import Switch
from gradplane.switch.arch.registry import why_not
from gradplane.switch.compiler import compile_source
from gradplane.switch.ir.verify import verify
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.source import CompileError, InternalCompilerError

ROOT = Path(__file__).parents[2]
INCLUDES = [ROOT / "p4", ROOT / "p4" / "include", ROOT / "tests" / "switch" / "stf" / "features"]
FAILURE = Path("fuzz-failure.p4")
TOKEN = re.compile(rb'#[^\n]*|//[^\n]*|"[^"]*"|\w+|\s+|.', re.DOTALL)
PATIENCE = 60  # seconds of processor time for one program
BRACKETS = {b"{": b"}", b"(": b")", b"[": b"]"}
LARGEST = 40_000  # bytes of source; thousands of mutations of small programs find more


class Hang(BaseException):
    """A program took longer than PATIENCE.

    Not an Exception, so that no handler of exceptions catches it.
    """


def programs() -> list[bytes]:
    """Return every P4 source of the repository, except those that must be rejected."""
    files = sorted(p for room in ("tests", "p4", "benchmarks") for p in (ROOT / room).rglob("*.p4"))
    texts = [file.read_bytes() for file in files if "rejected" not in file.parts]
    return [text for text in texts if len(text) <= LARGEST]


def random_bytes(chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(400))


def mutated(text: bytes, other: bytes, chance: random.Random) -> bytes:
    """Return a mutation of `text`.

    A few tokens are replaced, dropped, swapped or repeated, or a piece of `other` is inserted, or
    some bytes are overwritten. Half of the replaced tokens become one of their kind, so that some
    results are still programs.
    """
    tokens, others = TOKEN.findall(text), TOKEN.findall(other)
    words = [i for i, token in enumerate(tokens) if token.strip() and token[:1] not in b"#/"]
    for _ in range(chance.choice([1, 1, 1, 2, 4, 12])):
        at = min(chance.choice(words), len(tokens) - 1)
        match chance.randrange(12):
            case 0:
                tokens[at] = tokens[min(chance.choice(words), len(tokens) - 1)]
            case 1:
                tokens[at] = chance.choice(others)
            case 2:
                tokens[at] = b""
            case 3:
                tokens[at : at + chance.randrange(40)] = []
                tokens = tokens or [b" "]
            case 4:
                start = chance.randrange(len(others))
                tokens[at:at] = others[start : start + chance.randrange(60)]
            case 5:
                tokens[at] = number(chance)
            case _:
                tokens[at] = chance.choice([t for t in tokens if kind(t) == kind(tokens[at])])
    data = bytearray(b"".join(tokens))
    if data and chance.random() < 0.05:
        for _ in range(3):
            data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def rearranged(text: bytes, other: bytes, chance: random.Random) -> bytes:
    """Return a mutation of `text` by whole subtrees, so that many results still parse.

    Statements or bracketed parts are dropped, repeated or replaced, also by a part of `other`.
    """
    tokens, others = TOKEN.findall(text), TOKEN.findall(other)
    for _ in range(chance.choice([1, 1, 2, 3])):
        parts = subtrees(tokens)
        if not parts:
            break
        start, end = chance.choice(parts)
        opening = tokens[start]
        alike = [others[a:b] for a, b in subtrees(others) if others[a] == opening]
        a, b = chance.choice(parts)
        choices = [[], tokens[start:end] * 2, tokens[a:b], *alike[:1], *alike[-1:]]
        tokens[start:end] = chance.choice(choices)
    return b"".join(tokens)


def subtrees(tokens: list[bytes]) -> list[tuple[int, int]]:
    """Return where bracketed parts and simple statements start and end."""
    found, open_at, statement = [], list[int](), 0
    for at, token in enumerate(tokens):
        if token in BRACKETS:
            open_at.append(at)
        elif token in BRACKETS.values():
            while open_at and BRACKETS[tokens[open_at[-1]]] != token:
                open_at.pop()
            if open_at:
                found.append((open_at.pop(), at + 1))
        elif token == b";" and statement < at:
            found.append((statement, at + 1))
        if token in (b";", b"{", b"}"):
            statement = at + 1
    return found


def kind(token: bytes) -> str:
    """Classify a character: number, name, space or other."""
    first = token[:1]
    if first.isdigit():
        return "number"
    return "name" if first.isalpha() else "rest" if token.strip() else "space"


def number(chance: random.Random) -> bytes:
    """Return a literal at the edge of its range."""
    bits = chance.choice([0, 1, 7, 8, 9, 31, 32, 33, 64, 128, 2048, 5000])
    width = chance.choice(["", "", f"{bits}w", f"{bits}s"])
    return f"{width}{chance.choice([0, 1, (1 << bits) - 1, 1 << bits])}".encode()


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    def give_up(number: int, frame: object) -> None:
        raise Hang(f"more than {seconds} s")

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@contextmanager
def suppress_refusals() -> Iterator[None]:
    """Let errors that a user may see end a block, but not bugs of the compiler."""
    try:
        yield
    except InternalCompilerError:
        raise
    except CompileError as error:
        assert error.diagnostics and str(error)


def try_source(source: bytes, chance: random.Random) -> bool:
    """Compile a text and run the program; return whether it was accepted."""
    text = source.decode("utf-8", "replace")
    try:
        compiled = compile_source("fuzz.p4", INCLUDES, text=text)
        program = compiled.program
    except CompileError as error:
        assert error.diagnostics and str(error) and type(error) is CompileError
        return False
    if why_not(program):  # it is for an architecture of its own
        return True
    verify(program)
    with suppress_refusals():
        p4_programs.compiled_for("bmv2", compiled)
        p4_programs.p4info(program, "bmv2")
    packets = [chance.randbytes(chance.choice([0, 14, 40, 100])) for _ in range(20)]
    for engine in ("interpreter", "jit"):
        try:
            switch = Switch(program, engine=engine)
        except InternalCompilerError:
            raise
        except (CompileError, SwitchError):  # an extern without implementation, for example
            continue
        for packet in packets:
            switch.process(1, packet)
    return True


def run(seconds: float, first: int) -> None:
    """Try one seed after another until the time is over."""
    texts = programs()
    end, seed, accepted = time.monotonic() + seconds, first, 0
    while time.monotonic() < end:
        chance = random.Random(seed)
        source = random_bytes(chance)
        if chance.random() < 0.95:
            mutate = chance.choice([mutated, rearranged])
            source = mutate(chance.choice(texts), chance.choice(texts), chance)
        try:
            with patience(PATIENCE):
                accepted += try_source(source, chance)
        except BaseException:
            FAILURE.write_bytes(source)
            print(f"\nseed {seed}: see {FAILURE}")
            raise
        seed += 1
        if seed % 100 == 0:
            print(f"\r{seed - first} sources, {accepted} of them programs ", end="", flush=True)
    print(f"\r{seed - first} sources, {accepted} of them programs: every answer in order")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long (default 60)")
    parser.add_argument("--seed", type=int, help="the first seed (default: random)")
    options = parser.parse_args()
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    run(options.seconds, seed)


if __name__ == "__main__":
    main()
