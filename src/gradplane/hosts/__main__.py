"""`python -m gradplane.hosts CONFIG.json`: run one host on sockets; see drivers/host_process.py."""

import os
import sys

from gradplane import _one_thread


def main() -> int:
    """Limit all arithmetic to one thread, which must precede the import of NumPy; run the host."""
    os.environ.update(_one_thread.ENVIRONMENT)
    from gradplane.hosts.drivers import host_process

    return host_process.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
