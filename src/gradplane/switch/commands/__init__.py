"""simple_switch_CLI's commands, and the runtime JSON files of the P4 tutorials, on a Switch.

The commands follow p4lang/behavioral-model, docs/runtime_CLI.md; their output has the form that
scripts parse.
"""

from gradplane.switch.commands.command_files import Answer, answers, changing, failures, run
from gradplane.switch.commands.command_registry import (
    COMMANDS,
    CommandError,
    CommandTarget,
    NoPorts,
    Ports,
    PortStatus,
    run_words,
)

__all__ = [
    "COMMANDS", "Answer", "CommandError", "NoPorts", "PortStatus", "Ports", "CommandTarget",
    "answers", "changing", "failures", "run", "run_words",
]  # fmt: skip
