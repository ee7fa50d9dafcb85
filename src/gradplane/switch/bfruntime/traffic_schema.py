"""The traffic manager's tables, in the notation of `schema.parse_tables`.

First values are the driver's.
"""

from __future__ import annotations

from gradplane.switch.bfruntime.fixed_schema import SPEEDS
from gradplane.switch.bfruntime.schema import choices

_IN = "IG_APP_POOL_0,IG_APP_POOL_1,IG_APP_POOL_2,IG_APP_POOL_3"
_OUT = _IN.replace("IG", "EG")
_OTHERS = """
IG_SKID_POOL,IG_EG_NEGATIVE_MIRROR_POOL,EG_PRE_FIFO,IG_EG_GUARANTEED_MIN,
EG_UNICAST_CUT_THROUGH,EG_MULTICAST_CUT_THROUGH
""".replace("\n", "")
_FACTORS = "1.5%,3%,6%,11%,20%,33%,50%,66%,80%,DISABLE"
_PRIORITIES = "LOW,0,1,2,3,4,5,6,7,HIGH"
_SHARES = "12.5%,25%,37.5%,50%,62.5%,75%,87.5%,100%"

_SPEEDS_TF1 = choices("BF_SPEED_", SPEEDS.removesuffix(" 200G 400G"))
_SPEEDS_TF2 = choices(
    "BF_SPEED_", "NONE 1G 10G 25G 40G 40G_R2 40G_NB 40G_NON_BREAKABLE 50G 50G_CONS 100G 200G 400G"
)

_SHAPING = """
data 1 unit string=BPS:PPS,BPS
data 2 provisioning string:UPPER,LOWER,MIN_ERROR
"""


def _classes(first: int, suffix: str) -> str:
    return "\n".join(f"data {first + i} icos_{i} bool{suffix}" for i in range(8))


def _limits(first: int, cells: int, most: int, factor: str) -> str:
    """Return the buffer settings of a priority group. cells: its own; most: in the pool."""
    return f"""
data {first} guaranteed_cells uint32={cells}
data {first + 1} hysteresis_cells uint32=32
data {first + 2} pool_id string:{_IN}
data {first + 3} pool_max_cells uint32={most}
data {first + 4} dynamic_baf string={factor}:{_FACTORS}
"""


