"""Plans that cannot work are refused before anything starts, with numbers and remedy."""

import pytest
from controller_cases import TABLE, member, plan
from hypothesis import given
from hypothesis import strategies as st

from gradplane.controller import Capacity, PlanError, allocate, check

CAPACITY = Capacity(slots=256, sum_bits=8, workers=64)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"workers": 16},
            "job 0: granularity 30 × 16 workers = 480 does not fit 8-bit sums:"
            " use sum_bits = 16 or granularity ≤ 15",
        ),
        (
            {"workers": 16, "quorum": 9},
            "job 0: granularity 30 × 9 workers = 270 does not fit 8-bit sums:"
            " use sum_bits = 16 or granularity ≤ 28",
        ),
        (
            {"sum_bits": 16, "table": (0, 20000), "granularity": 20000},
            "job 0: granularity 20000 × 4 workers = 80000 does not fit 16-bit sums:"
            " use sum_bits = 32 or granularity ≤ 16383 or 3 workers or fewer",
        ),
        (
            {"workers": 300, "sum_bits": 8},
            "job 0: granularity 30 × 300 workers = 9000 does not fit 8-bit sums: use sum_bits = 16",
        ),
        ({"quorum": 5}, "job 0: quorum = 5 of 4 workers: use 1 to 4"),
        ({"quorum": 0}, "job 0: quorum = 0 of 4 workers: use 1 to 4"),
        ({"number": 256}, "job 256: a job's number is 0 to 255"),
        ({"number": -1}, "job -1: a job's number is 0 to 255"),
        ({"sum_bits": 9}, "job 0: sum_bits = 9: sums have 8, 16 or 32 bits"),
        ({"code_bits": 3}, "job 0: code_bits = 3: codes have 1, 2, 4 or 8 bits"),
        ({"workers": 0, "quorum": 1}, "job 0: worker numbers []: expected 0 to 0, each once"),
        (
            {"table": tuple(range(17)), "granularity": 16},
            "job 0: 17 codes do not fit the packets' 4-bit fields: use code_bits = 8",
        ),
        (
            {"table": tuple(range(257)), "granularity": 256, "code_bits": 8},
            "job 0: 257 codes do not fit the packets' 8-bit fields: use a codec of 8 bits or fewer",
        ),
        (
            {"table": (), "granularity": 0},
            "job 0: an empty lookup table: it has a value for each code",
        ),
        (
            {"table": (0, 3), "granularity": 4},
            "job 0: lookup table [0, 3] for granularity 4: its values run from 0 or more to the"
            " granularity",
        ),
        (
            {"slots": 1},
            "job 0: slots 0 to 0: a job has 2 slots or more (two banks alternate), counted from 0",
        ),
    ],
)
def test_a_plan_that_no_program_could_do(fields, message):
    with pytest.raises(PlanError) as error:
        plan(**fields)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            (member(0), member(0, port=2)),
            "job 0: worker numbers [0, 0]: expected 0 to 1, each once",
        ),
        ((member(0), member(2)), "job 0: worker numbers [0, 2]: expected 0 to 1, each once"),
        (
            (member(0), member(1, port=1)),
            "job 0: two workers receive at 10.0.0.1 port 20000: give each its own",
        ),
    ],
)
def test_workers_must_be_distinct(members, message):
    good = plan(workers=2)
    fields = {name: getattr(good, name) for name in good.__dataclass_fields__}
    with pytest.raises(PlanError) as error:
        type(good)(**(fields | {"workers": members}))
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"workers": 65, "table": (0, 1), "granularity": 1},
            "job 0: 65 workers do not fit a bitmap of 64 bits: use 64 workers or fewer",
        ),
        (
            {"slot_base": 250},
            "job 0: slots 250 to 257 reach beyond the program's 256: compile it with SLOTS = 512,"
            " or use fewer",
        ),
        (
            {"sum_bits": 16},
            "job 0: 16-bit sums on a program compiled for 8: compile it with SUM_BITS = 16, or use"
            " sum_bits = 8",
        ),
    ],
)
def test_a_plan_that_this_program_cannot_do(fields, message):
    with pytest.raises(PlanError) as error:
        check([plan(**fields)], CAPACITY)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"number": 0, "slot_base": 8}, "job 0 exists twice: give each job its own number"),
        (
            {"number": 1, "slot_base": 7},
            "job 1 (slots 7 to 14) overlaps job 0 (slots 0 to 7): start job 1 at slot 8",
        ),
        (
            {"number": 1, "slot_base": 8, "group": 1},
            "jobs 0 and 1 share multicast group 1: give each its own",
        ),
    ],
)
def test_jobs_that_get_in_each_others_way(second, message):
    with pytest.raises(PlanError) as error:
        check([plan(), plan(**second)], CAPACITY)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("first", "second", "slot"),
    [
        ((0, 8), (7, 8), 8),  # the second begins in the first's last slot
        ((7, 8), (0, 8), 15),  # and ends in the first's first slot
        ((0, 16), (4, 8), 16),  # lies within it
        ((4, 8), (0, 16), 12),  # has it within
        ((4, 8), (4, 8), 12),
    ],
)
def test_slots_of_one_job_are_no_others_in_either_order(first, second, slot):
    jobs = [plan(n, slot_base=b, slots=s) for n, (b, s) in enumerate((first, second))]
    with pytest.raises(PlanError, match=f"start job 1 at slot {slot}$"):
        check(jobs, CAPACITY)


