// A value of a burst for Tofino: from its word to its vector and back, and its registers between.
//
// All eight of a pass go through the stages side by side:
//
//   taking words:   word -> class -> shifted -> vector  |  registers: the word, the vector's bytes
//   giving bursts:                                      |  -> the vector's bytes
//
//   taking bursts:  the vector's bytes                  |  register: the vector
//   giving words:                                       |  -> magnitude, normalised -> word
//
// What the chip cannot shift by a number of the packet, a table's action shifts by a constant. Nor
// does an ALU move bits between containers of different sizes: words are in containers of 32 bits,
// a vector's bytes in smaller ones, and the registers' ALUs, which read and write any size, are the
// only way from one to the other.

#ifndef GRADPLANE_TNA_VALUE_P4
#define GRADPLANE_TNA_VALUE_P4

#define EACH_VALUE(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)

// The bytes that a pass gives for a value: the whole, or the first, the first two, or all the parts.
header whole_t { bit<32> bits; }
header half_t { bit<16> bits; }
header byte_t { bit<8> bits; }

struct vectors_t {
    whole_t whole;
    byte_t  first;
    byte_t  second;
    half_t  rest;
}

struct value_t {
    bit<1>  present;    // not behind the last value
    bit<32> wire;       // the word as it is in the packet
    bit<32> word;
    bit<32> vector;     // in the highest bits, zeros below
    bit<8>  first;      // the vector's bytes, zeros behind its end; then what the checksum adds up
    bit<8>  second;
    bit<16> rest;
    bit<4>  lead;       // 1 + the zeros before the highest magnitude bit; 0: there is no such bit
    bit<2>  tag;
    bit<3>  places;     // that the magnitude is shifted by
    bit<1>  one;        // its vector has one byte
    bit<1>  odd;        // an odd number of such vectors precedes it in the burst
    bit<16> mark;       // its tag, in place
    bit<16> size;       // bytes of its vector
}

struct bytes_t { bit<8> first; bit<8> second; }

#define TAG_OF(n) [2 * n + 1:2 * n]

// From a word that is taken to its vector. `one`: a tag of 1 at the value's place in a vector of tags.
control Compression(inout value_t value, in bit<8> bound, in bit<1> little_endian)(bit<16> one) {
    action start_word() {
        value.word = value.wire;
        value.vector = 0x40000000;      // the hidden bit of the magnitude to come
    }
    action start_reversed() {
        value.word = value.wire[7:0] ++ value.wire[15:8] ++ value.wire[23:16] ++ value.wire[31:24];
        value.vector = 0x40000000;
    }

    @hidden table start {
        key = { little_endian : exact; }
        actions = { start_word; start_reversed; }
        const default_action = start_word();
        const entries = { 1 : start_reversed(); }
        size = 2;
    }

    action classify(bit<2> tag, bit<3> places, bit<16> size, bit<16> mark) {
        value.tag = tag;
        value.places = places;
        value.size = size;
        value.mark = mark;
    }

#define WORD_CLASS(bound, exponent) (bound, exponent) : classify(3, 0, 4, 3 * one);
#define HALF_CLASS(bound, exponent) (bound, exponent) : classify(2, 126 - exponent, 2, 2 * one);
#define BYTE_CLASS(bound, exponent, top) (bound, exponent) : classify(1, top - exponent, 1, one);

    @hidden table classes {
        key = { bound : ternary; value.word[30:23] : ternary @name("exponent"); }
        actions = { classify; }
        const default_action = classify(0, 0, 0, 0);
        const entries = {
            WORD_CLASS(_, 0x80 &&& 0x80)
            WORD_CLASS(_, 127)
            HALF_CLASS(_, 126) HALF_CLASS(_, 125) HALF_CLASS(_, 124)
            HALF_CLASS(8, 123) HALF_CLASS(10, 123) HALF_CLASS(10, 122)
            BYTE_CLASS(6, 123, 123) BYTE_CLASS(6, 122, 123) BYTE_CLASS(6, 121, 123)
            BYTE_CLASS(8, 122, 122) BYTE_CLASS(8, 121, 122) BYTE_CLASS(8, 120, 122)
            BYTE_CLASS(8, 119, 122)
            BYTE_CLASS(10, 121, 121) BYTE_CLASS(10, 120, 121) BYTE_CLASS(10, 119, 121)
            BYTE_CLASS(10, 118, 121) BYTE_CLASS(10, 117, 121)
        }
        size = 32;
    }

    action put_fraction() { value.vector[29:7] = value.word[22:0]; }

    action put_word() { value.vector = value.word; }
    action put_nothing() { value.vector = 0; }
    action right1() { value.vector = value.vector >> 1; }
    action right2() { value.vector = value.vector >> 2; }
    action right3() { value.vector = value.vector >> 3; }
    action right4() { value.vector = value.vector >> 4; }

    @hidden table truncate {
        key = { value.tag : ternary; value.places : ternary; }
        actions = { put_word; put_nothing; right1; right2; right3; right4; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (3, _) : put_word();
            (0, _) : put_nothing();
            (_, 1) : right1();
            (_, 2) : right2();
            (_, 3) : right3();
            (_, 4) : right4();
        }
        size = 8;
    }

    action sign_vector() { value.vector[31:31] = value.word[31:31]; }

    apply {
        start.apply();
        classes.apply();
        put_fraction();
        truncate.apply();
        if (value.tag != 0) { sign_vector(); }
    }
}

