"""`python -m gradplane.hosts CONFIG.json`: run one host on sockets; see drivers/host_process.py.

`python -m gradplane.hosts --forks DESCRIPTOR` forks hosts for the socket of that descriptor; see
drivers/host_forks.py.
"""

import os
import socket
import sys


def main() -> int:
    """Limit all arithmetic to one thread, which must precede the import of NumPy; run the host."""
    for library in ("OPENBLAS", "MKL", "BLIS", "OMP", "NUMBA"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    match sys.argv[1:]:
        case ["--forks", descriptor]:
            from gradplane.hosts.drivers import host_forks

            with socket.socket(fileno=int(descriptor)) as requests:
                host_forks.serve(requests)
            return 0
        case arguments:
            from gradplane.hosts.drivers import host_process

            return host_process.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
