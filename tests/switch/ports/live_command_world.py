"""Runs inside a network namespace of its own: a live switch that starts with command files, a
controller beside, and who sends it commands. Prints what was seen as JSON. Argument: a folder."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import finsy
from live_switch_world import ROUTER, TIMEOUT, add_link, build_links, hostile, switch_command
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from gradplane.switch.daemon.clients import COMMANDS as METHOD
from gradplane.switch.daemon.clients import CommandClient

COMMANDS = """
table_add ipv4_lpm ipv4_forward 10.0.1.0/24 => 02:00:00:00:00:01 2
mc_mgrp_create 3
mc_node_create 1 1 2
mc_node_associate 3 0
"""
RUNTIME = {
    "bmv2_json": "build/router.json",
    "table_entries": [{"table": "ipv4_lpm", "match": {"hdr.ipv4.dst": ["10.0.2.0", 24]},
                       "action_name": "ipv4_forward", "action_params": {"dstAddr": 2, "port": 1}}],
}  # fmt: skip
THRIFT = "9090"
HOSTILE = [b"", b"\xff", b"[]", b"{}", b'{"text": 1, "file": "a"}', b'{"text": "a"}',
           b'{"complete": "a", "text": "b", "file": "c"}', b"[" * 100_000]  # fmt: skip


def main(folder: Path) -> None:
    seen: dict[str, Any] = {}
    build_links()
    text, runtime = folder / "s1-commands.txt", folder / "s1-runtime.json"
    runtime.write_text(json.dumps(RUNTIME))
    text.write_text("table_ad x\ntable_add ipv4_lpm drop 1.2.3.4 =>\n")
    options = [str(ROUTER), "-i", "1@s1", "-i", "2@s2", "--device-id", "1"]
    options += ["--commands", str(text), "--commands", str(runtime), "--thrift-port", THRIFT]
    command = switch_command(*options, "--", "--grpc-server-addr", "127.0.0.1:0")
    failed = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    seen["wrong commands"] = [failed.stderr.replace(f"{folder}/", ""), failed.returncode]
    text.write_text(COMMANDS)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True) as switch:
        try:
            assert switch.stdout is not None
            address = json.loads(switch.stdout.readline())["grpc"]
            observe(seen, address, folder)
        finally:
            switch.send_signal(signal.SIGTERM)
            _, notes = switch.communicate(timeout=TIMEOUT)
    seen["notes"] = notes.splitlines()
    seen["nobody"] = cli("register_read x")
    seen["nobody, no commands"] = cli("")
    print(json.dumps(seen))


def observe(seen: dict[str, Any], address: str, folder: Path) -> None:
    seen["pipe"] = cli("table_num_entries ipv4_lpm\n\ntable_ad\nmc_dump")
    more = folder / "more.txt"
    more.write_text("table_add ipv4_lpm drop 10.0.3.0/24 =>\ntable_delete ipv4_lpm 9\nshow_ports\n")
    seen["file"] = cli("", str(more))
    seen["both"] = asyncio.run(controller(address))
    seen["afterwards"] = cli("table_dump_entry ipv4_lpm 3\nmirroring_get 7\nmc_dump")["out"]
    seen["prompt"] = prompt("table_num\t ipv4\t\nexit\n")
    with CommandClient(address) as client:
        lines = ("", "counter_", "table_add ", "table_add ipv4_lpm ipv4_f", "table_add x ", "no x")
        seen["completed"] = [client.complete(line)[:3] for line in lines]
    seen["hostile"] = hostile(address, METHOD, HOSTILE)
    seen["ports"] = hot_ports()
    seen["state"] = saved_state(folder)


def saved_state(folder: Path) -> list[Any]:
    """Save state, change it and load it again; try what cannot be loaded."""
    cli(f"mirroring_add 9 2\nregister_write last 0 77\nserialize_state {folder}/state.json")
    look = "table_num_entries ipv4_lpm\nregister_read last 0\nmirroring_get 9\nmc_dump"
    seen: list[Any] = [cli(look)["out"]]
    cli("table_clear ipv4_lpm\nregister_write last 0 5\nmirroring_delete 9\nmc_mgrp_destroy 3")
    seen.append(cli(f"load_state {folder}/state.json\n{look}")["out"])
    (folder / "wrong.json").write_text("{}}")
    commands = folder / "state.txt"
    commands.write_text(f"\nload_state {folder}/wrong.json\nload_state no/such/file\nload_state\n")
    seen.append(cli("", str(commands))["err"].replace(f"{folder}/", "").splitlines())
    seen.append(cli(look)["out"])
    return seen


def hot_ports() -> list[Any]:
    """Add a port, send packets, remove it, and add it again on another interface."""
    add_link(3)
    add_link(4)
    seen: list[Any] = []
    cli("table_add ipv4_lpm ipv4_forward 10.0.5.0/24 => 02:00:00:00:00:05 3")
    for commands, interface in (
        ("port_add s3 3", "h3"),
        ("port_remove 3", "h3"),
        ("port_add s4 3", "h4"),
        ("port_add s3 3\nport_add s3 512\nport_add s9 5\nport_remove 5", "h4"),
    ):
        answer = cli(f"{commands}\nshow_ports")["out"]
        errors = [line for line in answer.splitlines() if "Error" in line]
        rows = [
            line.split() for line in answer.splitlines() if line.endswith(("UP    ", "DOWN   "))
        ]
        seen.append([errors, rows, arrives(interface)])
    return seen


def arrives(interface: str) -> bool:
    """Return whether a packet for port 3, sent into port 1, soon comes out at an interface."""
    packet = bytes(Ether(dst="02:00:00:00:00:99") / IP(dst="10.0.5.1") / UDP(dport=9) / b"hot")
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as receiver,
    ):
        sender.bind(("h1", 0))
        receiver.bind((interface, 3))
        receiver.settimeout(0.5)
        for _ in range(4):  # a port is added soon after the command
            sender.send(packet)
            with suppress(TimeoutError):
                while not receiver.recv(2048).endswith(b"hot"):
                    pass
                return True
    return False


async def controller(address: str) -> list[str]:
    """Return what a P4Runtime client finds of the commands' effects and adds itself."""
    async with finsy.Switch("sw", address) as switch:
        entry = finsy.P4TableEntry(
            "ipv4_lpm",
            match=finsy.Match(dst="10.0.4.0/24"),
            action=finsy.P4TableAction("drop"),
        )
        session = finsy.P4CloneSessionEntry(7, replicas=[2])
        await switch.write([+entry, +session])
        queries = [finsy.P4TableEntry("ipv4_lpm"), finsy.P4MulticastGroupEntry()]
        return [type(found).__name__ async for found in switch.read(queries)]


def cli(text: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "gradplane", "cli", "--thrift-port", THRIFT, *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=TIMEOUT)
    return {"out": done.stdout, "err": done.stderr, "status": done.returncode}


def prompt(keys: str) -> str:
    """Run a session at a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "gradplane", "cli", "--thrift-port", THRIFT]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = ""
        while "RuntimeCmd: " not in seen:
            seen += os.read(ours, 1000).decode()
        os.write(ours, keys.encode())
        while process.poll() is None:
            try:
                seen += os.read(ours, 1000).decode()
            except OSError:  # the other end is closed
                break
        return seen


if __name__ == "__main__":
    main(Path(sys.argv[1]))
