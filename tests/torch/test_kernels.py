"""The torch kernels beside the NumPy codecs, bit for bit; and codecs on torch tensors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradplane import codecs
from gradplane.codecs import _packing

SIZES = st.integers(1, 5000)


@pytest.fixture(scope="module", autouse=True)
def imported():
    """Import PyTorch when these tests run: at collection it would be loaded for all others."""
    global torch, kernels
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install gradplane[torch]")
    from gradplane.torch import kernels


@settings(max_examples=25, deadline=None)
@given(SIZES, st.integers(1, 8), st.floats(1e-30, 1e30), st.integers(0, 2**32), st.integers(1, 4))
def test_thc_is_equal_to_the_bit(n, bits, size, seed, workers):
    codec = codecs.get("thc", bits=bits, granularity=2**bits + 14)
    random = np.random.default_rng(seed)
    xs = [(size * random.standard_normal(n)).astype(np.float32) for _ in range(workers)]
    shared = codec.combine([codec.local(x) for x in xs])
    total = 0
    for worker, x in enumerate(xs):
        codes, _ = codec.codes(x, shared, seed, worker=worker)
        place = torch.from_numpy(x), torch.from_numpy(shared), seed, worker
        found = kernels.thc_codes(codec, *place)
        assert np.array_equal(found.numpy(), codes)
        assert kernels.pack(found, bits).numpy().tobytes() == _packing.pack(codes, bits)
        assert torch.equal(kernels.unpack(kernels.pack(found, bits), codes.size, bits), found)
        total = total + np.array(codec.table)[codes]
    mean = codec.decode_sum(total, n, workers, shared, seed)
    sums = torch.from_numpy(total)
    found = kernels.thc_mean(codec, sums, n, workers, torch.from_numpy(shared), seed)
    assert np.array_equal(found.numpy().view(np.uint32), mean.view(np.uint32))


def test_what_is_divided_by_is_a_tensor_of_some_dimension():
    """CUDA, with PyTorch 2.11 on an H200, multiplies by the reciprocal of anything else."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Divisions(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if "div" in str(function):
                divisors.append(args[1])
            return function(*args, **kwargs or {})

    divisors = []
    codec, shared = codecs.get("thc"), torch.ones(1)
    with Divisions():
        codes = kernels.thc_codes(codec, torch.linspace(-1, 1, 1000), shared)
        kernels.thc_mean(codec, codes.to(torch.int64) * 3, 1000, 3, shared)
    assert divisors and all(isinstance(d, torch.Tensor) and d.dim() for d in divisors)


def test_codecs_take_cpu_tensors_without_a_copy():
    x = torch.linspace(-1, 1, 100)
    for name in ("thc", "threelc", "inceptionn", "float32"):
        codec = codecs.get(name)
        ours, theirs = (codec.encode(v, state=codec.start(100))[0] for v in (x, x.numpy()))
        assert ours == theirs
    from gradplane.codecs._base import check_float32

    assert check_float32(x).ctypes.data == x.data_ptr()
    with pytest.raises(codecs.CodecError, match="^expected float32 of shape"):
        codecs.get("thc").encode(x.double())
    with pytest.raises(codecs.CodecError, match=r"^the tensor cannot be read in place: .*grad"):
        codecs.get("thc").encode(x.clone().requires_grad_())
