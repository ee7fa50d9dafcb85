"""simple_switch_CLI's commands, and the runtime JSON files of the P4 tutorials, on a Switch.

What the commands do follows p4lang/behavioral-model, docs/runtime_CLI.md; what they print is in the
form that scripts read it in there.
"""

from gradplane.switch.commands.command_error import CommandError
from gradplane.switch.commands.command_files import Answer, answers, failures, run
from gradplane.switch.commands.command_registry import (
    COMMANDS,
    PortStatus,
    Target,
    no_ports,
    run_words,
)

__all__ = [
    "COMMANDS",
    "Answer",
    "CommandError",
    "PortStatus",
    "Target",
    "answers",
    "failures",
    "no_ports",
    "run",
    "run_words",
]
