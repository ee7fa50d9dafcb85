"""PowerSGD beside PyTorch's powerSGD_hook, step by step."""

import math
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as hook  # noqa: E402

from gradplane import codecs  # noqa: E402
from gradplane.codecs import ErrorFeedback, PerTensor  # noqa: E402
from gradplane.codecs.powersgd import PowerSGD, Warm  # noqa: E402
from gradplane.studies import references  # noqa: E402

SHAPES = ((20, 30), (30,), (12, 5, 3, 3), (3, 4), ())
WORKERS, STEPS = 3, 6


class Group:
    """Sums over threads, each of which stands for a rank."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(WORKERS)
        self._tensors: dict[int, Any] = {}

    def size(self) -> int:
        return WORKERS

    def all_reduce(self, tensor: Any, group: Any = None, async_op: bool = False) -> Any:
        self._tensors[int(threading.current_thread().name)] = tensor.clone()
        self._barrier.wait()
        tensor.copy_(sum(self._tensors[w] for w in range(WORKERS)))
        self._barrier.wait()
        future: Any = torch.futures.Future()
        future.set_result([tensor])
        return SimpleNamespace(get_future=lambda: future)


class Bucket:
    """A bucket of one model's gradients."""

    def __init__(self, values: np.ndarray) -> None:
        self._buffer = torch.from_numpy(values.copy())
        cuts = np.cumsum([0, *(int(np.prod(s)) for s in SHAPES)])
        pairs = zip(cuts[:-1], cuts[1:], SHAPES, strict=True)
        self._tensors = [self._buffer[a:b].view(s or (1,)) for a, b, s in pairs]

    def index(self) -> int:
        return 0

    def is_last(self) -> bool:
        return True

    def buffer(self) -> Any:
        return self._buffer

    def gradients(self) -> Any:
        return self._tensors


