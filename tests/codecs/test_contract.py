"""`gradplane codecs check`: a codec that breaks a rule is told which, and how."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gradplane import codecs
from gradplane.cli.app import app
from gradplane.codecs import Codec, CodecError, Context, Floats, Reader, State
from gradplane.codecs._contract import check


@dataclass(frozen=True)
class Plain(Codec):
    """Each value as it is."""

    scale: float = 1.0

    def max_size(self, n: int) -> int:
        return 4 * n

    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        return x.astype("<f4").tobytes(), context.state

    def _decode(self, data: bytes, n: int) -> Floats:
        reader = Reader(data)
        found = reader.array("<f4", n, "values")
        reader.end()
        if not np.isfinite(found).all():
            raise CodecError("corrupted: a value is not finite")
        return found.astype(np.float32)


class Long(Plain):
    def max_size(self, n: int) -> int:
        return 4 * n - 1 if n > 500 else 4 * n


class Noisy(Plain):
    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        return (x + np.random.default_rng().random(x.size, np.float32)).tobytes(), context.state


class Remembers(Plain):
    def _encode(self, x: Floats, context: Context) -> tuple[bytes, State]:
        object.__setattr__(self, "memory", np.float32(context.seed))
        return super()._encode(x, context)

    def _decode(self, data: bytes, n: int) -> Floats:
        return super()._decode(data, n) + getattr(self, "memory", np.float32(0))


class Trusts(Plain):
    def _decode(self, data: bytes, n: int) -> Floats:
        return np.frombuffer(data, "<f4", n).copy()


def broken(codec: Codec) -> dict[str, str]:
    return {name: problem for name, _, problem in check(codec) if problem}


def test_a_codec_that_keeps_them_all() -> None:
    assert broken(Plain()) == {}


@pytest.mark.parametrize(
    ("kind", "rule", "said"),
    [
        (Long, "sizes", "1000 values took 4000 bytes; max_size says 3999"),
        (Noisy, "repeats", "equal arguments gave other bytes"),
        (Noisy, "zeros", "100 zeros came back with 100 other values"),
        (Remembers, "independence", "another codec of equal parameters decodes"),
        (Trusts, "damage", "ValueError"),
    ],
)
def test_a_broken_rule_is_named(kind: Any, rule: str, said: str) -> None:
    assert said in broken(kind())[rule]


def test_the_command_checks_a_users_file(tmp_path: Path) -> None:
    text = Path(__file__).read_text().partition("@dataclass")[2].partition("\n\n\nclass Long")[0]
    head = "from dataclasses import dataclass\nimport numpy as np\nfrom gradplane.codecs import *\n"
    for name, size in (("plain", "4 * n"), ("short", "n")):
        (tmp_path / f"{name}.py").write_text(
            f"{head}\n@dataclass{text}\n".replace("return 4 * n", f"return {size}")
        )
    done = CliRunner().invoke(app, ["codecs", "check", str(tmp_path / "plain.py")])
    assert done.exit_code == 0 and done.output.count("yes") == len([*check(Plain())])
    done = CliRunner().invoke(app, ["codecs", "check", "float32", str(tmp_path / "short.py")])
    assert done.exit_code == 1
    assert "_encode made 4 bytes of 1 values" in " ".join(done.output.split())
    assert codecs.get("float32").name in done.output
