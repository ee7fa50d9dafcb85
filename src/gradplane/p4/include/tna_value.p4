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
// A vector of four bytes is its word and stays one; of others, the register has the two bytes that
// there may be in its lower half, since more than 51 bits do not reach a register's ALU.
//
// What the chip cannot shift by a number of the packet, a table's action shifts by a constant. Nor
// does an ALU move bits between containers of different sizes: words are in containers of 32 bits,
// a vector's bytes in smaller ones, and the registers' ALUs, which read and write any size, are the
// only way from one to the other.

#ifndef GRADPLANE_TNA_VALUE_P4
#define GRADPLANE_TNA_VALUE_P4

#define EACH_VALUE(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)

// The bytes that a pass gives for a value: the whole, or the first, the first two, or all parts.
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
    bit<32> word;       // then its fraction, or its magnitude
    bit<32> vector;     // in the highest bits, zeros below
    bit<8>  first;      // the vector's bytes, zeros behind its end; then what the checksum adds up
    bit<8>  second;
    bit<16> rest;
    bit<4>  lead;       // 1 + a fourth of the zeros before the highest magnitude bit, or 0 without
                        // such a bit; + 8 if the vector is negative
    bit<2>  tag;
    bit<3>  places;     // that the magnitude is shifted by; of words that are given, % 4
    bit<1>  one;        // its vector has one byte
    bit<1>  odd;        // an odd number of such vectors precedes it in its half of the burst
    bit<16> mark;       // its tag, in place
    bit<16> size;       // bytes of its vector
}

struct bytes_t { bit<8> first; bit<8> second; }

#define TAG_OF(n) [2 * n + 1:2 * n]