def of_torch(gradients: np.ndarray, first: np.ndarray, rank: int, monkeypatch: Any) -> np.ndarray:
    """Return the hook's results of all steps, from a first Q that is given."""
    group = Group()
    monkeypatch.setattr(hook, "dist", SimpleNamespace(all_reduce=group.all_reduce))
    found = np.empty((STEPS, WORKERS, gradients.shape[-1]), np.float32)

    def train(worker: int) -> None:
        state = hook.PowerSGDState(group, matrix_approximation_rank=rank, start_powerSGD_iter=2)
        state.iter = 2
        rows = rank * sum(s[0] for s in (SHAPES[0], SHAPES[2]))
        state.p_memory_dict[0] = torch.empty(rows)
        state.q_memory_dict[0] = torch.from_numpy(first.copy())
        for step in range(STEPS):
            bucket = Bucket(gradients[step, worker])
            found[step, worker] = hook.powerSGD_hook(state, bucket).value().numpy()

    threads = [threading.Thread(target=train, args=(w,), name=str(w)) for w in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def of_codec(gradients: np.ndarray, first: list[np.ndarray], rank: int) -> np.ndarray:
    kinds = [codecs.get("powersgd", rank=rank).for_tensor(s) for s in SHAPES]
    sizes = [int(np.prod(s)) for s in SHAPES]
    assert [kind.name == "powersgd" for kind in kinds] == [True, False, True, False, False]
    codec = PerTensor(tuple(zip(sizes, map(ErrorFeedback, kinds), strict=True)))
    states = [codec.start(sum(sizes)) for _ in range(WORKERS)]
    for state in states:
        for part, q in zip((state[0], state[2]), first, strict=True):
            object.__setattr__(part, "inner", Warm(q.T.copy(), part.inner.n))
    found = np.empty((STEPS, WORKERS, sum(sizes)), np.float32)
    for step in range(STEPS):
        workers = [codec.reduce(gradients[step, w], step, states[w], w) for w in range(WORKERS)]
        sent = [next(worker) for worker in workers]
        for carrier in codec.carriers:
            mean = carrier.merge(sent)
            sent = []
            for w, worker in enumerate(workers):
                try:
                    sent.append(worker.send(mean))
                except StopIteration as end:
                    found[step, w], states[w] = end.value
    return found


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_every_step_is_that_of_pytorchs_hook(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(rank)
    n = sum(int(np.prod(s)) for s in SHAPES)
    gradients = rng.standard_normal((STEPS, WORKERS, n)).astype(np.float32)
    widths = [int(np.prod(s[1:])) for s in (SHAPES[0], SHAPES[2])]
    first = [rng.standard_normal((width, rank)).astype(np.float32) for width in widths]
    flat = np.concatenate([q.ravel() for q in first])
    theirs = of_torch(gradients, flat, rank, monkeypatch)
    ours = of_codec(gradients, first, rank)
    assert np.array_equal(ours[:, 0], ours[:, 1])
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5)


@pytest.mark.parametrize("rank", [1, 2])
def test_the_formula_of_studies_is_that_of_pytorchs_hook(
    rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first Q is given; PyTorch's tensors are then as large as the formula's."""
    rng = np.random.default_rng(rank)
    gradients = rng.standard_normal((STEPS, WORKERS, sum(map(math.prod, SHAPES))))
    gradients = gradients.astype(np.float32)
    matrices = (SHAPES[0], SHAPES[2])
    first = [rng.standard_normal((math.prod(s[1:]), rank)).astype(np.float32) for s in matrices]
    theirs = of_torch(gradients, np.concatenate([q.ravel() for q in first]), rank, monkeypatch)
    formula, start = references.low_rank(rank), 0
    for shape in SHAPES:
        part = slice(start, start := start + math.prod(shape))
        memory = {"q": first[matrices.index(shape)]} if shape in matrices else {}
        for step in range(STEPS):
            tensors = gradients[step, :, part].reshape(WORKERS, *shape)
            found = formula(tensors, memory, rng).ravel()
            np.testing.assert_allclose(found, theirs[step, 0, part], rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("formula", "kind"), [(references.half, torch.float16), (references.brain_half, torch.bfloat16)]
)
def test_16_bits_are_rounded_as_pytorch_rounds_them(formula: Any, kind: Any) -> None:
    tensors = np.random.default_rng(0).standard_normal((WORKERS, 5000)).astype(np.float32)
    parts = (torch.from_numpy(tensors) / WORKERS).to(kind)
    expected = ((parts[0] + parts[1]) + parts[2]).to(torch.float32).numpy()
    assert np.array_equal(formula(tensors, {}, np.random.default_rng(0)), expected)


def test_two_rounds_of_one_worker_are_what_it_sends() -> None:
    x = np.random.default_rng(0).standard_normal(600).astype(np.float32)
    codec = PowerSGD(rank=2, columns=30)
    steps = codec.reduce(x, 5, codec.start(600))
    q = steps.send(next(steps))
    with pytest.raises(StopIteration) as end:
        steps.send(q)
    mean, _ = end.value.value
    alone = codec.decode(codec.encode(x, seed=5, state=codec.start(600))[0], 600)
    np.testing.assert_allclose(mean, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 3])
def test_a_layer_learns_again_after_gradients_of_zeros(rank: int) -> None:
    """PyTorch's hook gives such a layer NaN, or zeros with an epsilon, from then on."""
    codec = PowerSGD(rank=rank, columns=30)
    state: Any = codec.start(600)
    x = np.random.default_rng(0).standard_normal(600).astype(np.float32)
    for step, gradient in enumerate([0 * x, x, 0 * x, x]):
        workers = codec.reduce(gradient, step, state)
        q = workers.send(next(workers))
        with pytest.raises(StopIteration) as end:
            workers.send(q)
        mean, state = end.value.value
        assert np.any(mean) == np.any(gradient)
        assert np.linalg.norm(gradient - mean) <= np.linalg.norm(gradient)