_TRAFFIC_MANAGER = """
table {chip}.tm.port.dpg TmPortDpg 4278517781 288
key 1 dev_port uint32@
{classes}
{port_limits}
table {chip}.tm.mirror.dpg TmMirrorDpg 4278517873 4
{classes}
{mirror_limits}
table {chip}.tm.ppg.cfg TmPpgCfg 4278517808 512
key 1 ppg_id uint8
{own_classes}
{own_limits}
data 17 ppg_counter_id uint8-
action 1 dev_port
data 1 dev_port uint32
data 2 pfc_enable bool
data 3 pfc_skid_max_cells uint32
action 2 mirror_port
table {chip}.tm.pool.cfg TmPoolCfg 4278517762 14
key 1 pool string:{pools_in},{pools_out},{pools}
data 1 size_cells uint32
table {chip}.tm.pool.skid TmPoolSkid 4278517763 1
data 1 resume_limit_cells uint32=128
table {chip}.tm.pool.app TmPoolApp 4278517764 8
key 1 pool string:{pools_in},{pools_out}
action 1 color_drop_disable
action 2 color_drop_enable
data 1 green_limit_cells uint32
data 2 yellow_limit_cells uint32
data 3 red_limit_cells uint32
table {chip}.tm.pool.color TmPoolColor 4278517765 3
key 1 color string:GREEN,YELLOW,RED
data 1 color_drop_resume_limit_cells uint32!
table {chip}.tm.pool.app_pfc TmPoolAppPfc 4278517766 32
key 1 pool string:{pools_in}
key 2 cos bytes3
data 1 pfc_limit_cells uint32!
table {chip}.tm.port.cfg TmPortCfg 4278517776 288
key 1 dev_port uint32@
data 1 pg_id uint8-
data 2 pg_port_nr uint8-
data 3 port_queues_count uint8-
data 4 ingress_qid_map uint8*-
data 5 egress_qid_queues uint8*-
data 6 copy_to_cpu bool-
data 7 mirror_drop_destination bool-
data 8 mirror_drop_pg_queue uint8-
data 9 pkt_extraction_credits uint32-
table {chip}.tm.port.buffer TmPortBuffer 4278517779 288
key 1 dev_port uint32@
data 1 ct_enable bool-
{port_buffer}
table {chip}.tm.port.flowcontrol TmPortFlowcontrol 4278517780 288
key 1 dev_port uint32@
data 1 mode_tx string:NONE,PFC,PAUSE
data 2 mode_rx string-=PFC:NONE,PFC,PAUSE
data 3 cos_to_icos uint8*
table {chip}.tm.port.group_cfg TmPortGroupCfg 4278517777 1
data 1 ingress_qid_max uint8={group_queues}
data 2 pg_queues uint8={group_queues}
table {chip}.tm.port.group TmPortGroup 4278517778 {groups}
key 1 pg_id uint8
data 1 pg_dev_ports uint32*-@
action 1 map
data 2 port_queue_count uint8*
{maps}
action 2 seq
data 2 port_queue_count uint8*
action 3 even
data 2 port_queue_count uint8*
action 4 crop
data 2 port_queue_count uint8*!
table {chip}.tm.queue.cfg TmQueueCfg 4278517793 {queues}
key 1 pg_id uint8
key 2 pg_queue uint8
data 1 mirror_drop_destination bool-
data 2 pfc_cos uint8
{queue_reports}
table {chip}.tm.queue.map TmQueueMap 4278517794 {queues}
key 1 pg_id uint8
key 2 pg_queue uint8
data 1 dev_port uint32-
data 2 queue_nr uint8-
data 3 ingress_qid_max uint8-
data 4 ingress_qid_count uint8-
data 5 ingress_qid_list uint8*-
table {chip}.tm.queue.color TmQueueColor 4278517795 {queues}
key 1 pg_id uint8
key 2 pg_queue uint8
data 1 drop_enable bool
data 2 drop_limit_yellow string=75%:{shares}
data 3 drop_limit_red string=75%:{shares}
data 4 hysteresis_yellow_cells uint32
data 5 hysteresis_red_cells uint32
table {chip}.tm.queue.buffer TmQueueBuffer 4278517796 {queues}
key 1 pg_id uint8
key 2 pg_queue uint8
data 1 guaranteed_cells uint32
data 2 hysteresis_cells uint32=32
data 3 tail_drop_enable bool
action 1 shared_pool
data 4 pool_id string:{pools_out}
data 5 pool_max_cells uint32
data 6 dynamic_baf string=80%:{factors}
action 2 buffer_only
table {chip}.tm.queue.sched_cfg TmQueueSchedCfg 4278517797 {queues}
key 1 pg_id uint8
key 2 pg_queue uint8
data 2 min_rate_enable bool
data 1 min_priority string:{priorities}
data 5 max_rate_enable bool
data 4 max_priority string:{priorities}
data 3 dwrr_weight uint16=1023
{queue_schedule}
table {chip}.tm.queue.sched_shaping TmQueueSchedShaping 4278517798 {queues}
key 1 pg_id uint8
key 2 pg_queue uint8
{shaping}
data 3 min_rate uint32
data 4 min_burst_size uint32=16384
data 5 max_rate uint32
data 6 max_burst_size uint32=16384
table {chip}.tm.port.sched_cfg TmPortSchedCfg 4278517782 288
key 1 dev_port uint32@
data 1 max_rate_enable bool
{port_schedule}
table {chip}.tm.port.sched_shaping TmPortSchedShaping 4278517783 288
key 1 dev_port uint32@
{shaping}
data 3 max_rate uint32
data 4 max_burst_size uint32=9216
{nodes}
table {chip}.tm.counter.ig_port TmCounterIgPort 4278517825 288
key 1 dev_port uint32@
{counts}
table {chip}.tm.counter.eg_port TmCounterEgPort 4278517826 288
key 1 dev_port uint32@
{counts}
table {chip}.tm.counter.queue TmCounterQueue 4278517827 {counted_queues}
key 1 pg_id uint8
key 2 pg_queue uint8
{counts}
table {chip}.tm.counter.pool TmCounterPool 4278517828 8
key 1 pool string:{pools_in},{pools_out}
data 1 usage_cells uint64-
data 2 watermark_cells uint64^
table {chip}.tm.counter.pipe TmCounterPipe 4278517829 1
data 1 total_buffer_full_drop_packets uint64^
data 2 discard_queue_usage_cells uint64-
data 3 discard_queue_watermark_cells uint64^
data 4 total_cells uint64^
data 5 total_packets uint64^
data 6 uc_ct_packets uint64^
data 7 mc_ct_packets uint64^
data 8 ig_no_dest_drop_packets uint64^
data 9 ig_buf_full_drop_packets uint64^
data 10 eg_total_drop_packets uint64^
data 11 mc_queue_drop_packets uint64^
data 12 mc_input_fifo_0_drop_packets uint64^
data 13 mc_input_fifo_1_drop_packets uint64^
data 14 mc_input_fifo_2_drop_packets uint64^
data 15 mc_input_fifo_3_drop_packets uint64^
table {chip}.tm.counter.dpg TmCounterPortDpg 4278517830 288
key 1 dev_port uint32@
{group_counts}
data 4 watermark_cells uint64^
table {chip}.tm.counter.mirror_dpg TmCounterMirrorPortDpg 4278517831 1
{group_counts}
data 4 watermark_cells uint64^
table {chip}.tm.counter.ppg TmCounterPpg 4278517832 128
key 1 ppg_counter_id uint8
data 1 ppg_id uint8-
data 2 drop_count_packets uint64
data 3 guaranteed_min_usage_cells uint64-
data 4 shared_pool_usage_cells uint64-
data 5 skid_pool_usage_cells uint64-
data 6 watermark_cells uint64^
table {chip}.tm.cfg TmCfg 4278517889 1
data 1 timestamp_shift_bits uint8
data 2 cell_size_bytes uint32-={cell}
data 3 total_cells uint32-={cells}
{ingress_limit}
table {chip}.tm.pipe.multicast_fifo TmPipeMulticastFifo 4278517841 1
data 1 icos_mask uint8*
data 2 arbitration_mode string*:STRICT_PRIORITY,WRR
data 3 wrr_weight uint8*
data 4 depth uint16*
table {chip}.tm.pipe.cfg TmPipeCfg 4278517840 4
{pipe}
table {chip}.tm.pipe.sched_cfg TmPipeSchedCfg 4278517842 4
data 1 packet_ifg_compensation uint8=20
{pipe_schedule}
"""

