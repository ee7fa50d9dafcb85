"""Commands on running switches and Mininet scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradplane.cli.options import Cacert, Cert, Key, option, tls_files

commands = typer.Typer()


@commands.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
)
def switch(context: typer.Context) -> None:
    """Run a P4 switch on network interfaces, with simple_switch_grpc's options."""
    from gradplane.cli.main import run_switch

    raise typer.Exit(run_switch(context.args))


@commands.command(
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "allow_interspersed_args": False,
    }
)
def lab(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(metavar="SCRIPT.py", show_default=False)],
) -> None:
    """Run a Mininet script in isolated namespaces; it gets the arguments that follow it."""
    from gradplane.runs.lab import run as run_script

    raise typer.Exit(run_script(script, context.args))


@commands.command()
def cli(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Commands, or runtime JSON")
    ] = None,
    at: Annotated[
        str | None,
        option(
            "HOST:PORT",
            "The switch's P4Runtime server; default: its Unix socket, else 127.0.0.1:9559",
        ),
    ] = None,
    thrift_port: Annotated[
        int | None, option("N", "The switch's --thrift-port, instead of --at", min=1)
    ] = None,
    thrift_ip: Annotated[str, option("IP", "The address of --thrift-port")] = "127.0.0.1",
    cacert: Cacert = None,
    cert: Cert = None,
    key: Key = None,
    json: Annotated[str | None, typer.Option(hidden=True)] = None,
    pre: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run simple_switch_CLI's commands on a running switch, from a file, a pipe or a prompt."""
    from gradplane.cli.switch_prompt import run_commands
    from gradplane.switch.daemon.clients import default_address

    if at is not None and thrift_port is not None:
        raise typer.BadParameter("give one of --at and --thrift-port", param_hint="--at")
    address = at or (f"{thrift_ip}:{thrift_port}" if thrift_port else default_address())
    raise typer.Exit(run_commands(address, file, tls_files(cacert, cert, key)))


@commands.command()
def shims(folder: Annotated[Path, typer.Argument(metavar="DIR", show_default=False)]) -> None:
    """Write stand-ins for p4c and BMv2's programs to DIR; print the line that puts it on PATH."""
    from gradplane.cli.bmv2_commands import write_shims

    print(write_shims(folder))


@commands.command()
def shell(
    address: Annotated[
        str, option("HOST:PORT", "The switch's P4Runtime server")
    ] = "127.0.0.1:9559",
    device_id: Annotated[int, typer.Option(metavar="N", min=0)] = 0,
    election_id: Annotated[int, option("N", "The highest one may write", min=1)] = 100,
    script: Annotated[Path | None, option("FILE.py", "Run this instead of a prompt")] = None,
) -> None:
    """Open p4runtime-shell on a running switch; installs it separately on first use."""
    from gradplane.cli.p4runtime_shell import open_shell

    raise typer.Exit(open_shell(address, device_id, election_id, script=script))
