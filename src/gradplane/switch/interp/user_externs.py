"""User-defined externs: declared by a program, implemented in Python.

A function is called with its in and inout arguments in order and returns the result, or, if there
are several, a tuple of the result and the out and inout parameters in order. A class is called
with the constructor's arguments, once for each instance. Abstract methods are callable attributes.
The forms of values: gradplane.switch.interp.user_extern_values.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from threading import RLock, get_ident
from types import ModuleType
from typing import Any, TypeGuard

from gradplane.switch.interp.interpreter_values import Frame, Value
from gradplane.switch.interp.packet import Abort, Packet
from gradplane.switch.interp.statements import Statements
from gradplane.switch.interp.user_extern_values import (
    FromPython,
    ToPython,
    labelled,
    shown,
    to_python,
)
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Type
from gradplane.switch.runtime.control_errors import SwitchError
from gradplane.switch.runtime.state import State
from gradplane.switch.source import CompileError, Diagnostic, Span, source_lines

Implementations = Mapping[str, Any] | ModuleType
Invoke = Callable[[Sequence[Value]], list[Value]]
"""A function from the values of a call's `inputs` to those of its `places`; raises Abort."""

HOW = "give it: Switch(..., externs={{{0!r}: ...}}), or --externs FILE.py with a {1} {0}"

log = logging.getLogger("gradplane.switch")


def needed(program: ir.Program) -> Diagnostic | None:
    """Return a warning if a program has user-defined externs: it needs an implementation to run."""
    found = {e.type: e.span for e in program.externs if e.user_extern is not None}
    for call in program.user_extern_calls:
        if call.instance is None:
            found.setdefault(call.name, call.span)
    if not found:
        return None
    what = f"extern {', '.join(found)}: user-defined: the program needs them in Python to run"
    return Diagnostic(next(iter(found.values())), what, "warning")


def inputs(call: ir.CallUserExtern) -> list[tuple[ir.Expr, Type]]:
    """Return the arguments whose values are known only when the call is made."""
    return [(a.value, a.type) for a in call.args if a.direction != "out" and _unknown(a.value)]


def _unknown(value: ir.Expr | ir.ExternInstance | None) -> TypeGuard[ir.Expr]:
    return isinstance(value, ir.Expr) and not isinstance(value, ir.Const)


