"""The output of commands: tables that fit 80 columns, and a run folder's records as CSV."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gradplane import codecs as compression
from gradplane.experiment import shipped
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import (
    Summary,
    datagrams_sent,
    queue_drops,
    rate,
    time_to_accuracy,
    undelivered,
    unmet,
)
from gradplane.studies import gradients
from gradplane.studies.nmse import Floats, nmse
from gradplane.switch.ir import nodes as ir

if TYPE_CHECKING:
    from gradplane.codecs import RecordedGradients
    from gradplane.planner.planning import Plan
    from gradplane.planner.planning import Row as PlanRow
    from gradplane.runs.sweeps.tables import Results
    from gradplane.runs.torch_comparison import Row
    from gradplane.studies.recorded import Effect
    from gradplane.studies.recorded.advice import Candidate
    from gradplane.studies.study import StudyOutcome
    from gradplane.switch.packet_rates import Rates


def results(summary: Summary) -> Group:
    """Return a run's results beside its baseline's, a table per job; bytes per worker and round.

    Results that a worker missed and packets that a queue dropped are red."""
    runs = [values for values in (summary.values, summary.baseline) if values]
    said = [Text(f" {text}\n", "bold red")] if (text := unmet(runs[0])) else []
    return Group(*(_job(runs, number) for number in range(len(runs[0]["jobs"]))), *said)


def compared(folders: Sequence[Path]) -> Group:
    """Return the results of several runs beside each other, a table per job that all have; of more
    than fit in columns, a row for each run."""
    runs = [RunData.read(folder).summary for folder in folders]
    names = [folder.resolve().name for folder in folders]
    common = min(len(values["jobs"]) for values in runs)
    if len(runs) <= _COLUMNS:
        return Group(*(_job(runs, number, names) for number in range(common)))
    return Group(*(_rows(runs, number, names) for number in range(common)))


_COLUMNS = 3  # runs beside each other in 80 columns of text


def _rows(runs: Sequence[dict[str, Any]], number: int, names: Sequence[str]) -> Table:
    """Return a row for each run: what one looks for first, in 80 columns."""
    jobs = [values["jobs"][number] for values in runs]
    target = jobs[0].get("time_to_accuracy")
    heads = ["test\naccuracy", "bytes up\na round", "down", "rounds\n/s", "rounds", "missed"]
    if target:
        heads.insert(1, f"time to\n{100 * target['test_accuracy']:g}%")
    same = len({job["name"] for job in jobs}) == 1
    table = _table(jobs[0]["name"] if same else "run", *heads)
    table.columns[0].overflow = "fold"
    for name, job in zip(names, jobs, strict=True):
        cells: list[str | Text]
        cells = [f"{job['traffic'][f'payload_{way}']:,.0f}" for way in ("up", "down")]
        cells += [rate(job["rounds_per_second"]), f"{job['rounds']:,}", _bad(job["missed"])]
        reached = [time_to_accuracy(job)] if target else []
        table.add_row(name, f"{job['test_accuracy']:.2%}", *reached, *cells)
    return table


def _job(
    runs: Sequence[dict[str, Any]], number: int, names: Sequence[str] = ("this run", "baseline")
) -> Table:
    jobs = [values["jobs"][number] for values in runs]
    table = _table(jobs[0]["name"], *names[: len(runs)])
    table.add_row("test accuracy", *(f"{job['test_accuracy']:.2%}" for job in jobs))
    if target := jobs[0].get("time_to_accuracy"):
        name = f"time to {100 * target['test_accuracy']:g}%"
        table.add_row(name, *map(time_to_accuracy, jobs))
    for way in ("up", "down"):
        table.add_row(f"bytes {way} a round (+ headers)", *(_traffic(way, job) for job in jobs))
        if any(undelivered(job, way) for job in jobs):
            needed = (f"{job['needed'][f'payload_{way}']:,.0f}" for job in jobs)
            table.add_row("  if all had arrived", *needed)
    table.add_row("rounds a second", *(rate(job["rounds_per_second"]) for job in jobs))
    table.add_row("rounds", *(f"{job['rounds']:,}" for job in jobs))
    table.add_row("results missed", *(_bad(job["missed"]) for job in jobs))
    for stage in ("parts", "means"):
        if any("lost" in job for job in jobs):
            table.add_row(f"  {stage} not in time", *(_late_share(job, stage) for job in jobs))
    if any(job.get("sent_again") for job in jobs):
        table.add_row("packets sent again", *(f"{job.get('sent_again', 0):,}" for job in jobs))
    table.add_row("packets dropped by queues", *(_bad(queue_drops(values)) for values in runs))
    table.add_row("losses injected", *map(_injected, runs))
    captures = [flow for flow in runs[0].get("background", ()) if "captured" in flow]
    if any(flow["sent"] < flow["captured"] for flow in captures):
        table.add_row("datagrams of captures sent", datagrams_sent(captures))
    if any(values["link_bytes"]["fabric"] for values in runs):
        sizes = (f"{values['link_bytes']['fabric']:,}" for values in runs)
        table.add_row("bytes between switches, in all", *sizes)
    return table


def _traffic(way: str, job: dict[str, Any]) -> str:
    traffic = job["traffic"]
    return f"{traffic[f'payload_{way}']:,.0f} + {traffic[f'headers_{way}']:,.0f}"


def _injected(values: dict[str, Any]) -> str:
    found = values["losses_injected"]
    return ", ".join(f"{kind} {sum(ways.values()):,}" for kind, ways in found.items()) or "none"


def _late_share(job: Mapping[str, Any], stage: str) -> str:
    """Return the share of a stage's packets that did not come in time, of bounded transport."""
    found = job.get("lost", {}).get(stage)
    return "-" if not found else f"{100 * found['lost'] / max(found['sent'], 1):.2f}%"


