"""What gloo does with collectives, row by row of the table in docs/pytorch.md: three ranks, CPU.

The back end `gradplane` leaves to gloo what the network cannot take, so these are its answers, too.
"""

import json
from importlib.util import find_spec

import pytest
from loopback_job import loopback_job
from ranks import run_ranks

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None, reason="needs PyTorch: pip install gradplane[torch]"
)

SCRIPT = """
from datetime import timedelta
SUM, AVG, MAX = dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX
torch.manual_seed(rank)

def reduced(x, op=SUM):
    try:
        dist.all_reduce(x, op)
    except RuntimeError as error:
        return str(error)
    return str(x) if x.is_complex() else x.tolist()

row = {}
drawn = torch.randn(1000)
dist.all_reduce(drawn)
row["bits of a sum"] = drawn.view(torch.int32).tolist()
row["order"] = sorted(set(reduced(torch.full((64,), [1e8, 1.0, -1e8][rank]))))
row["AVG"] = reduced(torch.tensor([3.0 * rank]), AVG)
row["int8"] = reduced(torch.full((2,), 100, dtype=torch.int8))
row["uint8"] = reduced(torch.full((2,), 100, dtype=torch.uint8))
row["int16"] = reduced(torch.ones(2, dtype=torch.int16))
flags = torch.tensor([True, False])
dist.all_reduce(flags)
row["bool"] = [flags.tolist(), flags.view(torch.uint8).tolist()]
row["BAND int"] = reduced(torch.tensor([[7, 5, 3][rank]]), dist.ReduceOp.BAND)
row["BAND float"] = reduced(torch.ones(1), dist.ReduceOp.BAND)
row["PRODUCT"] = reduced(torch.tensor([rank + 2]), dist.ReduceOp.PRODUCT)
row["BXOR"] = reduced(torch.tensor([[1, 2, 7][rank]]), dist.ReduceOp.BXOR)
row["complex64"] = reduced(torch.tensor([rank + 1j]))
row["bfloat16"] = reduced(torch.full((1,), rank + 1.0, dtype=torch.bfloat16))
row["float16"] = reduced(torch.full((1,), 60000.0, dtype=torch.float16))
infinite = torch.tensor([[float("inf"), float("-inf"), 0.0][rank]])
dist.all_reduce(infinite)
row["inf and -inf"] = bool(infinite.isnan())
zero = torch.tensor([-0.0, 1e-40])
dist.all_reduce(zero)
row["-0"] = bool(zero[0].signbit())
row["denormal"] = 2.9e-40 < zero[1].item() < 3.1e-40
largest = torch.zeros(64) if rank else torch.full((64,), -0.0)
dist.all_reduce(largest, MAX)
row["MAX of 0 and -0"] = largest.signbit().tolist()
row["empty"] = reduced(torch.empty(0))
one, two = torch.full((5,), float(rank)), torch.full((5,), 10.0 * rank)
works = [dist.all_reduce(x, async_op=True) for x in (one, two)]
for work in reversed(works):
    work.wait()
row["reverse"] = [one.tolist(), two.tolist()]
part, parts = torch.empty(1), torch.empty(3)
dist.reduce_scatter_tensor(part, torch.arange(3.0))
row["reduce_scatter_tensor"] = part.item() == 3.0 * rank
dist.all_to_all_single(parts, torch.arange(3.0) + 10 * rank)
row["all_to_all_single"] = parts.tolist() == [rank, 10 + rank, 20 + rank]
dist.all_gather_into_tensor(parts, torch.tensor([float(rank)]))
row["all_gather_into_tensor"] = parts.tolist()
strided = torch.arange(8.0) + 10 * rank
dist.broadcast(strided[::2], 0)
row["strided broadcast"] = strided.tolist()
leaf = torch.ones(2, requires_grad=True)
row["leaf"] = reduced(leaf)
try:
    dist.all_reduce(torch.ones(1), dist._make_nccl_premul_sum(2.0))
    row["premultiplied"] = "taken"
except RuntimeError as error:
    row["premultiplied"] = str(error)
fragile = dist.new_group([0, 1, 2], timeout=timedelta(seconds=2), backend="gloo")
uneven = torch.ones(4 if rank == 0 else 6)
dist.barrier()
try:
    dist.all_reduce(uneven, group=fragile)
    row["uneven"] = uneven.tolist()
except RuntimeError as error:
    row["uneven"] = "error"
say(**row)
dist.barrier()  # of the group that still works: nobody leaves while others wait for the time
os._exit(0)  # gloo's threads may abort a process at its end
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gloo")
    return [json.loads(line) for (line,) in run_ranks(loopback_job("ring", 3), SCRIPT, folder)]


@pytest.mark.parametrize(
    ("row", "seen"),
    [
        ("order", [0.0, 1.0]),  # by the place
        ("AVG", [3.0]),
        ("int8", [44, 44]),
        ("uint8", [44, 44]),
        ("bool", [[True, False], [3, 0]]),
        ("BAND int", [1]),
        ("PRODUCT", [24]),
        ("BXOR", [4]),
        ("complex64", "tensor([3.+3.j])"),
        ("bfloat16", [6.0]),
        ("float16", [float("inf")]),
        ("inf and -inf", True),
        ("-0", True),
        ("denormal", True),
        ("empty", []),
        ("reverse", [[3.0] * 5, [30.0] * 5]),
        ("reduce_scatter_tensor", True),
        ("all_to_all_single", True),
        ("all_gather_into_tensor", [0.0, 1.0, 2.0]),
        ("leaf", [3.0, 3.0]),
    ],
)
def test_every_rank_has(rows, row, seen):
    assert [found[row] for found in rows] == [seen] * 3


@pytest.mark.parametrize(
    ("row", "text"),
    [("int16", "Invalid scalar type"), ("BAND float", "BAND"), ("premultiplied", "PREMUL")],
)
def test_is_refused(rows, row, text):
    assert all(text in found[row] for found in rows)


@pytest.mark.parametrize("row", ["bits of a sum", "MAX of 0 and -0"])
def test_is_the_same_on_every_rank(rows, row):
    assert rows[0][row] == rows[1][row] == rows[2][row]


def test_the_sign_of_a_largest_zero_depends_on_its_place(rows):
    assert set(rows[0]["MAX of 0 and -0"]) == {True, False}


def test_a_broadcast_into_a_stride_overwrites_the_first_elements_in_memory(rows):
    assert rows[0]["strided broadcast"] == list(range(8))
    for rank in (1, 2):
        found = rows[rank]["strided broadcast"]
        assert found[4:] == [10.0 * rank + k for k in range(4, 8)]
        assert found[:4] != [0.0, 10.0 * rank + 1, 2.0, 10.0 * rank + 3]


def test_a_sum_of_several_sizes_is_wrong_on_a_rank_and_an_error_on_others(rows):
    assert "error" in [found["uneven"] for found in rows]
