"""The tables that `gradplane plan` prints."""

from collections import Counter

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from gradplane.planner.plan import Plan, Row

ROWS = 30  # tensors shown; a summary by option counts all of them


def plan(made: Plan) -> Group:
    """Return the times, the tensors (the largest, in backward order), and a summary by option."""
    shown = sorted(range(len(made.rows)), key=lambda at: -made.rows[at].values)[:ROWS]
    parts: list[Table | Group] = [_times(made), _tensors([made.rows[at] for at in sorted(shown)])]
    if len(made.rows) > ROWS:
        parts.append(_summary(made))
    return Group(*parts)


def _times(made: Plan) -> Table:
    table = _table(f"{made.model.name}, {made.compression.codec}, {made.system.name}")
    table.add_column("iteration, ms", justify="right")
    table.add_column("speed-up of this plan", justify="right")
    rows = {"this plan": made.time, **made.references, "bound: none is quicker": made.bound}
    for name, seconds in rows.items():
        if seconds is None:
            table.add_row(name, "no such option", "")
        else:
            table.add_row(name, f"{1e3 * seconds:.3f}", f"{made.speedup(seconds):.2f}")
    return table


def _tensors(rows: list[Row]) -> Table:
    table = _table("tensor")
    table.add_column("values", justify="right")
    table.add_column("option; why not the next best")
    for row in rows:
        table.add_row(row.name, f"{row.values:,}", Text(f"{row.option}\n  {row.reason}"))
    return table


def _summary(made: Plan) -> Group:
    tensors = Counter(str(row.option) for row in made.rows)
    values: Counter[str] = Counter()
    for row in made.rows:
        values[str(row.option)] += row.values
    table = _table("tensors")
    table.add_column("values", justify="right")
    table.add_column("option")
    for option, count in tensors.most_common():
        table.add_row(str(count), f"{values[option]:,}", Text(option))
    title = f"Above: the {ROWS} largest of {len(made.rows)} tensors. All of them by option:"
    return Group(Text(title), table)


def _table(first: str) -> Table:
    return Table(first, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
