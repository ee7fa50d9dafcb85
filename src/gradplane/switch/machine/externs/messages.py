"""Messages to the control plane and the log, and assertions."""

from __future__ import annotations

import logging
from functools import partial

from gradplane.switch.interp.extern_call import Call
from gradplane.switch.interp.interpreter_values import Env, Run, copier
from gradplane.switch.interp.packet import Abort
from gradplane.switch.ir import nodes as ir
from gradplane.switch.jit.expressions import is_scalar
from gradplane.switch.jit.externs import NativeCall, Site, post
from gradplane.switch.machine.extern_table import Extern
from gradplane.switch.runtime.control_messages import Digest

log = logging.getLogger("gradplane.switch")

# -- digests ------------------------------------------------------------------------------------


def digest(data: int) -> Extern:
    """Send argument `data` to the control plane when ingress is over.

    The digest's name is the instance's or, without an instance, that of the data's type."""
    return Extern(partial(_digest, data=data), partial(_digest_native, data=data))


def _digest_name(stmt: ir.CallExtern, data: int) -> str:
    return str(stmt.args[data].type) if stmt.instance is None else stmt.instance.name


def _digest(call: Call, data: int) -> Run:
    load, kind = call.arg(data), call.stmt.args[data].type
    copy, name = copier(kind), _digest_name(call.stmt, data)

    def run(env: Env) -> None:
        env[0].digests.append(Digest(name, kind, copy(load(env))))

    return run


def _digest_native(call: NativeCall, data: int) -> None:
    _send(call, "digests", "digest", _digest_name(call.stmt, data), data)


def _send(call: NativeCall, vector: str, kind: str, text: str, position: int | None) -> None:
    """Append a message with an argument's value, None: without, to a vector."""
    e = None if position is None else call.args[position]
    site = call.externs.site(Site(kind, text, e.type if e else None, call.stmt))
    if e is None:
        post(call.f, vector, site, "null", 0)
        return
    size = call.code.layouts.of(e.type).size
    if is_scalar(e.type):
        data = call.f.alloca(size)
        call.code.write(e, data)
    else:
        data = call.code.address(e)
    post(call.f, vector, site, data, size)


# -- log_msg ------------------------------------------------------------------------------------


def _log_msg(call: Call) -> Run:
    form, kind, load = call.name(0), None, None
    if len(call.stmt.args) > 1:
        load, kind = call.arg(1), call.stmt.args[1].type

    def run(env: Env) -> None:
        events = env[0].events
        if events is not None or log.isEnabledFor(logging.INFO):
            from gradplane.switch.interp.trace_events import Logged, log_message

            message = log_message(form, kind, None if load is None else load(env))
            log.info("%s", message)
            if events is not None:
                events.append(Logged(message, span=call.stmt.span))

    return run


def _log_msg_native(call: NativeCall) -> None:
    f = call.f
    logging = f.word("logging", "i64")
    with f.when(f.compare("ne", "i64", logging, 0)):
        position = 1 if len(call.args) > 1 else None
        _send(call, "messages", "log", call.name(0), position)


LOG_MSG = Extern(_log_msg, _log_msg_native, needs_packet=False)
"""log_msg(form), or log_msg(form, data): log a line."""


# -- assert, assume -----------------------------------------------------------------------------


def _check(call: Call) -> Run:
    check, what = call.arg(0), f"{call.stmt.span}: {call.stmt.name} failed"

    def run(env: Env) -> None:
        if not check(env):
            raise Abort(what)

    return run


def _check_native(call: NativeCall) -> None:
    with call.f.unless(call.code.value(call.args[0])):
        call.code.give_up(f"{call.stmt.span}: {call.stmt.name} failed")


ASSERT = Extern(_check, _check_native, needs_packet=False)
"""Drop the packet unless argument 0 holds."""