// The size of a vector that is taken.
control Measurement(inout value_t value, in bit<2> tag) {
    action measure(bit<16> size, bit<1> is_byte) {
        value.size = size;
        value.one = is_byte;
    }

    @hidden table sizes {
        key = { tag : exact; }
        actions = { measure; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            1 : measure(1, 1);
            2 : measure(2, 0);
            3 : measure(4, 0);
        }
        size = 4;
    }

    apply { sizes.apply(); }
}

// The registers between the passes that take and those that give.
control Cells(inout value_t value, in mode_t mode, in cell_t cell) {
    Register<bit<32>, cell_t>(CELLS) words;
    Register<bytes_t, cell_t>(CELLS) heads;
    Register<bit<16>, cell_t>(CELLS) tails;

    RegisterAction<bit<32>, cell_t, bit<32>>(words) store_word = {
        void apply(inout bit<32> word) { word = value.wire; }
    };
    RegisterAction<bit<32>, cell_t, bit<32>>(words) store_bytes = {
        void apply(inout bit<32> word) { word = value.first ++ value.second ++ value.rest; }
    };
    RegisterAction<bit<32>, cell_t, bit<32>>(words) load = {
        void apply(inout bit<32> word, out bit<32> result) { result = word; }
    };
    RegisterAction<bytes_t, cell_t, bit<8>>(heads) store_head = {
        void apply(inout bytes_t bytes) {
            bytes.first = value.vector[31:24];
            bytes.second = value.vector[23:16];
        }
    };
    RegisterAction2<bytes_t, cell_t, bit<8>, bit<8>>(heads) load_head = {
        void apply(inout bytes_t bytes, out bit<8> first, out bit<8> second) {
            first = bytes.first;
            second = bytes.second;
        }
    };
    RegisterAction<bit<16>, cell_t, bit<16>>(tails) store_tail = {
        void apply(inout bit<16> tail) { tail = value.vector[15:0]; }
    };
    RegisterAction<bit<16>, cell_t, bit<16>>(tails) load_tail = {
        void apply(inout bit<16> tail, out bit<16> result) { result = tail; }
    };

    action keep_word() { store_word.execute(cell); }
    action keep_bytes() { store_bytes.execute(cell); }
    action find_word() { value.word = load.execute(cell); }

    @hidden table wholes {
        key = { mode : exact; }
        actions = { keep_word; keep_bytes; find_word; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            TAKE_WORDS : keep_word();
            TAKE_BURSTS : keep_bytes();
            GIVE_WORDS : find_word();
            GIVE_BACK : find_word();
        }
        size = 4;
    }

    action keep_head() { store_head.execute(cell); }
    action find_head() { value.first = load_head.execute(cell, value.second); }

    @hidden table first_bytes {
        key = { mode : exact; }
        actions = { keep_head; find_head; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            TAKE_WORDS : keep_head();
            GIVE_BURSTS : find_head();
        }
        size = 2;
    }

    action keep_tail() { store_tail.execute(cell); }
    action find_tail() { value.rest = load_tail.execute(cell); }

    @hidden table last_bytes {
        key = { mode : exact; }
        actions = { keep_tail; find_tail; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            TAKE_WORDS : keep_tail();
            GIVE_BURSTS : find_tail();
        }
        size = 2;
    }

    apply {
        wholes.apply();
        first_bytes.apply();
        last_bytes.apply();
    }
}

