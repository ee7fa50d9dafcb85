"""What each rank would do first, done once in the process that ranks are forked from."""

import rank_process  # noqa: F401
import torch
import torch.distributed
import torch.nn.parallel
from host_configs import make_job

import gradplane.torch  # noqa: F401
from gradplane.hosts.drivers.warm_up import exercise_switch_worker, warm_up

torch.set_num_threads(1)  # no threads before the fork
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)  # imports much
_job = make_job(aggregation="switch", workers=2)
warm_up(_job)
exercise_switch_worker(_job)
