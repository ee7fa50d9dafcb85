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
//
// The eight values of a burst are computed together: one number of 256 bits has them as words of 32
// bits, the first in the highest bits. What is computed for each word stays within its 32 bits.

#ifndef GRADPLANE_INCEPTIONN_P4
#define GRADPLANE_INCEPTIONN_P4

#include "marked_packets.p4"

const bit<16> BURST = 8;
const bit<8> EXPONENT_OF_ONE = 127;

typedef bit<256> words_t;

// A 1 in each word; times x: x in each word.
const words_t EACH = 0x0000000100000001000000010000000100000001000000010000000100000001;

const words_t EXPONENT = EACH * 0xFF;
const words_t SIGN = EACH * 0x80000000;
const words_t FRACTION = EACH * 0x007FFFFF;
const words_t HIDDEN = EACH * 0x00800000;

// Computes a value once. p4c puts the expression that a variable was given in place of all its uses,
// but not where the variable is computed from itself.
#define ONCE(variable, value) variable = variable ^ (variable ^ (value));

words_t in_each(in bit<32> x) {
    bit<64> two = x ++ x;
    bit<128> four = two ++ two;
    return four ++ four;
}

bool known_bound(in bit<8> bound) {
    return bound == 6 || bound == 8 || bound == 10;
}

// What the arithmetic needs of a bound, in each word.
struct limits_t {
    words_t to_two;     // 256 - middle: added to an exponent of class 2 or 3, it carries into bit 8
    words_t to_one;     // 256 - low: the same for class 1, 2 or 3
    words_t top;        // middle - 1: the exponent of class 1's highest bit
    words_t rise;       // 126, the exponent of class 2's highest bit, is as much greater
}

limits_t limits_of(in bit<8> bound) {
    limits_t limits;
    bit<32> low = (bit<32>) (EXPONENT_OF_ONE - bound);
    bit<32> middle = low + (bit<32>) ((bound + 1) >> 1);
    limits.to_two = in_each(256 - middle);
    limits.to_one = in_each(256 - low);
    limits.top = in_each(middle - 1);
    limits.rise = in_each((bit<32>) EXPONENT_OF_ONE - middle);
    return limits;
}

// The classes of eight words: 1 in each word whose class is at least 1, 2, 3.
struct classes_t {
    words_t one;
    words_t two;
    words_t three;
}

classes_t classes_of(in words_t values, in limits_t limits) {
    classes_t classes;
    words_t exponents = (values >> 23) & EXPONENT;
    classes.one = ((exponents + limits.to_one) >> 8) & EACH;
    classes.two = ((exponents + limits.to_two) >> 8) & EACH;
    classes.three = ((exponents + EACH * (256 - 127)) >> 8) & EACH;
    return classes;
}

// The bytes of each word's vector: 0, 1, 2, 4.
words_t bytes_of(in classes_t classes) {
    return classes.one + classes.two + (classes.three << 1);
}

// The sum of eight words.
bit<32> sum_of(in words_t words) {
    bit<128> four = words[255:128] + words[127:0];
    bit<64> two = four[127:64] + four[63:0];
    return two[63:32] + two[31:0];
}

// All bits of the words that have a 1: below, a word's 1 is moved up and the 1 is taken away.
words_t filled(in words_t ones) {
    return (ones << 32) - ones;
}

// The bits that a vector has of each word: 0, the highest 8, 16, or all 32.
words_t kept_of(in classes_t classes) {
    return ((classes.one << 32) - (classes.one << 24)) | ((classes.two << 24) - (classes.two << 16))
        | ((classes.three << 16) - classes.three);
}

// The exponent of the highest magnitude bit in each word's vector.
words_t tops_of(in classes_t classes, in limits_t limits) {
    return limits.top + (((classes.two << 8) - classes.two) & limits.rise);
}

// Tags from their words to a tag vector: neighbours, then pairs, then fours move together.
bit<16> packed_tags(in classes_t classes) {
    words_t tags = (classes.one + classes.two + classes.three) << 14;
    tags = tags | (tags >> 34);
    tags = tags | (tags >> 68);
    tags = tags | (tags >> 136);
    return tags[15:0];
}

