// From words to bursts and back, on the headers and metadata of tos_compress.p4: a run-time index
// walks the stack of cells, and the deparser emits the valid ones.

#ifndef GRADPLANE_BURSTS_P4
#define GRADPLANE_BURSTS_P4

// Sets new lengths, and updates the UDP checksum (if there is one) as in RFC 1624: a packet that
// was damaged before keeps a wrong checksum. `removed`, `added`: sums of 16-bit words.
void resize(inout headers_t hdr, in bit<16> length, in bit<64> removed, in bit<64> added) {
    if (hdr.udp.checksum != 0) {
        bit<16> gone = folded(removed + ((bit<64>) hdr.udp.length << 1));
        hdr.udp.checksum = ~folded((bit<64>) ~hdr.udp.checksum + (bit<64>) ~gone
            + added + ((bit<64>) length << 1));
        if (hdr.udp.checksum == 0) {
            hdr.udp.checksum = 0xFFFF;
        }
    }
    hdr.udp.length = length;
    hdr.ipv4.total_length = length + IPV4_BYTES;
}

// Turns words into cells, if that makes the packet shorter.
control Compress(inout headers_t hdr, inout metadata_t meta) {
    counter(5, CounterType.packets) tags;   // values of each class, and vectors of tags

    apply {
        bit<8> low = low_exponent(meta.bound);
        bit<8> middle = middle_exponent(meta.bound);
        bit<16> first = (bit<16>) meta.header_bytes >> 2;
        bit<16> count = meta.words - first;

        bit<16> size = ((count + BURST - 1) >> 3) << 1;
        for (bit<16> i = first; i < meta.words; i = i + 1) {
            bit<32> value = network_order(hdr.words[i].vector, meta.little_endian);
            size = size + bytes_of(class_of(value[30:23], low, middle));
        }
        if (SHIM_BYTES + size >= count << 2) {
            meta.reason = NOT_SHORTER;
        } else {
            hdr.shim = { count, meta.bound, 0 };
            if (meta.little_endian == 1) {
                hdr.shim.flags = FLAG_LITTLE_ENDIAN;
            }
            if (first != 0) {
                hdr.shim.flags = hdr.shim.flags | FLAG_MESSAGE;
                hdr.message = { hdr.words[0].vector ++ hdr.words[1].vector
                    ++ hdr.words[2].vector ++ hdr.words[3].vector };
            }

            bit<64> removed = 0;
            bit<64> added = (bit<64>) hdr.shim.count + (bit<64>) (hdr.shim.bound ++ hdr.shim.flags);
            bit<16> cell = 0;
            bit<1> odd = 0;         // 1: the number of bytes so far is odd
            for (bit<16> burst = first; burst < meta.words; burst = burst + BURST) {
                bit<16> tags_cell = cell;
                bit<16> tags_of_burst = 0;
                bit<1> tags_odd = odd;
                cell = cell + 1;
                for (bit<16> i = 0; i < BURST && burst + i < meta.words; i = i + 1) {
                    bit<32> word = hdr.words[burst + i].vector;
                    bit<32> value = network_order(word, meta.little_endian);
                    tag_t tag = class_of(value[30:23], low, middle);
                    removed = removed + (bit<64>) word;
                    tags_of_burst = tags_of_burst | (bit<16>) tag << (bit<8>) (i << 1);
                    tags.count((bit<32>) tag);
                    switch (tag) {
                        1: {
                            bit<8> byte = vector_of(value, middle - 1)[15:8];
                            hdr.cells[cell].byte = { byte };
                            odd = odd ^ 1;
                            added = added + placed((bit<32>) byte, odd);
                        }
                        2: {
                            bit<16> half = vector_of(value, EXPONENT_OF_ONE - 1);
                            hdr.cells[cell].half = { half };
                            added = added + placed((bit<32>) half, odd);
                        }
                        3: {
                            hdr.cells[cell].word = { value };
                            added = added + placed(value, odd);
                        }
                    }
                    if (tag != 0) {
                        cell = cell + 1;
                    }
                }
                hdr.cells[tags_cell].tags = { tags_of_burst };
                added = added + placed((bit<32>) tags_of_burst, tags_odd);
                tags.count(4);
            }
            hdr.words.pop_front(MAX_WORDS);
            resize(hdr, hdr.udp.length - (count << 2) + SHIM_BYTES + size, removed, added);
            hdr.ipv4.tos[7:2] = COMPRESSED;
            meta.kind = BURSTS;
            meta.changed = 1;
        }
    }
}

// Turns cells into words.
control Decompress(inout headers_t hdr, inout metadata_t meta) {
    apply {
        bit<8> middle = middle_exponent(hdr.shim.bound);
        bit<1> little_endian = hdr.shim.flags[0:0];
        bit<64> removed = (bit<64>) hdr.shim.count + (bit<64>) (hdr.shim.bound ++ hdr.shim.flags);
        bit<64> added = 0;
        bit<16> cell = 0;
        bit<1> odd = 0;
        for (bit<16> burst = 0; burst < hdr.shim.count; burst = burst + BURST) {
            bit<16> tags = hdr.cells[cell].tags.tags;
            removed = removed + placed((bit<32>) tags, odd);
            cell = cell + 1;
            for (bit<16> i = 0; i < BURST && burst + i < hdr.shim.count; i = i + 1) {
                bit<32> value = 0;
                switch (tags[1:0]) {
                    1: {
                        bit<8> byte = hdr.cells[cell].byte.vector;
                        value = value_of(byte ++ 8w0, middle - 1);
                        odd = odd ^ 1;
                        removed = removed + placed((bit<32>) byte, odd);
                    }
                    2: {
                        bit<16> half = hdr.cells[cell].half.vector;
                        value = value_of(half, EXPONENT_OF_ONE - 1);
                        removed = removed + placed((bit<32>) half, odd);
                    }
                    3: {
                        value = hdr.cells[cell].word.vector;
                        removed = removed + placed(value, odd);
                    }
                }
                if (tags[1:0] != 0) {
                    cell = cell + 1;
                }
                tags = tags >> 2;
                bit<32> word = network_order(value, little_endian);
                hdr.words[burst + i] = { word };
                added = added + (bit<64>) word;
            }
        }
        resize(hdr, hdr.udp.length - SHIM_BYTES - meta.size + (hdr.shim.count << 2), removed, added);
        hdr.shim.setInvalid();
        hdr.cells.pop_front(MAX_CELLS);
        hdr.ipv4.tos[7:2] = MARKED;
        meta.kind = VALUES;
        meta.changed = 1;
    }
}

#endif
