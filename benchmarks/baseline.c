/* Plain C for the programs of switch_memory.py. */

#include <stdint.h>
#include <string.h>

/* lanes.p4: each of 128 codes is looked up in its own table and added to its own register; the
   packet goes back with the sums. */

struct lanes {
    uint8_t values[128][256];
    uint32_t sums[128][256 + 16];
};

int64_t lanes(struct lanes *s, const int64_t *ports, const uint8_t *data, const int64_t *offsets,
              int64_t count, uint8_t *out, int64_t *to) {
    int64_t sent = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *packet = data + offsets[i];
        int64_t size = offsets[i + 1] - offsets[i];
        unsigned slot = packet[14] << 8 | packet[15];
        if (size < 144 || packet[12] != 0x88 || packet[13] != 0xb5 || slot >= 256) continue;
        memcpy(out, packet, 16);
        out[13] = 0xb6;
        for (int lane = 0; lane < 128; lane++) {
            uint32_t sum = s->sums[lane][slot] += s->values[lane][packet[16 + lane]];
            sum = __builtin_bswap32(sum);
            memcpy(out + 16 + 4 * lane, &sum, 4);
        }
        memcpy(out + 528, packet + 144, size - 144);
        out += 528 + size - 144;
        to[sent++] = ports[i];
    }
    return sent;
}

static unsigned checksum(const uint8_t *header, int size) {
    uint32_t sum = 0;
    for (int i = 0; i < size; i += 2) sum += header[i] << 8 | header[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

/* thc.p4, header's checksum, lookups and sums only: 128 table lookups and additions to registers in each of a packet's 8 passes.
   The padding keeps equal indices of two tables out of the same cache set. */

struct thc {
    uint8_t tables[128][4096 + 64];
    uint32_t sums[32][2048 + 16];
};

void thc(struct thc *s, const uint8_t *data, const int64_t *offsets, int64_t count,
         uint8_t *out) {
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *packet = data + offsets[i];
        unsigned job = packet[44] << 4, slot = packet[47];
        if (checksum(packet + 42, 30) != 0xffff) continue;
        for (unsigned pass = 0; pass < 8; pass++) {
            const uint8_t *codes = packet + 72 + 64 * pass;
            unsigned cell = slot * 8 + pass;
            for (int b = 0; b < 32; b++) {
                unsigned high = codes[2 * b], low = codes[2 * b + 1];
                uint32_t v = (uint32_t) s->tables[4 * b][job | high >> 4] << 24
                           | (uint32_t) s->tables[4 * b + 1][job | (high & 15)] << 16
                           | (uint32_t) s->tables[4 * b + 2][job | low >> 4] << 8
                           | (uint32_t) s->tables[4 * b + 3][job | (low & 15)];
                v += s->sums[b][cell];
                s->sums[b][cell] = v;
                v = __builtin_bswap32(v);
                memcpy(out + 128 * pass + 4 * b, &v, 4);
            }
        }
    }
}

/* An IPv4 router with a table of /24 routes: next[address >> 8 & 0xffff] for 10.0.0.0/8. */

struct hop { uint8_t mac[6]; uint16_t port; };

int64_t router(const struct hop *next, const uint8_t *data, const int64_t *offsets, int64_t count,
               uint8_t *out, int64_t *ports) {
    int64_t sent = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *packet = data + offsets[i];
        int64_t size = offsets[i + 1] - offsets[i];
        if (size < 34 || packet[12] != 8 || packet[13] != 0) continue;
        if (packet[22] <= 1 || checksum(packet + 14, 20) != 0xffff) continue;
        const struct hop *hop = &next[packet[31] << 8 | packet[32]];
        if (!hop->port) continue;
        memcpy(out, packet, size);
        memcpy(out + 6, packet, 6);
        memcpy(out, hop->mac, 6);
        out[22]--;
        out[24] = out[25] = 0;
        unsigned sum = checksum(out + 14, 20) ^ 0xffff;
        out[24] = sum >> 8;
        out[25] = sum;
        out += size;
        ports[sent++] = hop->port;
    }
    return sent;
}