@pytest.mark.parametrize(("first", "second"), [((0, 8), (8, 2)), ((2, 8), (0, 2))])
def test_slots_that_touch_are_apart_in_either_order(first, second):
    check([plan(n, slot_base=b, slots=s) for n, (b, s) in enumerate((first, second))], CAPACITY)


def test_each_job_is_checked_beside_all_before_it():
    jobs = [plan(0), plan(1, slot_base=8), plan(2, slot_base=16, group=1)]
    with pytest.raises(PlanError, match="jobs 0 and 2 share multicast group 1"):
        check(jobs, CAPACITY)
    jobs = [plan(0), plan(1, slot_base=8), plan(1, slot_base=16)]
    with pytest.raises(PlanError, match="job 1 exists twice"):
        check(jobs, CAPACITY)


@pytest.mark.parametrize(("workers", "quorum"), [(1, 1), (4, 1), (4, 4), (16, 1), (16, 16)])
def test_the_edges_of_a_quorum_are_taken(workers, quorum):
    fields = {"table": (0, 1), "granularity": 1}
    assert plan(workers=workers, quorum=quorum, **fields).quorum == quorum


@pytest.mark.parametrize("quorum", [-1, 0, 5])
def test_beyond_the_edges_no_slot_could_close(quorum):
    with pytest.raises(PlanError) as error:
        plan(quorum=quorum)
    assert str(error.value) == f"job 0: quorum = {quorum} of 4 workers: use 1 to 4"


def test_what_fits_is_taken():
    check([plan(), plan(1, slot_base=8, workers=8), plan(2, slot_base=248, slots=8)], CAPACITY)
    assert plan(7).group == 8
    assert plan(table=TABLE[:4], granularity=4).table == (0, 1, 2, 4)


@given(st.integers(1, 64), st.integers(1, 300), st.sampled_from([8, 16, 32]))
def test_a_sum_never_leaves_its_lane(workers, granularity, sum_bits):
    fits = granularity * workers < 2**sum_bits
    fields = {"sum_bits": sum_bits, "table": (0, granularity), "granularity": granularity}
    try:
        plan(workers=workers, **fields)
    except PlanError:
        assert not fits
    else:
        assert fits


@given(st.lists(st.integers(2, 60), max_size=6))
def test_allocated_slots_are_apart(slots):
    if sum(slots) > CAPACITY.slots:
        with pytest.raises(PlanError):
            allocate(slots, CAPACITY)
        return
    bases = allocate(slots, CAPACITY)
    sizes = zip(slots, bases, strict=True)
    check([plan(n, slots=s, slot_base=b) for n, (s, b) in enumerate(sizes)], CAPACITY)


def test_what_fills_the_program_fits():
    assert allocate([128, 126, 2], CAPACITY) == [0, 128, 254]
    full = plan(workers=CAPACITY.workers, table=(0, 1), granularity=1, slots=CAPACITY.slots)
    check([full], CAPACITY)


def test_too_many_slots():
    with pytest.raises(PlanError) as error:
        allocate([200, 100], CAPACITY)
    assert str(error.value) == (
        "200 + 100 = 300 slots do not fit the program's 256: compile it with SLOTS = 512,"
        " or give the jobs fewer"
    )