def _bad(count: int) -> Text:
    """Return a number that should be 0, in red if it is not."""
    return Text(f"{count:,}", style="bold red" if count else "")


def torchrun(values: dict[str, Any]) -> Table:
    """Return what a script's run left in its counters: the reduces of a rank, and all traffic."""
    table = _table(values["name"], "")
    table.add_row("seconds", f"{values['seconds']:.1f}")
    table.add_row("ranks", f"{values['ranks']}")
    table.add_row("buckets reduced by a rank", f"{values['reduces']:,}")
    if gathers := values.get("gathers"):
        table.add_row("gathers and broadcasts of a rank", f"{gathers:,}")
    if restarts := values.get("restarts"):
        lost = sum(line["lost"] for line in restarts)
        table.add_row("restarts", f"{len(restarts)}")
        table.add_row("  buckets of before that are lost", _bad(lost))
    table.add_row("results missed, by all ranks", _bad(values["missed"]))
    table.add_row("bytes on the hosts' links", f"{values['link_bytes']['hosts']:,}")
    table.add_row("packets dropped by queues", _bad(queue_drops(values)))
    table.add_row("losses injected", _injected(values))
    if values["missed"]:
        table.caption_justify = "left"
        table.caption = (
            "A rank that missed a result went on with another mean than the others:"
            ' reliability = "retransmit" keeps them equal.'
        )
    return table


def torch_comparison(rows: Sequence[Row], target: float) -> Table:
    """Return the figures of a script under several hooks; "-" where the script records none."""
    from gradplane.runs.torch_comparison import REFERENCE

    times = "ms/iteration", f"s to {target:.0%}"
    table = _table("hook", "accuracy", "bytes on links", "bf16's", *times)
    reference = next(row.link_bytes for row in rows if row.key == REFERENCE)
    for row in rows:
        accuracy = "-" if row.test_accuracy is None else f"{row.test_accuracy:.2%}"
        iteration = "-" if row.iteration is None else f"{1e3 * row.iteration:.1f}"
        reached = "-" if row.to_target is None else f"{row.to_target:.1f}"
        share = f"{row.link_bytes / reference:.0%}"
        table.add_row(row.name, accuracy, f"{row.link_bytes:,}", share, iteration, reached)
    return table


def experiments() -> Table:
    """List the shipped experiments with the first sentence of each file."""
    table = _table("experiments", "", justify="left")
    for name in shipped.names():
        table.add_row(name, shipped.summary(name))
    return table


def codecs() -> Table:
    """Return all codecs, their parameters with defaults, whether a switch can sum them and the bits
    that a value takes in its packets, and whether they take each tensor by itself where a job does
    not say."""
    table = _table("codecs", "parameters", "summable", "by tensor", justify="left")
    for name in compression.names():
        codec = compression.get(name)
        parameters = [f"{k}={v}" for k, v in codec.config.items() if k != "name"]
        by_tensor = "yes" if codec.by_tensor else "no"
        table.add_row(name, ", ".join(parameters) or "-", _summable(codec), by_tensor)
    return table


