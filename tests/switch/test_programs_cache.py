"""The cache of compiled programs: valid as long as nothing that they depend on has changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradplane._user_folders import cache_folder
from gradplane.switch import CompileError, Switch, compiler, disk_cache, program_cache
from gradplane.switch.ir.printer import program_text

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
#include "part.p4"
header byte_t { bit<8> v; }
struct headers_t { byte_t b; }
struct meta_t { }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.b); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply { h.b.v = VALUE; s.egress_spec = 1; }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.b); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test a cache of its own, and a program in two files in the current folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "source").mkdir()
    monkeypatch.chdir(tmp_path / "source")
    Path("main.p4").write_text(PROGRAM)
    Path("part.p4").write_text("#define VALUE 7\n")


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the compiler's runs since the last call."""
    runs: list[object] = []
    original = compiler.compile_source

    def counted(*args: Any, **options: Any) -> object:
        runs.append(args)
        return original(*args, **options)

    def count() -> int:
        number = len(runs)
        runs.clear()
        return number

    monkeypatch.setattr(compiler, "compile_source", counted)
    return count


def value(**options: object) -> int:
    """Return what the program writes into the packet."""
    ((_, packet),) = Switch("main.p4", engine="interpreter", **options).process(1, b"\0")  # type: ignore[arg-type]
    return packet[0]


def test_the_second_time_nothing_is_compiled(compilations: Callable[[], int]) -> None:
    first = program_cache.load_program("main.p4")
    assert compilations() == 1
    second = program_cache.load_program("main.p4")
    assert compilations() == 0
    assert first is not second
    assert program_text(first) == program_text(second)
    assert value() == 7


def test_an_included_file_that_changed_is_seen(compilations: Callable[[], int]) -> None:
    assert value() == 7
    Path("part.p4").write_text("#define VALUE 8\n")
    assert (value(), compilations()) == (8, 2)


def test_a_file_that_now_comes_first_is_seen(compilations: Callable[[], int]) -> None:
    Path("low").mkdir()
    Path("high").mkdir()
    Path("part.p4").rename("low/part.p4")
    folders = {"include_dirs": ["high", "low"]}
    assert value(**folders) == 7
    Path("high/part.p4").write_text("#define VALUE 9\n")
    assert (value(**folders), compilations()) == (9, 2)


def test_what_is_asked_for_is_part_of_the_key(compilations: Callable[[], int]) -> None:
    Path("part.p4").write_text("#ifndef VALUE\n#define VALUE 7\n#endif\n")
    assert value() == 7
    assert value(defines={"VALUE": "3"}) == 3
    assert value(text=PROGRAM.replace("VALUE;", "5;")) == 5
    assert compilations() == 3
    assert (value(), value(defines={"VALUE": "3"}), compilations()) == (7, 3, 0)


def test_another_compiler_compiles_again(
    compilations: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    value()
    monkeypatch.setattr(program_cache, "_fingerprint", lambda: "a later version")
    value()
    assert compilations() == 2


def test_a_damaged_file_is_compiled_again(compilations: Callable[[], int]) -> None:
    value()
    (kept,) = cache_folder("p4").iterdir()
    data = bytearray(kept.read_bytes())
    data[len(data) // 2] ^= 1
    kept.write_bytes(data)
    assert (value(), compilations()) == (7, 2)
    kept.write_bytes(kept.read_bytes()[:10])
    assert (value(), compilations()) == (7, 1)


def test_errors_are_reported_each_time() -> None:
    Path("part.p4").unlink()
    for _ in range(2):
        with pytest.raises(CompileError, match='cannot find "part.p4"'):
            value()
    assert not cache_folder("p4").exists()


def test_a_program_too_deep_to_be_kept_is_compiled_each_time(
    compilations: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_deep(*args: object) -> bytes:
        raise RecursionError

    monkeypatch.setattr(program_cache.pickle, "dumps", too_deep)
    assert (value(), value(), compilations()) == (7, 7, 2)


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = cache_folder("p4")
    monkeypatch.setattr(disk_cache, "PRUNED_EVERY", 1)
    monkeypatch.setattr(disk_cache, "KEPT", 3)
    for number in range(6):
        disk_cache.write(kept / str(number), bytes(100))
    assert len(list(kept.iterdir())) == 3
    monkeypatch.setattr(disk_cache, "KEPT_BYTES", 300)
    disk_cache.write(kept / "large", bytes(1000))
    assert [path.name for path in kept.iterdir()] == ["large"], "what was just written stays"
    assert disk_cache.read(kept / "large") == bytes(1000)
