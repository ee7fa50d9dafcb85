"""VLAN tags, restored: the kernel removes the outermost tag of a packet that arrives and reports it
beside the packet (linux/if_packet.h, struct tpacket_auxdata).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

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


def restore_tags(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], reported: npt.NDArray[Any]
) -> None:
    """Insert the removed tags in packets that begin at `starts` in `data`; `reported`: AUXDATA, one
    a packet. The packets grow by four bytes to the front.
    """
    tagged = np.flatnonzero(reported["status"] & HAS_TAG)
    if not len(tagged):
        return
    reported, at = reported[tagged], starts[tagged, None]
    data[at - 4 + _ADDRESSES] = data[at + _ADDRESSES]
    tags = np.empty((len(tagged), 2), dtype=">u2")
    tags[:, 0] = np.where(reported["status"] & _HAS_TPID, reported["tpid"], _DEFAULT_TPID)
    tags[:, 1] = reported["tci"]
    data[at + len(_ADDRESSES) - 4 + _TAG] = tags.view(np.uint8)
    starts[tagged] -= 4
