"""Every kernel in Triton: interpreted, beside the codec, bit for bit; what it compiles to for
sm_90; and what the documents say of it."""

import inspect
import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from gradplane import codecs

DOCUMENT = Path(__file__).parents[2] / "docs" / "pytorch.md"
MEASURED = 2**13  # values of the documents' table


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import what may not be installed."""
    global torch, kernels, rows, triton_codecs, triton_launch, triton_streams
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install gradplane[torch]")
    pytest.importorskip("triton", reason="needs Triton: pip install gradplane[gpu]")
    from gradplane.torch import kernel_rows as rows
    from gradplane.torch import kernels, triton_codecs, triton_launch, triton_streams


# Equality


@pytest.mark.parametrize("n", [33, 1025])
def test_all_kernels_equal_their_codecs(n):
    device = torch.device("cpu")
    different = [
        f"{row.name}: {case.codec}, {case.count}"
        for row in rows.ROWS
        for case in row.cases((n,), device)
        if not rows.equal(row, case)
    ]
    assert different == []


def coded(name, **parameters):
    """Return the codecs, with kernels, of which parameters are given."""
    return pytest.param(name, parameters, id=f"{name} {parameters}")


BYTES = [
    coded("float16"),
    coded("bfloat16"),
    coded("int8"),
    *(coded("mxfp", element=element) for element in ("e5m2", "e4m3", "e3m2", "e2m3", "e2m1")),
    coded("zeropp"),
    coded("sdp4bit", bits=2),
    coded("switchml"),
    coded("thc", bits=3),
    coded("uniform_thc", version=1, bits=2),
    coded("inceptionn", bound=8),
    coded("threelc", s=1.5),
    coded("threelc", parts=4, accumulate=False),
    coded("topk", k=70),
]


def check(codec, x, seed=1):
    """Compare bytes, memory and what the bytes decode to."""
    data, state = codec.encode(x, seed=seed, state=codec.start(x.size))
    given = torch.from_numpy(x)
    found, after = triton_codecs.encode(codec, given, None, seed, None, 0)
    assert found.numpy().tobytes() == data
    if state is not None:
        assert after.numpy().tobytes() == state.error.tobytes()
    decoded = triton_codecs.decode(codec, found, x.size)
    assert decoded.numpy().tobytes() == codec.decode(data, x.size).tobytes()


@pytest.mark.parametrize(("name", "parameters"), BYTES)
def test_odd_values(name, parameters):
    """Zeros of both signs, ties, what is below the normal numbers, borders of blocks, nothing."""
    codec = codecs.get(name, **parameters)
    random = np.random.default_rng(5)
    tiny = random.integers(0, 2**23, 100, dtype=np.uint32).view(np.float32)
    near = (random.integers(105, 128, 160).astype(np.uint32) << 23).view(np.float32)
    ties = np.concatenate([near, near * np.float32(1.5), near * np.float32(1.25)])
    repeated = np.repeat(np.float32([0.5, -0.5, -0.0, 0.0]), 90)
    for x in (tiny, -tiny, ties, np.concatenate([ties, -tiny]), repeated, ties[:0], tiny[:31] * 0):
        check(codec, np.ascontiguousarray(x))


@pytest.mark.parametrize(
    ("before", "parts"),
    [(0, 2), (1, 3), (13, 7), (14, 16), (27, 5), (31, 2), (32, 4), (60, 3)],
)
def test_runs_of_zeros_over_borders_of_chunks_and_parts(before, parts):
    """3LC's runs, of up to 14 groups of five zeros, where threads take few groups each."""
    groups = np.ones(150, np.float32)
    groups[before : before + 75] = 0
    groups[-3:] = 0
    for number in (1, parts):
        check(codecs.get("threelc", accumulate=False, parts=number), np.tile(groups, 5))


def test_the_first_of_equal_magnitudes_are_kept():
    x = np.float32([1, -2, 2, 1, 2, -1, 0] * 400)
    for k in (1, 5, 1100, 1201, 2000, 2800):
        check(codecs.get("topk", k=k), x)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize(("name", "parameters"), BYTES)
def test_what_a_codec_refuses_its_kernels_leave_to_it(name, parameters):
    codec, x = codecs.get(name, **parameters), np.ones(50, np.float32)
    data = codec.encode(x, state=codec.start(50))[0]
    for value in (np.nan, np.inf, -np.inf):
        odd = x.copy()
        odd[40] = value
        assert triton_codecs.encode(codec, torch.from_numpy(odd), None, 1, None, 0) is None
    for damaged in (data[:-1], data + b"\0", b"", b"\xff" * len(data)):
        given = torch.frombuffer(bytearray(damaged or b"\0"), dtype=torch.uint8)[: len(damaged)]
        found = triton_codecs.decode(codec, given, 50)
        try:
            expected = codec.decode(damaged, 50)
        except codecs.CodecError:
            assert found is None
        else:
            assert found is None or found.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", ["threelc", "inceptionn", "sdp4bit"])
