"""All hypothesis tests, again and again with new random seeds: `make fuzz`, or by hand.

Each pass prints its seed; the first failing one ends it, with hypothesis' shrunk example above.
`--seed N` repeats a pass.
"""

import argparse
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_pass(seed: int, selection: list[str]) -> int:
    """Run the tests once; pytest's exit status."""
    print(f"hypothesis seed {seed}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", *selection]
    environment = os.environ | {"GRADPLANE_HYPOTHESIS_PROFILE": "fuzz"}
    return subprocess.call([*command, f"--hypothesis-seed={seed}"], cwd=ROOT, env=environment)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="start passes so long (60)")
    parser.add_argument("--seed", type=int, help="of the only pass (default: many, random)")
    parser.add_argument("tests", nargs="*", help="files or folders (default: all tests)")
    options = parser.parse_args()
    if options.seed is not None:
        return run_pass(options.seed, options.tests)
    end, status = time.monotonic() + options.seconds, 0
    while status == 0 and time.monotonic() < end:
        status = run_pass(secrets.randbelow(2**32), options.tests)
    return status


if __name__ == "__main__":
    sys.exit(main())