def contract(found: Iterable[tuple[str, str, str]]) -> Table:
    """Return the rules of codecs, and whether one keeps them."""
    table = _table("rule", "", "kept", justify="left")
    for name, rule, problem in found:
        table.add_row(name, rule, Text(f"no: {problem}", "bold red") if problem else "yes")
    return table


def _summable(codec: compression.Codec) -> str:
    """Say whether a switch can sum a codec, and the bits of a value in packets to it."""
    if not codec.summable:
        return "no"
    bits = compression.code_bits(len(codec.table)) * codec.lanes(_BLOCK) // _BLOCK
    return f"in {bits} bit{'s' if bits > 1 else ''}"


_BLOCK = 1024  # values that no codec pads
_NMSE = "nmse_"


def measure(
    codecs: Mapping[str, compression.Codec], values: int, seed: int
) -> dict[str, dict[str, float]]:
    """Return speed, ratio, bits a value and error of codecs, in their first round on a vector.

    Speed, ratio and bits are those on gradients recorded in a training; best speed of three calls.
    """
    vectors = _vectors(values, seed)
    return {name: _measure(codec, vectors, seed) for name, codec in codecs.items()}


def bench(found: Mapping[str, Mapping[str, float]], values: int) -> Table:
    """Return the table of what `measure` found."""
    kinds = [key.removeprefix(_NMSE) for key in next(iter(found.values())) if _NMSE in key]
    heads = ("enc.\nGB/s", "dec.\nGB/s", "\nratio", "\nbits")
    table = _table(f"{values:,}\nvalues", *heads, *(f"NMSE,\n{kind}" for kind in kinds))
    for name, of in found.items():
        cells = (
            f"{value:.2g}" if key.startswith(_NMSE) else _two_digits(value)
            for key, value in of.items()
        )
        table.add_row(name, *cells)
    return table


WAYS = 8  # that are shown each


def packet_rates(program: str, rates: Rates) -> Group:
    """Return a program's figures, and a row for each way of its packets that takes much time."""
    speeds = _table(program, "ns a packet", "packets/s")
    for name, ns in (
        ("many in a call, process_buffer", rates.batch),
        ("one in a call, process", rates.single),
        ("traced, trace", rates.traced),
    ):
        speeds.add_row(name, f"{ns:,.0f}", f"{1e9 / ns:,.0f}")
    ways = _table("of these packets", "packets", "ns each", "passes", "lookups", "calls")
    for way in rates.ways[:WAYS]:
        counts = f"{way.packets:,}", f"{way.ns:,.0f}", way.passes, way.lookups, way.calls
        taken = Text(way.headers or "no header").append(f"\n{way.steps}" * bool(way.steps), "dim")
        ways.add_row(taken, *map(str, counts))
    if len(rates.ways) > WAYS:
        ways.add_row(f"{len(rates.ways) - WAYS} other ways, which take less", *[""] * 5)
    about = f" {rates.packets:,} packets of {rates.size:,.0f} bytes in the mean,"
    return Group(Text(f"{about} of which {rates.leaving:,} leave or have copies"), speeds, ways)


