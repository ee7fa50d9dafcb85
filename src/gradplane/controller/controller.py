"""The control plane of our programs: routes, jobs, error bounds and counters.

It speaks P4Runtime, and BFRuntime to a Tofino's driver.

    async with Controller("127.0.0.1:9559") as controller:
        await controller.load(Pipeline(p4info, device_config))
        await controller.install_local("10.0.0.254", "00:00:00:00:00:fe")
        await controller.install_job(plan)

Installing what exists already changes nothing, so a restarted controller repeats all its steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import finsy

from gradplane.controller import compression, forwarding, targets, thc
from gradplane.controller.bfruntime_connection import BfRuntimeConnection
from gradplane.controller.compression import Bound, Compression
from gradplane.controller.connection import Connection, Entity, Pipeline
from gradplane.controller.controller_errors import ControllerError, NotServedError
from gradplane.controller.plan import (
    Capacity,
    Claim,
    ControlServer,
    JobPlan,
    Route,
    check_beside,
    check_program,
)
from gradplane.controller.targets import Target

Counters = dict[str, dict[int, dict[str, int]]]
Credentials = finsy.GRPCCredentialsTLS


class Controller:
    """A session with one switch. Methods raise RequestError where the switch refuses.

    address: of its server; a ControlServer has all but the target. device_id: None for the
    target's default. target: a name of `targets.names()`, or one of its objects. credentials: for
    TLS; None for a plain connection. Raises ControllerError where these have a certificate without
    its key, or a key without its certificate.
    """

    def __init__(
        self,
        address: str | ControlServer,
        device_id: int | None = None,
        target: str | Target = "embedded",
        credentials: Credentials | None = None,
    ) -> None:
        chosen = targets.get(target) if isinstance(target, str) else target
        self._lasting = chosen.lasting or isinstance(address, ControlServer)
        if isinstance(address, ControlServer):
            device_id, tls, address = address.device_id, address.tls, address.address
            credentials = None
            if tls is not None:
                credentials = Credentials(cacert=tls.cacert, cert=tls.cert, private_key=tls.key)
        if credentials is not None and (not credentials.cert) != (not credentials.private_key):
            raise ControllerError("credentials: cert and private_key: give both or none")
        number = chosen.device_id if device_id is None else device_id
        kind = BfRuntimeConnection if chosen.protocol == "bfruntime" else Connection
        self._connection = kind(address, number, chosen, credentials)
        self._local: tuple[str, str] | None = None

    async def __aenter__(self) -> Controller:
        await self._connection.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._connection.__aexit__(*error)

    async def load(self, pipeline: Pipeline, force: bool = False) -> None:
        """Run this program. If it runs already it goes on, with all its state, unless `force`.

        On a Tofino it runs already: `force` removes its entries and clears its registers.
        """
        await self._connection.load(pipeline, force)

    async def start(self, pipeline: Pipeline) -> None:
        """Load this program for a run, without what an earlier run may have left on the switch."""
        await self.load(pipeline, force=self._lasting)

    async def check_ports(self, ports: Iterable[int]) -> None:
        """Raise ControllerError for ports that a running driver does not have."""
        if isinstance(self._connection, BfRuntimeConnection):
            await self._connection.check_ports(ports)

    @property
    def capacity(self) -> Capacity:
        """The limits of the program on the switch."""
        return thc.capacity(self._connection.schema)

    @property
    def aggregates(self) -> bool:
        """True if the program on the switch aggregates: `install_local` gives it an address."""
        return thc.aggregates(self._connection.schema)

    async def install_routes(self, routes: Iterable[Route]) -> None:
        """Install forwarding routes, in any program with a table `routes` like our programs'."""
        await self._connection.put(list(forwarding.entries(routes, self._connection.schema)))

    async def install_entries(self, entries: Iterable[Entity]) -> None:
        """Install entries of tables that are the program's own, groups and clone sessions."""
        await self._connection.put(list(entries))

    async def install_compression(self, plan: Compression) -> None:
        """Compress marked packets of hosts; ports and bounds of an earlier plan are removed."""
        self._check_compresses()
        wanted = list(compression.entries(plan))
        keys = {thc.key(entry) for entry in wanted}
        tables = compression.HOST_PORTS, compression.TO_HOST_PORTS, compression.BOUNDS
        installed = self._connection.read(*map(finsy.P4TableEntry, tables))
        old = [entry async for entry in installed if thc.key(entry) not in keys]
        await self._connection.remove(old)
        await self._connection.put(wanted)

    async def set_bound(self, prefix: str, length: int, k: int | None) -> None:
        """Set the error bound of values to prefix/length to 2^-k from the next packet on.

        None: they are not compressed. Raises PlanError for a k that is not supported.
        """
        self._check_compresses()
        if k is None:
            await self._connection.remove([compression.no_bound_entry(prefix, length)])
        else:
            await self._connection.put([compression.bound_entry(Bound(prefix, length, k))])

    def _check_compresses(self) -> None:
        if not compression.compresses(self._connection.schema):
            raise ControllerError(
                f"the program on the switch has no table {compression.BOUNDS}, so it cannot"
                " compress: load tos_compress.p4"
            )

    async def install_local(self, ip: str, mac: str) -> None:
        """Set the switch's own address: packets to it are aggregated, and results come from it."""
        await self._connection.put(list(thc.local(ip, self._connection.schema)))
        self._local = (ip, mac)

    async def install_job(self, plan: JobPlan) -> None:
        """Admit a job. Entries of an earlier plan of the same job are removed.

        Raises PlanError, before anything is installed, where it does not fit the program or the
        other jobs; ControllerError where `install_local` has not been called.
        """
        if self._local is None:
            raise ControllerError("install_local first: results need an address to come from")
        check_program(plan, self.capacity)
        for other in await self.jobs():
            if other.number != plan.number:
                check_beside(plan, other)
        wanted = list(thc.job_entries(plan, self._connection.schema, *self._local))
        await self._remove_stale(plan, wanted)
        await self._connection.put(wanted)

    async def begin_job(self, plan: JobPlan) -> JobPlan:
        """Admit a job that starts anew, under an epoch that nothing on the switch has yet; return
        the plan with this epoch, which its workers need.

        So neither packets of the job's earlier life nor the rounds that its slots are in can keep
        it from completing. Raises as `install_job` does.
        """
        members = self._connection.read(finsy.P4TableEntry(thc.MEMBERS))
        last = [thc.epoch(entry) async for entry in members if entry["job"] == plan.number]
        begun = plan.anew(await self._held_epochs(), max(last, default=None))
        await self.install_job(begun)
        return begun

    async def _held_epochs(self) -> set[int]:
        """Return the epochs in the switch's slots; none where it does not serve its registers."""
        held: set[int] = set()
        if isinstance(self._connection, BfRuntimeConnection):
            return held  # `start` has cleared them
        there = {register.name for register in self._connection.schema.registers}
        with suppress(NotServedError):
            for name in thc.EPOCHS_AT.keys() & there:
                async for cell in self._connection.read(finsy.P4RegisterEntry(name)):
                    held.add(thc.held_epoch(name, cell.data))
        return held - {0}

    async def jobs(self) -> list[Claim]:
        """Return the jobs that are on the switch, of all controllers."""
        members = self._connection.read(finsy.P4TableEntry(thc.MEMBERS))
        claims = {entry["job"]: thc.claim(entry) async for entry in members}
        return [claims[number] for number in sorted(claims)]

    async def remove_job(self, number: int) -> None:
        """Remove a job from the switch: its packets are dropped from now on.

        No error if it is absent.
        """
        claims = [claim for claim in await self.jobs() if claim.number == number]
        tables = thc.job_tables(self._connection.schema)
        await self._connection.remove(await self._entries(number, tables))
        await self._connection.remove([finsy.P4MulticastGroupEntry(c.group) for c in claims])

    async def shut_out(self, number: int) -> None:
        """Let none of a job's packets in until it is installed again; no error if it is absent.

        So none of its slots gets packets of the old epoch after those of the new one."""
        gates = await self._entries(number, thc.gates(self._connection.schema))
        members = [entry for entry in gates if entry.table_id == thc.MEMBERS]
        await self._connection.remove(entry for entry in gates if entry.table_id != thc.MEMBERS)
        await self._connection.put(map(thc.shut, members))

    async def counters(self) -> Counters:
        """Return all counters that are not 0: name, index, then {"packets": ..., "bytes": ...}."""
        found: Counters = {}
        async for entry in self._connection.read(finsy.P4CounterEntry()):
            if entry.packet_count or entry.byte_count:
                values = {"packets": entry.packet_count, "bytes": entry.byte_count}
                found.setdefault(entry.counter_id, {})[entry.index or 0] = values
        return found

    async def _entries(self, number: int, tables: Iterable[str]) -> list[finsy.P4TableEntry]:
        """Return a job's entries in these tables, in the order in which to remove them."""
        installed = self._connection.read(*map(finsy.P4TableEntry, tables))
        return [entry async for entry in installed if entry["job"] == number]

    async def _remove_stale(self, plan: JobPlan, wanted: Iterable[Entity]) -> None:
        keys = {thc.key(entry) for entry in wanted if isinstance(entry, finsy.P4TableEntry)}
        installed = await self._entries(plan.number, thc.job_tables(self._connection.schema))
        old = [entry for entry in installed if thc.key(entry) not in keys]
        groups = {thc.claim(e).group for e in old if e.table_id == thc.MEMBERS} - {plan.group}
        await self._connection.remove(old)
        await self._connection.remove(finsy.P4MulticastGroupEntry(group) for group in groups)
