#!/usr/bin/env bash
# A controller that waits for finsy's PORT_UP and PORT_DOWN waits for ever; its list of ports does change.
#
# Versions:  finsy 0.30.0 from PyPI.
# Expected:  "PORT_UP" and "PORT_DOWN" are emitted "(switch, port)" when a port's oper-status changes, as
#            the documentation of Switch.ee and SwitchEvent says.
# Seen:      switch.ports follows the switch's gNMI updates (True, then False), and no event is emitted:
#            the task that listens for updates is started without the switch that would emit it.
# Matters:   a controller that reroutes at PORT_DOWN, or installs entries at PORT_UP, never does. Look at
#            switch.ports now and then, or subscribe with finsy.GNMIClient yourself.
# Source:    finsy/switch.py (_start_gnmi: self._ports.listen()), finsy/ports.py (listen, _update_port).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${FINDINGS_VENV:-$work/venv}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet finsy==0.30.0

"$venv/bin/python" - 2>"$work/log" <<'PY' | tee "$work/seen"
import asyncio

import finsy
import grpc
from finsy import SwitchEvent
from finsy.proto import gnmi, gnmi_grpc, p4r, p4r_grpc


def path(leaf):
    names = [gnmi.PathElem(name="interfaces"), gnmi.PathElem(name="interface", key={"name": "eth1"})]
    return gnmi.Path(elem=[*names, gnmi.PathElem(name="state"), gnmi.PathElem(name=leaf)])


def update(leaf, **value):
    found = gnmi.Update(path=path(leaf), val=gnmi.TypedValue(**value))
    return gnmi.Notification(timestamp=1, update=[found])


class P4Runtime(p4r_grpc.P4RuntimeServicer):
    async def Capabilities(self, request, context):
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.4.0")

    async def GetForwardingPipelineConfig(self, request, context):
        return p4r.GetForwardingPipelineConfigResponse()

    async def Read(self, request, context):
        yield p4r.ReadResponse()

    async def StreamChannel(self, requests, context):
        async for request in requests:
            if request.HasField("arbitration"):
                yield p4r.StreamMessageResponse(arbitration=request.arbitration)


class GNMI(gnmi_grpc.gNMIServicer):
    async def Get(self, request, context):
        return gnmi.GetResponse(notification=[update("ifindex", uint_val=1)])

    async def Subscribe(self, requests, context):
        await anext(aiter(requests))
        yield gnmi.SubscribeResponse(update=update("oper-status", string_val="UP"))
        yield gnmi.SubscribeResponse(sync_response=True)
        for status in ("DOWN", "UP", "DOWN"):
            await asyncio.sleep(0.5)
            yield gnmi.SubscribeResponse(update=update("oper-status", string_val=status))
        await asyncio.sleep(60)


async def main():
    server = grpc.aio.server()
    p4r_grpc.add_P4RuntimeServicer_to_server(P4Runtime(), server)
    gnmi_grpc.add_gNMIServicer_to_server(GNMI(), server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()

    async def ready(switch):
        await asyncio.sleep(60)

    switch = finsy.Switch("sw1", address, finsy.SwitchOptions(ready_handler=ready))
    events = []
    for event in (SwitchEvent.PORT_UP, SwitchEvent.PORT_DOWN):
        switch.ee.add_listener(event, lambda *about, event=event: events.append(event.name))
    task = asyncio.create_task(switch.run())
    states = []
    for _ in range(60):
        await asyncio.sleep(0.05)
        for port in switch.ports:
            if not states or states[-1] != port.up:
                states.append(port.up)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await server.stop(None)
    print("port up:", *states)
    print("events:", events)


asyncio.run(main())
PY
diff - "$work/seen" <<'TXT' && echo "as described"
port up: True False True False
events: []
TXT
