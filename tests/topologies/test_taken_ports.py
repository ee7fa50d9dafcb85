"""A port that a switch of another maker is to take is looked at before anything starts."""

import socket

import pytest

from gradplane.topologies.child_process import check_free, free_port
from gradplane.topologies.topology_errors import NetworkError


def test_a_taken_port_is_named_with_what_to_do() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(NetworkError) as error:
            check_free("switch s1", "P4Runtime", address)
    assert str(error.value) == (
        f"switch s1: its P4Runtime server cannot listen on {address}: Address already in use;"
        " end the process that listens there, or choose another port"
    )


def test_free_ports_are_taken_without_a_word() -> None:
    check_free("switch s1", "Thrift", f"0.0.0.0:{free_port()}")
    check_free("switch s1", "Thrift", "0.0.0.0:0")