classes_t classes_of_tags(in bit<16> vector) {
    classes_t classes;
    words_t tags = (words_t) vector;
    tags = (tags | (tags << 136)) & (words_t) 0xFF000000000000000000000000000000FF00;
    tags = (tags | (tags << 68)) & (words_t) 0xF000000000000000F000000000000000F000000000000000F000;
    tags = (tags | (tags << 34)) & (EACH * 0xC000);
    classes.two = (tags >> 15) & EACH;
    words_t low = (tags >> 14) & EACH;
    classes.one = classes.two | low;
    classes.three = classes.two & low;
    return classes;
}

// The bytes of a burst's vectors, from its tags: the sum of the tags, and another 1 for each 3.
bit<8> bytes_of_tags(in bit<16> tags) {
    bit<16> sum = (tags & 0x3333) + ((tags >> 2) & 0x3333) + (tags & (tags >> 1) & 0x1111)
        + ((tags >> 2) & (tags >> 3) & 0x1111);
    sum = (sum & 0x0F0F) + ((sum >> 4) & 0x0F0F);
    return sum[7:0] + sum[15:8];
}

// Half of the bits of some words, where `ones` has a 1, shifted right.
#define SHIFTED_RIGHT(words, ones, places) \
    mask = ((ones) << 31) - (ones); \
    words = (words & ~mask) | ((words >> places) & mask & (EACH * (0x7FFFFFFF >> places)));

// The magnitudes of eight words, shifted to where their classes' vectors have them: classes 1 and 2 by
// at most 4. Statements, as each step is computed from the one before: see ONCE.
#define SHIFTED(magnitudes, places, values, classes, limits) \
    words_t mask; \
    ONCE(places, (tops_of(classes, limits) | (EACH << 8)) - ((values >> 23) & EXPONENT)) \
    ONCE(magnitudes, ((values & FRACTION) | HIDDEN) << 7) \
    SHIFTED_RIGHT(magnitudes, places & EACH, 1) \
    SHIFTED_RIGHT(magnitudes, (places >> 1) & EACH, 2) \
    SHIFTED_RIGHT(magnitudes, (places >> 2) & EACH, 4)

// Each word's vector, in the word's highest bits; zeros below.
words_t vectors_of(in words_t values, in words_t magnitudes, in classes_t classes) {
    words_t mask = filled(classes.three);
    return ((values & mask) | (((values & SIGN) | magnitudes) & ~mask)) & kept_of(classes);
}

// Where the highest `width` of 31 magnitude bits are all 0, shifted left by as many.
#define SHIFTED_LEFT(words, exponents, width) \
    zero = EACH ^ ((((words & (EACH * (0x80000000 - (1 << (31 - width))))) + EACH * 0x7FFFFFFF) >> 31) & EACH); \
    mask = (zero << 31) - zero; \
    words = (words & ~mask) | ((words << width) & mask & (EACH * 0x7FFF0000)); \
    exponents = exponents - zero * width;

// The magnitudes of such vectors, for which the highest one of 15 bits must be the highest bit, and
// the exponents of that bit. Statements, as each step is computed from the one before: see ONCE.
#define NORMALISED(magnitudes, exponents, vectors, classes, limits) \
    words_t mask; \
    words_t zero; \
    ONCE(magnitudes, vectors & (EACH * 0x7FFF0000)) \
    ONCE(exponents, tops_of(classes, limits)) \
    SHIFTED_LEFT(magnitudes, exponents, 8) \
    SHIFTED_LEFT(magnitudes, exponents, 4) \
    SHIFTED_LEFT(magnitudes, exponents, 2) \
    SHIFTED_LEFT(magnitudes, exponents, 1)

