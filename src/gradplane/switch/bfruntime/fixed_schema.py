"""The tables that every program has: ports, the packet replication engine, mirror sessions, ...

Names, numbers, types and defaults are those of the chip's driver, in the notation of
`schema.parse_tables`.
"""

from __future__ import annotations

from gradplane.switch.bfruntime.schema import choices

_PRE = """
table $pre.mgid PreMgid 4278321153 65536
attribute pre_device_config
key 1 $MGID uint16
data 1 $MULTICAST_NODE_ID uint32*
data 2 $MULTICAST_NODE_L1_XID_VALID bool*
data 3 $MULTICAST_NODE_L1_XID uint16*
data 4 $MULTICAST_ECMP_ID uint32*
data 5 $MULTICAST_ECMP_L1_XID_VALID bool*
data 6 $MULTICAST_ECMP_L1_XID uint16*
table $pre.node PreNode 4278321154 16777216
key 1 $MULTICAST_NODE_ID uint32
data 1 $MULTICAST_RID uint16!
data 2 $MULTICAST_LAG_ID uint8*!
data 3 $DEV_PORT uint32*!@
table $pre.ecmp PreEcmp 4278321155 16777216
key 1 $MULTICAST_ECMP_ID uint32
data 1 $MULTICAST_NODE_ID uint32*!
table $pre.lag PreLag 4278321156 {lags}
key 1 $MULTICAST_LAG_ID uint8
data 1 $DEV_PORT uint32*@
data 2 $MULTICAST_LAG_REMOTE_MSB_COUNT uint32~0
data 3 $MULTICAST_LAG_REMOTE_LSB_COUNT uint32~0
table $pre.prune PrePrune 4278321157 288
key 1 $MULTICAST_L2_XID uint16
data 1 $DEV_PORT uint32*!@
table $pre.port PrePort 4278321158 288
key 1 $DEV_PORT uint32@
data 1 $MULTICAST_BACKUP_PORT uint32@
data 2 $MULTICAST_FORWARD_STATE bool
data 3 $MULTICAST_CLEAR_FAST_FAILOVER bool
data 4 $COPY_TO_CPU_PORT_ENABLE bool
"""

PRE_TF1, PRE_TF2 = _PRE.format(lags=255), _PRE.format(lags=256)

_SESSION = """
data {} $direction string:INGRESS,EGRESS,BOTH
data {} $ucast_egress_port uint32
data {} $ucast_egress_port_valid bool
data {} $egress_port_queue uint32
data {} $ingress_cos uint32
data {} $packet_color string:GREEN,YELLOW,RED
data {} $level1_mcast_hash uint32
data {} $level2_mcast_hash uint32
data {} $mcast_grp_a uint16
data {} $mcast_grp_a_valid bool
data {} $mcast_grp_b uint16
data {} $mcast_grp_b_valid bool
data {} $mcast_l1_xid uint16
data {} $mcast_l2_xid uint16
data {} $mcast_rid uint16
data {} $icos_for_copy_to_cpu uint32
data {} $copy_to_cpu bool
data {} $max_pkt_len uint16
"""

MIRROR_TF1 = f"""
table $mirror.cfg MirrorCfg 4278452225 1024
key 1 $sid uint16
data 5 $session_enable bool
{_SESSION.format(*range(6, 24))}
action 1 $coalescing
data 1 $internal_header bytes128
data 2 $internal_header_length uint32
data 3 $timeout_usec uint32
data 4 $extract_len uint32
action 2 $normal
"""

MIRROR_TF2 = f"""
table $mirror.cfg MirrorCfg 4278452225 256
key 1 $sid uint16
data 6 $session_enable bool
data 7 $session_priority bool
data 8 $hash_cfg_flag bool
data 9 $hash_cfg_flag_p bool
data 10 $icos_cfg_flag bool
data 11 $dod_cfg_flag bool
data 12 $c2c_cfg_flag bool
data 13 $mc_cfg_flag bool
data 14 $epipe_cfg_flag bool
{_SESSION.format(*range(15, 33))}
action 1 $coalescing
data 1 $internal_header bytes128
data 2 $internal_header_length uint32
data 3 $timeout_usec uint32
data 4 $extract_len uint32
data 5 $session_coal_mode bool
action 2 $normal
"""

