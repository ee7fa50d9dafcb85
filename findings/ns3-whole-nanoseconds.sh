#!/usr/bin/env bash
# ns-3 gives a frame of 64 bytes 1 ns on a 400 Gbit/s link, and one of a byte no time at all.
#
# Versions:  ns-3 3.37 from Debian 12 (libns3-dev 3.37-2).
# Expected:  64 bytes at 400 Gbit/s take 1.28 ns, and what does not fit the clock's resolution is carried
#            over to the next frame, or kept in the femtoseconds that Time can print.
# Seen:      Each frame's time is rounded to the nearest whole nanosecond, the default resolution:
#            1 ns (28 % too fast) at 400 Gbit/s, 5 ns instead of 5.12 at 100 Gbit/s, 51 instead of 51.2
#            at 10 Gbit/s. Nothing is carried over: a stream of such frames runs at 512 Gbit/s.
# Matters:   Small control packets (notices, acknowledgements, norms) on fast links; a link that carries
#            more than its rate never builds the queue that is studied.
# Source:    ns-3's manual on Time (integer, resolution 1 ns unless set) and DataRate in its API pages.
set -euo pipefail
version=$(dpkg-query -W -f '${Version}' libns3-dev 2>/dev/null) ||
  { echo "needs Debian's packages libns3-dev and g++"; exit 2; }
echo "libns3-dev $version"
[[ $version == 3.37-* ]] || { echo "this was seen with 3.37"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/finding.cc" <<'CC'
#include "ns3/core-module.h"
#include "ns3/data-rate.h"
#include <iostream>
using namespace ns3;
int main() {
  for (auto rate : {"10Gbps", "100Gbps", "400Gbps"})
    for (int bytes : {1, 64, 1500}) {
      auto time = DataRate(rate).CalculateBytesTxTime(bytes);
      std::cout << rate << ", " << bytes << " bytes: " << time.GetFemtoSeconds() << " fs\n";
    }
}
CC
g++ -std=c++17 -o "$work/finding" "$work/finding.cc" -lns3-core -lns3-network
"$work/finding" | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
10Gbps, 1 bytes: 1000000 fs
10Gbps, 64 bytes: 51000000 fs
10Gbps, 1500 bytes: 1200000000 fs
100Gbps, 1 bytes: 0 fs
100Gbps, 64 bytes: 5000000 fs
100Gbps, 1500 bytes: 120000000 fs
400Gbps, 1 bytes: 0 fs
400Gbps, 64 bytes: 1000000 fs
400Gbps, 1500 bytes: 30000000 fs
TXT
