"""PyTorch's gradients through the network: a communication hook for DistributedDataParallel.

    import gradplane.torch

    torch.distributed.init_process_group("gloo")
    model = DistributedDataParallel(model)
    model.register_comm_hook(gradplane.torch.join(), gradplane.torch.hook)

`gradplane torchrun EXPERIMENT.toml train.py` starts the network and a rank on each of its hosts.
May import gradplane.codecs and gradplane.hosts; nothing else of gradplane imports torch.
"""

from gradplane.torch.comm_hook import FallbackWarning, NonFiniteWarning, hook
from gradplane.torch.membership import (
    HOST_VARIABLE,
    NETWORK_VARIABLE,
    MembershipError,
    NetworkState,
    available,
    join,
)

__all__ = [
    "HOST_VARIABLE",
    "NETWORK_VARIABLE",
    "FallbackWarning",
    "MembershipError",
    "NetworkState",
    "NonFiniteWarning",
    "available",
    "hook",
    "join",
]
