"""`python -m gradplane.hosts CONFIG.json`: run one host on sockets; see drivers/host_process.py.

With CONFIG.json@PID ... it runs several, each in a process's network namespace: host_group.py."""

import os
import sys
from contextlib import redirect_stdout
from pathlib import Path

from gradplane import _one_thread


def main() -> int:
    """Limit all arithmetic to one thread, which must precede the import of NumPy; run the hosts.

    Returns 0, 1 with a message if a host failed, 2 for wrong usage."""
    os.environ.update(_one_thread.ENVIRONMENT)
    from gradplane.hosts.drivers import host_process

    arguments, answers = sys.argv[1:], sys.stdout
    if not arguments or (len(arguments) > 1 and not all("@" in each for each in arguments)):
        print("usage: python -m gradplane.hosts CONFIG.json | CONFIG.json@PID ...", file=sys.stderr)
        return 2
    try:
        with redirect_stdout(sys.stderr):  # user models may print
            if "@" in arguments[0]:
                from gradplane.hosts.drivers import host_group

                host_group.run(arguments, sys.stdin.fileno(), answers)
            else:
                host_process.run(Path(arguments[0]), sys.stdin, answers)
    except host_process.EXPECTED as error:
        print(f"gradplane.hosts {arguments[0]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
