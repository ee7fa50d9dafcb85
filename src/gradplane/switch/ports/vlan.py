"""VLAN tags, restored: the kernel removes the outermost tag of a packet that arrives and reports it
beside the packet (linux/if_packet.h, struct tpacket_auxdata).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gradplane.switch.ports.kernel_batches import Arrivals

STATUS_AT = 16
AUXDATA = np.dtype(  # the control message
    {
        "names": ["status", "tci", "tpid"],
        "formats": [np.uint32, np.uint16, np.uint16],
        "offsets": [STATUS_AT, 32, 34],
        "itemsize": 40,
    }
)
HAS_TAG, _HAS_TPID = 1 << 4, 1 << 6
_DEFAULT_TPID = 0x8100
_ADDRESSES = np.arange(12)  # bytes of the MAC addresses, before the tag
_TAG = np.arange(4)


def restore_tags(arrivals: Arrivals) -> None:
    """Insert the removed tags; the packets grow by four bytes to the front."""
    reported = arrivals.controls[: arrivals.count]
    tagged = np.flatnonzero(reported["status"] & HAS_TAG)
    if not len(tagged):
        return
    reported, starts = reported[tagged], arrivals.starts[tagged, None]
    arrivals.data[starts - 4 + _ADDRESSES] = arrivals.data[starts + _ADDRESSES]
    tags = np.empty((len(tagged), 2), dtype=">u2")
    tags[:, 0] = np.where(reported["status"] & _HAS_TPID, reported["tpid"], _DEFAULT_TPID)
    tags[:, 1] = reported["tci"]
    arrivals.data[starts + len(_ADDRESSES) - 4 + _TAG] = tags.view(np.uint8)
    arrivals.starts[tagged] -= 4
