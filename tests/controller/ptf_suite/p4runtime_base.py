"""The usual base of PTF's P4Runtime tests: a stream, a pushed pipeline, entities by name.

It runs in the environment of the old clients: no import of ours.
"""

import queue
import threading
import time
from pathlib import Path

import grpc
import ptf
from google.protobuf import text_format
from google.rpc import code_pb2, status_pb2
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as p4r
from p4.v1 import p4runtime_pb2_grpc
from ptf import testutils
from ptf.base_tests import BaseTest

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
Config = p4r.SetForwardingPipelineConfigRequest


class P4RuntimeTest(BaseTest):
    def setUp(self):
        super().setUp()
        params = testutils.test_params_get()
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        self.p4info = p4info_pb2.P4Info()
        text_format.Parse(Path(params["p4info"]).read_text(), self.p4info)
        self.source = Path(params["source"]).read_bytes()
        self.channel = grpc.insecure_channel(params["address"])
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self.requests, self.received = queue.Queue(), queue.Queue()
        stream = self.stub.StreamChannel(iter(self.requests.get, None))
        threading.Thread(target=self._receive, args=(stream,), daemon=True).start()
        hello = p4r.StreamMessageRequest()
        hello.arbitration.device_id = 1
        hello.arbitration.election_id.low = 1
        self.requests.put(hello)
        self.assertEqual(self.next_message("arbitration").status.code, 0)
        self.push(Config.VERIFY_AND_COMMIT, self.source)

    def tearDown(self):
        self.requests.put(None)
        self.channel.close()
        super().tearDown()

    def _receive(self, stream):
        try:
            for message in stream:
                self.received.put(message)
        except grpc.RpcError:
            pass  # the channel was closed

    def next_message(self, kind):
        """Return the next message of a kind from the stream; others are dropped."""
        end = time.monotonic() + 60
        while True:
            message = self.received.get(timeout=max(0, end - time.monotonic()))
            if message.WhichOneof("update") == kind:
                return getattr(message, kind)

    def push(self, action, device_config=None, cookie=1):
        request = Config(device_id=1, action=action)
        request.election_id.low = 1
        if device_config is not None:
            request.config.p4info.CopyFrom(self.p4info)
            request.config.p4_device_config = device_config
            request.config.cookie.cookie = cookie
        self.stub.SetForwardingPipelineConfig(request)

    def write(self, *updates, atomicity=p4r.WriteRequest.CONTINUE_ON_ERROR):
        """Write updates, each (type, entity)."""
        request = p4r.WriteRequest(device_id=1, atomicity=atomicity)
        request.election_id.low = 1
        for kind, entity in updates:
            request.updates.add(type=kind).entity.CopyFrom(entity)
        self.stub.Write(request)

    def read(self, entity):
        request = p4r.ReadRequest(device_id=1, entities=[entity])
        return [found for answer in self.stub.Read(request) for found in answer.entities]

    def refused(self, *updates, **options):
        """Return the name of each update's code, and the texts."""
        with self.assertRaises(grpc.RpcError) as failed:
            self.write(*updates, **options)
        details = dict(failed.exception.trailing_metadata())["grpc-status-details-bin"]
        errors = []
        for packed in status_pb2.Status.FromString(details).details:
            error = p4r.Error()
            self.assertTrue(packed.Unpack(error))
            errors.append((code_pb2.Code.Name(error.canonical_code), error.message))
        return errors

    # -- entities, by the names in P4Info ----------------------------------------------------------

    def object(self, kind, alias):
        return next(o for o in getattr(self.p4info, kind) if o.preamble.alias == alias)

    def entry(self, table, match=None, action=None, **fields):
        """Return an entry; match: {field: bytes, (bytes, prefix length) or (bytes, mask)}; action:
        (name, params).

        `fields` are the entry's own: priority, idle_timeout_ns, ...
        """
        info = self.object("tables", table)
        entity = p4r.Entity()
        entity.table_entry.table_id = info.preamble.id
        for name, value in (match or {}).items():
            field = next(f for f in info.match_fields if f.name == name)
            made = entity.table_entry.match.add(field_id=field.id)
            if isinstance(value, bytes):
                made.exact.value = value
            elif field.match_type == p4info_pb2.MatchField.LPM:
                made.lpm.value, made.lpm.prefix_len = value
            else:
                made.ternary.value, made.ternary.mask = value
        if action:
            self.fill(entity.table_entry.action.action, *action)
        for name, value in fields.items():
            setattr(entity.table_entry, name, value)
        return entity

    def fill(self, action, name, params=()):
        info = self.object("actions", name)
        action.action_id = info.preamble.id
        for param, value in zip(info.params, params, strict=True):
            action.params.add(param_id=param.id, value=value)
