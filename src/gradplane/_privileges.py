"""The rights of this process: Linux splits root's rights into capabilities.

Root in a container has few of them, and is told how to start the container; others are told to
become root.
"""

import os
from collections.abc import Sequence
from pathlib import Path

_BITS = {"NET_ADMIN": 12, "NET_RAW": 13, "SYS_ADMIN": 21}  # <linux/capability.h>


def missing(capabilities: Sequence[str]) -> list[str]:
    """Return those that this process has not, of names without CAP_."""
    status = Path("/proc/self/status").read_text()
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    return [name for name in capabilities if not effective >> _BITS[name] & 1]


def remedy(capabilities: Sequence[str]) -> str:
    """Return how to get what is missing, as the end of a sentence."""
    lacking = missing(capabilities)
    if os.geteuid() != 0 or not lacking:
        return "run as root"
    names = ", ".join(f"CAP_{name}" for name in lacking)
    options = [f"--cap-add {name}" for name in lacking]
    if "SYS_ADMIN" in lacking:  # Docker's profile forbids mount(2) beside
        options.append("--security-opt apparmor=unconfined")
    return f"root has no {names} here: start the container with {' '.join(options)}"
