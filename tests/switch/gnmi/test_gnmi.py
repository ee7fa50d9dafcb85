"""gNMI on a live switch, asked by finsy's client in a network namespace; and its paths."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from finsy.gnmipath import GNMIPath
from finsy.proto import gnmi

from gradplane.switch.gnmi.interfaces import Pattern
from gradplane.switch.gnmi.service import GnmiService
from gradplane.switch.p4runtime.status_errors import RpcError

WORLD = Path(__file__).parent / "gnmi_world.py"
NAMESPACES = ["unshare", "--net", "--map-root-user", "--pid", "--fork", "--kill-child"]


def refused() -> str:
    done = subprocess.run([*NAMESPACES, "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip()


REFUSED = refused()


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    if REFUSED:
        pytest.skip(f"no network namespace here: {REFUSED}")
    command = [*NAMESPACES, "--mount-proc", sys.executable, str(WORLD)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_what_is_offered(seen: dict[str, Any]) -> None:
    assert seen["models"] == ["openconfig-interfaces"]
    assert seen["version"] == "0.10.0"


def test_state_and_configuration_of_interfaces(seen: dict[str, Any]) -> None:
    second = {
        path.removeprefix("interfaces/interface[name=s2]/state/"): value
        for path, value in seen["state"].items()
        if "s2" in path
    }
    counters = {n: second.pop(n) for n in list(second) if n.startswith("counters/")}
    assert second == {
        "name": "s2", "enabled": True, "ifindex": 7, "id": 7, "admin-status": "UP",
        "oper-status": "UP",
    }  # fmt: skip
    assert len(counters) == 11 and all(isinstance(n, int) for n in counters.values())
    assert seen["config"] == {
        f"interfaces/interface[name={name}]/config/{leaf}": value
        for name in ("s1", "s2")
        for leaf, value in (("name", name), ("enabled", True))
    }
    assert set(seen["status"].values()) == {"UP"} and len(seen["status"]) == 2


def test_json(seen: dict[str, Any]) -> None:
    """RFC 7951: the outermost names say their module, and numbers of 64 bits are strings."""
    module = "openconfig-interfaces"
    assert seen["json"] == [
        {"name": "s1", "enabled": True}, {f"{module}:name": "s1", f"{module}:enabled": True},
        1, 1, 0, "0",
    ]  # fmt: skip


def test_what_does_not_exist(seen: dict[str, Any]) -> None:
    unknown, nothing, key = seen["refused"]
    assert unknown == (
        "NOT_FOUND: /interfaces/interface[name=nope]/state: no port has this interface;"
        " interfaces: s1, s2"
    )
    assert nothing.startswith("NOT_FOUND: the switch has no /interfaces/interface[name=s1]/nothing")
    assert key == (
        "INVALID_ARGUMENT: /interfaces[name=s1]: element 1 has no such key: only"
        " interface[name=...] has one"
    )


def test_links_follow_and_changes_are_told(seen: dict[str, Any]) -> None:
    """s1 is disabled and enabled over gNMI; then the other end of s2 goes down and up."""
    assert seen["changes"] == [
        {"s1": "UP", "s2": "UP"}, ["s1", "DOWN", False], ["s1", "UP", True], ["s2", "DOWN"], "UP",
    ]  # fmt: skip


def test_all_of_a_set_is_done_or_nothing(seen: dict[str, Any]) -> None:
    assert seen["sets"] == [
        [
            "INVALID_ARGUMENT",
            "/interfaces/interface[name=s1]/state/id cannot be set: only config/enabled can",
            True,
        ],
        [
            "INVALID_ARGUMENT",
            "/interfaces/interface[name=s1]/config/enabled: 'no' is neither true nor false",
            True,
        ],
        False,
        True,
    ]


def test_once_and_samples(seen: dict[str, Any]) -> None:
    assert seen["once"] == {"interfaces/interface[name=s2]/state/ifindex": 7}
    assert seen["samples"] == [True, "INVALID_ARGUMENT"]


def test_a_controller_on_finsy_has_the_ports(seen: dict[str, Any]) -> None:
    assert seen["finsy's ports"] == {"s1": [1, True], "s2": [7, True]}


def test_the_end_leaves_no_interface_down(seen: dict[str, Any]) -> None:
    assert (seen["exit status"], seen["s1 at the end"]) == (0, True)


@pytest.fixture
def service() -> GnmiService:
    """The switch's port 1 is the loopback interface."""
    ports: Any = SimpleNamespace(status=lambda: [SimpleNamespace(number=1, interface="lo")])
    return GnmiService(ports)


def test_modes_that_gnmi_does_not_have(seen: dict[str, Any]) -> None:
    assert seen["modes"] == [
        "INVALID_ARGUMENT: mode 5 is unknown; there are STREAM, ONCE, POLL",
        "INVALID_ARGUMENT: /interfaces: mode 7 is unknown; there are TARGET_DEFINED, ON_CHANGE,"
        " SAMPLE",
    ]


VALUES: Any = {
    (name, leaf): 0
    for name in ("a", "b")
    for leaf in ("name", "config/enabled", "state/id", "state/counters/in-pkts")
}


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("", 8),
        ("interfaces", 8),
        ("openconfig-interfaces:interfaces/interface", 8),
        ("interfaces/interface[name=a]", 4),
        ("interfaces/interface[name=*]/state", 4),
        ("interfaces/*/state/id", 2),
        ("interfaces/interface[name=b]/*/enabled", 1),
        (".../counters", 2),
        ("interfaces/.../id", 2),
        ("interfaces/interface[name=b]/...", 4),
    ],
)
def test_wildcards(path: str, named: int) -> None:
    assert len(Pattern(gnmi.Path(), GNMIPath(path).path).of(VALUES)) == named


def test_one_kind_of_data_of_an_interface(service: GnmiService) -> None:
    """Its configuration or its state, as pygnmi asks; also of an interface by its name."""
    path = GNMIPath("interfaces/interface[name=lo]").path
    kinds = gnmi.GetRequest
    for kind, first, leaves in (
        (kinds.ALL, "name", 20),
        (kinds.CONFIG, "config", 2),
        (kinds.STATE, "state", 17),
        (kinds.OPERATIONAL, "state", 17),
    ):
        request = gnmi.GetRequest(path=[path], type=kind, encoding=gnmi.PROTO)
        request.prefix.target = "s1"
        [answer] = service.get(request).notification
        assert (answer.update[0].path.elem[2].name, len(answer.update)) == (first, leaves)
        assert answer.prefix == gnmi.Path(target="s1")


def test_numbers_that_no_enum_of_gnmi_has(service: GnmiService) -> None:
    wrong = gnmi.GetRequest(type=7)  # type: ignore[arg-type]
    with pytest.raises(RpcError, match="INVALID_ARGUMENT: type 7 is unknown; there are ALL, "):
        service.get(wrong)


def test_a_prefix_goes_before_the_path() -> None:
    pattern = Pattern(GNMIPath("interfaces/interface[name=a]").path, GNMIPath("state").path)
    assert sorted(pattern.of(VALUES)) == [("a", "state/counters/in-pkts"), ("a", "state/id")]
    with pytest.raises(RpcError, match='origin "cli" is not openconfig'):
        Pattern(gnmi.Path(origin="cli"), gnmi.Path())
