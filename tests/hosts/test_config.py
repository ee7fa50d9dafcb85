import json
import re
from dataclasses import replace

import pytest
from memory_network import JOB, make_job

from gradplane.codecs import ErrorFeedback, LocalSteps
from gradplane.hosts.config import ConfigError, HostConfig, JobConfig
from gradplane.hosts.protocols.job_codec import make_codec, parts, push_codec, summed_codec

ROLE = "gradplane.hosts.drivers.roles:SwitchWorkerRole"
HOST = HostConfig("h1", "10.0.0.1", ROLE, 0, JOB, ({"model": "nth", "n": 3},), "h1.jsonl", None)


def test_json_round_trip():
    job = JOB.changed(aggregation="ps", server_address=("10.0.0.5", 21003))
    for host in (HOST, replace(HOST, worker=None, job=job, start_at=5)):
        assert HostConfig.from_json(host.to_json()) == host


def test_a_job_in_json_is_flat_whatever_record_has_the_field():
    written = json.loads(HOST.to_json())["job"]
    assert (written["number"], written["slots"], written["lr"]) == (3, 4, 0.1)
    assert written["aggregator"] == [*JOB.addresses.aggregator]
    assert JobConfig.of(JOB.flat()) == JOB


def test_a_changed_job_keeps_its_other_values():
    changed = JOB.changed(slots=6, quorum=3)
    assert (changed.transport.slots, changed.quorum) == (6, 3)
    assert changed.changed(slots=JOB.transport.slots, quorum=JOB.quorum) == JOB
    with pytest.raises(TypeError, match="'slotz'"):
        JOB.changed(slotz=6)


def test_stream_ports_are_a_thousand_up():
    assert JOB.addresses.stream(1) == ("10.0.0.2", 21003)


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"codec": ("float32", {})},
            "codec float32: its codes cannot be summed in the switch: "
            "use a summable codec such as thc",
        ),
        (
            {"codec": ("uniform_thc", {"bits": 5})},
            "codec uniform_thc: 32 codes do not fit the packets' 4-bit fields: use code_bits = 8",
        ),
        (
            {"workers": 16},
            "granularity 30 × 16 workers = 480 does not fit 8-bit sums: "
            "use sum_bits = 16 or granularity ≤ 15",
        ),
        (
            {"workers": 33, "sum_bits": 16, "codec": ("thc", {"granularity": 2000})},
            "granularity 2000 × 33 workers = 66000 does not fit 16-bit sums: "
            "use sum_bits = 32 or granularity ≤ 1985 or 32 workers or fewer",
        ),
    ],
)
def test_codecs_that_the_switch_cannot_sum(changes, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        summed_codec(make_job(**changes))


def test_local_steps_and_codecs_by_tensor():
    by_tensor = ("per_tensor", {"parts": [[4, {"name": "thc"}], [3, {"name": "threelc"}]]})
    codec = push_codec(make_job(codec=by_tensor, local_steps=2))
    assert isinstance(codec, LocalSteps) and codec.steps == 2
    fed, own = parts(codec)
    assert isinstance(fed, ErrorFeedback) and fed.name == "thc"
    assert own.name == "threelc" and not isinstance(own, ErrorFeedback)  # it has a memory


def test_codec_errors_say_where():
    with pytest.raises(ConfigError, match='^pull_codec: no codec "thx"'):
        make_codec(("thx", {}), "pull_codec")
