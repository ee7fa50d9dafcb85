"""The figures that a comparison of hooks takes from scripts' records."""

from gradplane.runs.torch_comparison import figures


def rank(*lines):
    return [dict(zip(("at", "step", "test_accuracy"), line, strict=False)) for line in lines]


def test_figures_are_of_all_ranks():
    """An accuracy is the ranks' mean, and its time that of the last rank."""
    first = rank((1e9, 0), (3e9, 10, 0.8), (5e9, 20, 0.9))
    second = rank((2e9, 0), (3e9, 10, 0.9), (6e9, 20, 1.0))
    assert figures([first, second], 0.85) == (0.95, 0.2, 1.0)
    assert figures([first, second], 0.93) == (0.95, 0.2, 4.0)
    assert figures([first, second], 0.99) == (0.95, 0.2, None)


def test_scripts_that_record_nothing_have_no_figures():
    assert figures([], 0.9) == figures([[], []], 0.9) == (None, None, None)
    assert figures([rank((1e9,), (2e9,))], 0.9) == (None, None, None)
