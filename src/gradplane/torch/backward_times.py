"""Measures when a script's backward pass finds each parameter's gradient, for `gradplane plan`.

    python -P -m gradplane.torch.backward_times RESULT.json SCRIPT.py ARGUMENT...

The script runs as by `python SCRIPT.py`, and is ended once there is enough. RESULT.json gets
`forward` and `backward` (seconds; up to the last gradient), `tensors` (name, values and compute, in
backward order) and `passes`, how many were measured; or `problem`, why it has no such times.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

WARM = 3
"""The first backward passes, which are not counted."""
WANTED = 20
"""The measured ones after which the script is ended."""
LEAST = 3
"""The measured ones without which there is no result."""


class _End(BaseException):
    """The script need not go on, or cannot be measured; no `except Exception` of it sees this."""


class _Measured:
    """The model whose backward passes are measured: a module with all parameters that they reach.

    Times are seconds since the backward pass began.
    """

    def __init__(self, model: nn.Module, outer: Iterable[Any]) -> None:
        """outer: the model and the modules around it, such as DDP, one of which is called."""
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.names = [name for name, _ in named]
        self.sizes = [parameter.numel() for _, parameter in named]
        self.passes: list[dict[int, float]] = []  # by the parameter's place in names
        self.forwards: list[float] = []
        self._found: dict[int, float] = {}
        self._forward = 0.0  # when it began; 0: not since the last backward pass
        self._parameters = {id(parameter) for _, parameter in named}
        registering: list[Any] = [p.register_post_accumulate_grad_hook for _, p in named]
        self._hooks = [register(partial(self._note, at)) for at, register in enumerate(registering)]
        self._hooks += [module.register_forward_pre_hook(self._began) for module in outer]
        for module in outer:
            if hasattr(module, "require_backward_grad_sync"):  # DDP, which would reduce meanwhile
                module.require_backward_grad_sync = False

    def has(self, leaves: Iterable[torch.Tensor]) -> bool:
        """Return whether all of them are the model's."""
        return all(id(leaf) in self._parameters for leaf in leaves)

    def run(self, backward: Callable[[], None]) -> None:
        """Make a backward pass."""
        self._found = {}
        begin = time.perf_counter()
        backward()
        self.passes.append({at: moment - begin for at, moment in self._found.items()})
        if self._forward:
            self.forwards.append(begin - self._forward)
        self._forward = 0.0

    def close(self) -> None:
        """Remove the hooks."""
        for hook in self._hooks:
            hook.remove()

    def result(self) -> dict[str, Any]:
        """Return the medians; the times between gradients follow from when each is found."""
        counted = self.passes[WARM:]
        moments = {
            at: median(found[at] for found in counted if at in found)
            for at in sorted(set().union(*counted))
        }
        tensors, before = [], 0.0
        for at in sorted(moments, key=lambda at: moments[at]):
            compute, before = moments[at] - before, moments[at]
            tensors.append({"name": self.names[at], "values": self.sizes[at], "compute": compute})
        return {
            "forward": median(self.forwards[WARM - 1 :]) if len(self.forwards) >= WARM else 0.0,
            "backward": before,
            "tensors": tensors,
            "passes": len(counted),
        }

    def _note(self, at: int, parameter: torch.Tensor) -> None:
        self._found[at] = time.perf_counter()

    def _began(self, *_: Any) -> None:
        if torch.is_grad_enabled() and not self._forward:
            self._forward = time.perf_counter()


