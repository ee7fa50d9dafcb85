// INCEPTIONN's compressed float32 (MICRO '18, section V): headers and arithmetic.
//
//   tag  exponent              bits  content
//    3   127 <= e               32   the value as it is, infinities and NaN too
//    2   middle <= e < 127      16   sign, then magnitude bits of weight 2^-1 to 2^-15
//    1   low <= e < middle       8   sign, then bits of weight 2^(middle-128) to 2^(middle-134)
//    0   e < low                 0   nothing: +0
//
// with low = 127 - bound and middle = low + ceil(bound / 2): the error stays below 2^-bound. Eight
// values are a burst: a vector of their tags, value i's in bits 2i + 1 and 2i, then their vectors.

#ifndef GRADPLANE_INCEPTIONN_P4
#define GRADPLANE_INCEPTIONN_P4

const bit<16> BURST = 8;
const bit<8> EXPONENT_OF_ONE = 127;

typedef bit<2> tag_t;

header shim_t {
    bit<16> count;      // of the values
    bit<8>  bound;
    bit<8>  flags;
}

const bit<16> SHIM_BYTES = 4;
const bit<8>  FLAG_LITTLE_ENDIAN = 1;   // the hosts' values
const bit<8>  FLAG_MESSAGE = 2;         // a message header follows the shim

header tags_t { bit<16> tags; }
header byte_t { bit<8> vector; }
header half_t { bit<16> vector; }
header word_t { bit<32> vector; }

// A burst is a cell with the tags, and one for each value that is not of class 0.
header_union cell_t {
    tags_t tags;
    byte_t byte;
    half_t half;
    word_t word;
}

bool known_bound(in bit<8> bound) {
    return bound == 6 || bound == 8 || bound == 10;
}

// The least exponents of the classes 1 and 2.
bit<8> low_exponent(in bit<8> bound) {
    return EXPONENT_OF_ONE - bound;
}

bit<8> middle_exponent(in bit<8> bound) {
    return EXPONENT_OF_ONE - bound + ((bound + 1) >> 1);
}

tag_t class_of(in bit<8> exponent, in bit<8> low, in bit<8> middle) {
    return exponent >= EXPONENT_OF_ONE ? 2w3
        : exponent >= middle ? 2w2
        : exponent >= low ? 2w1 : 2w0;
}

bit<16> bytes_of(in tag_t tag) {
    return (16w1 << tag) >> 1;
}

// The magnitude of a value below 1: 24 bits, the first with the weight 2^(exponent - 127).
bit<24> magnitude_of(in bit<32> value) {
    return 1w1 ++ value[22:0];
}

// Sign and 15 bits: of class 2 with top = 126, the exponent of 2^-1. Class 1 with top =
// middle - 1 has the upper eight of them.
bit<16> vector_of(in bit<32> value, in bit<8> top) {
    return value[31:31] ++ (magnitude_of(value) >> (top - value[30:23]))[23:9];
}

// The float32 of such a vector: its highest one becomes the hidden bit.
bit<32> value_of(in bit<16> vector, in bit<8> top) {
    bit<15> magnitude = vector[14:0];
    bit<8> exponent = top;
    if (magnitude[14:7] == 0) { magnitude = magnitude << 8; exponent = exponent - 8; }
    if (magnitude[14:11] == 0) { magnitude = magnitude << 4; exponent = exponent - 4; }
    if (magnitude[14:13] == 0) { magnitude = magnitude << 2; exponent = exponent - 2; }
    if (magnitude[14:14] == 0) { magnitude = magnitude << 1; exponent = exponent - 1; }
    if (magnitude == 0) { exponent = 0; }
    return vector[15:15] ++ exponent ++ magnitude[13:0] ++ 9w0;
}

bit<32> network_order(in bit<32> word, in bit<1> little_endian) {
    return little_endian == 1 ? word[7:0] ++ word[15:8] ++ word[23:16] ++ word[31:24] : word;
}

// The summand of a vector in a sum of 16-bit words, if it ends on an even or on an odd byte.
bit<64> placed(in bit<32> vector, in bit<1> odd) {
    return odd == 1 ? (bit<64>) vector << 8 : (bit<64>) vector;
}

// A sum of 16-bit words with end-around carry.
bit<16> folded(in bit<64> sum) {
    bit<32> once = (bit<32>) sum[15:0] + (bit<32>) sum[31:16]
        + (bit<32>) sum[47:32] + (bit<32>) sum[63:48];
    bit<32> twice = (once & 0xFFFF) + (once >> 16);
    return (bit<16>) ((twice & 0xFFFF) + (twice >> 16));
}

#endif
