"""Drives the test program with the driver's own client, bfrt_grpc; the argument is the address."""

import sys

import bfrt_grpc.client as gc


def entries(found):  # type: ignore[no-untyped-def]
    return [(data.to_dict(), key and key.to_dict()) for data, key in found]


client = gc.ClientInterface(sys.argv[1], client_id=3, device_id=0)
info = client.bfrt_info_get("program")
client.bind_pipeline_config("program")
target = gc.Target(device_id=0, pipe_id=0xFFFF)

macs = info.table_get("pipe.Ingress.macs")
macs.info.key_field_annotation_add("h.ethernet.dst", "mac")
key = macs.make_key([gc.KeyTuple("h.ethernet.dst", "02:00:00:00:00:aa")])
data = [gc.DataTuple("port", 5), gc.DataTuple("$COUNTER_SPEC_PKTS", 3)]
macs.entry_add(target, [key], [macs.make_data(data, "Ingress.send")])
((found, where),) = entries(macs.entry_get(target, [key], {"from_hw": True}))
assert (found["port"], found["$COUNTER_SPEC_PKTS"]) == (5, 3), found
assert where == {"h.ethernet.dst": {"value": "02:00:00:00:00:aa"}}, where
try:
    macs.entry_add(target, [key], [macs.make_data(data, "Ingress.send")])
    raise AssertionError("the entry was added twice")
except gc.BfruntimeReadWriteRpcException as error:
    ((index, status),) = error.sub_errors_get()
    assert (index, status.canonical_code) == (0, 6), status
macs.default_entry_set(target, macs.make_data([gc.DataTuple("port", 9)], "send"))
((found, _),) = entries(macs.default_entry_get(target))
assert (found["port"], found["is_default_entry"]) == (9, True), found
macs.default_entry_reset(target)
assert list(macs.usage_get(target)) == [1]
macs.attribute_idle_time_set(target, True, max_ttl=3000)
(idle,) = macs.attribute_get(target, "IdleTimeout")
assert (idle["enable"], idle["max_ttl"]) == (True, 3000), idle

macs.attribute_entry_scope_set(target)  # all pipes
filters = info.table_get("filters")
filters.attribute_entry_scope_set(
    target, predefined_pipe_scope=False, user_defined_pipe_scope_val=0x0C03
)
(shown,) = filters.attribute_get(target, "EntryScope")
assert shown["pipe_scope"] == {"user_defined": 0x0C03, "args": 0}, shown
filters.attribute_entry_scope_set(target, predefined_pipe_scope_val=gc.bfruntime_pb2.Mode.SINGLE)
(shown,) = filters.attribute_get(target, "EntryScope")
assert shown["pipe_scope"] == {"predef": 1, "args": 0}, shown
one_pipe = gc.Target(device_id=0, pipe_id=2)
place = filters.make_key(
    [
        gc.KeyTuple("src", 1, 1),
        gc.KeyTuple("vlan", low=0, high=9),
        gc.KeyTuple("dst", 0, prefix_len=0),
        gc.KeyTuple("$MATCH_PRIORITY", 1),
    ]
)
mark = filters.make_data([gc.DataTuple("type", 7)], "Ingress.mark")
filters.entry_add(one_pipe, [place], [mark])
assert len(entries(filters.entry_get(one_pipe, [place]))) == 1
assert list(filters.usage_get(gc.Target(device_id=0, pipe_id=1))) == [0]
try:
    filters.entry_add(target, [place], [mark])
    raise AssertionError("an entry was added for all pipes")
except gc.BfruntimeReadWriteRpcException as error:
    assert "pipes have entries of their own" in str(error), error
filters.entry_del(one_pipe)
filters.attribute_entry_scope_set(target)

algorithm = info.table_get("digest.algorithm")
algorithm.default_entry_set(
    target, algorithm.make_data([gc.DataTuple("algorithm_name", str_val="CRC_32")], "pre_defined")
)
((found, _),) = entries(algorithm.default_entry_get(target))
assert (found["algorithm_name"], found["seed"]) == ("CRC_32", 0), found
algorithm.default_entry_reset(target)

masked = info.table_get("masked")
mask = masked.make_key([gc.KeyTuple("src", 0xFF), gc.KeyTuple("label", 0x70)])
masked.attribute_dyn_key_mask_set(target, mask)
(shown,) = masked.attribute_get(target, "DynamicKeyMask")
assert shown["fields"].to_dict() == mask.to_dict(), shown
place = masked.make_key([gc.KeyTuple("src", 0x1234), gc.KeyTuple("label", 0x2F)])
masked.entry_add(target, [place], [masked.make_data([gc.DataTuple("type", 7)], "Ingress.mark")])
((_, where),) = entries(masked.entry_get(target, [place]))
assert where == {"src": {"value": 0x34}, "label": {"value": 0x20}}, where

smoothed = info.table_get("smoothed")
place = smoothed.make_key([gc.KeyTuple("src", 1)])
settings = [gc.DataTuple("$LPF_SPEC_TYPE", str_val="SAMPLE"),
            gc.DataTuple("$LPF_SPEC_GAIN_TIME_CONSTANT_NS", float_val=100.0),
            gc.DataTuple("$LPF_SPEC_DECAY_TIME_CONSTANT_NS", float_val=200.0),
            gc.DataTuple("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", 2)]  # fmt: skip
smoothed.entry_add(target, [place], [smoothed.make_data(settings, "Ingress.smoothen")])
((found, _),) = entries(smoothed.entry_get(target, [place]))
assert found["$LPF_SPEC_DECAY_TIME_CONSTANT_NS"] == 200.0, found