def _two_digits(value: float) -> str:
    """Return a number with two decimals, or with two digits if it is small."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def recorded_bench(effects: Mapping[str, Sequence[Effect]], recorded: RecordedGradients) -> Group:
    """Return a row for each codec and layer: what `recorded.effects` found."""
    heads = ("\nvalues", "\nbytes", "\nNMSE", "NMSE\nof mean", "\nbias", "enc.\nGB/s", "dec.\nGB/s")
    table = _table("codec,\nlayer", *heads)
    for name, rows in effects.items():
        for row in rows:
            whole = row is rows[0]
            errors = (f"{value:.2g}" for value in (row.nmse, row.nmse_of_mean))
            speeds = map(_two_digits, (row.encode_gb_per_second, row.decode_gb_per_second))
            table.add_row(
                Text(name if whole else f"  {row.layer}", "bold" if whole else ""),
                *(f"{row.values:,}", f"{row.bytes:,.0f}", *errors, f"{row.bias:+.1%}", *speeds),
            )
    return Group(_origin(recorded), table)


def _origin(recorded: RecordedGradients) -> Text:
    steps = ", ".join(map(str, recorded.steps[:6])) + (", ..." if recorded.steps[6:] else "")
    said = f" {sum(recorded.sizes):,} values in {len(recorded.layers)} layers"
    said += f"; steps {steps}; {len(recorded.workers)} workers"
    return Text(said + (f"\n {recorded.origin}" if recorded.origin else ""))


def advice(candidates: Sequence[Candidate], recorded: RecordedGradients, error: float) -> Group:
    """Return a table of all candidates, the recommended ones with the keys of a [[job]]."""
    from gradplane.studies.recorded.advice import ROUNDS, WAYS

    table = _table("", "bytes", "ratio", f"error of\n{ROUNDS} rounds", "", justify="left")
    said: list[Text] = []
    for way, title in WAYS.items():
        own = [one for one in candidates if one.way == way]
        table.add_row(Text(title, "bold"))
        for one in own:
            parameters = ", ".join(f"{k} = {v}" for k, v in one.parameters.items())
            ratio = 4 * sum(recorded.sizes) / one.bytes
            verdict = _verdict(one, error)
            cells = (f"{one.bytes:,.0f}", f"{ratio:.1f}", f"{one.error:.2g}", verdict)
            table.add_row(f"  {one.codec} {parameters}", *cells)
        keys = [one.keys for one in own if one.recommended]
        found = keys[0] if keys else f"no codec within {error:g}: see --error"
        said.append(Text(f" {title}: {found}"))
    return Group(_origin(recorded), table, *said)


def _verdict(one: Candidate, error: float) -> Text:
    if one.recommended:
        return Text("recommended", "bold")
    if one.risk is not None:
        return Text("may not learn", "red")
    return Text("" if one.error <= error else "error too large")


def _vectors(values: int, seed: int) -> dict[str, Floats]:
    """Return float32[values] of each kind; "real" are successive gradients of a training."""
    vectors = {kind: gradients.drawn(kind, values, seed) for kind in ("normal", "lognormal")}
    size = gradients.flat(next(gradients.training(1)).gradients).size
    steps = gradients.training(-(-values // size), seed=seed)
    real = np.concatenate([gradients.flat(step.gradients) for step in steps])[:values]
    return vectors | {"real": real}


def _measure(codec: compression.Codec, vectors: dict[str, Floats], seed: int) -> dict[str, float]:
    errors = {}
    for kind, x in vectors.items():
        shared, state = codec.local(x, codec.start(x.size)), codec.start(x.size)
        data, _ = codec.encode(x, shared, seed, state)
        errors[_NMSE + kind] = float(nmse(x, codec.decode(data, x.size)))
    return {
        "encode_gb_per_second": _speed(lambda: codec.encode(x, shared, seed, state), x.nbytes),
        "decode_gb_per_second": _speed(lambda: codec.decode(data, x.size), x.nbytes),
        "ratio": x.nbytes / len(data),
        "bits_per_value": 8 * len(data) / x.size,
        **errors,
    }


def _speed(call: Callable[[], object], size: int) -> float:
    """Return the GB/s of the fastest of three calls."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return size / 1e9 / min(seconds)


def study(outcome: StudyOutcome) -> Group:
    """Return a study's numbers beside the paper's, and notes where and why they differ."""
    table = _table(*outcome.head)
    for row in outcome.rows:
        table.add_row(*row)
    notes = (Padding(Text(note), (0, 0, 1, 1)) for note in outcome.notes)
    return Group(Text(f" {outcome.title}", "bold"), table, *notes)


def sweep(results: Results) -> Table:
    """Return a row for each point of a sweep: its parameters, means with intervals.

    The report has all metrics; here are accuracy, time to the target accuracy if there is one, and
    else the time of the training."""
    from gradplane.pages.report.sweep_page import estimate_text
    from gradplane.runs.sweeps.axes import label, short_names

    named = {metric.name: metric for metric in results.metrics}
    time = "seconds_to_accuracy" if "seconds_to_accuracy" in named else "seconds"
    metrics = [named[name] for name in ("test_accuracy", time) if name in named]
    plan = results.plan
    heads = (metric.name.replace("_", " ") for metric in metrics)
    keys = short_names([axis.key for axis in plan.axes]) or [plan.name]
    table = _table(*keys, "runs", *heads)
    for number, point in enumerate(plan.points):
        values = [label(value) for value in point.values()] or ["all"]
        cells = (estimate_text(results.estimate(number, m), m) for m in metrics)
        table.add_row(*values, f"{results.count(number)}", *cells)
    return table