// The float32 of such vectors: the highest magnitude bit becomes the hidden bit.
words_t values_of(in words_t vectors, in words_t magnitudes, in words_t exponents,
                  in classes_t classes) {
    words_t ones = (magnitudes >> 30) & EACH;       // no magnitude, no exponent
    words_t mask = filled(classes.three);
    return (vectors & mask) | (~mask & ((vectors & SIGN)
        | ((exponents & ((ones << 8) - ones)) << 23) | ((magnitudes & (EACH * 0x3FFF0000)) >> 7)));
}

// The vectors of eight words one after the other, from the highest bits on, in three steps: in pairs,
words_t paired(in words_t vectors, in words_t bytes) {
    words_t bits = bytes << 3;
    bit<64> a = (vectors[255:224] ++ 32w0) | ((vectors[223:192] ++ 32w0) >> bits[231:224]);
    bit<64> b = (vectors[191:160] ++ 32w0) | ((vectors[159:128] ++ 32w0) >> bits[167:160]);
    bit<64> c = (vectors[127:96] ++ 32w0) | ((vectors[95:64] ++ 32w0) >> bits[103:96]);
    bit<64> d = (vectors[63:32] ++ 32w0) | ((vectors[31:0] ++ 32w0) >> bits[39:32]);
    return a ++ b ++ c ++ d;
}

// in fours,
words_t in_fours(in words_t pairs, in words_t bytes) {
    words_t bits = bytes << 3;
    bit<8> bits_a = bits[231:224] + bits[199:192];
    bit<8> bits_c = bits[103:96] + bits[71:64];
    bit<64> b = pairs[191:128];
    bit<64> d = pairs[63:0];
    return ((pairs[255:192] | (b >> bits_a)) ++ (b << (64 - bits_a)))
        ++ ((pairs[127:64] | (d >> bits_c)) ++ (d << (64 - bits_c)));
}

// and all eight.
words_t joined(in words_t fours, in words_t bytes) {
    words_t bits = bytes << 3;
    bit<8> before = bits[231:224] + bits[199:192] + bits[167:160] + bits[135:128];
    bit<128> cd = fours[127:0];
    return (fours[255:128] | (cd >> before)) ++ (cd << (128 - before));
}

// The reverse, in three steps: first the last four words to the lower half.
words_t halved(in words_t vectors, in words_t bytes) {
    words_t bits = bytes << 3;
    bit<8> before = bits[231:224] + bits[199:192] + bits[167:160] + bits[135:128];
    return vectors[255:128] ++ ((vectors[255:128] << before) | (vectors[127:0] >> (128 - before)));
}

// Then the last two of each four to the lower half of that half.
words_t quartered(in words_t halves, in words_t bytes) {
    words_t bits = bytes << 3;
    bit<8> bits_a = bits[231:224] + bits[199:192];
    bit<8> bits_c = bits[103:96] + bits[71:64];
    bit<64> a = halves[255:192];
    bit<64> c = halves[127:64];
    return a ++ ((a << bits_a) | (halves[191:128] >> (64 - bits_a)))
        ++ c ++ ((c << bits_c) | (halves[63:0] >> (64 - bits_c)));
}

// Then each word to its place; bits below a word's vector are others'.
words_t parted(in words_t quarters, in words_t bytes) {
    words_t bits = bytes << 3;
    bit<64> a = quarters[255:192];
    bit<64> b = quarters[191:128];
    bit<64> c = quarters[127:64];
    bit<64> d = quarters[63:0];
    return a[63:32] ++ (a << bits[231:224])[63:32] ++ b[63:32] ++ (b << bits[167:160])[63:32]
        ++ c[63:32] ++ (c << bits[103:96])[63:32] ++ d[63:32] ++ (d << bits[39:32])[63:32];
}

// Every word with its bytes in reverse order.
words_t reversed(in words_t words) {
    words_t pairs = ((words >> 8) & (EACH * 0x00FF00FF)) | ((words & (EACH * 0x00FF00FF)) << 8);
    return ((pairs >> 16) & (EACH * 0x0000FFFF)) | ((pairs & (EACH * 0x0000FFFF)) << 16);
}

#endif
