"""The implementations of everything.p4's externs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

calls = 0


def wide(a: int, b: int) -> int:
    return (a ^ (b & ((1 << 65) - 1)) ^ (1 << 128)) & ((1 << 129) - 1)


def negated(a: int) -> int:
    return max(-a, -64) if a != -64 else 63


def flipped(a: bool, /) -> tuple[bool, int]:
    return not a, -(1 << 32) if a else (1 << 32) - 1


def pairs(p: dict[str, Any], q: dict[str, Any]) -> Any:
    assert set(p) == {"x", "f"} and isinstance(p["f"], bool)
    return {"x": q["x"], "f": p["f"] != q["f"]}, {"x": p["x"], "f": q["f"]}


def swapped(t: tuple[int, bool]) -> tuple[int, bool]:
    number, flag = t
    return number ^ 0xFF, not flag


def after(c: str, k: int, e: str) -> tuple[str, str]:
    names = ["RED", "GREEN", "BLUE"]
    return names[(names.index(c) + k) % 3], "Odd" if e == "NoMatch" and k % 2 else e


def item(h: dict[str, int] | None) -> dict[str, int] | None:
    return {"k": 0xABC, "l": 5} if h is None else None


def other(u: dict[str, Any]) -> dict[str, Any]:
    quantity = u["small"]["q"]
    return {} if quantity % 5 == 0 else {"large": {"q": quantity << 8}}


def items(s: list[dict[str, int] | None]) -> list[dict[str, int] | None]:
    return s[1:] + s[:1]


def deep(d: dict[str, Any]) -> dict[str, Any]:
    return {"p": d["p"], "t": (d["t"][0] // 2, False), "h": d["s"][1], "s": [d["h"], None]}


def same(x: Any) -> Any:
    return x


def many(a: int, c: int, d: int | None) -> tuple[int, int, int]:
    return a ^ 1, (c + (d or 100)) & 0xFF, a + c


def constants(k: int, i: int, s: str, z: int) -> None:
    assert (k, i, s, z) == (200, 1 << 70, "text", 0)


def text(t: dict[str, Any]) -> dict[str, Any]:
    length, number = t["text"]
    data = number.to_bytes(length // 8, "big")[::-1] + b"!"
    return {
        "bytes": len(data) % 9,
        "text": (8 * min(len(data), 8), int.from_bytes(data[:8], "big")),
    }


def over(a: int, b: int | None = None) -> int:
    return a ^ 0x0F if b is None else (a + b) & 0xFF


def add_to(r: Any, v: int) -> None:
    r.write(1, (r.read(1) + v) & 0xFF)


def total() -> int:
    global calls
    calls += 1
    return calls


class Adder:
    def __init__(self, start: int, unused: int | None) -> None:
        self.sum = start

    def step(self, by: int) -> int:
        self.sum = (self.sum + by) & 0xF
        return self.sum


class Hooked:
    hook: Callable[[int, dict[str, Any]], tuple[int, dict[str, Any], str]]

    def __init__(self, t: tuple[int, bool], a: Adder, c: str, ps: list[dict[str, Any]]) -> None:
        assert (t, c) == ((1, True), "BLUE")
        assert ps == [{"x": 1, "f": True}, {"x": 2, "f": False}]
        self.adder = a

    def go(self, a: int) -> int:
        result, pair, color = self.hook(a, {"x": 200, "f": False})
        assert color == "GREEN" and pair == {"x": (200 + a) & 0xFF, "f": True}
        return (result + self.adder.step(1)) & 0xFF

    def base(self) -> int:
        return self.adder.sum
