"""The layout of the compiled event loop's memory: tables of int64, and the buffers of frames.

The kernels get one array, int64[WORDS], with the loop's own values and, for each table, its address
and the number of its rows.
"""

from typing import Final

# The loop's values. WHO, REF: operands of the reason for which the kernel returned. PENDING: the
# switch whose last pass is not collected yet, -1 for none. UNTIL: the last time at which an event
# may run. NEED_PACKETS, NEED_STRIDE: what GROW asks for.
NOW, ORDER, EVENTS, FREE, FREE_COUNT, PENDING, UNTIL, WHO, REF, AT = range(10)
NEED_PACKETS, NEED_STRIDE, DATA, STRIDE, METAS, META_STRIDE = range(10, 16)
# Addresses of the tables; the next word of each is the number of its rows.
HEAP, PACKETS, CHANNELS, LEAVING, SWITCHES, PORTS, HOSTS, RECEIVERS = range(16, 32, 2)
LEAVES: Final = 36
# The datagram that a host has to take: the bytes of its payload, -1 where the frame is not one for
# the host or has IP options; and its addresses.
DATAGRAM, SOURCE_IP, SOURCE_PORT, TO_PORT = range(32, 36)
# Of LEAVES, a ring: the place of its first event, and how many there are.
LEAVES_FIRST, LEAVES_COUNT = 38, 39
WORDS: Final = 40

# HEAP: the events, a binary heap ordered by time, then by creation. WHAT is a kind of event, and a
# number beside it from bit 8 on; SUBJECT the packet, or the number of the call. LEAVES: events of
# the kind LEAVE that were made in their order, as they are where all switches have one latency.
TIME, CREATED, WHAT, SUBJECT = range(4)
HEAP_COLUMNS: Final = 4
ARRIVE, LEAVE, CALL = range(3)

# PACKETS: what a buffer holds; NEXT chains the packets of a LEAVE, those on their way in a channel,
# and the free ones. PORT: where it leaves a switch, RECIRCULATE for a further pass. Of one in a
# channel behind another ARRIVES and ARRIVAL are its event's TIME and CREATED. The others are those
# of a pass: see `gradplane.switch.runtime.packet_passes`.
SIZE, NEXT, PORT, KIND, IN_PORT, PASSES, HAS_META, ARRIVAL = range(8)
ARRIVES: Final = PORT
PACKET_COLUMNS: Final = 8
RECIRCULATE: Final = -1

# CHANNELS: as `channel.Channel`. RING: where its row of LEAVING begins, which has LIMIT places and
# holds WAITING times from FIRST on. DEST: what it delivers to: a host's, a switch's number. PEAK:
# the most that WAITING has been since PEAK was last read. LAST: the packet that was sent last and
# has not arrived, -1 for none; of those on their way the first alone is in the heap.
(RATE, DELAY, LIMIT, RING, FIRST, WAITING, SENT, BYTES, DROPPED, DEST_KIND, DEST, DEST_PORT,
 PEAK, LAST) = range(14)  # fmt: skip
CHANNEL_COLUMNS: Final = 14
TO_HOST, TO_SWITCH, TO_NEXT_PASS = range(3)

# SWITCHES: as `gradplane.switch.runtime.packet_passes.NativePass`; READY: 1 while native passes are
# prepared; RECIRCULATION: its channel. PLACED: the address of a word with the OWN of the switch
# whose WORDS_SIZE bytes are at STATE, 0 for none. PORTS[switch]: the channel of each port, -1 for
# none.
(READY, LATENCY, RECIRCULATION, ONCE, CLOCK, MICROSECONDS, SENT_AT, OUT_AT, AGAIN_AT, MESSAGES_AT,
 WAITING_AT, START, NODE_SIZE, META_SIZE, CPU_PORT, STATE, OWN, WORDS_SIZE,
 PLACED) = range(19)  # fmt: skip
SWITCH_COLUMNS: Final = 19

# HOSTS: addresses as integers, the channel of its link, and its rows of RECEIVERS: local ports
# whose ordinary packets, those from PEER_IP and PEER_PORT, a kernel takes with the record at
# RECORD; its time counts from ORIGIN.
MAC, IP, LINK, FIRST_RECEIVER, RECEIVER_COUNT = range(5)
HOST_COLUMNS: Final = 5
LOCAL_PORT, PEER_MAC, PEER_IP, PEER_PORT, RECORD, ORIGIN = range(6)
RECEIVER_COLUMNS: Final = 6

# The reasons for which the kernel returns: no event is left; a call is due (WHO: its number, AT:
# its time); a host has to take packet REF in Python; switch WHO is not ready; the last pass of
# switch WHO needs Python; memory; UNTIL is over; enough events for now.
EMPTY, DUE, RECEIVE, PREPARE, SLOW, GROW, LATE, ENOUGH = range(8)
