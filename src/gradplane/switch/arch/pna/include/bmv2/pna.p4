// The Portable NIC Architecture of version 0.7, under the name that p4c keeps it by for BMv2's pna_nic:
// without the pre control, directions and loops.
#define PNA_WITHOUT_DIRECTIONS
#include <pna.p4>