class UserExterns:
    """The implementations of one loaded program's externs, their objects among them.

    Raises CompileError if one is missing, or does not take the program's arguments.
    """

    def __init__(self, program: ir.Program, state: State, given: Implementations | None) -> None:
        self.program = program
        self.state = state
        self._given = _by_name(given)
        self._objects: dict[ir.ExternInstance, Any] = {}
        self._problems: list[Diagnostic] = []
        self._logged: set[ir.CallUserExtern] = set()
        self.thread: int | None = None  # the thread in which an implementation runs
        for instance in program.externs:
            if instance.user_extern is not None:
                self._objects[instance] = self._made(instance)
        self._calls = {
            c: (self._function(c), self._arguments(c)) for c in program.user_extern_calls
        }
        if self._problems:
            raise CompileError(self._problems, source_lines([p.span for p in self._problems]))

    def give_methods(self, compiler: Callable[[Frame], Statements]) -> None:
        """Set the abstract methods; `compiler` makes what compiles them."""
        for instance, made in self._objects.items():
            assert instance.user_extern is not None
            for method in instance.user_extern.methods:
                run = PythonMethod(method, compiler(Frame()), self.program.errors)
                try:
                    setattr(made, _spelled(method.name), run)
                except AttributeError as error:
                    what = f"extern {instance.type}: {method.name} cannot be set: {error}"
                    raise CompileError([Diagnostic(instance.span, what)], {}) from None

    # -- at load --------------------------------------------------------------------------------

    def _problem(self, span: Span, what: str, hint: str = "") -> None:
        self._problems.append(Diagnostic(span, what, hint=hint))

    def _made(self, instance: ir.ExternInstance) -> Any:
        """Make the Python object for an instance."""
        kind = self._given.get(_spelled(instance.type))
        if not callable(kind):
            self._missing(f"extern {instance.type}", instance.type, "class", instance.span)
            return None
        assert instance.user_extern is not None
        pairs = zip(instance.args, instance.user_extern.types, strict=True)
        args = [self._argument(a, t, instance.span) for a, t in pairs]
        if not self._fits(kind, args, f"extern {instance.type}", instance.span):
            return None
        try:
            return kind(*args)
        except Exception as error:
            what = f"extern {instance.type} ({instance.name}): {_error_text(error)}"
            self._problem(instance.span, what)
            return None

    def _argument(self, value: ir.Argument, t: Type, span: Span) -> Any:
        if isinstance(value, ir.ExternInstance):
            return self._object(value, span)
        return None if value is None else to_python(t, self.program.errors)(value)

    def _object(self, instance: ir.ExternInstance, span: Span) -> Any:
        """Return an extern's Python object: the state, if the extern is the architecture's."""
        if instance.user_extern is not None:
            return self._objects[instance]
        state = self.state
        kept = {**state.registers, **state.counters, **state.meters}
        if instance.name not in kept:
            what = f"{instance.type} {instance.name} cannot be given to user-defined externs"
            self._problem(span, what, "registers, counters, meters and user-defined objects can")
        return kept.get(instance.name)

    def _missing(self, what: str, name: str, kind: str, span: Span) -> None:
        self._problem(span, f"{what} has no implementation", HOW.format(_spelled(name), kind))

    def _fits(self, function: Any, args: Sequence[Any], what: str, span: Span) -> bool:
        try:
            inspect.signature(function).bind(*args)
        except TypeError as error:
            count = f"{len(args)} argument{'s' if len(args) != 1 else ''}"
            self._problem(span, f"{what} is called with {count}, and its implementation: {error}")
            return False
        except ValueError:  # it has no signature
            return True
        return True

    def _function(self, call: ir.CallUserExtern) -> Any:
        """Return the function that a call calls, checked to take its arguments."""
        name = call.name
        if call.instance is None:
            function, what = self._given.get(_spelled(name)), f"extern {name}"
            if not callable(function):
                self._missing(what, name, "function", call.span)
                return None
        else:
            made, what = self._objects[call.instance], f"extern {call.instance.type}.{name}"
            if made is None:
                return None
            function = getattr(made, _spelled(name), None)
            given = call.instance.user_extern
            if given is not None and any(m.name == name for m in given.methods):
                return lambda *args: getattr(made, _spelled(name))(*args)  # set later
            if not callable(function):
                lacks = f"{type(made).__name__} has no method {_spelled(name)}"
                self._problem(call.span, f"{what}: {lacks}")
                return None
        args = [a for a in call.args if a.direction != "out"]
        self._fits(function, args, what, call.span)
        return function

    def _arguments(self, call: ir.CallUserExtern) -> list[Callable[[Sequence[Value]], Any]]:
        """Return each argument as a function of the input values."""
        positions = iter(range(len(inputs(call))))
        return [
            _input(next(positions), to_python(a.type, self.program.errors))
            if _unknown(a.value)
            else _always(self._known(a, call.span))
            for a in call.args
            if a.direction != "out"
        ]

    def _known(self, a: ir.UserExternArgument, span: Span) -> Any:
        """Return an argument that is the same in every call; None for one that was left out."""
        if isinstance(a.value, ir.ExternInstance):
            return self._object(a.value, span)
        if isinstance(a.value, ir.Const):
            return to_python(a.type, self.program.errors)(a.value.value)
        return None

    # -- at run time ----------------------------------------------------------------------------

    def invoke(self, call: ir.CallUserExtern) -> Invoke:
        """Return the function that makes a call."""
        function, arguments = self._calls[call]
        results = _results(call, self.program.errors)

        def invoke(values: Sequence[Value]) -> list[Value]:
            args = [argument(values) for argument in arguments]
            outer, self.thread = self.thread, get_ident()
            try:
                given = function(*args)
            except Abort as abort:  # from a method that the program gives
                what = failure(call)
                raise Abort(what, f"{what}: {abort.detail}") from None
            except Exception as error:
                self._log(call, error)
                raise _failed(call, error) from error
            finally:
                self.thread = outer
            try:
                parts = _parts(given, len(results))
                return [
                    convert(part, None if at is None else values[at])
                    for (convert, at), part in zip(results, parts, strict=True)
                ]
            except Exception as error:
                raise _failed(call, error) from None

        return invoke

    def _log(self, call: ir.CallUserExtern, error: Exception) -> None:
        """Log where a call's implementation raised, the first time that it did."""
        if call not in self._logged:
            self._logged.add(call)
            trace = error.__traceback__
            assert trace is not None
            found = (type(error), error, trace.tb_next or trace)
            log.error("%s: %s", call.span, failure(call), exc_info=found)


