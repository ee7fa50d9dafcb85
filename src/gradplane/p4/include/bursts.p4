// From words to bursts and back, on the headers and metadata of tos_compress.p4.
//
// A payload is parsed into blocks of 16 bytes and its last 15 bytes or fewer. A block has four words;
// bursts begin and end at any byte of it. The new payload is made in other blocks.

#ifndef GRADPLANE_BURSTS_P4
#define GRADPLANE_BURSTS_P4

// A sum of 16-bit words with end-around carry, from a sum without.
bit<16> folded(in bit<32> sum) {
    bit<32> once = (sum & 0xFFFF) + (sum >> 16);
    return (bit<16>) ((once & 0xFFFF) + (once >> 16));
}

// The same, from a sum of blocks: 2^16 leaves 1 when it is divided by 2^16 - 1, so a long number
// counts as the sum of its 16-bit words.
typedef bit<144> long_sum_t;

bit<16> folded_blocks(in long_sum_t sum) {
    bit<96> half = (bit<96>) sum[143:80] + (bit<96>) sum[79:0];
    return folded((bit<32>) half[15:0] + (bit<32>) half[31:16] + (bit<32>) half[47:32]
        + (bit<32>) half[63:48] + (bit<32>) half[79:64] + (bit<32>) half[95:80]);
}

// Sets new lengths, and updates the UDP checksum (if there is one) as in RFC 1624: a packet that
// was damaged before keeps a wrong checksum. `removed`, `added`: sums of 16-bit words.
control Resize(inout headers_t hdr, in bit<16> length, in bit<16> removed, in bit<16> added) {
    apply {
        bit<32> sum = 0;
        if (hdr.udp.checksum == 0xFFFF) {
            sum = 0xFFFF;       // which counts as 0
        }
        if (hdr.udp.checksum != 0) {
            // A sum of 16-bit words; each step is computed from the one before: see ONCE.
            sum = sum + (bit<32>) hdr.udp.length + (bit<32>) hdr.udp.length + (bit<32>) removed;
            ONCE(sum, (sum & 0xFFFF) + (sum >> 16))
            ONCE(sum, (sum & 0xFFFF) + (sum >> 16))
            hdr.udp.checksum = ~hdr.udp.checksum;
            sum = (bit<32>) ~sum[15:0] + (bit<32>) hdr.udp.checksum + (bit<32>) added
                + ((bit<32>) length << 1);
            ONCE(sum, (sum & 0xFFFF) + (sum >> 16))
            ONCE(sum, (sum & 0xFFFF) + (sum >> 16))
            hdr.udp.checksum = ~sum[15:0];
            if (hdr.udp.checksum == 0) {
                hdr.udp.checksum = 0xFFFF;
            }
        }
        hdr.udp.length = length;
        hdr.ipv4.total_length = length + IPV4_BYTES;
    }
}

// The last bytes of the payload, which do not fill a block, with zeros behind them.
control LastBytes(in headers_t hdr, out bit<128> block) {
    apply {
        bit<16> two = 0;
        if (hdr.last1.isValid()) {
            two = hdr.last1.bytes ++ 8w0;
        }
        bit<32> four = two ++ 16w0;
        if (hdr.last2.isValid()) {
            four = hdr.last2.bytes ++ two;
        }
        bit<64> eight = four ++ 32w0;
        if (hdr.last4.isValid()) {
            eight = hdr.last4.bytes ++ four;
        }
        block = eight ++ 64w0;
        if (hdr.last8.isValid()) {
            block = hdr.last8.bytes ++ eight;
        }
    }
}

// Puts the first bytes of a block, less than 16, behind the new blocks.
control PutLast(inout headers_t hdr, in bit<128> block, in bit<4> length) {
    apply {
        bit<64> eight = block[127:64];
        if (length[3:3] == 1) {
            hdr.new8 = { eight };
            eight = block[63:0];
        }
        bit<32> four = eight[63:32];
        if (length[2:2] == 1) {
            hdr.new4 = { four };
            four = eight[31:0];
        }
        bit<16> two = four[31:16];
        if (length[1:1] == 1) {
            hdr.new2 = { two };
            two = four[15:0];
        }
        if (length[0:0] == 1) {
            hdr.new1 = { two[15:8] };
        }
    }
}

control RemovePayload(inout headers_t hdr) {
    apply {
        hdr.blocks.pop_front(MAX_BLOCKS);
        hdr.last8.setInvalid();
        hdr.last4.setInvalid();
        hdr.last2.setInvalid();
        hdr.last1.setInvalid();
    }
}