def program(compiled: ir.Program) -> Table:
    """Return a P4 program's tables, registers, counters, by their control-plane names."""
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
            size = f"size {entry.size}" if hasattr(entry, "size") else "one per entry"
            table.add_row(kind[:-1].replace("_", " "), entry.preamble.name, size)
    for profile in info.action_profiles:
        kind = "action selector" if profile.with_selector else "action profile"
        members = f"size {profile.size}" + (
            f", groups of up to {profile.max_group_size}" if profile.max_group_size else ""
        )
        table.add_row(kind, profile.preamble.name, members)
    for digest in info.digests:
        table.add_row("digest", digest.preamble.name, _data(digest.type_spec))
    for header in info.controller_packet_metadata:
        fields = ", ".join(f"{one.name}: bit<{one.bitwidth}>" for one in header.metadata)
        table.add_row("packet header", header.preamble.name, fields)
    for values in info.value_sets:
        keys = ", ".join(_key(field) for field in values.match)
        table.add_row("value set", values.preamble.name, f"{keys}; size {values.size}")
    return table


def _data(spec: Any) -> str:
    """Return a type in P4Info as text: the name of a struct, the width of a number."""
    kind = spec.WhichOneof("type_spec")
    if kind in ("struct", "header", "header_union", "serializable_enum", "new_type"):
        return str(getattr(spec, kind).name)
    if kind == "bitstring" and spec.bitstring.HasField("bit"):
        return f"bit<{spec.bitstring.bit.bitwidth}>"
    return str(kind)


def _key(field: Any) -> str:
    return f"{field.name}: {field.MatchType.Name(field.match_type).lower()}<{field.bitwidth}>"


def _table(first: str, *others: str, justify: str = "right") -> Table:
    table = Table(first, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in others:
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    return table


PLAN_ROWS = 30  # tensors shown; a summary by option counts all of them


def plan_tables(made: Plan) -> Group:
    """Return the times, the tensors (the largest, in backward order), and a summary by option."""
    shown = sorted(range(len(made.rows)), key=lambda at: -made.rows[at].values)[:PLAN_ROWS]
    parts: list[Table | Group] = [
        _plan_times(made),
        _plan_tensors([made.rows[at] for at in sorted(shown)]),
    ]
    if len(made.rows) > PLAN_ROWS:
        parts.append(_plan_summary(made))
    return Group(*parts)


def _plan_times(made: Plan) -> Table:
    table = _plan_table(f"{made.model.name}, {made.compression.codec}, {made.system.name}")
    table.add_column("iteration, ms", justify="right")
    table.add_column("speed-up of this plan", justify="right")
    rows = {"this plan": made.time, **made.references, "bound: none is quicker": made.bound}
    for name, seconds in rows.items():
        if seconds is None:
            table.add_row(name, "no such option", "")
        else:
            table.add_row(name, f"{1e3 * seconds:.3f}", f"{made.speedup(seconds):.2f}")
    return table


def _plan_tensors(rows: list[PlanRow]) -> Table:
    table = _plan_table("tensor")
    table.add_column("values", justify="right")
    table.add_column("option; why not the next best")
    for row in rows:
        table.add_row(row.name, f"{row.values:,}", Text(f"{row.option}\n  {row.reason}"))
    return table


def _plan_summary(made: Plan) -> Group:
    tensors = Counter(str(row.option) for row in made.rows)
    values: Counter[str] = Counter()
    for row in made.rows:
        values[str(row.option)] += row.values
    table = _plan_table("tensors")
    table.add_column("values", justify="right")
    table.add_column("option")
    for option, count in tensors.most_common():
        table.add_row(str(count), f"{values[option]:,}", Text(option))
    title = f"Above: the {PLAN_ROWS} largest of {len(made.rows)} tensors. All of them by option:"
    return Group(Text(title), table)


def _plan_table(first: str) -> Table:
    return Table(first, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")


RECORD_KINDS = ("arrival", "norm", "resend", "timeout", "stall", "window", "epoch", "verdict")


def write_records(folder: Path, kind: str, out: TextIO) -> int:
    """Write the records of one of RECORD_KINDS as CSV, a line a packet; return their number.

    The first line has the fields' names. Raises FolderError where the folder is damaged.
    """
    from gradplane.runs.records.run_data import RunData

    data = RunData.opened(folder)
    lines: Iterable[dict[str, Any]] = data.verdicts
    if kind != "verdict":
        lines = (line for line in data.arrivals if line["kind"] == kind)
    writer = None
    count = 0
    for line in lines:
        fields = {key: value for key, value in line.items() if key != "kind"}
        if "norm" in fields:  # the bits of a float32, as they are on the wire
            fields["norm"] = str(np.uint32(fields["norm"]).view(np.float32))
        if writer is None:
            writer = csv.DictWriter(out, list(fields), extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
        writer.writerow(fields)
        count += 1
    return count
