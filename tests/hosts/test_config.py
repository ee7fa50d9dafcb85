import json
import re
from dataclasses import replace

import pytest
from memory_network import JOB, make_job

from gradplane.codecs import ErrorFeedback, LocalSteps
from gradplane.hosts.config import ConfigError, HostConfig
from gradplane.hosts.protocols.job_codec import make_codec, parts, push_codec, summed_codec

ROLE = "gradplane.hosts.drivers.roles:SwitchWorker"
HOST = HostConfig("h1", "10.0.0.1", ROLE, 0, JOB, ({"model": "nth", "n": 3},), "h1.jsonl", None)


def test_json_round_trip():
    job = replace(JOB, aggregation="ps", server_address=("10.0.0.5", 21003))
    for host in (HOST, replace(HOST, worker=None, job=job, start_at=5)):
        assert HostConfig.from_json(host.to_json()) == host


def test_stream_ports_are_a_thousand_up():
    assert JOB.stream_address(1) == ("10.0.0.2", 21003)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"number": 256}, "number = 256: it must be from 0 to 255"),
        ({"workers": 65}, "workers = 65: it must be from 1 to 64, the packets' bitmap has 64 bits"),
        ({"quorum": 5}, "quorum = 5: it must be from 1 to 4, there are no more workers"),
        ({"quorum": True}, "quorum = True: it must be an integer from 1 to 4"),
        ({"reliability": ""}, "reliability = '': it must be 'lossy' or 'retransmit'"),
        ({"sum_bits": 32}, "sum_bits = 32: it must be 8 or 16"),
        ({"slots": 0}, "slots = 0: it must be from 2 to 65536"),
        (
            {"slots": 5},
            "slots = 5: two halves alternate, so it must be even: use 4 or 6",
        ),
        ({"timeout_ns": 0}, "timeout_ns = 0: it must be at least 1"),
        ({"retries": -1}, "retries = -1: it must be at least 0"),
        (
            {"worker_addresses": ()},
            "worker_addresses has 0 entries, workers = 4: give each worker one",
        ),
        (
            {"bound": 10},
            "bound = 10: only marked transfers are compressed by the network: "
            "use marked = true, or leave bound out",
        ),
        (
            {"marked": True, "bound": 10},
            "marked = true with codec thc: the network compresses float32 values only: "
            "use codec float32, or marked = false",
        ),
        (
            {"codec": ("float32", {}), "marked": True},
            "bound = None: it must be 6 or 8 or 10",
        ),
        (
            {"codec": ("float32", {}), "marked": True, "bound": 7},
            "bound = 7: it must be 6 or 8 or 10",
        ),
        (
            {"codec_ns": -1.0},
            "codec_ns = -1.0: it must be a number of nanoseconds, at least 0",
        ),
        (
            {"reduce_ns": float("inf")},
            "reduce_ns = inf: it must be a number of nanoseconds, at least 0",
        ),
    ],
)
def test_impossible_jobs(changes, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        replace(JOB, **changes)


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"role": "switch"},
            "role = 'switch': write module:object, such as"
            " gradplane.hosts.drivers.roles:SwitchWorker",
        ),
        ({"worker": 4}, "worker = 4: it must be from 0 to 3"),
    ],
)
def test_impossible_hosts(changes, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        replace(HOST, **changes)


def edited(edit):
    raw = json.loads(HOST.to_json())
    edit(raw)
    return json.dumps(raw)


@pytest.mark.parametrize(
    "edit, message",
    [
        (lambda raw: raw.update(rol=1), "host: unknown key 'rol', did you mean 'role'?"),
        (lambda raw: raw["job"].update(slot=1), "job: unknown key 'slot', did you mean 'slots'?"),
        (lambda raw: raw["job"].pop("lr"), "job: missing lr"),
        (lambda raw: raw.update(job=[]), "job: expected an object, got list"),
    ],
)
def test_json_that_does_not_fit(edit, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        HostConfig.from_json(edited(edit))


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"codec": ("float32", {})},
            "codec float32: its codes cannot be summed in the switch: "
            'use a summable codec such as thc, or aggregation = "ps"',
        ),
        (
            {"codec": ("uniform_thc", {"bits": 5})},
            "codec uniform_thc: 32 codes do not fit the packets' 4-bit fields: "
            'use bits <= 4, or aggregation = "ps"',
        ),
        (
            {"workers": 16},
            "granularity 30 × 16 workers = 480 does not fit 8-bit sums: "
            "use sum_bits = 16 or granularity ≤ 15",
        ),
        (
            {"workers": 33, "sum_bits": 16, "codec": ("thc", {"granularity": 2000})},
            "granularity 2000 × 33 workers = 66000 does not fit 16-bit sums: "
            "use granularity ≤ 1985",
        ),
    ],
)
def test_codecs_that_the_switch_cannot_sum(changes, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        summed_codec(make_job(**changes))


def test_local_steps_and_codecs_by_tensor():
    with pytest.raises(ConfigError, match="^local_steps = 0: it must be at least 1"):
        make_job(local_steps=0)
    by_tensor = ("per_tensor", {"parts": [[4, {"name": "thc"}], [3, {"name": "threelc"}]]})
    codec = push_codec(make_job(codec=by_tensor, local_steps=2))
    assert isinstance(codec, LocalSteps) and codec.steps == 2
    fed, own = parts(codec)
    assert isinstance(fed, ErrorFeedback) and fed.name == "thc"
    assert own.name == "threelc" and not isinstance(own, ErrorFeedback)  # it has a memory


def test_errors_carry_the_field():
    for changes, key in (({"slots": 5}, "slots"), ({"workers": 65}, "workers")):
        with pytest.raises(ConfigError) as refused:
            replace(JOB, **changes)
        assert refused.value.key == key


def test_codec_errors_say_where():
    with pytest.raises(ConfigError, match="^pull_codec: no codec 'thx'"):
        make_codec(("thx", {}), "pull_codec")