_LENGTHS = """
lt_64 eq_64 65_127 128_255 256_511 512_1023 1024_1518 1519_2047 2048_4095 4096_8191 8192_9215 9216
"""
_RECEIVED = """
FramesReceivedOK FramesReceivedAll FramesReceivedwithFCSError FrameswithanyError
OctetsReceivedinGoodFrames OctetsReceived FramesReceivedwithUnicastAddresses
FramesReceivedwithMulticastAddresses FramesReceivedwithBroadcastAddresses
FramesReceivedoftypePAUSE FramesReceivedwithLengthError FramesReceivedUndersized
FramesReceivedOversized FragmentsReceived JabberReceived PriorityPauseFrames CRCErrorStomped
FrameTooLong RxVLANFramesGood FramesDroppedBufferFull
"""
_SENT = """
FramesTransmittedOK FramesTransmittedAll FramesTransmittedwithError OctetsTransmittedwithouterror
OctetsTransmittedTotal FramesTransmittedUnicast FramesTransmittedMulticast
FramesTransmittedBroadcast FramesTransmittedPause FramesTransmittedPriPause FramesTransmittedVLAN
"""
_PRIORITIES = """
Pri{}FramesTransmitted Pri{}FramesReceived TransmitPri{}Pause1USCount ReceivePri{}Pause1USCount
"""
_LAST = """
ReceiveStandardPause1USCount FramesTruncated TimeInSec TimeinNSec TX_PPS RX_PPS TX_RATE RX_RATE
"""

STATISTICS = (
    *_RECEIVED.split(),
    *(f"FramesReceivedLength_{length}" for length in _LENGTHS.split()),
    *_SENT.split(),
    *(f"FramesTransmittedLength_{length}" for length in _LENGTHS.split()),
    *(name.format(i) for name in _PRIORITIES.split() for i in range(8)),
    *_LAST.split(),
)
"""The counters of a port, in the order of their numbers, without the $ of their names."""

_SHOWN = (
    "FramesReceivedOK", "FramesReceivedAll", "FrameswithanyError", "FramesTransmittedwithError",
)  # fmt: skip

_PORT_STATISTICS = "\n".join((
    "table $PORT_STAT PortStat 4278255618 256",
    "attribute poll_intvl_ms",
    "key 1 $DEV_PORT uint32@",
    *(f"data {i} ${name} uint64{'#' * (name in _SHOWN)}~0" for i, name in enumerate(STATISTICS, 1)),
))  # fmt: skip

SPEEDS = "NONE 1G 10G 25G 40G 40G_NB 40G_NON_BREAKABLE 50G 100G 200G 400G"
_FECS = "NONE FIRECODE REED_SOLOMON FC RS"
_LOOPBACKS = "NONE MAC_NEAR MAC_FAR PCS_NEAR SERDES_NEAR SERDES_FAR"

