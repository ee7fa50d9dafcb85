// The name under which p4c keeps the PSA of BMv2's psa_switch.
#include <psa.p4>
