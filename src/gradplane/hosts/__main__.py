"""`python -m gradplane.hosts CONFIG.json`: one host on sockets; see process.py."""

import os
import sys


def main() -> int:
    """One thread for all arithmetic, said before NumPy is loaded; then the host."""
    for library in ("OPENBLAS", "MKL", "BLIS", "OMP", "NUMBA"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    from gradplane.hosts.drivers import host_process

    return host_process.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
