"""One process of PyTorch's gloo all_reduce: python gloo_allreduce.py RANK SIZE ADDRESS INTERFACE
VALUES ROUNDS.

Prints the ns of each round, as JSON. benchmarks/hosts.py runs one on each host.
"""

import json
import os
import sys
import time


def main() -> None:
    rank, size, address, interface, values, rounds = sys.argv[1:]
    os.environ |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": interface}
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    place = {"rank": int(rank), "world_size": int(size)}
    distributed.init_process_group("gloo", init_method=f"tcp://{address}:29500", **place)
    gradient = torch.randn(int(values), generator=torch.Generator().manual_seed(int(rank)))
    times = []
    for _ in range(int(rounds)):
        total = gradient.clone()
        distributed.barrier()
        started = time.perf_counter_ns()
        distributed.all_reduce(total)
        times.append(time.perf_counter_ns() - started)
    print(json.dumps(times))
    distributed.barrier()
    distributed.destroy_process_group()  # left to the interpreter's end, its threads may abort


if __name__ == "__main__":
    main()
