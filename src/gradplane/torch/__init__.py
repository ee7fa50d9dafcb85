"""PyTorch's gradients through the network: a hook for DistributedDataParallel, and a back end.

    import gradplane.torch

    torch.distributed.init_process_group("gloo")
    model = DistributedDataParallel(model)
    model.register_comm_hook(gradplane.torch.join(), gradplane.torch.hook)

`gradplane torchrun EXPERIMENT.toml train.py` starts the network and a rank on each of its hosts.
`record_gradients` keeps the gradients of some steps in a file, with or without a network.
Code without DDP calls torch.distributed.init_process_group("gradplane") and all_reduce.
May import gradplane.codecs and gradplane.hosts; nothing else of gradplane imports torch.
"""

from gradplane.torch.comm_hook import hook
from gradplane.torch.exchange import FallbackWarning, NonFiniteWarning
from gradplane.torch.gradient_recorder import GradientRecorder, record_gradients
from gradplane.torch.membership import (
    HOST_VARIABLE,
    NETWORK_VARIABLE,
    MembershipError,
    NetworkState,
    StateWarning,
    available,
    join,
    record,
)
from gradplane.torch.process_group import register
from gradplane.torch.stand_ins import HOOK_VARIABLE, StandIn

__all__ = [
    "HOOK_VARIABLE", "HOST_VARIABLE", "NETWORK_VARIABLE", "FallbackWarning", "GradientRecorder",
    "MembershipError", "NetworkState", "NonFiniteWarning", "StandIn", "StateWarning", "available",
    "hook", "join", "record", "record_gradients",
]  # fmt: skip

register()
