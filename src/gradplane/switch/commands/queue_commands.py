"""Commands on the switch's own queues."""

from __future__ import annotations

from gradplane.switch.commands.command_registry import CommandTarget, command
from gradplane.switch.commands.command_values import natural


@command("PACKETS [PORT [PRIORITY]]")
def set_queue_depth(
    target: CommandTarget, packets: str, port: str | None = None, priority: str | None = None
) -> None:
    """Set how many packets wait in a queue, in a port's queues, or in all."""
    queues = target.switch.state.links.queues
    queues.set_depth(natural(packets, "packets"), *_which(port, priority))


@command("PACKETS_A_SECOND [PORT [PRIORITY]]")
def set_queue_rate(
    target: CommandTarget, rate: str, port: str | None = None, priority: str | None = None
) -> None:
    """Set the rate of a queue, of a port's queues, or of all; 0: no limit."""
    queues = target.switch.state.links.queues
    queues.set_rate(natural(rate, "rate"), *_which(port, priority))


@command()
def show_queues(target: CommandTarget) -> str:
    """Print the queues that were set or used: rate, depth, packets that wait, packets dropped."""
    header = f"{'port':>5} {'queue':>5} {'rate':>10} {'depth':>10} {'waiting':>8} {'dropped':>8}"
    rows = [
        f"{q.port:5} {q.priority:5} {q.rate:10} {q.depth:10} {q.waiting:8} {q.dropped:8}"
        for q in target.switch.state.links.queues.status()
    ]
    return "\n".join([header, *rows])


def _which(port: str | None, priority: str | None) -> tuple[int | None, int | None]:
    return (
        None if port is None else natural(port, "port"),
        None if priority is None else natural(priority, "priority"),
    )