class PythonMethod:
    """An abstract method that the program implements; the interpreter runs it, on the switch's
    state, with new variables in each call.

    Takes the in and inout arguments in order, and returns what a function that implements an extern
    would. Raises TypeError for their number, ValueError for values that do not fit.
    """

    def __init__(self, method: ir.Method, compiler: Statements, errors: Sequence[str]) -> None:
        self.name = method.name
        self._frame = frame = compiler.frame
        params = [(p, t) for p, t in zip(method.params, method.types, strict=True)]
        outs = [(p.var, t) for p, t in params if p.direction in ("out", "inout")]
        if method.result is not None:
            outs.insert(0, (method.result, method.type))
        variables = {**dict.fromkeys(p.var for p in method.params), **dict.fromkeys(method.locals)}
        if method.result is not None:
            variables[method.result] = None
        self._zero = frame.zeroing([*variables])
        self._takes = [
            (frame.slot(p.var), labelled(f"argument {p.name} of {method.name}", t, errors))
            for p, t in params
            if p.direction != "out"
        ]
        self._gives = [(frame.slot(var), to_python(t, errors)) for var, t in outs]
        self._run = compiler.body(method.body).run

    def __call__(self, *args: Any) -> Any:
        if len(args) != len(self._takes):
            raise TypeError(f"{self.name}() takes {len(self._takes)} arguments, not {len(args)}")
        env = self._frame.new()
        env[0] = Packet(b"")
        self._zero(env)
        for (slot, convert), arg in zip(self._takes, args, strict=True):
            env[slot] = convert(arg, None)
        self._run(env)
        given = [convert(env[slot]) for slot, convert in self._gives]
        return tuple(given) if len(given) > 1 else given[0] if given else None


class UserExternLock:
    """A switch's lock that raises SwitchError in a user-defined extern: it runs in the middle of a
    packet's pass, in which nothing may change."""

    def __init__(self, externs: UserExterns) -> None:
        self._externs = externs
        self._lock = RLock()

    def __enter__(self) -> None:
        if self._externs.thread == get_ident():
            raise SwitchError("an extern cannot use the switch that is calling it")
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


def _spelled(name: str) -> str:
    """Return a name that is valid in Python: `from_` for `from`."""
    return f"{name}_" if iskeyword(name) else name


def _by_name(given: Implementations | None) -> Mapping[str, Any]:
    if isinstance(given, ModuleType):
        return vars(given)
    if given is not None and not isinstance(given, Mapping):
        raise SwitchError(
            f"externs: expected functions and classes by name, or a module, not {shown(given)}"
        )
    return given or {}


def failure(call: ir.CallUserExtern) -> str:
    """Return the reason of a drop."""
    if call.instance is None:
        return f"extern {call.name} failed"
    return f"extern {call.instance.type}.{call.name} of {call.instance.name} failed"


def _input(position: int, convert: ToPython) -> Callable[[Sequence[Value]], Any]:
    return lambda values: convert(values[position])


def _always(known: Any) -> Callable[[Sequence[Value]], Any]:
    return lambda values: known


def _failed(call: ir.CallUserExtern, error: Exception) -> Abort:
    what = failure(call)
    return Abort(what, f"{what}: {_error_text(error)}")


def _results(call: ir.CallUserExtern, errors: Sequence[str]) -> list[tuple[FromPython, int | None]]:
    """Return for each place its value's converter, and the position of its input if it is inout."""
    names = {a.value: a.name for a in call.args if isinstance(a.value, ir.Var)}
    at = {value: i for i, (value, _) in enumerate(inputs(call))}
    return [
        (labelled(f"parameter {names[var]}" if var in names else "result", t, errors), at.get(var))
        for var, t in call.places
    ]


def _parts(given: Any, count: int) -> Sequence[Any]:
    """Split the values that a function returned."""
    if count == 1:
        return [given]
    if not count and given is None:
        return []
    if not count or not isinstance(given, tuple | list) or len(given) != count:
        wanted = f"a tuple of {count}" if count else "None: there is no result"
        raise ValueError(f"it gave {shown(given)}, not {wanted}")
    return given


def _error_text(error: Exception) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