// From a word that is taken to its vector. `one`: a tag of 1 at the value's place in a vector of
// tags.
control Compression(inout value_t value, in bit<8> bound, in bit<1> little_endian)(bit<16> one) {
    action start_word() { value.word = value.wire; }
    action start_reversed() {
        value.word = value.wire[7:0] ++ value.wire[15:8] ++ value.wire[23:16] ++ value.wire[31:24];
    }

    @hidden table start {
        key = { little_endian : exact; }
        actions = { start_word; start_reversed; }
        const default_action = start_word();
        const entries = { 1 : start_reversed(); }
        size = 2;
    }

    action put_nothing() { value.word = 0; }
    action put_word() {
        value.tag = 3;
        value.size = 4;
        value.mark = 3 * one;
        value.vector = value.word;
        value.word = 0;
    }
    // `head`: the sign and the magnitude's hidden bit. The fraction stays in the word.
    action put_head(bit<2> tag, bit<3> places, bit<16> size, bit<16> mark, bit<32> head) {
        value.tag = tag;
        value.places = places;
        value.size = size;
        value.mark = mark;
        value.vector = head;
        value.word = value.word & 0x007FFFFF;
    }

#define CLASS(bound, exponent, tag, places, size) \
    (bound, 9w0x000 + exponent) : \
        put_head(tag, places, size, tag * one, 32w0x40000000 >> places); \
    (bound, 9w0x100 + exponent) : \
        put_head(tag, places, size, tag * one, 32w0x80000000 + (32w0x40000000 >> places));
#define HALF_CLASS(bound, exponent) CLASS(bound, exponent, 2, 126 - exponent, 2)
#define BYTE_CLASS(bound, exponent, top) CLASS(bound, exponent, 1, top - exponent, 1)

    @hidden table classes {
        key = { bound : ternary; value.word[31:23] : ternary @name("sign_exponent"); }
        actions = { put_nothing; put_word; put_head; }
        const default_action = put_nothing();
        const entries = {
            (_, 0x80 &&& 0x80) : put_word();
            (_, 0x7F &&& 0xFF) : put_word();
            HALF_CLASS(_, 126) HALF_CLASS(_, 125) HALF_CLASS(_, 124)
            HALF_CLASS(8, 123) HALF_CLASS(10, 123) HALF_CLASS(10, 122)
            BYTE_CLASS(6, 123, 123) BYTE_CLASS(6, 122, 123) BYTE_CLASS(6, 121, 123)
            BYTE_CLASS(8, 122, 122) BYTE_CLASS(8, 121, 122) BYTE_CLASS(8, 120, 122)
            BYTE_CLASS(8, 119, 122)
            BYTE_CLASS(10, 121, 121) BYTE_CLASS(10, 120, 121) BYTE_CLASS(10, 119, 121)
            BYTE_CLASS(10, 118, 121) BYTE_CLASS(10, 117, 121)
        }
        size = 64;
    }

#define SHIFT(n) action shift##n() { value.word = value.word << (7 - n); }
    SHIFT(0) SHIFT(1) SHIFT(2) SHIFT(3) SHIFT(4)

    @hidden table fractions {
        key = { value.places : exact; }
        actions = { shift0; shift1; shift2; shift3; shift4; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            0 : shift0();
            1 : shift1();
            2 : shift2();
            3 : shift3();
            4 : shift4();
        }
        size = 8;
    }

    action put_fraction() { value.vector = value.vector | value.word; }

    apply {
        start.apply();
        classes.apply();
        fractions.apply();
        put_fraction();
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
control Cells(inout value_t value, in mode_t mode, in bit<2> tag, in cell_t cell) {
    Register<bit<32>, cell_t>(CELLS) words;
    Register<bytes_t, cell_t>(CELLS) heads;
    Register<bit<16>, cell_t>(CELLS) tails;

    RegisterAction<bit<32>, cell_t, bit<32>>(words) store_word = {
        void apply(inout bit<32> word) { word = value.wire; }
    };
    RegisterAction<bit<32>, cell_t, bit<32>>(words) store_bytes = {
        void apply(inout bit<32> word) { word = (bit<32>) (value.first ++ value.second); }
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
        key = { mode : exact; tag : ternary; }
        actions = { keep_word; keep_bytes; find_word; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (TAKE_WORDS, _) : keep_word();
            (TAKE_BURSTS, 3) : keep_word();
            (TAKE_BURSTS, _) : keep_bytes();
            (GIVE_WORDS, _) : find_word();
            (GIVE_BACK, _) : find_word();
        }
        size = 8;
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

// From a vector that was taken, in the lower half of `word`, to its word.
control Decompression(inout value_t value, in mode_t mode, in bit<2> tag, in bit<8> bound) {
    // The highest magnitude bit moves to where the hidden bit of a float32 is, in two steps: the
    // chip has room for 64 actions a stage.
#define LEAD(quarter, shift) \
    action lead##quarter(bit<4> lead) { value.word = value.word << shift; value.lead = lead; }
    LEAD(0, 9) LEAD(1, 13) LEAD(2, 17) LEAD(3, 21)
    action only_sign() { value.lead = 8; }

#define LEADING(n, quarter) \
    (GIVE_WORDS, _, 16w0x4000 >> n &&& 16w0xFFFF << (14 - n)) : lead##quarter(quarter + 1); \
    (GIVE_WORDS, _, 16w0x8000 + (16w0x4000 >> n) &&& 16w0xFFFF << (14 - n)) : \
        lead##quarter(quarter + 9);
    @hidden table normalise {
        key = {
            mode : ternary;
            tag : ternary;
            value.word[15:0] : ternary @name("vector");
        }
        actions = { lead0; lead1; lead2; lead3; only_sign; NoAction; }
        const default_action = NoAction();
        const entries = {
            (_, 3, _) : NoAction();
            LEADING(0, 0) LEADING(1, 0) LEADING(2, 0) LEADING(3, 0)
            LEADING(4, 1) LEADING(5, 1) LEADING(6, 1) LEADING(7, 1)
            LEADING(8, 2) LEADING(9, 2) LEADING(10, 2) LEADING(11, 2)
            LEADING(12, 3) LEADING(13, 3) LEADING(14, 3)
            (GIVE_WORDS, _, 0x8000) : only_sign();
        }
        size = 64;
    }

#define LEFT(n) action left##n() { value.word = value.word << n; value.places = n; }
    LEFT(1) LEFT(2) LEFT(3)

    @hidden table align {
        key = { value.lead : ternary; value.word[23:20] : ternary @name("top"); }
        actions = { left1; left2; left3; NoAction; }
        const default_action = NoAction();
        const entries = {
            (0, _) : NoAction();
            (_, 4 &&& 12) : left1();
            (_, 2 &&& 14) : left2();
            (_, 1) : left3();
        }
        size = 4;
    }

    // The exponent, less what the hidden bit adds to it, and the sign, less what it adds where it
    // was moved to.
    action add_exponent(bit<32> exponent) { value.word = value.word + exponent; }

#define EXPONENT(tag, bound, top, n) \
    (tag, bound, n / 4 + 1, n % 4) : add_exponent(32w1 * (top - 1 - n) << 23); \
    (tag, bound, n / 4 + 9, n % 4) : \
        add_exponent(32w0x80000000 + (32w1 * (top - 1 - n) << 23) - (32w0x1000000 << n));
#define EXPONENTS(tag, bound, top) \
    EXPONENT(tag, bound, top, 0) EXPONENT(tag, bound, top, 1) EXPONENT(tag, bound, top, 2) \
    EXPONENT(tag, bound, top, 3) EXPONENT(tag, bound, top, 4) EXPONENT(tag, bound, top, 5) \
    EXPONENT(tag, bound, top, 6)
    @hidden table exponents {
        key = {
            tag : exact;
            bound : ternary;
            value.lead : exact;
            value.places : exact;
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
            (1, _, 8, 0) : add_exponent(0x80000000 - 0x8000);
            (2, _, 8, 0) : add_exponent(0x80000000 - 0x8000);
        }
        size = 128;
    }

    apply {
        normalise.apply();
        align.apply();
        exponents.apply();
    }
}

// What a pass gives for a value. `tag`: of a burst that is given; 0 behind the last value.
control Value(inout vectors_t hdr, inout value_t value, in bit<2> tag, in mode_t mode,
              in bit<1> little_endian) {
    // Values of each class.
    Counter<bit<32>, bit<2>>(4, CounterType_t.PACKETS) tags;

    action give_word() {
        hdr.whole.setValid();
        hdr.whole.bits = value.word;
        value.wire = value.word;
    }
    action give_reversed() {
        hdr.whole.setValid();
        hdr.whole.bits =
            value.word[7:0] ++ value.word[15:8] ++ value.word[23:16] ++ value.word[31:24];
        value.wire =
            value.word[7:0] ++ value.word[15:8] ++ value.word[23:16] ++ value.word[31:24];
    }
    action give_whole() {
        tags.count(tag);
        hdr.first.setValid();
        hdr.first.bits = value.first;
        hdr.second.setValid();
        hdr.second.bits = value.second;
        hdr.rest.setValid();
        hdr.rest.bits = value.rest;
    }
    action give_half() {
        tags.count(tag);
        hdr.first.setValid();
        hdr.first.bits = value.first;
        hdr.second.setValid();
        hdr.second.bits = value.second;
        value.rest = 0;
    }
    action give_byte() {
        tags.count(tag);
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
    action give_zero() {
        tags.count(tag);
        give_nothing();
    }

    @hidden table give {
        key = {
            mode : exact;
            value.present : ternary;
            tag : ternary;
            little_endian : ternary;
        }
        actions = {
            give_word; give_reversed; give_whole; give_half; give_byte; give_zero; give_nothing;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (GIVE_BURSTS, _, 3, _) : give_whole();
            (GIVE_BURSTS, _, 2, _) : give_half();
            (GIVE_BURSTS, _, 1, _) : give_byte();
            (GIVE_BURSTS, 1, 0, _) : give_zero();
            (GIVE_BURSTS, 0, 0, _) : give_nothing();
            (GIVE_WORDS, 1, _, 0) : give_word();
            (GIVE_WORDS, 1, _, 1) : give_reversed();
            (GIVE_BACK, 1, _, _) : give_word();
        }
        size = 8;
    }

    apply { give.apply(); }
}

// The parity of the vectors of one byte before each value of half a burst, and of all four.
control Parities(inout value_t a, inout value_t b, inout value_t c, inout value_t d,
                 out bit<1> odd) {
    action set(bit<1> of_b, bit<1> of_c, bit<1> of_d, bit<1> end) {
        b.odd = of_b;
        c.odd = of_c;
        d.odd = of_d;
        odd = end;
    }

#define PARITY4(a, b, c, d) (a, b, c, d) : set(a, a ^ b, a ^ b ^ c, a ^ b ^ c ^ d);
#define PARITY3(a, b, c) PARITY4(a, b, c, 1w0) PARITY4(a, b, c, 1w1)
#define PARITY2(a, b) PARITY3(a, b, 1w0) PARITY3(a, b, 1w1)
#define PARITY1(a) PARITY2(a, 1w0) PARITY2(a, 1w1)
    @hidden table parities {
        key = { a.one : exact; b.one : exact; c.one : exact; d.one : exact; }
        actions = { set; }
        const default_action = set(0, 0, 0, 0);
        const entries = {
            PARITY1(1w0)
            PARITY1(1w1)
        }
        size = 16;
    }

    apply { parities.apply(); }
}

#endif
