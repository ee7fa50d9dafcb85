// The Portable Switch Architecture under the name that p4c keeps it by for DPDK: counters may be given
// the bytes to count.
#define PSA_COUNTS_GIVEN_BYTES
#include <psa.p4>
