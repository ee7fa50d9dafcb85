"""Commands on the switch as a whole, help, and simple_switch's commands that are refused."""

from __future__ import annotations

import time

from gradplane.switch.commands.command_registry import (
    COMMANDS,
    CommandError,
    CommandTarget,
    Run,
    command,
    find,
)
from gradplane.switch.commands.command_values import natural

_PUSH = (
    "a program comes as P4 source: start the switch with it, or push the .p4 over P4Runtime"
    " (SetForwardingPipelineConfig)"
)

# Further commands of simple_switch_CLI, and why they are refused.
_REFUSED = {
    "load_new_config_file": _PUSH,
    "swap_configs": _PUSH,
    "write_config_to_file": "there is no BMv2 JSON: the program is its .p4 source",
    "serialize_state": "gradplane cli writes the file, of a switch that runs",
    "load_state": "gradplane cli reads the file, for a switch that runs",
    "set_toeplitz_hash_key": "v1model has no Toeplitz hash",
    "mc_set_lag_membership": "lags are not supported: name their ports",
    "shell": "only the switch's commands are available",
}


@command("[COMMAND]")
def help(target: CommandTarget, name: str | None = None) -> str:
    """List the commands, or print the usage of one."""
    if name is None:
        return "\n".join(sorted(set(COMMANDS) - set(_REFUSED)))
    found = find(name)
    return f"{found}\n{found.help}"


@command()
def reset_state(target: CommandTarget) -> None:
    """Set tables, registers, counters, meters and groups back to their initial state."""
    target.switch.reset()


@command()
def show_ports(target: CommandTarget) -> str:
    """Print the switch's ports and whether their interfaces are up."""
    lines = [f"{'port #':^10}{'iface name':^20}{'status':^10}", "=" * 50]
    for port in target.ports.status():
        lines.append(f"{port.number:^10}{port.interface:^20}{'UP' if port.up else 'DOWN':^10}")
    return "\n".join(lines)


@command()
def show_losses(target: CommandTarget) -> str:
    """Print what was not read in time: messages by kind, and packets by port."""
    ports = {f"packets, port {one.number}": one.missed for one in target.ports.status()}
    lost = [*sorted(target.losses.items()), *(row for row in ports.items() if row[1])]
    lines = [f"{'messages':^24}{'lost':>12}"]
    return "\n".join(lines + [f"{kind:24}{n:>12}" for kind, n in lost])


@command("INTERFACE PORT")
def port_add(target: CommandTarget, interface: str, port: str) -> None:
    """Open a network interface as a port."""
    target.ports.add(natural(port, "port"), interface)


@command("PORT")
def port_remove(target: CommandTarget, port: str) -> None:
    """Close a port; packets to it are lost, and its interface is left as it is."""
    target.ports.remove(natural(port, "port"))


@command()
def switch_info(target: CommandTarget) -> str:
    """Print which program runs."""
    main = target.switch.program.package
    return f"package: {main.type}\nsource: {main.span.file}"


@command()
def get_time_elapsed(target: CommandTarget) -> str:
    """Print the microseconds since the switch started, the base of its timestamps."""
    return str(target.switch.state.microseconds())


@command()
def get_time_since_epoch(target: CommandTarget) -> str:
    """Print the microseconds since 1970."""
    return str(time.time_ns() // 1000)


@command("PROFILE MILLISECONDS")
def set_expire_time(target: CommandTarget, profile: str, milliseconds: str) -> None:
    """Set the time of an expire time profile, for what packets do from now on; 0: never."""
    time_ns = natural(milliseconds, "milliseconds") * 1_000_000
    target.switch.store.expire_times.modify(natural(profile, "profile"), time_ns=time_ns)


@command()
def show_expire_times(target: CommandTarget) -> str:
    """Print the milliseconds of the expire time profiles that have a time."""
    times = ((n, record["time_ns"]) for n, record in target.switch.store.expire_times.records())
    return "\n".join(f"profile {n}: {time // 1_000_000}" for n, time in times if time)


def _refusal(name: str, why: str) -> Run:
    def refuse(target: CommandTarget, *words: str) -> str:
        """Refused by this switch."""
        raise CommandError(f"{name} is not supported by this switch: {why}")

    refuse.__name__ = name
    return refuse


for _name, _why in _REFUSED.items():
    command("...")(_refusal(_name, _why))


# -- commands on the switch's own queues ----------------------------------------------------------


@command("PACKETS [PORT [PRIORITY]]")
def set_queue_depth(
    target: CommandTarget, packets: str, port: str | None = None, priority: str | None = None
) -> None:
    """Set how many packets wait in a queue, in a port's queues, or in all."""
    depth = natural(packets, "packets")
    target.switch.store.queues.modify(_which(port, priority), depth=depth)


@command("PACKETS_A_SECOND [PORT [PRIORITY]]")
def set_queue_rate(
    target: CommandTarget, rate: str, port: str | None = None, priority: str | None = None
) -> None:
    """Set the rate of a queue, of a port's queues, or of all; 0: no limit."""
    packets = natural(rate, "rate")
    target.switch.store.queues.modify(_which(port, priority), rate=packets)


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