filters = info.table_get("filters")
fields = [gc.KeyTuple("src", 0x10, 0xF0), gc.KeyTuple("vlan", low=1, high=9),
          gc.KeyTuple("dst", 0x020000000000, prefix_len=8),
          gc.KeyTuple("$MATCH_PRIORITY", 4)]  # fmt: skip
place = filters.make_key(fields)
filters.entry_add(target, [place], [filters.make_data([gc.DataTuple("type", 7)], "Ingress.mark")])
((_, where),) = entries(filters.entry_get(target))
assert where["vlan"] == {"low": 1, "high": 9}, where
assert where["dst"] == {"value": 0x020000000000, "prefix_len": 8}, where
filters.entry_del(target)
assert entries(filters.entry_get(target)) == []

pairs = info.table_get("pairs")
cell = pairs.make_key([gc.KeyTuple("$REGISTER_INDEX", 3)])
values = [gc.DataTuple("Ingress.pairs.first", 1), gc.DataTuple("Ingress.pairs.second", 2)]
pairs.entry_add(target, [cell], [pairs.make_data(values)])
pairs.operations_execute(target, "Sync")
((found, _),) = entries(pairs.entry_get(target, [cell], {"from_hw": True}))
assert found["Ingress.pairs.second"] == [2, 2, 2, 2], found

members, groups = info.table_get("members"), info.table_get("Ingress.groups")
for number in (1, 2):
    member = members.make_key([gc.KeyTuple("$ACTION_MEMBER_ID", number)])
    action = members.make_data([gc.DataTuple("port", number)], "Ingress.to")
    members.entry_add(target, [member], [action])
group = groups.make_key([gc.KeyTuple("$SELECTOR_GROUP_ID", 1)])
listed = [gc.DataTuple("$MAX_GROUP_SIZE", 4), gc.DataTuple("$ACTION_MEMBER_ID", int_arr_val=[1, 2]),
          gc.DataTuple("$ACTION_MEMBER_STATUS", bool_arr_val=[True, False])]  # fmt: skip
groups.entry_add(target, [group], [groups.make_data(listed)])
((found, _),) = entries(groups.entry_get(target, [group]))
assert found["$ACTION_MEMBER_STATUS"] == [True, False], found

node, mgid = info.table_get("$pre.node"), info.table_get("$pre.mgid")
ports = [gc.DataTuple("$MULTICAST_RID", 5), gc.DataTuple("$MULTICAST_LAG_ID", int_arr_val=[]),
         gc.DataTuple("$DEV_PORT", int_arr_val=[1, 2])]  # fmt: skip
node.entry_add(target, [node.make_key([gc.KeyTuple("$MULTICAST_NODE_ID", 1)])],
               [node.make_data(ports)])  # fmt: skip
nodes = [gc.DataTuple("$MULTICAST_NODE_ID", int_arr_val=[1]),
         gc.DataTuple("$MULTICAST_NODE_L1_XID_VALID", bool_arr_val=[False]),
         gc.DataTuple("$MULTICAST_NODE_L1_XID", int_arr_val=[0])]  # fmt: skip
mgid.entry_add(target, [mgid.make_key([gc.KeyTuple("$MGID", 7)])], [mgid.make_data(nodes)])
((found, _),) = entries(mgid.entry_get(target))
assert found["$MULTICAST_NODE_ID"] == [1], found

mirror = info.table_get("$mirror.cfg")
session = [gc.DataTuple("$direction", str_val="INGRESS"), gc.DataTuple("$ucast_egress_port", 9),
           gc.DataTuple("$ucast_egress_port_valid", bool_val=True),
           gc.DataTuple("$session_enable", bool_val=True)]  # fmt: skip
mirror.entry_add(target, [mirror.make_key([gc.KeyTuple("$sid", 5)])],
                 [mirror.make_data(session, "$normal")])  # fmt: skip
((found, _),) = entries(mirror.entry_get(target))
assert found["$direction"] == "INGRESS", found

metadata = info.table_get("$PORT_METADATA")
port = metadata.make_key([gc.KeyTuple("ig_intr_md.ingress_port", 5)])
fields = [gc.DataTuple("group", 3), gc.DataTuple("label", 4), gc.DataTuple("vlan", 77)]
metadata.entry_add(target, [port], [metadata.make_data(fields)])
((found, _),) = entries(metadata.entry_get(target, [port]))
assert found["vlan"] == 77, found

shaping, counts = (
    info.table_get("tf1.tm.queue.sched_shaping"),
    info.table_get("tf1.tm.counter.queue"),
)
place = [gc.KeyTuple("pg_id", 2), gc.KeyTuple("pg_queue", 8)]
rate = [gc.DataTuple("unit", str_val="PPS"), gc.DataTuple("max_rate", 1000)]
shaping.entry_mod(one_pipe, [shaping.make_key(place)], [shaping.make_data(rate)])
((found, _),) = entries(shaping.entry_get(one_pipe, [shaping.make_key(place)]))
assert (found["unit"], found["max_rate"]) == ("PPS", 1000), found
((found, _),) = entries(counts.entry_get(one_pipe, [counts.make_key(place)], {"from_hw": True}))
assert found["drop_count_packets"] == 0, found

compute = info.table_get("digest.compute")
key = compute.make_key([gc.KeyTuple("h.ethernet.dst", 0x313233343536)])
((found, _),) = entries(compute.entry_get(target, [key]))
assert found["hash_value"] == 0x3132 ^ 0x3334 ^ 0x3536, found

assert client.clear_all_tables() is None
assert entries(macs.entry_get(target)) == []
client.tear_down_stream()
print("done")
