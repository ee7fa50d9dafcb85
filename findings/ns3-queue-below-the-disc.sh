#!/usr/bin/env bash
# In ns-3 a queue disc sees no queue until 100 packets wait below it, where nothing is marked or dropped.
#
# Versions:  ns-3 3.37 from Debian 12 (libns3-dev 3.37-2).
# Expected:  RED with thresholds of 5 and 15 packets, weight 1 and ECN marks a burst of 100 packets that
#            meets an idle link: nearly all of them find more than 5 before them.
# Seen:      Not one mark, and never more in the disc than the packet that passes through: the device
#            has a drop-tail queue of 100 packets of its own, and takes from the disc whatever fits. With
#            a device queue of one packet the same burst has 6 marks and 68 drops: 32 get through.
# Matters:   The queue of an experiment is 100 packets longer than the disc's limit says, and marking
#            starts 100 packets late. SetQueue(..., "MaxSize", "1p") or the helper's byte limits
#            (DynamicQueueLimits) give the disc its queue back.
# Source:    ns-3's model library, traffic control layer and point-to-point helper.
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
static uint32_t waiting;
static void Waiting(uint32_t, uint32_t now) { waiting = std::max(waiting, now); }
int main(int, char** arguments) {
  NodeContainer nodes(2);
  PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
  if (arguments[1] != std::string("default"))
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(arguments[1]));
  auto devices = link.Install(nodes);
  InternetStackHelper().Install(nodes);
  TrafficControlHelper control;
  control.SetRootQueueDisc("ns3::RedQueueDisc", "UseEcn", BooleanValue(true), "QW", DoubleValue(1),
                           "MinTh", DoubleValue(5), "MaxTh", DoubleValue(15), "MaxSize",
                           StringValue("100p"), "LinkBandwidth", StringValue("10Mbps"));
  auto disc = control.Install(devices.Get(0)).Get(0);
  disc->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&Waiting));
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
  auto interfaces = addresses.Assign(devices);
  nodes.Get(1)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("Rx", MakeCallback(&Arrived));
  auto socket = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
  socket->Connect(InetSocketAddress(interfaces.GetAddress(1), 9));
  socket->SetIpTos(2);  // ECT(0)
  for (int i = 0; i < 100; i++)
    Simulator::Schedule(Seconds(1), [=] { socket->Send(Create<Packet>(1000)); });
  Simulator::Stop(Seconds(10));
  Simulator::Run();
  std::cout << "device queue " << arguments[1] << ": received " << received << ", marked " << marked
            << ", most in the disc " << waiting << "\n";
}
CC
g++ -std=c++17 -I/usr/include/libxml2 -o "$work/finding" "$work/finding.cc" -lns3-core -lns3-network \
  -lns3-internet -lns3-point-to-point -lns3-traffic-control
{ "$work/finding" default; "$work/finding" 1p; } | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
device queue default: received 100, marked 0, most in the disc 1
device queue 1p: received 32, marked 6, most in the disc 30
TXT
