#!/usr/bin/env bash
# ns-3's RateErrorModel with ErrorRate 0.01 loses every packet of 1000 bytes; its RED drops despite ECN.
#
# Versions:  ns-3 3.37 from Debian 12 (libns3-dev 3.37-2).
# Expected:  (1) A loss rate of 1 % loses 1 packet in 100, as in netem or Mininet. (2) RED with UseEcn
#            marks ECN-capable packets while the queue has room, as Linux's `red ecn` does, which drops
#            instead only if `harddrop` is given.
# Seen:      (1) 0 of 1000 packets arrive: the rate counts per byte unless ErrorUnit is set. With
#            ERROR_UNIT_PACKET 992 do. (2) UseHardDrop is true unless set: above the upper threshold
#            ECN-capable packets are dropped (28 of 60, in a queue of 100 packets that holds 30 at most).
#            With UseHardDrop = false all 60 arrive, 34 marked.
# Matters:   Both are defaults that turn the meaning of a familiar option round, so that a scenario that
#            was taken over from tc or Mininet is another one.
# Source:    ns-3's API pages of RateErrorModel and RedQueueDisc; tc-red's manual page.
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
static int received, marked;
static void Arrived(Ptr<const Packet> packet, Ptr<Ipv4>, uint32_t) {
  Ipv4Header header;
  packet->Copy()->RemoveHeader(header);
  received++;
  marked += header.GetEcn() == Ipv4Header::ECN_CE;
}
int main(int, char** arguments) {
  std::string what = arguments[1];
  NodeContainer nodes(2);
  PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
  link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
  auto devices = link.Install(nodes);
  InternetStackHelper().Install(nodes);
  TrafficControlHelper control;
  control.SetRootQueueDisc("ns3::RedQueueDisc", "UseEcn", BooleanValue(true), "QW", DoubleValue(1),
                           "MinTh", DoubleValue(5), "MaxTh", DoubleValue(15), "MaxSize",
                           StringValue("100p"), "LinkBandwidth", StringValue("10Mbps"));
  auto disc = control.Install(devices.Get(0)).Get(0);
  if (what == "mark") disc->SetAttribute("UseHardDrop", BooleanValue(false));
  if (what == "byte" || what == "packet") {
    auto errors = CreateObject<RateErrorModel>();
    errors->SetAttribute("ErrorRate", DoubleValue(0.01));
    if (what == "packet") errors->SetAttribute("ErrorUnit", StringValue("ERROR_UNIT_PACKET"));
    devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
  }
  auto interfaces = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
  nodes.Get(1)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("Rx", MakeCallback(&Arrived));
  auto socket = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
  socket->Connect(InetSocketAddress(interfaces.GetAddress(1), 9));
  socket->SetIpTos(2);  // ECT(0)
  bool burst = what == "drop" || what == "mark";
  int count = burst ? 60 : 1000;
  for (int i = 0; i < count; i++)
    Simulator::Schedule(Seconds(burst ? 1 : 1 + i * 0.002),
                        [=] { socket->Send(Create<Packet>(1000)); });
  Simulator::Stop(Seconds(10));
  Simulator::Run();
  std::cout << what << ": received " << received << " of " << count << ", marked " << marked << "\n";
}
CC
g++ -std=c++17 -I/usr/include/libxml2 -o "$work/finding" "$work/finding.cc" -lns3-core -lns3-network \
  -lns3-internet -lns3-point-to-point -lns3-traffic-control
for what in byte packet drop mark; do "$work/finding" "$what"; done | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
byte: received 0 of 1000, marked 0
packet: received 992 of 1000, marked 0
drop: received 32 of 60, marked 6
mark: received 60 of 60, marked 34
TXT
