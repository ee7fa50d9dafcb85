"""Loader of the Python file that implements a program's user-defined externs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from gradplane._suggestions import near_file
from gradplane.switch.runtime.control_errors import SwitchError


def load_externs(path: str | Path | None) -> ModuleType | None:
    """Return the module in a file, which may import modules beside it; None for None.

    Raises SwitchError where it cannot be loaded.
    """
    if path is None:
        return None
    file = Path(path).resolve()
    if not file.is_file():
        raise SwitchError(f"externs {path}: there is no such file{near_file(Path(path))}")
    spec = importlib.util.spec_from_file_location(f"gradplane_externs_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise SwitchError(f"externs {path}: expected a Python file, FILE.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look there
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SwitchError(f"externs {path}{_line(error, file)}: {_text(error)}") from error
    return module


def _line(error: BaseException, file: Path) -> str:
    """Return `:LINE`, the line of the file where an error was raised."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f":{error.lineno}"
    place, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            place = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _text(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}"