_PORTS = """
table $PORT PortConfigure 4278255617 256
attribute port_status_notif_cb
key 1 $DEV_PORT uint32@
data 1 $SPEED {speeds}
data 2 $FEC {fecs}
data 3 $N_LANES uint32~1
data 4 $PORT_ENABLE bool#~false
data 5 $AUTO_NEGOTIATION string#:PM_AN_DEFAULT,PM_AN_FORCE_ENABLE,PM_AN_FORCE_DISABLE
data 6 $LOOPBACK_MODE {loopbacks}
data 7 $TX_MTU uint32~10240
data 8 $RX_MTU uint32~10240
data 9 $TX_PFC_EN_MAP uint32~0
data 10 $RX_PFC_EN_MAP uint32~0
data 11 $TX_PAUSE_FRAME_EN bool~false
data 12 $RX_PAUSE_FRAME_EN bool~false
data 13 $CUT_THROUGH_EN bool~false
data 14 $PORT_DIR string:PM_PORT_DIR_DEFAULT,PM_PORT_DIR_TX_ONLY,PM_PORT_DIR_RX_ONLY
data 15 $MEDIA_TYPE string-:BF_MEDIA_TYPE_COPPER,BF_MEDIA_TYPE_OPTICAL,BF_MEDIA_TYPE_UNKNOWN
data 16 $SDS_TX_ATTN uint32~0
data 17 $SDS_TX_PRE int32~0
data 18 $SDS_TX_PRE2 int32~0
data 19 $SDS_TX_POST int32~0
data 20 $SDS_TX_POST2 int32~0
data 21 $IS_VALID bool-
data 22 $IS_INTERNAL bool-
data 23 $CONN_ID uint32-#@port_hdl_conn_id
data 24 $CHNL_ID uint32-#@port_hdl_chnl_id
data 25 $PORT_UP bool-#
data 26 $PORT_NAME string-#@port_name
data 27 $RX_PRSR_PRI_THRESH uint32
data 28 $TIMESTAMP_1588_DELTA_TX uint16
{delta_rx}
data 30 $TIMESTAMP_1588_VALID bool-
data 31 $TIMESTAMP_1588_VALUE uint64-
data 32 $TIMESTAMP_1588_ID uint32-
data 33 $PLL_OVRCLK float~0
{statistics}
table $PORT_HDL_INFO PortHdlInfo 4278255619 256
key 1 $CONN_ID uint32@port_hdl_conn_id~0
key 2 $CHNL_ID uint32@port_hdl_chnl_id~0
data 1 $DEV_PORT uint32-@
table $PORT_FP_IDX_INFO PortFpIdxInfo 4278255620 256
key 1 $FP_IDX uint32@fp_port~0
data 1 $DEV_PORT uint32-@
table $PORT_STR_INFO PortStrInfo 4278255621 256
key 1 $PORT_NAME string@port_name
data 1 $DEV_PORT uint32-@
"""


def _ports(loopbacks: str, delta_rx: str) -> str:
    return _PORTS.format(
        speeds=choices("BF_SPEED_", SPEEDS, "#"), fecs=choices("BF_FEC_TYP_", _FECS, "#"),
        loopbacks=choices("BF_LPBK_", loopbacks, "#"), delta_rx=delta_rx,
        statistics=_PORT_STATISTICS,
    )  # fmt: skip


PORTS_TF1 = _ports(_LOOPBACKS, "data 29 $TIMESTAMP_1588_DELTA_RX uint16")
PORTS_TF2 = _ports(f"{_LOOPBACKS} PIPE", "")

_DEVICE = """
table {0}.dev.device_configuration DevConfigure 4278583297 1
data 1 sku string-~UNKNOWN:{1}
data 2 num_pipes uint32-
data 3 num_stages uint32-
data 4 num_max_ports uint32-
data 5 num_front_ports uint32-
data 6 pcie_cpu_port uint32-
data 7 eth_cpu_port_list uint32*-
data 8 internal_port_list uint32*-
data 9 external_port_list uint32*-
data 10 recirc_port_list uint32*-
data 11 intr_based_link_monitoring bool-
data 12 flow_learn_intr_mode bool~false
data 13 lrt_dr_timeout_usec uint32~0
data 14 flow_learn_timeout_usec uint32~500
data 15 inactive_node_delete bool~false
data 16 selector_member_order bool~false
table {0}.dev.warm_init WarmInit 4278583298 1
data 1 error bool-~false
data 2 init_mode string~INIT_COLD:INIT_COLD,WARM_INIT_FAST_RECFG,WARM_INIT_HITLESS
data 3 upgrade_agents bool~false
action 1 begin
action 2 completed
"""

_SKUS_TF1 = "064Q 032Q 032D 032D-020 032D-018 032D-012"
_SKUS_TF2 = "128Q 128QM 080T 080TM 064Q 064D"


def _device(chip: str, prefix: str, skus: str) -> str:
    return _DEVICE.format(chip, ",".join(["UNKNOWN", *(prefix + sku for sku in skus.split())]))


