"""Jobs whose codes have 1, 2, 4 or 8 bits in packets: trained, and their bytes on the wire."""

from pathlib import Path

import pytest

import gradplane
from gradplane._plugins import LoadError
from gradplane.experiment.loading import ExperimentError, load_deployment
from gradplane.runs.replayer import replay_run

TEXT = """
[topology]
workers = 3
[[job]]
model = "softmax"
epochs = 1
batch = 100
[output]
baseline = false
report = false
"""
VALUES = 650  # of the model: a packet a round with 8-bit sums, two with 16-bit ones
OVERHEAD = 42 + 30  # Ethernet, IPv4, UDP and the aggregation header


def write(folder: Path, push: str) -> Path:
    (path := folder / "e.toml").write_text(TEXT.replace("[[job]]", f"[[job]]\npush = {push}"))
    return path


@pytest.mark.parametrize(
    ("push", "width", "target"),
    [
        ('"signsgd"', 1, "embedded"),
        ('{ name = "thc", bits = 1 }', 1, "tna"),
        ('"terngrad"', 2, "tna"),
        ('{ name = "thc", bits = 2 }', 2, "embedded"),
        ('{ name = "thc", bits = 3 }', 4, "embedded"),
        ('"thc"', 4, "embedded"),
    ],
)
def test_codes_have_their_own_width_on_the_wire(
    tmp_path: Path, target: str, push: str, width: int
) -> None:
    path = write(tmp_path, push)
    settings = (f"switch.target={target}",)
    summary = gradplane.run(path, tmp_path / "run", net="sim", settings=settings)
    (job,) = summary.values["jobs"]
    assert job["traffic"]["payload_up"] == 1024 * width / 8
    assert job["traffic"]["payload_down"] == 1024
    assert job["traffic"]["headers_up"] == 2 * OVERHEAD  # with the norm
    assert f"code_bits = {width}\n" in (tmp_path / "run" / "experiment.toml").read_text()
    result = replay_run.replay(tmp_path / "run")
    assert isinstance(result, replay_run.ReplayResult) and result.equal, result.text()


def test_codes_of_five_bits_travel_as_eight(tmp_path: Path) -> None:
    """And in packets of 512 codes, as their sums have 16 bits."""
    path = write(tmp_path, '{ name = "thc", bits = 5, granularity = 200 }')
    settings = ("job.sum_bits=16",)
    summary = gradplane.run(path, tmp_path / "run", net="sim", settings=settings)
    (job,) = summary.values["jobs"]
    assert job["traffic"]["payload_up"] == job["traffic"]["payload_down"] / 2 == 2 * 512


def test_a_folder_of_before_replays_with_fields_of_four_bits(tmp_path: Path) -> None:
    path = write(tmp_path, '{ name = "thc", bits = 2, version = 2 }')
    settings = ("job.code_bits=4",)
    gradplane.run(path, tmp_path / "run", net="sim", settings=settings)
    text = (file := tmp_path / "run" / "experiment.toml").read_text()
    file.write_text(text.replace("code_bits = 4\n", ""))
    (tmp_path / "run" / "manifest.json").unlink()  # which would say that the file was changed
    deployment = load_deployment(file, recorded=True)
    assert deployment.jobs[0].config.transport.code_bits == 4
    assert deployment.jobs[0].config.coding.codec[1]["version"] == 2
    result = replay_run.replay(tmp_path / "run")
    assert isinstance(result, replay_run.ReplayResult) and result.equal, result.text()


def test_all_jobs_of_a_switch_have_the_widest_codes(tmp_path: Path) -> None:
    text = TEXT.replace("workers = 3", "workers = 4").replace("[[job]]", "[[job]]\nworkers = 2")
    second = '[[job]]\nfirst_host = 3\nworkers = 2\npush = "signsgd"\n[output]'
    (path := tmp_path / "e.toml").write_text(text.replace("[output]", second))
    jobs = load_deployment(path).jobs
    assert [job.config.transport.code_bits for job in jobs] == [4, 4]
    narrow = load_deployment(path, ["job.0.push=terngrad"]).jobs
    assert [job.config.transport.code_bits for job in narrow] == [2, 2]


def test_codes_that_do_not_fit_the_width_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, '"thc"')
    with pytest.raises(ExperimentError) as error:
        load_deployment(path, ["job.code_bits=2"])
    assert "codec thc: 16 codes do not fit the packets' 2-bit fields: use code_bits = 4" in str(
        error.value
    )


def test_a_server_says_nothing_of_a_width(tmp_path: Path) -> None:
    (job,) = load_deployment(write(tmp_path, '"thc"'), ["job.aggregation=ps"]).experiment.job
    assert job.code_bits is None


def test_the_width_that_a_users_scheme_gives_is_checked(tmp_path: Path) -> None:
    own = "from gradplane.aggregations import ServerScheme\nclass Five(ServerScheme):\n"
    (tmp_path / "own.py").write_text(own + "    def code_bits(self, job): return 5\n")
    path = write(tmp_path, '"thc"\naggregation = "own.py"\nreliability = "retransmit"')
    with pytest.raises(LoadError, match="code_bits returned int 5; expected 1, 2, 4, 8 or None$"):
        load_deployment(path)
