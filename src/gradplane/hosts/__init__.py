"""The software of a host: protocols that do no I/O, their drivers, and training.

May import gradplane.codecs and nothing else of gradplane. Its rooms, each of which may import those
before it:

    wire         aggregation packets, and float32 values that the network may compress
    protocols    workers, parameter server and ring members as state machines
    stream       reliable messages over UDP as a state machine
    impairments  losses and stragglers at a host's end of its link
    training     models, data sets and the training of one worker
    drivers      the performers of the state machines' actions, on sockets or in a simulated network

`allreduce.Ring` is the ring for user programs, and `reducer.Reducer` a worker of any scheme;
`scapy_layers` and `dissector/` show the packets in Scapy and Wireshark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradplane._lazy_names import lazy_names

if TYPE_CHECKING:
    from gradplane.hosts.allreduce import Ring
    from gradplane.hosts.config import HostConfig
    from gradplane.hosts.reducer import Reducer
    from gradplane.hosts.training.datasets import Dataset
    from gradplane.hosts.training.models import Tensor

__all__ = ["Dataset", "HostConfig", "Reducer", "Ring", "Tensor"]

__getattr__ = lazy_names(
    __name__,
    {
        "Dataset": "training.datasets",
        "HostConfig": "config",
        "Reducer": "reducer",
        "Ring": "allreduce",
        "Tensor": "training.models",
    },
)
