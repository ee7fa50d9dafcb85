"""The P4Runtime server with TLS: our controller, the commands' client and strangers."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gradplane.controller import Controller, Credentials
from gradplane.controller.controller_errors import ControllerError, RequestError
from gradplane.switch.commands import NoPorts
from gradplane.switch.daemon.clients import ClientTls, CommandClient, Refused
from gradplane.switch.daemon.command_service import CommandService
from gradplane.switch.daemon.live_switch import make_device
from gradplane.switch.daemon.options import SwitchOptions
from gradplane.switch.p4runtime.server import P4RuntimeServer, ServerError, ServerTls

ROUTER = Path(__file__).parent / "programs" / "router.p4"

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl makes certificates"
)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an authority (ca), and a server's, a client's and another authority's
    PEM."""
    folder: Path = tmp_path_factory.mktemp("pki")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other"):
        openssl("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem",
                "-subj", f"/CN={name}", "-days", "2")  # fmt: skip
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for name, authority in (("server", "ca"), ("client", "ca"), ("stranger", "other")):
        openssl(
            "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"
        )
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey",
                f"{authority}.key", "-CAcreateserial", "-out", f"{name}.pem", "-days", "2",
                "-extfile", "names")  # fmt: skip
    return folder


def server(tls: ServerTls) -> P4RuntimeServer:
    device = make_device(SwitchOptions(program=ROUTER))
    commands = CommandService(device, NoPorts()).handler
    return P4RuntimeServer(device, "127.0.0.1:0", [commands], tls=tls)


@pytest.fixture
def plain(pki: Path) -> ServerTls:
    return ServerTls(pki / "server.pem", pki / "server.key")


@pytest.fixture
def strict(plain: ServerTls, pki: Path) -> ServerTls:
    return replace(plain, cacert=pki / "ca.pem", client_auth=True)


@pytest.fixture
def served(plain: ServerTls) -> Iterator[str]:
    with server(plain) as running:
        yield running.address


@pytest.fixture
def guarded(strict: ServerTls) -> Iterator[str]:
    with server(strict) as running:
        yield running.address


def counters(address: str, credentials: Credentials | None) -> object:
    async def run() -> object:
        async with Controller(address, credentials=credentials) as controller:
            return await controller.counters()

    return asyncio.run(run())


def entries(address: str, tls: ClientTls | None) -> str:
    with CommandClient(address, tls) as client:
        (answer,) = client.run("table_num_entries ipv4_lpm", "test")
    return answer["output"]


@pytest.mark.p4runtime("3.1.1-1")
def test_the_servers_certificate_is_checked(served: str, pki: Path) -> None:
    trusted = Credentials(cacert=pki / "ca.pem", cert=None, private_key=None)
    assert counters(served, trusted) == {}
    assert entries(served, ClientTls(pki / "ca.pem")) == "0"
    with pytest.raises(RequestError, match="connect refused: UNAVAILABLE"):
        counters(served, replace(trusted, cacert=pki / "other.pem"))
    with pytest.raises(Refused, match="no switch answers"):
        entries(served, ClientTls(pki / "other.pem"))


def test_a_plain_connection_is_refused(served: str) -> None:
    with pytest.raises(RequestError, match="connect refused: UNAVAILABLE"):
        counters(served, None)
    with pytest.raises(Refused, match="no switch answers"):
        entries(served, None)


@pytest.mark.p4runtime("3.1.1-1")
def test_clients_certificates_are_checked(guarded: str, pki: Path) -> None:
    own = Credentials(
        cacert=pki / "ca.pem", cert=pki / "client.pem", private_key=pki / "client.key"
    )
    assert counters(guarded, own) == {}
    assert (
        entries(guarded, ClientTls(pki / "ca.pem", pki / "client.pem", pki / "client.key")) == "0"
    )
    with pytest.raises(RequestError, match="connect refused: UNAVAILABLE"):
        counters(guarded, replace(own, cert=pki / "stranger.pem", private_key=pki / "stranger.key"))
    with pytest.raises(Refused, match="no switch answers"):
        entries(guarded, ClientTls(pki / "ca.pem"))


def test_a_certificate_without_its_key_is_refused(pki: Path) -> None:
    """gRPC would end the process."""
    for cert, key in ((pki / "client.pem", None), (None, pki / "client.key")):
        half = Credentials(cacert=pki / "ca.pem", cert=cert, private_key=key)
        with pytest.raises(ControllerError) as caught:
            Controller("127.0.0.1:1", credentials=half)
        assert str(caught.value) == "credentials: cert and private_key: give both or none"


def test_files_that_are_no_certificates(plain: ServerTls, pki: Path) -> None:
    with pytest.raises(ServerError) as caught:
        server(replace(plain, key=pki / "client.key")).start()
    assert str(caught.value).startswith(
        f"TLS cannot use {pki / 'server.pem'}, {pki / 'client.key'}: [X509: KEY_VALUES_MISMATCH]"
    )
    with pytest.raises(FileNotFoundError):
        server(replace(plain, cert=pki / "none.pem")).start()
