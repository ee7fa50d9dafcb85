// A value of a burst for Tofino: from its vector to its word and back, and its register between.
//
// All eight of a pass go through the stages side by side:
//
//   taking bursts:  vector -> magnitude, normalised -> word  |
//                                                         register
//   giving bursts:                                           |  word -> class -> shifted -> vector
//
// What the chip cannot shift by a number of the packet, a table's action shifts by a constant.

#ifndef GRADPLANE_TNA_VALUE_P4
#define GRADPLANE_TNA_VALUE_P4

#define EACH_VALUE(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)

// What the bytes of a value can be: one of them is valid.
header whole_t { bit<32> bits; }
header half_t { bit<16> bits; }
header byte_t { bit<8> bits; }

struct vectors_t {
    whole_t whole;
    half_t  half;
    byte_t  byte;
}

struct value_t {
    bit<1>  present;    // not behind the last value
    bit<32> word;
    bit<32> vector;     // in the highest bits, zeros below; then what the checksum adds up
    bit<4>  lead;       // 1 + the zeros before the highest magnitude bit; 0: there is no such bit
    bit<2>  tag;
    bit<3>  places;     // that the magnitude is shifted by
    bit<1>  one;        // its vector has one byte
    bit<1>  odd;        // an odd number of such vectors precedes it in the burst
    bit<32> info;       // bytes of its vector in the high half; in the low one its tag, in place
}

#define TAG_OF(n) hdr.tags.vector[2 * n + 1:2 * n]

// `one`: a tag of 1 at the value's place in a vector of tags.
control Value(inout vectors_t hdr, inout value_t value, in bit<2> tag, in mode_t mode,
              in bit<8> bound, in bit<1> little_endian, in bit<1> access, in cell_t cell)
             (bit<32> one) {
    // Values of each class.
    Counter<bit<32>, bit<2>>(4, CounterType_t.PACKETS) tags;
    Register<bit<32>, cell_t>(CELLS) words;

    RegisterAction<bit<32>, cell_t, bit<32>>(words) store = {
        void apply(inout bit<32> word) { word = value.word; }
    };
    RegisterAction<bit<32>, cell_t, bit<32>>(words) load = {
        void apply(inout bit<32> word, out bit<32> result) { result = word; }
    };

    action take_word() { value.word = hdr.whole.bits; }
    action take_whole() {
        value.word = hdr.whole.bits;
        value.vector = hdr.whole.bits;
        value.info = 4 << 16;
    }
    action take_half() {
        value.word[30:16] = hdr.half.bits[14:0];
        value.vector[31:16] = hdr.half.bits;
        value.info = 2 << 16;
    }
    action take_byte() {
        value.word[30:24] = hdr.byte.bits[6:0];
        value.vector[31:24] = hdr.byte.bits;
        value.info = 1 << 16;
        value.one = 1;
    }
    action hide_bit() { value.vector = 0x40000000; }

    // From the parser; where bursts are given, the hidden bit of the magnitude to come.
    @hidden table take {
        key = { mode : exact; value.present : ternary; tag : ternary; }
        actions = { take_word; take_whole; take_half; take_byte; hide_bit; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (TAKE_WORDS, 1, _) : take_word();
            (TAKE_BURSTS, _, 3) : take_whole();
            (TAKE_BURSTS, _, 2) : take_half();
            (TAKE_BURSTS, _, 1) : take_byte();
            (GIVE_BURSTS, _, _) : hide_bit();
        }
        size = 8;
    }

    // -- from vector to word --------------------------------------------------------------------

    // The highest magnitude bit moves to where the hidden bit of a float32 is.
#define LEAD_RIGHT(n) action lead##n() { value.word = value.word >> (7 - n); value.lead = n + 1; }
#define LEAD_LEFT(n) action lead##n() { value.word = value.word << (n - 7); value.lead = n + 1; }
    LEAD_RIGHT(0) LEAD_RIGHT(1) LEAD_RIGHT(2) LEAD_RIGHT(3) LEAD_RIGHT(4) LEAD_RIGHT(5)
    LEAD_RIGHT(6) LEAD_LEFT(7) LEAD_LEFT(8) LEAD_LEFT(9) LEAD_LEFT(10) LEAD_LEFT(11)
    LEAD_LEFT(12) LEAD_LEFT(13) LEAD_LEFT(14)

#define LEADING(n) (TAKE_BURSTS, _, (15w0x4000 >> n) &&& (15w0x7FFF << (14 - n))) : lead##n();
    @hidden table normalise {
        key = { mode : exact; tag : ternary; value.word[30:16] : ternary @name("magnitude"); }
        actions = {
            lead0; lead1; lead2; lead3; lead4; lead5; lead6; lead7; lead8; lead9; lead10; lead11;
            lead12; lead13; lead14; NoAction;
        }
        const default_action = NoAction();
        const entries = {
            (TAKE_BURSTS, 3, _) : NoAction();
            LEADING(0) LEADING(1) LEADING(2) LEADING(3) LEADING(4) LEADING(5) LEADING(6) LEADING(7)
            LEADING(8) LEADING(9) LEADING(10) LEADING(11) LEADING(12) LEADING(13) LEADING(14)
        }
        size = 16;
    }

    // The exponent, less what the hidden bit adds to it.
    action add_exponent(bit<32> exponent) { value.word = value.word + exponent; }

#define EXPONENT(tag, bound, top, n) (tag, bound, n + 1) : add_exponent(32w1 * (top - 1 - n) << 23);
#define EXPONENTS(tag, bound, top) \
    EXPONENT(tag, bound, top, 0) EXPONENT(tag, bound, top, 1) EXPONENT(tag, bound, top, 2) \
    EXPONENT(tag, bound, top, 3) EXPONENT(tag, bound, top, 4) EXPONENT(tag, bound, top, 5) \
    EXPONENT(tag, bound, top, 6)
    @hidden table exponents {
        key = { tag : exact; bound : ternary; value.lead : exact; }
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
        }
        size = 64;
    }

    // -- from word to vector --------------------------------------------------------------------

    action reverse() {
        value.word = value.word[7:0] ++ value.word[15:8] ++ value.word[23:16] ++ value.word[31:24];
    }

    action classify(bit<2> tag, bit<3> places, bit<32> info) {
        value.tag = tag;
        value.places = places;
        value.info = info;
    }
    action classify_byte(bit<3> places) {
        value.tag = 1;
        value.places = places;
        value.info = (1 << 16) + one;
        value.one = 1;
    }

