// switch on numbers, enums, errors and booleans; fall through to the next body; default.
#include "../first.p4h"
enum Colour { Red, Green, Blue }
enum bit<8> Kind { One = 1, Two = 2, Many = 0x80 }
struct headers_t { data_t d; }
#define HAS_INGRESS
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        switch (h.d.op) {
            0:
            1: { h.d.y = 1; }
            2: { }
            0x10 - 1: { h.d.y = 15; }
            default: { h.d.y = 0xdd; }
        }
        Colour c = Colour.Blue;
        if (h.d.x == 0) { c = Colour.Red; }
        switch (c) { Colour.Red: { h.d.z = 1; } Colour.Green: { h.d.z = 2; } default: { h.d.z = 3; } }
        switch ((Kind)h.d.x) { Kind.One: { h.d.w = 1; } Kind.Many: { h.d.w = 0x80; } default: { h.d.w = 0xff; } }
        switch (s.parser_error) { error.NoError: { h.d.w[15:8] = 1; } default: { h.d.w[15:8] = 2; } }
        switch (h.d.op + h.d.x) { 8w5: { h.d.w[15:8] = 5; } }
    }
}
#include "../rest.p4h"
