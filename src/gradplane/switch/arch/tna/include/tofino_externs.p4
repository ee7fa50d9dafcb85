// Externs but registers.

#ifndef _GRADPLANE_TOFINO_EXTERNS_P4_
#define _GRADPLANE_TOFINO_EXTERNS_P4_

#include "tofino_numbers.p4"

// -- functions ----------------------------------------------------------------------------------

@pure extern T max<T>(in T t1, in T t2);
@pure extern T min<T>(in T t1, in T t2);

// The lower half of (src1 ++ src2) >> shift_amount.
#if __TARGET_TOFINO__ == 2
extern void funnel_shift_right<T>(out T dst, in T src1, in T src2, int shift_amount);
#else
extern void funnel_shift_right<T>(inout T dst, in T src1, in T src2, int shift_amount);
#endif

// Take back a value given to the chip, such as a port.
extern void invalidate<T>(in T field);
extern bool is_validated<T>(in T field);

// Read a T from the port's metadata and pass over the rest of it.
extern T port_metadata_unpack<T>(packet_in pkt);

@pure extern bit<32> sizeInBits<H>(in H h);
@pure extern bit<32> sizeInBytes<H>(in H h);

// -- parsers ------------------------------------------------------------------------------------

// The ones' complement sum of 16-bit words.
extern Checksum {
    Checksum();
    // In a parser; state lasts for one packet.
    void add<T>(in T data);
    void subtract<T>(in T data);
    bool verify();          // true for a wrong sum
    bit<16> get();
    // residual: the sum, without any header extracted after the call.
    void subtract_all_and_deposit<T>(out T residual);
    // In a deparser: the checksum of the data.
    bit<16> update<T>(in T data, @optional in bool zeros_as_ones);
}

// A signed number of eight bits.
extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    // ((field rotated right) & mask) + add; field is at most max. On Tofino 1 the mask is given as
    // the number of its highest bit.
#if __TARGET_TOFINO__ == 2
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add);
    void push<T>(in T value, @optional bool update_with_top);
    void push<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add,
                 @optional bool update_with_top);
    void pop();
#else
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<3> mask, in bit<8> add);
#endif
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}

extern ParserPriority {
    ParserPriority();
    void set(in bit<3> prio);
}

// -- hashes, random numbers ---------------------------------------------------------------------

extern CRCPolynomial<T> {
    CRCPolynomial(T coeff, bool reversed, bool msb, bool extended, T init, T xor);
}

extern Hash<W> {
    Hash(HashAlgorithm_t algo);
    Hash(HashAlgorithm_t algo, CRCPolynomial<_> poly);
    @pure W get<D>(in D data);
}

extern Random<W> {
    Random();
    W get();
}

// -- counters, meters ---------------------------------------------------------------------------

// Bytes are the packet's on the wire, with the frame check sequence, less adjust_byte_count.

#if __TARGET_TOFINO__ == 2
#define TRUE_EGRESS_ACCOUNTING , @optional bool true_egress_accounting
#else
#define TRUE_EGRESS_ACCOUNTING
#endif

@noWarn("unused")
extern Counter<W, I> {
    Counter(bit<32> size, CounterType_t type TRUE_EGRESS_ACCOUNTING);
    void count(in I index, @optional in bit<32> adjust_byte_count);
}

@noWarn("unused")
extern DirectCounter<W> {
    DirectCounter(CounterType_t type TRUE_EGRESS_ACCOUNTING);
    void count(@optional in bit<32> adjust_byte_count);
}

// red, yellow, green: what `execute` gives for each colour, in place of MeterColor_t's numbers.
extern Meter<I> {
    Meter(bit<32> size, MeterType_t type TRUE_EGRESS_ACCOUNTING);
    Meter(bit<32> size, MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green
          TRUE_EGRESS_ACCOUNTING);
    bit<8> execute(in I index, in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectMeter {
    DirectMeter(MeterType_t type TRUE_EGRESS_ACCOUNTING);
    DirectMeter(MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green TRUE_EGRESS_ACCOUNTING);
    bit<8> execute(in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(@optional in bit<32> adjust_byte_count);
}

#undef TRUE_EGRESS_ACCOUNTING

// A low-pass filter: a running average or rate.
extern Lpf<T, I> {
    Lpf(bit<32> size);
    T execute(in T val, in I index);
}

extern DirectLpf<T> {
    DirectLpf();
    T execute(in T val);
}

// Weighted random early detection.
extern Wred<T, I> {
    Wred(bit<32> size, bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val, in I index);
}

extern DirectWred<T> {
    DirectWred(bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val);
}

// -- tables -------------------------------------------------------------------------------------

extern ActionProfile {
    ActionProfile(bit<32> size);
}

// Algorithmic TCAM and algorithmic longest prefix match.
extern Atcam {
    Atcam(@optional bit<32> number_partitions);
}

extern Alpm {
    Alpm(@optional bit<32> number_partitions, @optional bit<32> subtrees_per_partition,
         @optional bit<32> atcam_subset_width, @optional bit<32> shift_granularity);
}

#if __TARGET_TOFINO__ == 2
extern IdleTimeout {
    IdleTimeout();
}
#endif

// -- deparsers ----------------------------------------------------------------------------------

// One constructed with a number acts when the metadata's field of the type has this number.

extern Mirror {
    Mirror();
    Mirror(MirrorType_t mirror_type);
    void emit(in MirrorId_t session_id);
    void emit<T>(in MirrorId_t session_id, in T hdr);
}

extern Resubmit {
    Resubmit();
    Resubmit(ResubmitType_t resubmit_type);
    void emit();
    void emit<T>(in T hdr);
}

extern Digest<T> {
    Digest();
    Digest(DigestType_t digest_type);
    void pack(in T data);
}

#if __TARGET_TOFINO__ == 2
extern Pktgen {
    Pktgen();
    void emit<T>(in T hdr);
}
#endif

#endif
