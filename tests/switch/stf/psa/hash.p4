// Hashes of every algorithm, with bounds and without.
#include "first.p4h"
header hash_t { bit<32> value; }
struct headers_t { data_t d; hash_t h; }
struct pair_t { bit<8> a; bit<8> b; }

#define HAS_INGRESS
INGRESS(ingress) {
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc32;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc16;
    Hash<bit<16>>(PSA_HashAlgorithm_t.ONES_COMPLEMENT16) ones;
    Hash<bit<32>>(PSA_HashAlgorithm_t.IDENTITY) same;
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32_CUSTOM) custom32;
    Hash<bit<8>>(PSA_HashAlgorithm_t.CRC16_CUSTOM) custom16;
    Hash<bit<32>>(PSA_HashAlgorithm_t.TARGET_DEFAULT) any;
    apply {
        send_to_port(o, (PortId_t) 1);
        h.h.setValid();
        if (h.d.op == 0) { h.h.value = crc32.get_hash({ h.d.x, h.d.y }); }
        if (h.d.op == 1) { h.h.value = (bit<32>) crc16.get_hash({ h.d.x, h.d.y }); }
        if (h.d.op == 2) { h.h.value = (bit<32>) ones.get_hash({ h.d.x, h.d.y }); }
        if (h.d.op == 3) { h.h.value = same.get_hash({ h.d.x, h.d.y, h.d.w }); }
        if (h.d.op == 4) { h.h.value = custom32.get_hash(h.d.w); }
        if (h.d.op == 5) { h.h.value = (bit<32>) custom16.get_hash(h.d.w); }
        if (h.d.op == 6) { h.h.value = any.get_hash((pair_t) { h.d.x, h.d.y }); }
        if (h.d.op == 7) { h.h.value = crc32.get_hash(32w100, { h.d.x, h.d.y }, 32w10); }
        if (h.d.op == 8) { h.h.value = same.get_hash(h.d.w, { h.d.x }, (bit<16>) h.d.y); }
    }
}
#include "rest.p4h"