// From a vector that was taken to its word.
control Decompression(inout value_t value, in bit<2> tag, in bit<8> bound,
                      in bit<1> little_endian) {
    action split_sign() {
        value.vector = value.word;
        value.word = value.word & 0x7FFFFFFF;
    }

    // The highest magnitude bit moves to where the hidden bit of a float32 is.
#define LEAD_RIGHT(n) action lead##n() { value.word = value.word >> (7 - n); value.lead = n + 1; }
#define LEAD_LEFT(n) action lead##n() { value.word = value.word << (n - 7); value.lead = n + 1; }
    LEAD_RIGHT(0) LEAD_RIGHT(1) LEAD_RIGHT(2) LEAD_RIGHT(3) LEAD_RIGHT(4) LEAD_RIGHT(5)
    LEAD_RIGHT(6) LEAD_LEFT(7) LEAD_LEFT(8) LEAD_LEFT(9) LEAD_LEFT(10) LEAD_LEFT(11)
    LEAD_LEFT(12) LEAD_LEFT(13) LEAD_LEFT(14)

#define LEADING(n) (_, (15w0x4000 >> n) &&& (15w0x7FFF << (14 - n))) : lead##n();
    @hidden table normalise {
        key = { tag : ternary; value.word[30:16] : ternary @name("magnitude"); }
        actions = {
            lead0; lead1; lead2; lead3; lead4; lead5; lead6; lead7; lead8; lead9; lead10; lead11;
            lead12; lead13; lead14; NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (3, _) : NoAction();
            LEADING(0) LEADING(1) LEADING(2) LEADING(3) LEADING(4) LEADING(5) LEADING(6) LEADING(7)
            LEADING(8) LEADING(9) LEADING(10) LEADING(11) LEADING(12) LEADING(13) LEADING(14)
        }
        size = 16;
    }

    // The exponent, less what the hidden bit adds to it, and the sign.
    action add_exponent(bit<32> exponent) { value.word = value.word + exponent; }

#define EXPONENT(tag, bound, top, n) \
    (tag, bound, n + 1, 0) : add_exponent(32w1 * (top - 1 - n) << 23); \
    (tag, bound, n + 1, 1) : add_exponent((32w1 << 31) + (32w1 * (top - 1 - n) << 23));
#define EXPONENTS(tag, bound, top) \
    EXPONENT(tag, bound, top, 0) EXPONENT(tag, bound, top, 1) EXPONENT(tag, bound, top, 2) \
    EXPONENT(tag, bound, top, 3) EXPONENT(tag, bound, top, 4) EXPONENT(tag, bound, top, 5) \
    EXPONENT(tag, bound, top, 6)
    @hidden table exponents {
        key = {
            tag : exact;
            bound : ternary;
            value.lead : exact;
            value.vector[31:31] : exact @name("sign");
        }
        actions = { add_exponent; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            EXPONENTS(1, 6, 123)
            EXPONENTS(1, 8, 122)
            EXPONENTS(1, 10, 121)
            EXPONENTS(2, _, 126)
            EXPONENT(2, _, 126, 7) EXPONENT(2, _, 126, 8) EXPONENT(2, _, 126, 9)
            EXPONENT(2, _, 126, 10) EXPONENT(2, _, 126, 11) EXPONENT(2, _, 126, 12)
            EXPONENT(2, _, 126, 13) EXPONENT(2, _, 126, 14)
            (1, _, 0, 1) : add_exponent(32w1 << 31);
            (2, _, 0, 1) : add_exponent(32w1 << 31);
        }
        size = 128;
    }

    action reverse() {
        value.word = value.word[7:0] ++ value.word[15:8] ++ value.word[23:16] ++ value.word[31:24];
    }

    apply {
        if (tag != 3) { split_sign(); }
        normalise.apply();
        exponents.apply();
        if (little_endian == 1) { reverse(); }
    }
}

