"""The look that the studies' figures share: colours of the reports, light axes."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

_GRID, _TEXT = "#e5e7eb", "#4b5563"


def new_axes(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure of that many inches with one panel in the reports' look."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    dress(axes)
    return figure, axes


def dress(axes: Axes) -> None:
    """Give the axes the report's look."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_TEXT, labelsize=9, length=0)
    axes.xaxis.label.set(color=_TEXT, fontsize=9)
    axes.yaxis.label.set(color=_TEXT, fontsize=9)


def legend(axes: Axes, columns: int) -> None:
    """Put the labels above the panel, so many a line."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        frameon=False,
        fontsize=9,
        labelcolor=_TEXT,
        borderaxespad=0.2,
        handlelength=1.4,
    )