def test_tensors_of_the_cpu_go_through_the_codec(name):
    codec, x = codecs.get(name), np.linspace(-1, 1, 200, dtype=np.float32)
    data, state = codec.encode(x, state=codec.start(200))
    data, state = codec.encode(x, state=state)
    found, after = kernels.encode(codec, torch.from_numpy(x))
    found, after = kernels.encode(codec, torch.from_numpy(x), state=after)
    assert found.numpy().tobytes() == data
    assert state is None or np.array_equal(after.numpy(), state.error)
    decoded = kernels.decode(codec, found, 200)
    assert decoded.numpy().tobytes() == codec.decode(data, 200).tobytes()
    with pytest.raises(codecs.CodecError, match="^(truncated|corrupted|.* too many)"):
        kernels.decode(codec, found[:7], 200)


def test_codecs_without_kernels_and_wrong_types():
    assert not triton_codecs.has(codecs.get("qsgd"))
    assert not triton_codecs.has(codecs.get("uniform_thc", rotate=False))
    with pytest.raises(codecs.CodecError, match="^expected float32, got torch.float64: use x.flo"):
        triton_codecs.encode(codecs.get("int8"), torch.zeros(3).double(), None, 1, None, 0)
    with pytest.raises(codecs.CodecError, match="^expected uint8 of one dimension, got torch.int8"):
        triton_codecs.decode(codecs.get("int8"), torch.zeros(7).char(), 3)


# Launches: what they move, and what they compile to

POINTERS = {
    "float32": "*fp32",
    "float64": "*fp64",
    "uint8": "*u8",
    "int8": "*i8",
    "int16": "*i16",
    "int32": "*i32",
    "int64": "*i64",
}


def described(kernel, arguments, options):
    """Return a launch as ptx.py takes it."""
    names = list(inspect.signature(kernel.fn).parameters)
    constants = {name: value for name, value in options.items() if name.isupper()}
    kinds = dict.fromkeys(constants, "constexpr")
    for name, value in zip(names, arguments, strict=False):
        if isinstance(value, torch.Tensor):
            kinds[name] = POINTERS[str(value.dtype).removeprefix("torch.")]
        else:
            whole = "i32" if abs(value) < 2**31 else "i64"
            kinds[name] = "fp32" if isinstance(value, float) else whole
    return {
        "module": kernel.fn.__module__,
        "kernel": kernel.fn.__name__,
        "signature": {name: kinds[name] for name in names},
        "constants": constants,
        "options": {name: value for name, value in options.items() if name not in constants},
    }


@pytest.fixture(scope="module")
def launches():
    """Return the table of the documents, and all launches that differ in more than numbers."""
    with ExitStack() as stack:
        for sizes in (triton_streams.SPANS, triton_streams.CHUNKS, triton_streams.LANES):
            stack.enter_context(patch.dict(sizes, cpu=sizes["cuda"]))
        return launched()


def launched():
    seen, table, device = {}, [], torch.device("cpu")

    def told(runs):
        def watcher(*launch):
            one = described(*launch)
            seen[json.dumps(one, sort_keys=True)] = one
            return runs

        return watcher

    for row in rows.ROWS:
        case = next(row.cases((MEASURED,), device))
        with triton_launch.watched(told(True)):
            count, size = rows.moved(row, case)
            table.append(f"| {row.name} | {count} | {size:.1f} |")
        if row.name.startswith(("THC, codes", "THC, packed", "THC, means")):
            # a partition of the largest size, and several of few rows
            for n in (2**20, 5000):
                case = next(row.cases((n,), device))
                with triton_launch.watched(told(False)):
                    row.prepare(case)()
    return table, list(seen.values())


def test_the_documents_table_is_what_kernels_move(launches):
    table, _ = launches
    shown = DOCUMENT.read_text()
    assert "\n".join(table) in shown


ARITHMETIC = re.compile(r"(add|sub|mul|div|fma|mad|sqrt|rcp|rsqrt|ex2|lg2|sin|cos|tanh)\.")
FUSED = re.compile(r"(F|D)FMA|MUFU")


@pytest.fixture(scope="module")
def compiled(launches, tmp_path_factory):
    script = Path(__file__).with_name("ptx.py")
    cache = {"TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton"))}
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | cache
    done = subprocess.run(
        [sys.executable, script],
        input=json.dumps(launches[1]),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return list(zip(launches[1], json.loads(done.stdout), strict=True))


def test_float_instructions_round_once_and_to_nearest(compiled):
    assert {launch["kernel"] for launch, _ in compiled} > rows.DIVIDE
    for launch, found in compiled:
        floats = {op for op in found["ptx"] if re.search(r"\.f(16|32|64)\b", op)}
        assert not any("ftz" in op or "approx" in op or "full" in op for op in floats), launch
        exact = {"add.rn", "sub.rn", "mul.rn"}
        exact |= {"div.rn"} if launch["kernel"] in rows.DIVIDE else set()
        used = {op.rpartition(".")[0] for op in floats if ARITHMETIC.match(op)}
        assert used <= exact, launch


def test_ptxas_fuses_nothing_but_in_the_division(compiled):
    """div.rn, which is exact, consists of a reciprocal and fused corrections on every GPU."""
    for launch, found in compiled:
        fused = {op for op in found["sass"] if FUSED.match(op)}
        assert found["sass"] and (not fused or launch["kernel"] in rows.DIVIDE), (launch, fused)