class BackwardTimes:
    """Measures the backward passes of the script that runs in this process; a context manager."""

    def __init__(self) -> None:
        self._model: _Measured | None = None
        self._inside = False  # of a backward pass, which may make others
        self._backward: Any = torch.autograd.backward

    def __enter__(self) -> BackwardTimes:
        module: Any = torch.autograd
        module.backward = self._measured
        return self

    def __exit__(self, *_: object) -> None:
        module: Any = torch.autograd
        module.backward = self._backward
        if self._model is not None:
            self._model.close()

    def result(self) -> dict[str, Any]:
        """Return what RESULT.json gets, of a script that has ended."""
        done = 0 if self._model is None else len(self._model.passes)
        if self._model is None:
            return {"problem": "it ended without a backward pass of a model in its own process"}
        if done < WARM + LEAST:
            return {
                "problem": f"it ended after {done} backward passes of the model: {WARM} to get warm"
                f" and {LEAST} to measure are needed: let it train for longer"
            }
        return self._model.result()

    def _measured(self, tensors: Any, *arguments: Any, **options: Any) -> None:
        call = partial(self._backward, tensors, *arguments, **options)
        leaves = [] if self._inside else _leaves(tensors)
        if not leaves:
            call()
            return
        if self._model is None or not self._model.has(leaves):
            self._choose(leaves)
        assert self._model is not None
        self._inside = True
        try:
            self._model.run(call)
        finally:
            self._inside = False
        if len(self._model.passes) >= WARM + WANTED:
            raise _End

    def _choose(self, leaves: list[torch.Tensor]) -> None:
        """Take the smallest module with all leaves, and those of the model so far, as the model."""
        modules = [found for found in gc.get_objects() if issubclass(type(found), nn.Module)]
        if self._model is not None:
            self._model.close()
            known = {id(leaf) for leaf in leaves}
            parameters = {id(p): p for module in modules for p in module.parameters()}
            leaves = leaves + [parameters[key] for key in self._model._parameters - known
                               if key in parameters]  # fmt: skip
        wanted = {id(leaf) for leaf in leaves}
        owners = [m for m in modules if wanted <= {id(p) for p in m.parameters()}]
        if not owners:
            raise _End(_no_model(modules, wanted))
        inner = min(owners, key=lambda module: sum(1 for _ in module.modules()))
        compiled = {id(part) for module in modules if hasattr(module, "_orig_mod")
                    for part in module.modules() if part is not module}  # fmt: skip
        self._model = _Measured(inner, [each for each in owners if id(each) not in compiled])


def _leaves(tensors: Any) -> list[torch.Tensor]:
    """Return the parameters that a backward pass from these tensors comes to."""
    first: Sequence[Any] = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    nodes: list[Any] = [tensor.grad_fn for tensor in first if tensor.grad_fn is not None]
    seen = set(nodes)
    found: list[torch.Tensor] = []
    while nodes:
        node = nodes.pop()
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, nn.Parameter):
            found.append(leaf)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
    return found


def _no_model(modules: list[nn.Module], wanted: set[int]) -> str:
    """Say why no module has all parameters."""
    inside = {id(part) for module in modules for part in module.modules() if part is not module}
    owners = {
        type(module).__name__
        for module in modules
        if id(module) not in inside and wanted & {id(p) for p in module.parameters()}
    }
    if len(owners) < 2:
        return (
            "its backward pass comes to parameters that its model does not have, as those that"
            " FSDP gathers: profile the model unsharded"
        )
    return (
        f"its backward passes come to parameters of several models ({', '.join(sorted(owners))}):"
        " a plan is for one: profile a script that trains one"
    )


def run(script: Path, arguments: Sequence[str]) -> dict[str, Any] | None:
    """Run a script and measure its backward passes; None where it failed, which it has printed."""
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=str(script), __builtins__=builtins)
    sys.modules["__main__"] = module
    with BackwardTimes() as times:
        try:
            exec(compile(script.read_bytes(), str(script), "exec"), module.__dict__)
        except _End as end:
            if end.args:
                return {"problem": str(end)}
        except SystemExit as end:
            if end.code not in (None, 0):
                print(end.code if isinstance(end.code, str) else "", end="", file=sys.stderr)
                return None
        except BaseException as error:
            _print_their_own(error)
            return None
    return times.result()


def _print_their_own(error: BaseException) -> None:
    """Print a traceback without the frames of this module."""
    whole = traceback.TracebackException.from_exception(error)
    for each in _chained(whole):
        frames = [frame for frame in each.stack if frame.filename != __file__]
        each.stack = traceback.StackSummary.from_list(frames)
    print("".join(whole.format()), end="", file=sys.stderr)


def _chained(error: traceback.TracebackException | None) -> Iterator[traceback.TracebackException]:
    if error is not None:
        yield error
        yield from _chained(error.__cause__)
        yield from _chained(error.__context__)


def main() -> None:
    """Measure, as the command line says; the process ends at once, whatever threads there are."""
    result, script, *arguments = sys.argv[1:]
    found = run(Path(script), arguments)
    if found is not None:
        Path(result).write_text(json.dumps(found))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(found is None)


if __name__ == "__main__":
    main()
