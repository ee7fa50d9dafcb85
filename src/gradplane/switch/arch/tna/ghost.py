"""The ghost control of Tofino 2, which runs when a queue's length changes.

Both engines run it in the interpreter: packets wait in queues of the switch's own, which Python
fills and empties. It runs in each pipe, so that each pipe's registers follow all queues, and for
both values of ping_pong, so that a program that keeps two copies finds either up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradplane.switch.arch.tna.chips import LOCAL_PORTS, PIPE_BITS
from gradplane.switch.interp.blocks import control_block
from gradplane.switch.interp.interpreter_values import maker
from gradplane.switch.interp.packet import Abort
from gradplane.switch.interp.statements import Statements
from gradplane.switch.ir import nodes as ir
from gradplane.switch.ir.types import Fields
from gradplane.switch.machine.model import SwitchPacket
from gradplane.switch.runtime.state import State

QUEUE_BITS = 4
"""A queue's id is its port's number in the pipe above its priority, of so many bits."""

MOST_LENGTH = (1 << 18) - 1

Ghost = Callable[[int, int, int, int], None]
"""Runs the control for a port, a priority, the queue's new length, and a value of ping_pong."""


def ghost_of(package: ir.Package, compiler: Statements) -> Ghost | None:
    """Compile a pipeline's ghost control; None if it has none."""
    control = package.args.get("ghost")
    if not isinstance(control, ir.Control):
        return None
    block = control_block(control, compiler)
    t = control.params[0].var.type
    assert isinstance(t, Fields), t
    make, names = maker(t), [f.name for f in t.fields]
    env = compiler.frame.new()

    def run(port: int, priority: int, length: int, ping_pong: int) -> None:
        header = make()
        known = {
            "ping_pong": ping_pong,
            "qlength": min(length, MOST_LENGTH),
            "qid": (port % LOCAL_PORTS) << QUEUE_BITS | priority,
            "pipe_id": port >> PIPE_BITS,
        }
        header.valid = True
        header.fields[:] = [known.get(name, 0) for name in names]
        env[0] = SwitchPacket(b"")
        env[block.slots[0]] = header
        block.run(env)

    return run


def run_ghosts(
    ghosts: Sequence[Ghost | None], state: State, pipes: int, port: int, priority: int, length: int
) -> None:
    """Run the ghost control of each pipe for a queue's new length."""
    running, current = state.current_pipe.number, state.current_pipe
    try:
        for pipe in range(pipes):
            ghost = ghosts[pipe % len(ghosts)]
            current.number = pipe
            if ghost is not None:
                ghost(port, priority, length, 0)
                ghost(port, priority, length, 1)
    except Abort as abort:
        state.drops[str(abort)] += 1
    finally:
        current.number = running