DEVICE_TF1 = _device("tf1", "BFN-T10-", _SKUS_TF1)
DEVICE_TF2 = _device("tf2", "BFN-T20-", _SKUS_TF2)

_GENERATOR = """
table {0}.pktgen.port_cfg PktgenPortCfg 4278386689 256
key 1 dev_port uint32?@
data 1 recirculation_enable bool
data 2 pktgen_enable bool
data 3 pattern_matching_enable bool
data 4 clear_port_down_enable bool
table {0}.pktgen.app_cfg PktgenAppCfg 4278386690 {1}
key 1 app_id uint32?
data 12 app_enable bool
data 13 pkt_len {2}
data 14 pkt_buffer_offset {2}
data 15 pipe_local_source_port uint32@
data 16 increment_source_port bool
data 17 batch_count_cfg {2}
data 18 packets_per_batch_cfg {2}
data 19 ibg uint32
data 20 ibg_jitter uint32
data 21 ipg uint32
data 22 ipg_jitter uint32
data 23 batch_counter uint64
data 24 pkt_counter uint64
data 25 trigger_counter uint64
{3}
action 1 trigger_timer_one_shot
data 1 timer_nanosec uint32
action 2 trigger_timer_periodic
data 1 timer_nanosec uint32
action 3 trigger_port_down
{4}
table {0}.pktgen.pkt_buffer PktgenPktBufferCfg 4278386691 1024
key 1 pkt_buffer_offset uint32?
key 2 pkt_buffer_size uint32?
data 1 buffer bytes8*
{5}
"""

GENERATOR_TF1 = _GENERATOR.format(
    "tf1", 8, "uint16", "",
    """
action 4 trigger_recirc_pattern
data 4 pattern_value uint32
data 5 pattern_mask uint32
""",
    "",
)  # fmt: skip

GENERATOR_TF2 = _GENERATOR.format(
    "tf2", 16, "bytes16",
    """
data 26 offset_len_from_recir_pkt_enable bool
data 27 source_port_wrap_max bytes8
data 28 assigned_chnl_id bytes8
""",
    """
data 3 port_mask_sel uint32
action 4 trigger_recirc_pattern
data 4 pattern_value bytes128
data 5 pattern_mask bytes128
action 5 trigger_dprsr
data 4 pattern_value bytes128
data 5 pattern_mask bytes128
action 6 trigger_pfc
data 8 pfc_header bytes128
data 9 timer_enable bool
data 10 timer bytes16
data 11 max_pfc_events bytes10
""",
    """
table tf2.pktgen.port_mask PktgenPortMaskCfg 4278386692 2
key 1 port_mask_sel uint32?
data 1 mask bytes72
table tf2.pktgen.port_down_replay PktgenPortDownReplyCfg 4278386693 1
data 1 replay_mode enum:REPLAY_NONE,REPLAY_ALL,REPLAY_MISSED
""",
)  # fmt: skip


def _debug(chip: str, counters: int, stages: int, containers: int) -> str:
    return f"""
table {chip}.log_tbl_counter LogDbgCnt 4278648836 {counters}
key 1 stage uint32?~0
key 2 log_tbl uint32?~0
data 1 type string~TBL_HIT:DISABLED,TBL_MISS,TBL_HIT,GW_TBL_MISS,GW_TBL_HIT,GW_TBL_INHIBIT,UNUSED
data 2 value uint64~0
table {chip}.snapshot.phv SnapshotPhv 4278648833 {stages}
key 0 stage uint32
""" + "".join(f"data {i} phv{i} uint32-\n" for i in range(containers))


ANY_SWITCH = {"tf1": PRE_TF1 + MIRROR_TF1 + PORTS_TF1, "tf2": PRE_TF2 + MIRROR_TF2 + PORTS_TF2}
"""The tables, by chip, that a software switch has, too; in the notation of the first."""
CHIP = {"tf1": DEVICE_TF1 + GENERATOR_TF1, "tf2": DEVICE_TF2 + GENERATOR_TF2}
DEBUGGING = {"tf1": _debug("tf1", 192, 12, 224), "tf2": _debug("tf2", 1280, 20, 280)}