// Turns words into bursts, if that makes the packet shorter.
control Compress(inout headers_t hdr, inout metadata_t meta) {
    counter(5, CounterType.packets) tags;   // values of each class, and vectors of tags

    bit<16> first = (bit<16>) meta.header_bytes >> 4;   // block of the values
    bit<16> count = meta.words - (first << 2);
    bit<16> bursts = (count + BURST - 1) >> 3;
    bit<16> size = bursts << 1;                         // bytes of the bursts
    bit<16> last = meta.words >> 2;                     // the block that is not full
    limits_t limits = limits_of(meta.bound);
    long_sum_t removed = 0;
    long_sum_t added = 0;
    bit<16> end = 0;                                    // of the new payload
    bit<128> begun = 0;                                 // its last block
    bit<128> rest;
    words_t one = 0;
    words_t two = 0;
    words_t three = 0;
    words_t bytes = 0;
    words_t vectors = 0;
    words_t burst = 0;
    words_t magnitudes = 0;
    words_t places = 0;
    bit<16> vector = 0;
    bit<16> removed_sum = 0;
    bit<16> added_sum = 0;

    LastBytes() last_bytes;
    PutLast() put_last;
    Resize() resize;
    RemovePayload() remove_payload;

    action measure() {
        bytes = 0;
        bit<16> at = first;
        for (bit<16> b = 0; b < bursts; b = b + 1) {
            words_t words = hdr.blocks[at].bytes ++ hdr.blocks[at + 1].bytes;
            if (meta.little_endian == 1) {
                words = reversed(words);
            }
            bytes = bytes + bytes_of(classes_of(words, limits));
            at = at + 2;
        }
        size = size + (bit<16>) sum_of(bytes);
    }

    action pack() {
        added = (long_sum_t) (count ++ meta.bound ++ hdr.shim.flags);
        bit<16> left = count;
        bit<16> at = first;
        for (bit<16> b = 0; b < bursts; b = b + 1) {
            words_t words = hdr.blocks[at].bytes ++ hdr.blocks[at + 1].bytes;
            at = at + 2;
            removed = removed + (long_sum_t) words[255:128] + (long_sum_t) words[127:0];
            if (meta.little_endian == 1) {
                words = reversed(words);
            }
            classes_t classes = classes_of(words, limits);
            ONCE(one, classes.one)
            ONCE(two, classes.two)
            ONCE(three, classes.three)
            classes = { one, two, three };
            ONCE(bytes, bytes_of(classes))
            ONCE(vector, packed_tags(classes))
            SHIFTED(magnitudes, places, words, classes, limits)
            ONCE(vectors, vectors_of(words, magnitudes, classes))
            ONCE(burst, paired(vectors, bytes))
            ONCE(burst, in_fours(burst, bytes))
            ONCE(burst, joined(burst, bytes))

            // The burst begins in block `begun`, and may reach into the next three.
            bit<8> before = (bit<8>) end[3:0] << 3;
            bit<8> behind = 128 - before;
            bit<128> x = vector ++ burst[255:144];
            bit<128> y = burst[143:16];
            bit<128> z = burst[15:0] ++ 112w0;
            bit<128> p = begun | (x >> before);
            bit<128> q = (x << behind) | (y >> before);
            bit<128> r = (y << behind) | (z >> before);
            bit<16> block = end >> 4;
            hdr.new_blocks[block] = { p };
            hdr.new_blocks[block + 1] = { q };
            hdr.new_blocks[block + 2] = { r };
            end = end + 2 + (bit<16>) sum_of(bytes);
            bit<2> ended = (bit<2>) ((end >> 4) - block);
            begun = ended[1:1] == 0 ? (ended[0:0] == 0 ? p : q) : (ended[0:0] == 0 ? r : z << behind);

            tags.count(4);
            bit<16> values = left >= BURST ? BURST : left;
            for (bit<16> i = 0; i < values; i = i + 1) {
                tags.count((bit<32>) vector[1:0]);
                vector = vector >> 2;
            }
            left = left - values;
        }
        bit<16> full = end >> 4;
        for (bit<16> i = 0; i < full; i = i + 1) {
            added = added + (long_sum_t) hdr.new_blocks[i].bytes;
        }
        added = added + (long_sum_t) begun;
        hdr.new_blocks[full].setInvalid();
        hdr.new_blocks[full + 1].setInvalid();
        hdr.new_blocks[full + 2].setInvalid();
        ONCE(removed_sum, folded_blocks(removed))
        ONCE(added_sum, folded_blocks(added))
    }

    apply {
        last_bytes.apply(hdr, rest);
        hdr.blocks[last] = { rest };
        hdr.blocks[last + 1] = { 0 };
        measure();
        if (SHIM_BYTES + size >= count << 2) {
            meta.reason = NOT_SHORTER;
            hdr.blocks[last].setInvalid();
            hdr.blocks[last + 1].setInvalid();
        } else {
            hdr.shim = { count, meta.bound, 0 };
            if (meta.little_endian == 1) {
                hdr.shim.flags = FLAG_LITTLE_ENDIAN;
            }
            if (first != 0) {
                hdr.shim.flags = hdr.shim.flags | FLAG_MESSAGE;
                hdr.message = hdr.blocks[0];
            }
            pack();
            put_last.apply(hdr, begun, end[3:0]);
            resize.apply(hdr, hdr.udp.length - (count << 2) + SHIM_BYTES + size,
                removed_sum, added_sum);
            remove_payload.apply(hdr);
            hdr.ipv4.tos[7:2] = COMPRESSED;
            meta.kind = BURSTS;
            meta.changed = 1;
        }
    }
}

