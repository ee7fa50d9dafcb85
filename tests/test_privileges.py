"""What root without capabilities, as in a container, is told: how to start the container."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up capabilities")

ISOLATE = "from gradplane.runs.isolation import can_isolate; print(can_isolate())"
PORT = """
from gradplane.switch.ports import port
try:
    port._opened("lo")
except port.PortError as error:
    print(error)
"""


def told(code: str, *capabilities: str) -> str:
    """Return what code prints in a process with only these capabilities."""
    bounds = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    limits = ["--clear-groups", f"--bounding-set={bounds}", "--inh-caps=-all"]
    command = ["setpriv", *limits, sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def test_namespaces_need_three_and_mounts_that_docker_forbids() -> None:
    # Without CAP_SETFCAP, not even a user namespace can be had.
    assert told(ISOLATE).startswith(
        "(False, 'no private namespaces (/proc/self/uid_map: Operation not permitted): root"
        " has no CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW here: start the"
        " container with --cap-add SYS_ADMIN --cap-add NET_ADMIN --cap-add NET_RAW --security-opt"
        " apparmor=unconfined, or allow user namespaces (sysctl "
    )


def test_only_what_is_missing_is_asked_for() -> None:
    only = "start the container with --cap-add NET_ADMIN, or"
    assert only in told(ISOLATE, "sys_admin", "net_raw")
    only = "start the container with --cap-add NET_RAW, or"
    assert only in told(ISOLATE, "sys_admin", "net_admin")


def test_a_user_namespace_has_what_is_missing() -> None:
    has = told(ISOLATE, "sys_admin", "net_admin", "setfcap").startswith
    assert has("(True, '')") or has("(False, 'no private namespaces (unshare: ")


def test_a_port_needs_raw_sockets() -> None:
    assert told(PORT) == (
        'raw sockets on interface "lo" are not permitted: they need CAP_NET_RAW; root has no'
        " CAP_NET_RAW here: start the container with --cap-add NET_RAW, or run in a user namespace"
        " (unshare --map-root-user --net)\n"
    )


def test_who_is_not_root_is_told_to_be() -> None:
    advice = "from gradplane import _privileges\n{}print(_privileges.remedy(['NET_RAW']))"
    assert told(advice.format("")).startswith("root has no CAP_NET_RAW here")
    assert told(advice.format("import os; os.setuid(1000)\n"), "setuid") == "run as root\n"
