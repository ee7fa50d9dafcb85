"""Hosts as forks of one process: each one's exit status is told, however many end at once."""

import json
import os
import select
import socket
import subprocess
import sys


def test_all_statuses_are_told_where_many_end_at_once(tmp_path):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    argv = [sys.executable, "-P", "-m", "gradplane.hosts", "--forks", str(theirs.fileno())]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdout=pipe, pass_fds=[theirs.fileno()]) as server, ours:
        theirs.close()
        statuses = []
        for number in range(20):
            status, told = os.pipe()
            request = {"config": str(tmp_path / f"{number}.json"), "namespaces": os.getpid()}
            with open(os.devnull, "r+b") as null:
                given = [null.fileno(), null.fileno(), null.fileno(), told]
                socket.send_fds(ours, [json.dumps(request).encode()], given)
            os.close(told)
            statuses.append(status)
        for status in statuses:
            assert select.select([status], [], [], 60)[0]
            assert os.read(status, 16) == b"1"
            os.close(status)
        assert len([server.stdout.readline() for _ in statuses]) == 20
        ours.close()
        assert server.wait(60) == 0
