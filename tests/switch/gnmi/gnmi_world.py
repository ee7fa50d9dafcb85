"""Runs inside a network namespace of its own: a live switch on two veth pairs, finsy's gNMI client.

Prints what was seen as JSON.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from typing import Any

import finsy
import grpc
from finsy.gnmiclient import GNMIClient, GNMIClientError, GNMIPath
from finsy.proto import gnmi

TIMEOUT = 60.0
STATE = GNMIPath("interfaces/interface[name=*]/state")
ENABLED = GNMIPath("interfaces/interface[name=s1]/config/enabled")
STATUS = GNMIPath("interfaces/interface[name=*]/state/oper-status")


def main() -> None:
    for i in (1, 2):
        ip(f"link add h{i} type veth peer name s{i}")
        ip(f"link set h{i} up")
        ip(f"link set s{i} up")
    ip("link set lo up")
    program = "import sys; from gradplane.switch.daemon import live_switch as live; "
    program += "sys.exit(live.main(sys.argv[1:]))"
    options = [
        "-i",
        "1@s1",
        "-i",
        "7@s2",
        "--device-id",
        "1",
        "--",
        "--grpc-server-addr",
        "127.0.0.1:0",
    ]
    command = [sys.executable, "-c", program, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as switch:
        try:
            assert switch.stdout is not None
            at = json.loads(switch.stdout.readline())["grpc"]
            seen = asyncio.run(asyncio.wait_for(observe(at), TIMEOUT))
        finally:
            switch.send_signal(signal.SIGTERM)
            status = switch.wait(TIMEOUT)
    print(json.dumps({**seen, "exit status": status, "s1 at the end": enabled("s1")}))


def ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True)


def flags(interface: str) -> list[str]:
    command = ["ip", "-j", "link", "show", interface]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: list[str] = json.loads(shown)[0]["flags"]
    return found


def enabled(interface: str) -> bool:
    return "UP" in flags(interface)


async def observe(address: str) -> dict[str, Any]:
    async with GNMIClient(address) as client:
        seen: dict[str, Any] = {}
        answer = await client.capabilities()
        seen["models"] = [model.name for model in answer.supported_models]
        seen["version"] = answer.gNMI_version
        seen["state"] = shown(await client.get(STATE))
        seen["config"] = shown(await client.get(GNMIPath("interfaces/interface"), config=True))
        seen["status"] = shown(await client.get(GNMIPath(".../oper-status")))
        seen["json"] = await in_json(client)
        seen["refused"] = [await refusal(client, path) for path in (
            "interfaces/interface[name=nope]/state", "interfaces/interface[name=s1]/nothing",
            "interfaces[name=s1]",
        )]  # fmt: skip
        seen["changes"] = await changes(client)
        seen["sets"] = await sets(client)
        seen["once"] = await once(client)
        seen["samples"] = await samples(client)
        seen["modes"] = [await refused_mode(client, 5, 0), await refused_mode(client, 0, 7)]
        seen["finsy's ports"] = await ports_of_a_switch(address)
        await client.set(update=[(ENABLED, False)])
        return seen


def shown(updates: Any) -> dict[str, Any]:
    return {str(update.path): update.value for update in updates}


async def in_json(client: GNMIClient) -> list[Any]:
    """Ask as gnmic does, for JSON, of which finsy's client knows nothing."""
    found = []
    interface = "interfaces/interface[name=s1]/"
    for path in ("config", "state/id", "state/counters/in-errors"):
        for encoding in (gnmi.JSON, gnmi.JSON_IETF):
            request = gnmi.GetRequest(path=[GNMIPath(interface + path).path], encoding=encoding)
            answer = await client._stub.Get(request)
            value = answer.notification[0].update[0].val
            found.append(json.loads(value.json_val or value.json_ietf_val))
    return found


async def refusal(client: GNMIClient, path: str) -> str:
    try:
        await client.get(GNMIPath(path))
    except GNMIClientError as error:
        return f"{error.code.name}: {error.message}"
    return "none"


async def changes(client: GNMIClient) -> list[Any]:
    """What a subscription tells as a link goes down and up, and what the host sees."""
    subscription = client.subscribe()
    subscription.on_change(STATUS)
    found: list[Any] = [{str(u.path["name"]): u.value async for u in subscription.synchronize()}]
    updates = subscription.updates()
    for up in (False, True):
        await client.set(update=[(ENABLED, up)])
        update = await anext(updates)
        found.append([update.path["name"], update.value, "NO-CARRIER" not in flags("h1")])
    ip("link set h2 down")
    update = await anext(updates)
    found.append([update.path["name"], update.value])
    ip("link set h2 up")
    found.append((await anext(updates)).value)
    subscription.cancel()
    return found


async def sets(client: GNMIClient) -> list[Any]:
    """All of a request is done, or nothing."""
    found: list[Any] = []
    name = GNMIPath("interfaces/interface[name=s1]/state/id")
    for wrong in ([(ENABLED, False), (name, 3)], [(ENABLED, "no")]):
        try:
            await client.set(update=wrong)
        except GNMIClientError as error:
            found.append([error.code.name, error.message, enabled("s1")])
    tree = gnmi.TypedValue(json_ietf_val=b'{"openconfig-interfaces:enabled": false, "name": "s1"}')
    await client.set(replace=[(GNMIPath("interfaces/interface[name=s1]/config"), tree)])
    found.append(enabled("s1"))
    await client.set(delete=[ENABLED])
    found.append(enabled("s1"))
    return found


async def refused_mode(client: GNMIClient, whole: int, one: int) -> str:
    """Subscribe with modes by number, which finsy's client does not let choose."""
    wanted: Any = gnmi.SubscriptionList(mode=whole)  # type: ignore[arg-type]
    wanted.subscription.add(path=GNMIPath("interfaces").path, mode=one)
    call = client._stub.Subscribe(iter([gnmi.SubscribeRequest(subscribe=wanted)]))
    try:
        return str([answer async for answer in call])
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {error.details()}"


async def once(client: GNMIClient) -> dict[str, Any]:
    subscription = client.subscribe()
    subscription.once(GNMIPath("interfaces/interface[name=s2]/state/ifindex"))
    return shown([update async for update in subscription.synchronize()])


async def samples(client: GNMIClient) -> list[Any]:
    """Samples of a counter while the host sends 10 frames."""
    path = GNMIPath("interfaces/interface[name=s1]/state/counters/in-pkts")
    subscription = client.subscribe()
    subscription.sample(path, sample_interval=100_000_000)
    first = [update.value async for update in subscription.synchronize()][0]
    send(10)
    async for update in subscription.updates():
        if update.value >= first + 10:
            break
    subscription.cancel()
    try:
        refused = client.subscribe()
        refused.sample(path, sample_interval=1000)
        _ = [update async for update in refused.synchronize()]
    except GNMIClientError as error:
        return [update.value - first >= 10, error.code.name]
    return []


def send(frames: int) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as host:
        host.bind(("h1", 0))
        for _ in range(frames):
            host.send(bytes(60))


async def ports_of_a_switch(address: str) -> dict[str, Any]:
    """The ports as a controller on finsy has them."""
    options = finsy.SwitchOptions(p4info=None)
    async with finsy.Switch("s", address, options) as switch:
        return {port.name: [port.id, port.up] for port in switch.ports}


if __name__ == "__main__":
    main()