_COUNTS = """
data 1 drop_count_packets uint64
data 2 usage_cells uint64-
data 3 watermark_cells uint64^
"""
_GROUP_COUNTS = """
data 1 drop_count_packets uint64
data 2 guaranteed_min_usage_cells uint64-
data 3 shared_pool_usage_cells uint64-
"""


def _pipe(first: int, cells: int) -> str:
    return f"""
data {first} mirror_drop_pg_id uint8
data {first + 1} mirror_drop_pg_queue uint8
data {first + 2} mirror_drop_dev_port uint32-
data {first + 3} mirror_drop_queue_nr uint8-
data {first + 4} eg_limit_cells uint32={cells}
data {first + 5} eg_hysteresis_cells uint32
"""


def _maps(ports: int) -> str:
    return "\n".join(
        f"data {2 * i + 3} ingress_qid_map_{i} uint8*\n"
        f"data {2 * i + 4} egress_qid_queues_{i} uint8*-"
        for i in range(ports)
    )


_NODES = f"""
table tf2.tm.l1_node.sched_cfg TmL1NodeSchedCfg 4278517857 1152
key 1 pg_id uint8
key 2 pg_l1_node uint8
data 6 min_rate_enable bool
data 5 min_priority string:{_PRIORITIES}
data 8 max_rate_enable bool
data 7 max_priority string:{_PRIORITIES}
data 4 dwrr_weight uint16
data 3 priority_propagation bool
data 1 queues_count uint8-
data 2 pg_queues uint8*-
action 1 in_use
data 10 scheduling_enable bool=true
data 9 dev_port uint32
action 2 free
data 11 dev_port uint32-
table tf2.tm.l1_node.sched_shaping TmL1NodeSchedShaping 4278517858 1152
key 1 pg_id uint8
key 2 pg_l1_node uint8
data 1 unit string=BPS:PPS,BPS
data 2 min_rate uint32=409499992
data 3 min_burst_size uint32=32640
data 4 max_rate uint32=409499992
data 5 max_burst_size uint32=32640
"""