// What a pass gives for a value. `tag`: of a burst that is given.
control Value(inout vectors_t hdr, inout value_t value, in bit<2> tag, in mode_t mode) {
    // Values of each class.
    Counter<bit<32>, bit<2>>(4, CounterType_t.PACKETS) tags;

    action give_word() {
        hdr.whole.setValid();
        hdr.whole.bits = value.word;
        value.wire = value.word;
    }
    action give_whole() {
        hdr.first.setValid();
        hdr.first.bits = value.first;
        hdr.second.setValid();
        hdr.second.bits = value.second;
        hdr.rest.setValid();
        hdr.rest.bits = value.rest;
    }
    action give_half() {
        hdr.first.setValid();
        hdr.first.bits = value.first;
        hdr.second.setValid();
        hdr.second.bits = value.second;
        value.rest = 0;
    }
    action give_byte() {
        hdr.first.setValid();
        hdr.first.bits = value.first;
        value.one = 1;
        value.second = 0;
        value.rest = 0;
    }
    action give_nothing() {
        value.first = 0;
        value.second = 0;
        value.rest = 0;
    }

    @hidden table give {
        key = { mode : exact; value.present : ternary; tag : ternary; }
        actions = {
            give_word; give_whole; give_half; give_byte; give_nothing; @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (GIVE_BURSTS, _, 3) : give_whole();
            (GIVE_BURSTS, _, 2) : give_half();
            (GIVE_BURSTS, _, 1) : give_byte();
            (GIVE_BURSTS, _, 0) : give_nothing();
            (GIVE_WORDS, 1, _) : give_word();
            (GIVE_BACK, 1, _) : give_word();
        }
        size = 8;
    }

    apply {
        if (mode == GIVE_BURSTS && value.present == 1) { tags.count(tag); }
        give.apply();
    }
}

// The parity of the vectors of one byte before each value of a burst, counted from the first.
control Parities(inout value_t a, inout value_t b, inout value_t c, inout value_t d,
                 inout bit<1> odd) {
    action set(bit<1> of_b, bit<1> of_c, bit<1> of_d, bit<1> end) {
        a.odd = odd;
        b.odd = of_b;
        c.odd = of_c;
        d.odd = of_d;
        odd = end;
    }

#define PARITY5(s, a, b, c, d) \
    (s, a, b, c, d) : set(s ^ a, s ^ a ^ b, s ^ a ^ b ^ c, s ^ a ^ b ^ c ^ d);
#define PARITY4(s, a, b, c) PARITY5(s, a, b, c, 1w0) PARITY5(s, a, b, c, 1w1)
#define PARITY3(s, a, b) PARITY4(s, a, b, 1w0) PARITY4(s, a, b, 1w1)
#define PARITY2(s, a) PARITY3(s, a, 1w0) PARITY3(s, a, 1w1)
#define PARITY1(s) PARITY2(s, 1w0) PARITY2(s, 1w1)
    @hidden table parities {
        key = { odd : exact; a.one : exact; b.one : exact; c.one : exact; d.one : exact; }
        actions = { set; }
        const default_action = set(0, 0, 0, 0);
        const entries = {
            PARITY1(1w0)
            PARITY1(1w1)
        }
        size = 32;
    }

    apply { parities.apply(); }
}

#endif
