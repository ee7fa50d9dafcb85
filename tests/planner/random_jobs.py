"""Random jobs of plain steps, in whole seconds, so that all times are exact."""

import random

from gradplane.planner.job import MIXED, ON_GPU, PLAIN, Candidates, Step, job


def random_job(rng: random.Random, tensors: int) -> Candidates:
    """Return a job whose tensors may stay as they are, or be compressed on the GPU, the CPU or
    both."""
    sizes = [rng.randint(1, 3) for _ in range(tensors)]
    by_size = {size: _candidates(rng, size) for size in sizes}
    return job(
        [rng.randint(0, 10) for _ in sizes],
        sizes,
        [by_size[size] for size in sizes],
        [[PLAIN, ON_GPU, MIXED, MIXED]] * tensors,
        [[-1, 2, -1, -1]] * tensors,
    )


def _candidates(rng: random.Random, size: int) -> list[list[Step]]:
    def between() -> list[Step]:
        return [(2, rng.randint(1, 2)), (3, rng.randint(1, 2 + size)), (2, rng.randint(1, 2))]

    plain: list[Step] = [(2, 3 * size), (3, rng.randint(5, 8) * size), (2, 3 * size)]
    gpu, cpu = rng.randint(1, 4), rng.randint(1, 9)
    links = between()
    return [
        plain,
        [(0, gpu), *links, (0, 1)],
        [(1, cpu), *links, (1, 2)],
        [plain[0], (0, gpu), links[1], (1, cpu), plain[2]],
    ]
