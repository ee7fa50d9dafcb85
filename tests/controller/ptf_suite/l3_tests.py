"""PTF tests of l3.p4, as a user of BMv2 writes them: control plane and packets together."""

import socket
import time

import grpc
from p4.v1 import p4runtime_pb2 as p4r
from p4runtime_base import DELETE, INSERT, MODIFY, Config, P4RuntimeTest
from ptf.testutils import (
    send_packet,
    simple_eth_packet,
    simple_udp_packet,
    verify_any_packet_any_port,
    verify_no_other_packets,
    verify_packet,
)

SOURCE = "00:11:22:33:44:55"
PACKET = simple_udp_packet(eth_src=SOURCE, ip_src="10.9.9.9", ip_dst="10.0.1.5")
NET = (socket.inet_aton("10.0.1.0"), 24)


class Forwarding(P4RuntimeTest):
    def runTest(self):
        to2 = self.entry("routes", {"hdr.ipv4.dst": NET}, ("forward", [b"\0\x02"]))
        to3 = self.entry("routes", {"hdr.ipv4.dst": NET}, ("forward", [b"\x03"]))
        self.write((INSERT, to2))
        send_packet(self, 1, PACKET)
        verify_packet(self, PACKET, 2)
        self.write((MODIFY, to3))
        send_packet(self, 1, PACKET)
        verify_packet(self, PACKET, 3)
        self.assertEqual(self.read(self.entry("routes")), [to3])
        self.write((DELETE, to3))
        send_packet(self, 1, PACKET)
        verify_no_other_packets(self)
        sent = p4r.Entity()
        sent.counter_entry.counter_id = self.object("counters", "sent").preamble.id
        counts = [e.counter_entry.data.packet_count for e in self.read(sent)]
        self.assertEqual(counts, [0, 0, 1, 1, *[0] * 12])


class AccessList(P4RuntimeTest):
    def runTest(self):
        match = {"source": (socket.inet_aton("10.9.0.0"), socket.inet_aton("255.255.0.0"))}
        [(code, text)] = self.refused((INSERT, self.entry("acl", match, ("drop",))))
        self.assertEqual(code, "INVALID_ARGUMENT")
        self.assertIn("table Ing.acl: ternary", text)
        self.write((INSERT, self.entry("acl", match, ("drop",), priority=7)))
        send_packet(self, 1, PACKET)
        verify_no_other_packets(self)
        counted = p4r.Entity()
        counted.direct_counter_entry.table_entry.table_id = self.object("tables", "acl").preamble.id
        [found] = self.read(counted)
        self.assertEqual(found.direct_counter_entry.data.packet_count, 1)
        more = [self.entry("acl", match, ("drop",), priority=n) for n in range(8, 12)]
        codes = [code for code, _ in self.refused(*((INSERT, e) for e in more))]
        self.assertEqual(codes, ["OK", "OK", "OK", "RESOURCE_EXHAUSTED"])


class Batches(P4RuntimeTest):
    def runTest(self):
        def route(third, port=b"\x02"):
            net = (bytes([10, 0, third, 0]), 24)
            return self.entry("routes", {"hdr.ipv4.dst": net}, ("forward", [port]))

        batch = (INSERT, route(1)), (INSERT, route(2, b"\x02\x00")), (INSERT, route(3))
        errors = self.refused(*batch)
        self.assertEqual([code for code, _ in errors], ["OK", "OUT_OF_RANGE", "OK"])
        self.assertIn("action Ing.forward: parameter port: value 512", errors[1][1])
        kept = [route(1), route(3)]
        self.assertCountEqual(self.read(self.entry("routes")), kept)
        back = p4r.WriteRequest.ROLLBACK_ON_ERROR
        batch = ((DELETE, route(1)), (INSERT, route(4)), (INSERT, route(3)))
        codes = [code for code, _ in self.refused(*batch, atomicity=back)]
        self.assertEqual(codes, ["ABORTED", "ABORTED", "ALREADY_EXISTS"])
        self.assertCountEqual(self.read(self.entry("routes")), kept)