// The block that begins `before` bits behind the beginning of the first of two.
bit<128> between(in bit<128> one, in bit<128> two, in bit<8> before) {
    return (one << before) | (two >> (128 - before));
}

// Follows the tags through the bursts: in a sound packet they end where the payload does, and the
// tags behind the last value are 0.
control Walk(inout headers_t hdr, inout metadata_t meta) {
    bit<16> bursts = (hdr.shim.count + BURST - 1) >> 3;
    bit<16> tags = 0;

    action follow() {
        meta.at = 0;
        for (bit<16> b = 0; b < bursts; b = b + 1) {
            bit<16> block = meta.at >> 4;
            bit<8> before = (bit<8>) meta.at[3:0] << 3;
            bit<128> begin = between(hdr.blocks[block].bytes, hdr.blocks[block + 1].bytes, before);
            ONCE(tags, begin[127:112])
            meta.at = meta.at + 2 + (bit<16>) bytes_of_tags(tags);
        }
        meta.padding = hdr.shim.count[2:0] == 0 ? 0 : tags >> ((bit<8>) hdr.shim.count[2:0] << 1);
    }

    apply { follow(); }
}

// Turns the next `meta.values` values into words.
control Decompress(inout headers_t hdr, inout metadata_t meta) {
    bit<16> bursts = (meta.values + BURST - 1) >> 3;
    limits_t limits = limits_of(hdr.shim.bound);
    bit<16> tags = 0;
    words_t words = 0;
    words_t one = 0;
    words_t two = 0;
    words_t three = 0;
    words_t bytes = 0;
    words_t vectors = 0;
    words_t magnitudes = 0;
    words_t exponents = 0;
    bit<16> sum = 0;

    PutLast() put_last;

    action unpack() {
        long_sum_t added = 0;
        for (bit<16> b = 0; b < bursts; b = b + 1) {
            bit<16> block = meta.at >> 4;
            bit<8> before = (bit<8>) meta.at[3:0] << 3;
            bit<128> second = hdr.blocks[block + 1].bytes;
            bit<128> third = hdr.blocks[block + 2].bytes;
            bit<128> x = between(hdr.blocks[block].bytes, second, before);
            bit<128> y = between(second, third, before);
            bit<128> z = between(third, hdr.blocks[block + 3].bytes, before);
            ONCE(tags, x[127:112])
            ONCE(vectors, x[111:0] ++ y ++ z[127:112])
            classes_t classes = classes_of_tags(tags);
            ONCE(one, classes.one)
            ONCE(two, classes.two)
            ONCE(three, classes.three)
            classes = { one, two, three };
            ONCE(bytes, bytes_of(classes))
            ONCE(vectors, halved(vectors, bytes))
            ONCE(vectors, quartered(vectors, bytes))
            ONCE(vectors, parted(vectors, bytes))
            vectors = vectors & kept_of(classes);
            NORMALISED(magnitudes, exponents, vectors, classes, limits)
            ONCE(words, values_of(vectors, magnitudes, exponents, classes))
            if (hdr.shim.flags[0:0] == 1) {
                words = reversed(words);
            }
            added = added + (long_sum_t) words[255:128] + (long_sum_t) words[127:0];
            hdr.new_blocks[2 * b] = { words[255:128] };
            hdr.new_blocks[2 * b + 1] = { words[127:0] };
            meta.at = meta.at + 2 + (bit<16>) sum_of(bytes);
        }
        ONCE(sum, folded_blocks(added))
        meta.added = folded((bit<32>) meta.added + (bit<32>) sum);
    }

    // The last burst may be short.
    action cut_off() {
        bit<16> full = meta.values >> 2;
        hdr.new_blocks[full].setInvalid();
        hdr.new_blocks[full + 1].setInvalid();
        meta.padding = tags >> ((bit<8>) meta.values[2:0] << 1);
    }

    apply {
        unpack();
        meta.padding = 0;
        if (meta.values[2:0] != 0) {
            cut_off();
            bit<128> rest = words[255:128];
            if (meta.values[2:2] == 1) {
                rest = words[127:0];
            }
            put_last.apply(hdr, rest, meta.values[1:0] ++ 2w0);
        }
    }
}

// Ends the last pass: a marked packet of words.
control Finish(inout headers_t hdr, inout metadata_t meta) {
    Resize() resize;
    RemovePayload() remove_payload;

    apply {
        bit<16> length = UDP_BYTES + (hdr.shim.count << 2);
        if (hdr.message.isValid()) {
            length = length + MESSAGE_BYTES;
        }
        resize.apply(hdr, length, meta.removed, meta.added);
        remove_payload.apply(hdr);
        hdr.recirculation.setInvalid();
        hdr.shim.setInvalid();
        hdr.ipv4.tos[7:2] = MARKED;
        meta.changed = 1;
    }
}

#endif
