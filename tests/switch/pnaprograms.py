"""A PNA program that tracks flows: packets add entries, renew their timers, and count."""

TRACKING = """
#include <pna.p4>
header flow_t {{
    bit<8> kind; bit<32> src; bit<32> dst; bit<4> profile; bit<4> flags; bit<32> id; bit<8> seen;
}}
struct headers_t {{ flow_t flow; }}
struct meta_t {{ }}
struct tracked_t {{ bit<32> id; PortId_t port; }}
parser P(packet_in pkt, out headers_t hdr, inout meta_t m, in pna_main_parser_input_metadata_t i) {{
    state start {{ pkt.extract(hdr.flow); transition accept; }}
}}
control Pre(in headers_t hdr, inout meta_t m, in pna_pre_input_metadata_t i,
            inout pna_pre_output_metadata_t o) {{ apply {{ }} }}
control C(inout headers_t hdr, inout meta_t m, in pna_main_input_metadata_t i,
          inout pna_main_output_metadata_t o) {{
    DirectCounter<bit<32>>(PNA_CounterType_t.PACKETS) packets;
    AddEntryErrorStatus_t status = 0;
    ExpireTimeProfileId_t profile =
        (ExpireTimeProfileId_t) (ExpireTimeProfileIdUint_t) hdr.flow.profile;
    action tracked(bit<32> id, PortId_t port) {{
        hdr.flow.id = id;
        hdr.flow.seen = 1;
        packets.count();
        {hit}
        send_to_port(SelectByDirection(i.direction, port, (PortId_t) 3));
    }}
    action unknown() {{
        {miss}
        hdr.flow.seen = 2 + (bit<8>) status;
        packets.count();
        send_to_port(SelectByDirection(i.direction, (PortId_t) 0x101, (PortId_t) 4));
    }}
    table flows {{
        key = {{
            SelectByDirection(i.direction, hdr.flow.src, hdr.flow.dst) : exact @name("far");
            SelectByDirection(i.direction, hdr.flow.dst, hdr.flow.src) : exact @name("near");
        }}
        actions = {{ {actions} }}
        const default_action = unknown();
        pna_direct_counter = packets;
        {properties}
    }}
    apply {{ flows.apply(); {main} }}
}}
control D(packet_out pkt, in headers_t hdr, in meta_t m, in pna_main_output_metadata_t o) {{
    apply {{ pkt.emit(hdr.flow); }}
}}
PNA_NIC(P(), Pre(), C(), D()) main;
"""
HIT = "update_expire_info(hdr.flow.flags[0:0] == 1, hdr.flow.flags[1:1] == 1, profile);"
MISS = """
        FlowId_t id = allocate_flow_id();
        status = add_entry_if(hdr.flow.kind == 1, "tracked",
                              (tracked_t) { (FlowIdUint_t) id, (PortId_t) 0x100 }, profile);
"""
ADD = 'add_entry("tracked", (tracked_t) { 5, (PortId_t) 0x100 }, profile);'
PROPERTIES = """
        add_on_miss = true;
        pna_idle_timeout = PNA_IdleTimeout_t.AUTO_DELETE;
        size = 8;
"""
ACTIONS = "@tableonly tracked; @defaultonly unknown;"


def tracking(
    hit: str = HIT, miss: str = MISS, properties: str = PROPERTIES, actions: str = ACTIONS,
    main: str = "",
) -> str:  # fmt: skip
    """Return the program, with other parts."""
    return TRACKING.format(hit=hit, miss=miss, properties=properties, actions=actions, main=main)


def flow(kind: int, src: int, dst: int, profile: int = 0, flags: int = 0) -> bytes:
    """Return a packet. kind 1: its flow is tracked from now on. flags 1: restart the timer, 3: with
    the profile's time."""
    ends = src.to_bytes(4, "big") + dst.to_bytes(4, "big")
    return bytes([kind]) + ends + bytes([profile << 4 | flags]) + bytes(5) + b"data"


def seen(packet: bytes) -> tuple[int, int]:
    """Return what the program says of a packet: 1 tracked, 2 added, 3 not added; its flow's id."""
    return packet[14], int.from_bytes(packet[10:14], "big")
