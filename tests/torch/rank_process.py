"""What runs in a rank. It imports little: a forked process imports this module to begin."""

import faulthandler
import os
import signal


def run(source, environment, out):
    """Run a program in this process, which is a rank's: its output goes to files."""
    for number, suffix in ((1, ".out"), (2, ".err")):
        with open(out.with_suffix(suffix), "wb") as file:
            os.dup2(file.fileno(), number)
    faulthandler.register(signal.SIGUSR1)
    os.environ.clear()
    os.environ.update(environment)
    exec(compile(source, f"{out}.py", "exec"), {"__name__": "__main__"})
