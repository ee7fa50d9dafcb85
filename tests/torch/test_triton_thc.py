"""THC's kernels in Triton: interpreted, beside the codecs, bit for bit; and selfcheck."""

import re

import numpy as np
import pytest

from gradplane import codecs

PIECES = (0, 1, 2, 31, 64, 777, 1023, 1024, 1025, 2048, 3000, 7 * 1024 + 1, 13 * 1024)


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import what may not be installed."""
    global torch, kernels
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install gradplane[torch]")
    pytest.importorskip("triton", reason="needs Triton: pip install gradplane[gpu]")
    from gradplane.torch import triton_thc as kernels


def vectors(n, workers, seed=0, size=1.0):
    random = np.random.default_rng(seed)
    return [(size * random.standard_normal(n)).astype(np.float32) for _ in range(workers)]


def bits(values):
    return np.asarray(values).view(np.uint32)


def packed(codec, codes, n):
    """Return the codes as encode() packs them, partition by partition."""
    parts = [codes[part.lane : part.lane + part.lanes] for part in codec.partitions(n)]
    return b"".join(codec._fields.pack(part, codec._field_bits) for part in parts)


def check_codes(codec, x, shared, seed, worker):
    """Compare norms, codes and packed codes; return the codes."""
    given = torch.from_numpy(x), torch.from_numpy(shared), seed, worker
    codes, _ = codec.codes(x, shared, seed, worker=worker)
    assert np.array_equal(kernels.codes(codec, *given).numpy(), codes)
    fields = kernels.codes(codec, *given, packed=True)
    assert fields.numpy().tobytes() == packed(codec, codes, x.size)
    return codes


def check_mean(codec, sums, n, count, shared, seed):
    mean = codec.decode_sum(sums, n, count, shared, seed)
    each = torch.from_numpy(count) if isinstance(count, np.ndarray) else count
    found = kernels.mean(codec, torch.from_numpy(sums), n, each, torch.from_numpy(shared), seed)
    assert np.array_equal(bits(found), bits(mean))


@pytest.mark.parametrize("n", PIECES)
def test_sizes_around_the_borders_of_pieces(n):
    codec, xs = codecs.get("thc"), vectors(n, 3, seed=n)
    local = [codec.local(x) for x in xs]
    for x, norm in zip(xs, local, strict=True):
        assert np.array_equal(bits(kernels.norms(codec, torch.from_numpy(x))), bits(norm))
    shared = codec.combine(local)
    table = np.array(codec.table)
    sums = sum(table[check_codes(codec, x, shared, 7, w)] for w, x in enumerate(xs))
    check_mean(codec, sums, n, 3, shared, 7)


@pytest.mark.parametrize("width", range(1, 9))
def test_bits_granularities_and_numbers_of_workers(width):
    n, seed = 1500, 2**40 + width
    for granularity in (2**width - 1, 2**width + 14):
        codec = codecs.get("thc", bits=width, granularity=granularity)
        x = vectors(n, 1, width)[0]
        shared = np.float32(1.5) * codec.local(x)
        check_codes(codec, x, shared, seed, worker=3)
        random = np.random.default_rng(width)
        for count in (1, 2, 3, 5, 6, 7, 64):
            sums = random.integers(0, granularity * count + 1, codec.lanes(n), dtype=np.int32)
            check_mean(codec, sums, n, count, shared, seed)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.int64])
def test_missing_lanes_and_types_of_sums(kind):
    codec, n = codecs.get("thc"), 5000
    random = np.random.default_rng(1)
    count = random.integers(0, 8, codec.lanes(n))
    sums = random.integers(0, 30 * count + 1).astype(kind)
    check_mean(codec, sums, n, count, codec.local(vectors(n, 1)[0]), 0)


@pytest.mark.parametrize("size", [0.0, 1e-44, 1e-30, 1e30])
def test_zeros_tiny_and_huge_values(size):
    codec, n = codecs.get("thc"), 1100
    x = vectors(n, 1, size=size)[0]
    x[::3] *= -1
    local = codec.local(x)
    assert np.array_equal(bits(kernels.norms(codec, torch.from_numpy(x))), bits(local))
    codes = check_codes(codec, x, local, 0, 0)
    check_mean(codec, np.array(codec.table)[codes], n, 1, local, 0)


@pytest.mark.parametrize("version", [1, 2])
def test_earlier_versions_of_the_format(version):
    codec = codecs.get("thc", bits=2, granularity=10, version=version)
    for x in vectors(700, 1) + vectors(2100, 1):
        local = codec.local(x)
        codes = check_codes(codec, x, local, 1, 1)
        check_mean(codec, np.array(codec.table)[codes], x.size, 1, local, 1)


def test_a_partition_of_the_largest_size_and_a_rest():
    codec, n = codecs.get("thc"), 2**20 + 3000
    x = vectors(n, 1)[0]
    local = codec.local(x)
    codes, _ = codec.codes(x, local, 3)
    given = torch.from_numpy(x), torch.from_numpy(local), 3
    assert kernels.codes(codec, *given, packed=True).numpy().tobytes() == packed(codec, codes, n)
    check_mean(codec, np.array(codec.table)[codes], n, 1, local, 3)


def test_other_codecs_that_rotate():
    codec = codecs.get("uniform_thc", bits=3)
    x = vectors(1300, 1)[0]
    codes = check_codes(codec, x, codec.local(x), 2, 0)
    check_mean(codec, codes.astype(np.int32), x.size, 1, codec.local(x), 2)


def test_a_norm_beyond_float32_is_the_codecs_error():
    codec, x = codecs.get("thc"), np.full(2000, 3e38, np.float32)
    with pytest.raises(codecs.CodecError) as theirs:
        codec.local(x)
    with pytest.raises(codecs.CodecError, match="^the norm of values 0 to 1999 is ") as ours:
        kernels.norms(codec, torch.from_numpy(x))
    assert str(ours.value) == str(theirs.value)


# The check on a user's machine


def test_selfcheck_says_which_kernel_differs(monkeypatch, capsys):
    from gradplane.torch import kernel_rows, selfcheck

    some = [row for row in kernel_rows.ROWS if row.name.startswith(("THC, means", "int8"))]
    monkeypatch.setattr(kernel_rows, "ROWS", some)
    monkeypatch.setattr(selfcheck, "SMALL", (1, 77))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert selfcheck.main() == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.startswith("gradplane ") and header.endswith(", interpreted")
    assert len(lines) == 2 + len(some) and all(" equal: " in line for line in lines)
    monkeypatch.setattr(kernels, "mean", lambda *_: torch.zeros(1))
    assert selfcheck.main() == 1
    shown = capsys.readouterr().out
    differ = re.findall("^(.*?) +DIFFERENT: [01] of", shown, re.M)
    assert differ == ["THC, means", "THC, means, workers missing"]


def test_selfcheck_without_triton(monkeypatch, capsys):
    from gradplane.torch import selfcheck

    monkeypatch.setattr(selfcheck, "SMALL", (777,))
    monkeypatch.setattr(selfcheck, "_rows", lambda: None)
    assert selfcheck.main() == 0
    assert "no Triton: its kernels are not checked (pip install gradplane[gpu])" in (
        capsys.readouterr().out
    )