#define WORDS_CLASS(bound, exponent) \
    (TAKE_WORDS, bound, exponent) : classify(3, 0, (4 << 16) + 3 * one); \
    (GIVE_BURSTS, bound, exponent) : classify(3, 0, (4 << 16) + 3 * one);
#define HALF_CLASS(bound, exponent) \
    (TAKE_WORDS, bound, exponent) : classify(2, 126 - exponent, (2 << 16) + 2 * one); \
    (GIVE_BURSTS, bound, exponent) : classify(2, 126 - exponent, (2 << 16) + 2 * one);
#define BYTE_CLASS(bound, exponent, top) \
    (TAKE_WORDS, bound, exponent) : classify_byte(top - exponent); \
    (GIVE_BURSTS, bound, exponent) : classify_byte(top - exponent);

    @hidden table classes {
        key = { mode : exact; bound : ternary; value.word[30:23] : ternary @name("exponent"); }
        actions = { classify; classify_byte; }
        const default_action = classify(0, 0, 0);
        const entries = {
            WORDS_CLASS(_, 0x80 &&& 0x80)
            WORDS_CLASS(_, 127)
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

    action put_fraction() { value.vector[29:7] = value.word[22:0]; }
    action put_word() { value.vector = value.word; }

    // As it is in the packet: before its bytes are reversed.
    @hidden table copy {
        key = { mode : exact; }
        actions = { put_word; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            TAKE_WORDS : put_word();
            GIVE_WORDS : put_word();
            GIVE_BACK : put_word();
        }
        size = 4;
    }

    action put_nothing() { value.vector = 0; }
    action right1() { value.vector = value.vector >> 1; }
    action right2() { value.vector = value.vector >> 2; }
    action right3() { value.vector = value.vector >> 3; }
    action right4() { value.vector = value.vector >> 4; }

    @hidden table truncate {
        key = { mode : exact; value.tag : ternary; value.places : ternary; }
        actions = { put_word; put_nothing; right1; right2; right3; right4; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (GIVE_BURSTS, 3, _) : put_word();
            (GIVE_BURSTS, 0, _) : put_nothing();
            (GIVE_BURSTS, _, 1) : right1();
            (GIVE_BURSTS, _, 2) : right2();
            (GIVE_BURSTS, _, 3) : right3();
            (GIVE_BURSTS, _, 4) : right4();
        }
        size = 8;
    }

    action sign_vector() { value.vector[31:31] = value.word[31:31]; }
    action sign_word() { value.word[31:31] = value.vector[31:31]; }

    action give_whole() {
        hdr.whole.setValid();
        hdr.whole.bits = value.vector;
    }
    action give_half() {
        hdr.half.setValid();
        hdr.half.bits = value.vector[31:16];
        value.vector[15:0] = 0;
    }
    action give_byte() {
        hdr.byte.setValid();
        hdr.byte.bits = value.vector[31:24];
        value.vector[23:0] = 0;
    }
    action take_off() {
        hdr.whole.setInvalid();
        hdr.half.setInvalid();
        hdr.byte.setInvalid();
    }

    @hidden table give {
        key = { mode : exact; value.present : ternary; value.tag : ternary; }
        actions = { give_whole; give_half; give_byte; take_off; @defaultonly NoAction; }
        const default_action = NoAction();
        const entries = {
            (TAKE_WORDS, _, _) : take_off();
            (TAKE_BURSTS, _, _) : take_off();
            (GIVE_BURSTS, _, 3) : give_whole();
            (GIVE_BURSTS, _, 2) : give_half();
            (GIVE_BURSTS, _, 1) : give_byte();
            (GIVE_WORDS, 1, _) : give_whole();
            (GIVE_BACK, 1, _) : give_whole();
        }
        size = 8;
    }

    apply {
        take.apply();
        normalise.apply();
        exponents.apply();
        if (mode == TAKE_BURSTS) { sign_word(); }
        if (mode == TAKE_BURSTS && little_endian == 1) { reverse(); }
        if (access == 1) {
            if (mode == TAKE_WORDS || mode == TAKE_BURSTS) {
                store.execute(cell);
            } else {
                value.word = load.execute(cell);
            }
        }
        copy.apply();
        if ((mode == TAKE_WORDS || mode == GIVE_BURSTS) && little_endian == 1) { reverse(); }
        if (mode == TAKE_WORDS || mode == GIVE_BURSTS) { classes.apply(); }
        if (mode == GIVE_BURSTS) {
            put_fraction();
            if (value.present == 1) { tags.count(value.tag); }
        }
        truncate.apply();
        if (mode == GIVE_BURSTS && value.tag != 0) { sign_vector(); }
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