class OneShotGroup(P4RuntimeTest):
    def runTest(self):
        entry = self.entry("balance", {"hdr.ethernet.dst": b"\x01"})
        chosen = entry.table_entry.action.action_profile_action_set
        for port, weight in ((b"\x02", 1), (b"\x03", 2)):
            made = chosen.action_profile_actions.add(weight=weight)
            self.fill(made.action, "forward", [port])
        self.write((INSERT, entry))
        self.assertEqual(self.read(self.entry("balance")), [entry])
        packet = simple_eth_packet(eth_src=SOURCE, eth_dst="00:00:00:00:00:01", eth_type=0x1234)
        send_packet(self, 1, packet)
        verify_any_packet_any_port(self, [packet], [2, 3])


class PacketIo(P4RuntimeTest):
    def runTest(self):
        out = p4r.StreamMessageRequest()
        out.packet.payload = bytes(PACKET)
        for number, value in ((1, b"\x02"), (2, b"\x00")):
            out.packet.metadata.add(metadata_id=number, value=value)
        self.requests.put(out)
        verify_packet(self, PACKET, 2)
        self.write((INSERT, self.entry("routes", {"hdr.ipv4.dst": NET}, ("to_cpu",))))
        send_packet(self, 3, PACKET)
        found = self.next_message("packet")
        self.assertEqual(found.payload, bytes(PACKET))
        self.assertEqual([m.value for m in found.metadata], [b"\x03", b"\x00"])


class Learning(P4RuntimeTest):
    def runTest(self):
        digest = p4r.Entity()
        digest.digest_entry.digest_id = self.object("digests", "learned_t").preamble.id
        digest.digest_entry.config.max_list_size = 1
        self.write((INSERT, digest))
        send_packet(self, 1, PACKET)
        learned = self.next_message("digest")
        members = [m.bitstring for m in learned.data[0].struct.members]
        self.assertEqual(members, [bytes.fromhex("1122334455"), b"\x01"])
        known = self.entry(
            "known", {"hdr.ethernet.src": members[0]}, ("NoAction",), idle_timeout_ns=200_000_000
        )
        self.write((INSERT, known))
        [idle] = self.next_message("idle_timeout_notification").table_entry
        self.assertEqual(idle.match, known.table_entry.match)


class Registers(P4RuntimeTest):
    def runTest(self):
        cells = p4r.Entity()
        cells.register_entry.register_id = self.object("registers", "last_port").preamble.id
        send_packet(self, 3, PACKET)
        end = time.monotonic() + 60
        while self.read(cells)[0].register_entry.data.bitstring != b"\x03":
            self.assertLess(time.monotonic(), end)
        cells.register_entry.index.index = 5
        cells.register_entry.data.bitstring = b"\x01\x02"
        self.write((MODIFY, cells))
        self.assertEqual(self.read(cells), [cells])


class Multicast(P4RuntimeTest):
    def runTest(self):
        entity = p4r.Entity()
        group = entity.packet_replication_engine_entry.multicast_group_entry
        group.multicast_group_id = 5
        for port in (2, 3):
            group.replicas.add(egress_port=port, instance=port)
        route = self.entry("routes", {"hdr.ipv4.dst": NET}, ("replicate", [b"\x05"]))
        self.write((INSERT, entity), (INSERT, route))
        send_packet(self, 1, PACKET)
        verify_packet(self, PACKET, 2)
        verify_packet(self, PACKET, 3)


class Pipelines(P4RuntimeTest):
    def runTest(self):
        route = self.entry("routes", {"hdr.ipv4.dst": NET}, ("forward", [b"\x02"]))
        self.write((INSERT, route))
        self.push(Config.RECONCILE_AND_COMMIT, self.source)
        self.assertEqual(self.read(self.entry("routes")), [route])
        self.push(Config.VERIFY_AND_SAVE, self.source, cookie=9)
        self.push(Config.COMMIT)
        self.assertEqual(self.read(self.entry("routes")), [])
        asked = p4r.GetForwardingPipelineConfigRequest(device_id=1)
        held = self.stub.GetForwardingPipelineConfig(asked).config
        self.assertEqual((held.cookie.cookie, held.p4_device_config), (9, self.source))
        self.assertEqual(held.p4info, self.p4info)
        with self.assertRaises(grpc.RpcError) as failed:
            self.push(Config.VERIFY, b'{"parsers": [], "pipelines": [], "deparsers": []}')
        self.assertIn("it has no member 'headers'", failed.exception.details())
