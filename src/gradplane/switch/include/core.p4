// The core library of P4_16, as the language specification (1.2.5, appendix B) defines it.

#ifndef _CORE_P4_
#define _CORE_P4_

error {
    NoError,
    PacketTooShort,         // extract, lookahead or advance past the packet's end
    NoMatch,                // no case of a select fits
    StackOutOfBounds,       // an element outside a header stack
    HeaderTooShort,         // more bits than a varbit field can hold
    ParserTimeout,
    ParserInvalidArgument   // an argument a packet_in method cannot work with
}

extern packet_in {
    // A header of fixed size.
    void extract<T>(out T hdr);
    // A header with one varbit field, whose size is given in bits.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    // The next bits, left where they are.
    T lookahead<T>();
    // Skip bits.
    void advance(in bit<32> sizeInBits);
    // Bytes in the packet.
    bit<32> length();
}

extern packet_out {
    // A header (if valid), or each one in a stack, union or struct.
    void emit<T>(in T hdr);
}

// In a parser: go to reject with this error unless `check` holds.
extern void verify(in bool check, in error toSignal);

@noWarn("unused")
action NoAction() {}

match_kind {
    exact,
    ternary,
    lpm
}

// Compile-time checks. The result is always true, so that a global constant can hold it.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
