"""`python -m gradplane.hosts CONFIG.json`: run one host on sockets; see drivers/host_process.py."""

import os
import sys


def main() -> int:
    """Limit all arithmetic to one thread, which must precede the import of NumPy; run the host."""
    for library in ("OPENBLAS", "MKL", "BLIS", "OMP", "NUMBA"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    from gradplane.hosts.drivers import host_process

    return host_process.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
