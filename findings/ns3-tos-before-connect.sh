#!/usr/bin/env bash
# In ns-3 the ToS of a UDP socket is lost if it is set before Connect.
#
# Versions:  ns-3 3.37 from Debian 12 (libns3-dev 3.37-2).
# Expected:  As with IP_TOS on a socket of an operating system, SetIpTos holds for all packets from then
#            on, whether the socket is connected before or after it.
# Seen:      SetIpTos(43), then Connect: packets carry ToS 0. Connect, then SetIpTos(43): 43. Connect
#            takes over the ToS of the address that it is given, and a fresh InetSocketAddress has 0.
# Matters:   A flow that is meant to be ECN-capable is dropped by RED and CoDel, never marked, and one
#            that is meant for a priority band is not in it; nothing says so.
# Source:    ns-3's API pages: Socket::SetIpTos, InetSocketAddress::SetTos.
set -euo pipefail
version=$(dpkg-query -W -f '${Version}' libns3-dev 2>/dev/null) ||
  { echo "needs Debian's packages libns3-dev and g++"; exit 2; }
echo "libns3-dev $version"
[[ $version == 3.37-* ]] || { echo "this was seen with 3.37"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/finding.cc" <<'CC'
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <iostream>
using namespace ns3;
static int tos;
static void Arrived(Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t) {
  Ipv4Header header;
  packet->Copy()->RemoveHeader(header);
  tos = header.GetTos();
}
int main(int, char** arguments) {
  bool before = arguments[1] == std::string("before");
  NodeContainer nodes(2);
  auto devices = PointToPointHelper().Install(nodes);
  InternetStackHelper().Install(nodes);
  auto interfaces = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
  nodes.Get(1)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("Rx", MakeCallback(&Arrived));
  auto socket = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
  if (before) socket->SetIpTos(43);
  socket->Connect(InetSocketAddress(interfaces.GetAddress(1), 9));
  if (!before) socket->SetIpTos(43);
  Simulator::Schedule(Seconds(1), [=] { socket->Send(Create<Packet>(10)); });
  Simulator::Stop(Seconds(10));
  Simulator::Run();
  std::cout << "SetIpTos(43) " << arguments[1] << " Connect: ToS " << tos << "\n";
}
CC
g++ -std=c++17 -I/usr/include/libxml2 -o "$work/finding" "$work/finding.cc" -lns3-core -lns3-network \
  -lns3-internet -lns3-point-to-point -lns3-traffic-control
{ "$work/finding" before; "$work/finding" after; } | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
SetIpTos(43) before Connect: ToS 0
SetIpTos(43) after Connect: ToS 43
TXT