_SHARED = {
    "pools_in": _IN, "pools_out": _OUT, "pools": _OTHERS, "factors": _FACTORS, "shares": _SHARES,
    "priorities": _PRIORITIES, "shaping": _SHAPING, "counts": _COUNTS,
    "group_counts": _GROUP_COUNTS, "own_classes": _classes(4, ""),
    "own_limits": _limits(12, 0, 0, "DISABLE"),
    "classes": "data 1 icos_ppg_map uint8*-\n" + _classes(2, "-"),
}  # fmt: skip
_CELLS = {"tf1": 280 << 10, "tf2": 384 << 10}

_TF1 = _TRAFFIC_MANAGER.format(
    chip="tf1", queues=2304, counted_queues=576, groups=72, group_queues=32, maps=_maps(4),
    cell=80, cells=_CELLS["tf1"], port_limits=_limits(10, 40, 305, "80%"),
    mirror_limits=_limits(10, 40, 160, "DISABLE"),
    port_buffer=f"""
data 2 uc_ct_limit_cells uint8=15
data 3 ig_limit_cells uint32={_CELLS["tf1"]}
data 4 ig_hysteresis_cells uint32=32
data 5 eg_limit_cells uint32={_CELLS["tf1"]}
data 6 eg_hysteresis_cells uint32=32
data 7 skid_limit_cells uint32
""",
    queue_reports="", queue_schedule="data 6 scheduling_enable bool=true",
    port_schedule=f"data 2 scheduling_speed {_SPEEDS_TF1}",
    nodes="", ingress_limit="", pipe=_pipe(1, _CELLS["tf1"]), pipe_schedule="", **_SHARED,
)  # fmt: skip

_TF2 = _TRAFFIC_MANAGER.format(
    chip="tf2", queues=4608, counted_queues=1152, groups=36, group_queues=128, maps=_maps(8),
    cell=176, cells=_CELLS["tf2"], port_limits=_limits(10, 72, 1103, "80%"),
    mirror_limits=_limits(10, 72, 1103, "80%"),
    port_buffer=f"""
data 2 uc_ct_limit_cells uint8=127
data 3 ig_limit_cells uint32={_CELLS["tf2"]}
data 4 eg_limit_cells uint32={_CELLS["tf2"]}
data 5 eg_hysteresis_cells uint32=32
data 6 skid_limit_cells uint32={_CELLS["tf2"]}
""",
    queue_reports="data 3 depth_report_enable bool",
    queue_schedule="""
data 6 advanced_flow_control string:CREDIT,XOFF
data 7 scheduling_enable bool=true
data 8 scheduling_speed string-:BF_SPEED_NONE,BF_SPEED_50G,BF_SPEED_100G,BF_SPEED_200G,BF_SPEED_400G
data 9 pg_l1_node uint8
""",
    port_schedule=f"""
data 2 l1_nodes_count uint8-
data 3 l1_nodes uint8*-
data 4 scheduling_speed {_SPEEDS_TF2}
""",
    nodes=_NODES,
    ingress_limit="""
data 4 ig_buffer_limit_cells uint32=256000
data 5 ig_buffer_limit_enable bool=true
""",
    pipe=f"data 1 mirror_drop_enable bool=true{_pipe(2, _CELLS['tf2'])}"
    "data 8 queue_depth_report_mode string:ANY,COLOR",
    pipe_schedule="data 2 advanced_flow_control_enable bool", **_SHARED,
)  # fmt: skip

TRAFFIC_MANAGER = {"tf1": _TF1, "tf2": _TF2}
"""The texts, by chip."""

POOL_CELLS = {
    "tf1": {"IG_APP_POOL_0": 89260, "EG_APP_POOL_0": 30284, "EG_APP_POOL_3": 12288,
            "IG_EG_NEGATIVE_MIRROR_POOL": 1460, "EG_UNICAST_CUT_THROUGH": 4096,
            "EG_MULTICAST_CUT_THROUGH": 8192},
    "tf2": {"IG_APP_POOL_0": 80579, "EG_APP_POOL_0": 50195, "EG_APP_POOL_3": 12288,
            "IG_EG_NEGATIVE_MIRROR_POOL": 1460, "EG_UNICAST_CUT_THROUGH": 512,
            "EG_MULTICAST_CUT_THROUGH": 24576},
}  # fmt: skip
"""The first sizes of the pools that have any: the shares of 2 packets of 1600 bytes for each port
and queue are left to the groups and queues."""
