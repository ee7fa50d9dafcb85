"""What the commands print: tables that fit 80 columns."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gradplane import codecs as compression
from gradplane.summary import Summary, rate
from gradplane.switch.ir import nodes as ir

if TYPE_CHECKING:
    from gradplane.studies.study import Outcome


def results(summary: Summary) -> Group:
    """A run's outcome against its baseline, a table a job; bytes are per worker and round."""
    runs = [values for values in (summary.values, summary.baseline) if values]
    return Group(*(_job(runs, number) for number in range(len(runs[0]["jobs"]))))


def _job(runs: Sequence[dict[str, Any]], number: int) -> Table:
    jobs = [values["jobs"][number] for values in runs]
    table = _table(jobs[0]["name"], *("this run", "baseline")[: len(runs)])
    for label, read in _RESULTS:
        table.add_row(label, *map(read, jobs))
    table.add_row("losses injected", *map(_injected, runs))
    return table


def _traffic(way: str, job: dict[str, Any]) -> str:
    traffic = job["traffic"]
    return f"{traffic[f'payload_{way}']:,.0f} + {traffic[f'headers_{way}']:,.0f}"


def _injected(values: dict[str, Any]) -> str:
    found = values["losses_injected"]
    return ", ".join(f"{kind} {sum(ways.values()):,}" for kind, ways in found.items()) or "none"


_RESULTS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("test accuracy", lambda job: f"{job['test_accuracy']:.2%}"),
    ("bytes up a round (+ headers)", partial(_traffic, "up")),
    ("bytes down a round (+ headers)", partial(_traffic, "down")),
    ("rounds a second", lambda job: rate(job["rounds_per_second"])),
    ("rounds", lambda job: f"{job['rounds']:,}"),
    ("results missed", lambda job: f"{job['missed']:,}"),
)


def codecs() -> Table:
    """Every codec, its parameters with their defaults, and whether a switch can sum it."""
    table = _table("codecs", "parameters", "summable", justify="left")
    for name in compression.names():
        codec = compression.get(name)
        parameters = [f"{k} = {v}" for k, v in codec.config.items() if k != "name"]
        table.add_row(name, ", ".join(parameters) or "-", "yes" if codec.summable else "no")
    return table


def bench(names: Sequence[str] | None, values: int, seed: int) -> Table:
    """Ratio to float32, error and speed of each codec on one lognormal(0, 1) vector.

    CodecError for a name that does not exist."""
    x = np.random.default_rng(seed).lognormal(0, 1, values).astype(np.float32)
    title = f"{values:,} values"
    table = _table(title, "bytes", "ratio", "NMSE", "encode MB/s", "decode MB/s")
    for name in names or compression.names():
        table.add_row(name, *_measure(compression.get(name), x, seed))
    return table


def _measure(
    codec: compression.Codec, x: np.ndarray[Any, np.dtype[np.float32]], seed: int
) -> list[str]:
    state = codec.start(x.size)
    codec.decode(codec.encode(x, seed=seed, state=state)[0], x.size)  # compiles the kernels
    started = time.perf_counter()
    data, _ = codec.encode(x, seed=seed, state=state)
    encoded = time.perf_counter()
    y = codec.decode(data, x.size)
    decoded = time.perf_counter()
    error = float(np.sum((y - x) ** 2, dtype=np.float64) / np.sum(x**2, dtype=np.float64))
    speeds = [x.nbytes / 1e6 / (b - a) for a, b in ((started, encoded), (encoded, decoded))]
    ratio = x.nbytes / len(data)
    return [f"{len(data):,}", f"{ratio:.2f}", f"{error:.3g}", *(f"{s:,.0f}" for s in speeds)]


def study(outcome: "Outcome") -> Group:
    """A study's numbers beside the paper's, and in sentences where and why they differ."""
    table = _table(*outcome.head)
    for row in outcome.rows:
        table.add_row(*row)
    notes = (Padding(Text(note), (0, 0, 1, 1)) for note in outcome.notes)
    return Group(Text(f" {outcome.title}", "bold"), table, *notes)


def program(compiled: ir.Program) -> Table:
    """A P4 program's tables, registers, counters and so on, by their control-plane names."""
    from gradplane.switch.p4runtime.p4info import build_p4info

    info = build_p4info(compiled)
    actions = {action.preamble.id: action.preamble.alias for action in info.actions}
    table = _table("kind", "name", "what", justify="left")
    for entry in info.tables:
        keys = ", ".join(_key(field) for field in entry.match_fields) or "no key"
        names = ", ".join(actions[ref.id] for ref in entry.action_refs)
        table.add_row("table", entry.preamble.name, f"{keys}\n{names}; size {entry.size}")
    for kind in ("registers", "counters", "meters", "direct_counters", "direct_meters"):
        for entry in getattr(info, kind):
            size = f"size {entry.size}" if hasattr(entry, "size") else "one an entry"
            table.add_row(kind[:-1].replace("_", " "), entry.preamble.name, size)
    return table


def _key(field: Any) -> str:
    return f"{field.name}: {field.MatchType.Name(field.match_type).lower()}<{field.bitwidth}>"


def _table(first: str, *others: str, justify: str = "right") -> Table:
    table = Table(first, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in others:
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    return table
