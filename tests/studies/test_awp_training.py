"""A2DTWP's trainings: one course of a training has the times of every system and model."""

import pytest

from gradplane.studies.awp_training import NEVER, SYSTEMS, Course, Setting, train

X86, POWER = SYSTEMS
SMALL = Setting((8,), 1, 256, 0.05, 5e-4, 1)


def test_a_models_times_follow_from_its_size() -> None:
    assert X86.of("VGG") == X86
    alexnet = X86.of("Alexnet")
    assert alexnet.plain["to GPU"] == pytest.approx(153.93 * 75.3 / 129.6)
    assert alexnet.plain["convolution"] == pytest.approx(128.72 * 0.780 / 7.485)
    assert X86.of("Resnet").plain["connected"] < 0.1


def test_a_course_takes_each_systems_times() -> None:
    share = {"to GPU": 0.5, "to CPU": 1.0, "norm": 1.0, "pack": 1.0, "unpack": 1.0}
    course = Course((share,) * 4, (), (0.5, 0.9), 64)
    on_x86, on_power = course.on(X86), course.on(POWER)
    batch = 128.72 + 33.51 + 54.39 + 153.93 / 2 + 68.51 + 3.88 + 19.71 + 4.51
    ends = [seconds for seconds, _ in on_x86.curve]
    assert ends == pytest.approx([2 * batch / 1e3, 4 * batch / 1e3])
    assert on_x86.time_to(0.6) == ends[1] and on_x86.time_to(0.95) is None
    assert on_power.profile["to GPU"] == pytest.approx(39.12 / 2)
    assert on_power.accuracy == 0.9


def test_fixed_precisions_send_their_share_of_the_bytes() -> None:
    plain = train(None, SMALL)
    half = train({"threshold": NEVER, "initial": 16}, SMALL)
    assert all(s["to GPU"] == pytest.approx(1.0, rel=1e-6) for s in plain.shares)
    assert not any(plain.precision) and {bits for row in half.precision for bits in row} == {16}
    assert all(0.5 < s["to GPU"] < 0.52 for s in half.shares)  # biases keep 32 bits
    assert len(plain.shares) == len(half.shares) and len(plain.accuracies) == 1
