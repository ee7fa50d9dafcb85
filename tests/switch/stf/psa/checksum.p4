// Checksums of every algorithm, in steps. One in a control that is applied twice starts anew.
#include "first.p4h"
header crc_t { bit<32> crc; bit<16> other; }
struct headers_t { data_t d; crc_t c; crc_t again; }

control Crc(inout crc_t c, in data_t d) {
    Checksum<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc;
    apply {
        crc.update(d.op);
        crc.update({ d.x, d.y });
        c.crc = crc.get();
    }
}

#define HAS_EGRESS_DEPARSER
EGRESS_DEPARSER(EgressDeparserImpl) {
    Crc() crc;
    Checksum<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc16;
    Checksum<bit<16>>(PSA_HashAlgorithm_t.ONES_COMPLEMENT16) ones;
    Checksum<bit<32>>(PSA_HashAlgorithm_t.IDENTITY) same;
    Checksum<bit<32>>(PSA_HashAlgorithm_t.TARGET_DEFAULT) any;
    apply {
        h.c.setValid();
        h.again.setValid();
        crc.apply(h.c, h.d);
        crc.apply(h.again, h.d);
        if (h.d.z == 1) {
            crc16.update({ h.d.op, h.d.x });
            crc16.update(h.d.y);
            h.c.other = crc16.get();
        } else if (h.d.z == 2) {
            ones.update({ h.d.op, h.d.x });
            ones.update(h.d.w);
            h.c.other = ones.get();
        } else if (h.d.z == 3) {
            same.update({ h.d.op, h.d.x });
            same.update(h.d.y);
            h.c.crc = same.get();
            h.again.other = 1;
        } else if (h.d.z == 4) {
            any.update(h.d.op);
            any.clear();
            h.c.crc = any.get();
        }
        p.emit(h);
    }
}
#include "rest.p4h"
