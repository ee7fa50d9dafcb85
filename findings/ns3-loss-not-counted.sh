#!/usr/bin/env bash
# ns-3's FlowMonitor and UdpServer count no loss where half of a flow was lost two seconds ago.
#
# Versions:  ns-3 3.37 from Debian 12 (libns3-dev 3.37-2).
# Expected:  lostPackets of a flow whose 1000 packets were sent, of which 500 arrived, is 500 after CheckForLostPackets();
#            UdpServer::GetLost says the same, as the packets are numbered.
# Seen:      FlowMonitor has 0 until ten seconds after a packet was last seen (MaxPerHopDelay), so in every simulation that
#            ends earlier, where the loss has no trace of its own (an error model at the receiver). UdpServer finds gaps
#            when packets arrive that are 32 later: of a flow whose second half is lost it counts 0 for ever, and 0 of 29
#            lost before the last packet, which arrives.
# Matters:   Loss rates of short simulations are 0 without a warning. Use txPackets - rxPackets after the flow has ended, or
#            CheckForLostPackets(Seconds(1)).
# Source:    ns-3's API pages: FlowMonitor (MaxPerHopDelay), PacketLossCounter.
set -euo pipefail
version=$(dpkg-query -W -f '${Version}' libns3-dev 2>/dev/null) ||
  { echo "needs Debian's packages libns3-dev and g++"; exit 2; }
echo "libns3-dev $version"
[[ $version == 3.37-* ]] || { echo "this was seen with 3.37"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/finding.cc" <<'CC'
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/flow-monitor-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include <iostream>
using namespace ns3;
int main(int, char** arguments) {
  uint32_t first = std::stoi(arguments[1]), last = std::stoi(arguments[2]); // that are lost, of 1000
  double end = std::stod(arguments[3]);
  NodeContainer nodes(2);
  PointToPointHelper link;
  link.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
  auto devices = link.Install(nodes);
  InternetStackHelper().Install(nodes);
  auto interfaces = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
  auto errors = CreateObject<ReceiveListErrorModel>();
  std::list<uint32_t> lost;
  for (uint32_t index = first; index <= last; index++) lost.push_back(index);
  errors->SetList(lost);
  devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
  auto servers = UdpServerHelper(9).Install(nodes.Get(1));
  UdpClientHelper client(interfaces.GetAddress(1), 9);
  client.SetAttribute("MaxPackets", UintegerValue(1000));
  client.SetAttribute("Interval", TimeValue(MilliSeconds(1)));
  client.SetAttribute("PacketSize", UintegerValue(1000));
  client.Install(nodes.Get(0)).Start(Seconds(1));
  FlowMonitorHelper helper;
  auto monitor = helper.InstallAll();
  Simulator::Stop(Seconds(end));
  Simulator::Run();
  monitor->CheckForLostPackets();
  const auto& flow = monitor->GetFlowStats().at(1);
  auto server = DynamicCast<UdpServer>(servers.Get(0));
  std::cout << "lost " << first << " to " << last << ", end at " << end << " s: received " << flow.rxPackets << " of "
            << flow.txPackets << ", FlowMonitor's lostPackets " << flow.lostPackets << ", UdpServer's GetLost "
            << server->GetLost();
  monitor->CheckForLostPackets(Seconds(1));
  std::cout << ", with 1 s " << monitor->GetFlowStats().at(1).lostPackets << "\n";
}
CC
g++ -std=c++17 -I/usr/include/libxml2 -o "$work/finding" "$work/finding.cc" -lns3-core -lns3-network \
  -lns3-internet -lns3-point-to-point -lns3-applications -lns3-flow-monitor
for case in "500 999 4" "500 999 13" "250 749 4" "970 998 4"; do
  # shellcheck disable=SC2086 # three numbers
  "$work/finding" $case
done | tee "$work/seen"
diff - "$work/seen" <<'TXT' && echo "as described"
lost 500 to 999, end at 4 s: received 500 of 1000, FlowMonitor's lostPackets 0, UdpServer's GetLost 0, with 1 s 500
lost 500 to 999, end at 13 s: received 500 of 1000, FlowMonitor's lostPackets 500, UdpServer's GetLost 0, with 1 s 500
lost 250 to 749, end at 4 s: received 500 of 1000, FlowMonitor's lostPackets 0, UdpServer's GetLost 500, with 1 s 500
lost 970 to 998, end at 4 s: received 971 of 1000, FlowMonitor's lostPackets 0, UdpServer's GetLost 0, with 1 s 29
TXT
