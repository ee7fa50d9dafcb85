"""`compute_ms` of a [[job]]: checked, its trace file read, and turned into a host's nanoseconds.

Allowed is a number; a list with a number or a distribution for each worker; a distribution,
`{ distribution = "lognormal", mean = 2.0, sd = 0.5 }`; or a trace, `{ trace = "times.csv" }`, whose
rows take the place of the file's name once the experiment is loaded.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from gradplane._suggestions import near_file
from gradplane._toml_documents import nearest
from gradplane.experiment.document import ExperimentError, inline
from gradplane.hosts.training.compute_times import DISTRIBUTIONS, TIMES

_FORMS = (
    "a number of ms, 0 to 1e12, a list with one for each worker,"
    ' { distribution = "lognormal", mean = 2.0, sd = 0.5 } or { trace = "times.csv" }'
)
_LONGEST = 1e12  # ms: 31 years
_SHORT = 60  # characters of a value in a message


def _checked(value: Any) -> Any:
    """Return the value if its form is right; the number of workers is checked later."""
    if problem := _problem(value):
        raise PydanticCustomError("refused", "{problem}", {"problem": problem})
    return value


ComputeTime = Annotated[Any, AfterValidator(_checked)]


def _problem(value: Any) -> str:
    """Return what is wrong with a value, "" if nothing is."""
    if isinstance(value, Mapping) and "trace" in value:
        return _trace_problem(value)
    if isinstance(value, list | tuple):
        return next(filter(None, map(_item_problem, value)), "" if value else _expected(value))
    return _item_problem(value)


def _item_problem(value: Any) -> str:
    if isinstance(value, Mapping):
        return _distribution_problem(value)
    return "" if _is_time(value) else _expected(value)


def _expected(value: Any) -> str:
    text = inline(value)
    return f"{text if len(text) <= _SHORT else text[:_SHORT] + '…'}: expected {_FORMS}"


def _is_time(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= _LONGEST


def _distribution_problem(table: Mapping[str, Any]) -> str:
    name = table.get("distribution")
    if name not in DISTRIBUTIONS:
        if name is None:
            return _expected(table)
        return f'no distribution "{name}": {nearest(str(name), DISTRIBUTIONS)}'
    keys, _ = DISTRIBUTIONS[name]
    for key in table:
        if key not in ("distribution", *keys):
            return f"unknown key {key} of {name}: {nearest(key, keys)}"
    for key in keys:
        if key not in table:
            return f"{name} needs {' and '.join(keys)}: {key} is missing"
        if not _is_time(table[key]):
            return f"{key} = {inline(table[key])}: expected a number of 0 to 1e12"
    return _contradiction(name, table)


def _contradiction(name: str, table: Mapping[str, Any]) -> str:
    if name == "uniform" and table["low"] > table["high"]:
        return f"low = {table['low']} is above high = {table['high']}"
    if name == "pareto" and table["alpha"] <= 1:
        return f"alpha = {table['alpha']}: the mean exists for alpha above 1 only"
    if name == "lognormal" and table["mean"] == 0:
        return "mean = 0: a lognormal time has a mean above 0"
    return ""


def _trace_problem(table: Mapping[str, Any]) -> str:
    trace = table["trace"]
    if set(table) != {"trace"}:
        return f"a trace has no other keys: {', '.join(sorted(set(table) - {'trace'}))}"
    if isinstance(trace, str):
        return ""
    if not isinstance(trace, list | tuple) or not trace:
        return _expected(table)
    for number, row in enumerate(trace):
        if not isinstance(row, list | tuple) or not row or not all(map(_is_time, row)):
            return f"trace, row {number}: expected numbers of ms, 0 to 1e12"
        if len(row) != len(trace[0]):
            return f"trace, row {number}: {len(row)} numbers, and {len(trace[0])} in row 0"
    return ""


def with_trace(value: Any, folder: Path) -> Any:
    """Return the value with a trace file's rows in place of its name, looked for from a folder.

    Raises ExperimentError if the file cannot be read."""
    if not isinstance(value, Mapping) or not isinstance(value.get("trace"), str):
        return value
    path = folder / value["trace"]
    try:
        rows = _rows(path)
    except OSError as error:
        reason = f"{error.strerror or error}{near_file(path)}"
        raise ExperimentError(f"trace {path}: {reason}") from None
    except ValueError as error:
        raise ExperimentError(f"trace {path}: {error}") from None
    if problem := _trace_problem({"trace": rows}):
        raise ExperimentError(f"{path}: {problem}")
    return {"trace": rows}


def _rows(path: Path) -> list[list[float]]:
    """Return the rows of a file of comma-separated values; a first line of words is a header."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = [[cell.strip() for cell in line] for line in csv.reader(file) if line]
    if lines and not _numeric(lines[0]):
        del lines[0]
    if not lines:
        raise ValueError("no rows of numbers")
    return [_numbers(line, number) for number, line in enumerate(lines)]


def _numeric(cells: list[str]) -> bool:
    try:
        return bool([float(cell) for cell in cells])
    except ValueError:
        return False


def _numbers(cells: list[str], row: int) -> list[float]:
    try:
        return [float(cell) for cell in cells]
    except ValueError as error:
        raise ValueError(f"row {row}: {error}") from None


def workers_problem(value: Any, workers: int) -> str:
    """Return what is wrong with a value for so many workers, "" if nothing is."""
    if isinstance(value, list | tuple) and len(value) != workers:
        return f"compute_ms has {len(value)} items, and the job {workers} workers: give each one"
    if isinstance(value, Mapping) and "trace" in value:
        columns = len(value["trace"][0])
        if columns not in (1, workers):
            text = f"the trace has {columns} columns, and the job {workers} workers"
            return f"{text}: give each one, or all together one"
    return ""


def to_ns(value: Any) -> Any:
    """Return the value for a host: the same with times in ns, whole ones where they are fixed."""
    if isinstance(value, Mapping):
        if "trace" in value:
            return {"trace": [[round(ms * 1e6) for ms in row] for row in value["trace"]]}
        return {key: item * 1e6 if key in TIMES else item for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_ns(item) for item in value]
    return round(value * 1e6)
