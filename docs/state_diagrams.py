"""A hook of the site: Mermaid's state diagrams become SVG when the site is built.

A reader needs no script from elsewhere, and the colours follow the page. The layout is layered: a
state's column is the length of the longest path to it, and a transition that skips columns keeps a
row free in each of them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations, product

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

FENCE = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TRANSITION = re.compile(r"^ *(\[\*\]|\w+) --> (\w+)(?:: (.+))?$", re.MULTILINE)
COLUMN, ROW = 250, 96  # px between the centres of neighbouring states
WIDTH, HEIGHT = 116, 44  # px of a state


@dataclass(frozen=True)
class Transition:
    """A transition on the events of `label`."""

    source: str
    target: str
    label: str


Point = tuple[float, float]
Item = str | Transition
"""What has a row in a column: a state, or a transition that skips it."""


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw the page's state diagrams."""
    return FENCE.sub(lambda fence: f"{drawn(fence[1])}\n", markdown)


def drawn(text: str) -> str:
    """Return the SVG of a diagram, given the lines of its transitions."""
    found = [Transition(*match.groups("")) for match in TRANSITION.finditer(text)]
    moves = [move for move in found if move.source not in ("[*]", move.target)]
    loops = {move.source: move.label for move in found if move.source == move.target}
    columns = _columns(moves)
    places = _places(moves, columns)
    states = {name: places[name, columns[name]] for name in columns}
    width = COLUMN * max(columns.values()) + WIDTH + 2 * 30
    height = max(y for _, y in places.values()) + HEIGHT / 2 + 34
    start = next(move.target for move in found if move.source == "[*]")
    x, y = states[start]
    parts = [
        f'<svg class="states" viewBox="0 0 {width} {height:.0f}" width="{width}" role="img">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8"'
        ' markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<circle cx="{x - WIDTH / 2 - 20:.0f}" cy="{y:.0f}" r="5"/>',
        _line([(x - WIDTH / 2 - 15, y), (x - WIDTH / 2, y)]),
    ]
    for move in moves:
        parts += _transition(move, columns, places)
    for name, (x, y) in states.items():
        parts += _state(name, loops.get(name, ""), x, y)
    return "\n".join([*parts, "</svg>"])


def _columns(moves: Sequence[Transition]) -> dict[str, int]:
    """Return each state's column: the length of the longest path to it."""
    columns = {name: 0 for move in moves for name in (move.source, move.target)}
    for _ in columns:  # a path has no more states than there are
        for move in moves:
            columns[move.target] = max(columns[move.target], columns[move.source] + 1)
    return columns


def _places(
    moves: Sequence[Transition], columns: Mapping[str, int]
) -> dict[tuple[Item, int], Point]:
    """Return the centre of each state, and of the row that a transition keeps free, by column."""
    rows: list[list[Item]] = [[] for _ in range(max(columns.values()) + 1)]
    for name, column in columns.items():
        rows[column].append(name)
    for move in moves:
        for column in range(columns[move.source] + 1, columns[move.target]):
            rows[column].append(move)
    rows = min((list(order) for order in product(*map(_orders, rows))), key=_crossings(moves))
    most = max(map(len, rows))
    return {
        (item, column): (
            30 + WIDTH / 2 + COLUMN * column,
            30 + ROW * (row + (most - len(rows[column])) / 2),
        )
        for column, items in enumerate(rows)
        for row, item in enumerate(items)
    }


def _orders(row: Sequence[Item]) -> Iterator[list[Item]]:
    return map(list, permutations(row))


def _crossings(moves: Sequence[Transition]) -> Callable[[list[list[Item]]], int]:
    """Return a function that counts the crossings of transitions, given each column's order."""

    def count(columns: list[list[Item]]) -> int:
        crossings = 0
        for left, right in pairwise(columns):
            ends = [
                (left.index(before), right.index(after))
                for move in moves
                for before in (move, move.source)
                for after in (move, move.target)
                if before in left and after in right
            ]
            crossings += sum(a[0] < b[0] and a[1] > b[1] for a in ends for b in ends)
        return crossings

    return count


def _transition(
    move: Transition,
    columns: Mapping[str, int],
    places: Mapping[tuple[Item, int], Point],
) -> list[str]:
    first, last = columns[move.source], columns[move.target]
    x, y = places[move.source, first]
    points = [(x + WIDTH / 2, y)]
    for column in range(first + 1, last):
        x, y = places[move, column]
        points += [(x - WIDTH / 2, y), (x + WIDTH / 2, y)]
    x, y = places[move.target, last]
    points.append((x - WIDTH / 2, y))
    (x0, y0), (x1, y1) = points[:2]
    label = _text(move.label.split(", "), (x0 + x1) / 2, (y0 + y1) / 2 - 6)
    return [_line(points), *label]


def _line(points: Sequence[Point]) -> str:
    """Return an arrow through points, level at each of them."""
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        half = (x0 + x1) / 2
        path += f"C{half:.0f} {y0:.0f} {half:.0f} {y1:.0f} {x1:.0f} {y1:.0f}"
    return f'<path class="move" d="{path}" marker-end="url(#tip)"/>'


def _state(name: str, stays: str, x: float, y: float) -> list[str]:
    """Return a state's box, and below it the events on which it stays."""
    left, top = x - WIDTH / 2, y - HEIGHT / 2
    box = f'<rect x="{left:.0f}" y="{top:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="10"/>'
    title = f'<text class="state" x="{x:.0f}" y="{y + 5:.0f}">{html.escape(name)}</text>'
    events = stays.split(", ") if stays else []
    pairs = [", ".join(events[n : n + 2]) for n in range(0, len(events), 2)]
    if pairs:
        pairs[0] = f"↻ {pairs[0]}"
    below = [
        f'<text class="event" x="{x:.0f}" y="{y + HEIGHT / 2 + 14 + 13 * n:.0f}">'
        f"{html.escape(line)}</text>"
        for n, line in enumerate(pairs)
    ]
    return [box, title, *below]


def _text(lines: Sequence[str], x: float, bottom: float) -> list[str]:
    """Return the lines of a label, the last of them at `bottom`."""
    return [
        f'<text class="event" x="{x:.0f}" y="{bottom - 13 * (len(lines) - 1 - n):.0f}">'
        f"{html.escape(line)}</text>"
        for n, line in enumerate(lines)
    ]
