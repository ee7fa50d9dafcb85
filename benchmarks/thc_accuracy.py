"""Compare the test accuracy of THC in the switch with no compression, as a mean over seeds.

    python benchmarks/thc_accuracy.py [SEEDS]

Runs on the simulated network.
"""

import sys
import tempfile
from pathlib import Path
from statistics import mean

import gradplane

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "thc-star.toml"


def main(seeds: int) -> None:
    found, baseline = [], []
    print("seed   THC in the switch   baseline")
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, seeds + 1):
            summary = gradplane.run(EXPERIMENT, Path(folder) / str(seed), net="sim", seed=seed)
            found.append(100 * summary.values["test_accuracy"])
            baseline.append(100 * summary.values["baseline"]["test_accuracy"])
            print(f"{seed:4}   {found[-1]:15.2f} %   {baseline[-1]:6.2f} %")
    print(f"mean   {mean(found):15.2f} %   {mean(baseline):6.2f} %")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
