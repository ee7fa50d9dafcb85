"""Experiment files: defaults, overrides, seeds, and every refusal in whole."""

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from gradplane.experiment.document import dumps
from gradplane.experiment.loading import Experiment, ExperimentError, load, load_deployment
from gradplane.experiment.schema import Job, Output, SwitchSection, TopologySection
from gradplane.experiment.shipped import is_study

ROOT = Path(__file__).parents[2]


def write(folder: Path, text: str) -> Path:
    path = folder / "e.toml"
    path.write_text(text)
    return path


def refusal(path: Path, *settings: str) -> str:
    with pytest.raises(ExperimentError) as caught:
        load(path, settings)
    return str(caught.value).replace(str(path), "e.toml")


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    experiment = load(write(tmp_path, "seed = 5\n[topology]\nworkers = 3\n"))
    (job,) = experiment.job
    assert experiment.name == "e"
    assert (job.name, job.workers, job.quorum, job.seed) == ("e", 3, 3, 5)
    assert job.push.name == "thc" and job.pull is None


def test_a_servers_job_answers_in_float32(tmp_path: Path) -> None:
    experiment = load(write(tmp_path, '[[job]]\naggregation = "ps"\npush = "float16"\n'))
    assert experiment.job[0].pull is not None
    assert experiment.job[0].pull.name == "float32"


def test_several_jobs_have_names_and_hosts_of_their_own(tmp_path: Path) -> None:
    text = "[topology]\nworkers = 5\n[[job]]\nworkers = 2\n[[job]]\nfirst_host = 3\n"
    jobs = load(write(tmp_path, text)).job
    assert [job.name for job in jobs] == ["job0", "job1"]
    assert [job.workers for job in jobs] == [2, 3]


def test_a_resolved_experiment_is_the_same_when_read_again(tmp_path: Path) -> None:
    text = '[[impairment]]\nmodel = "bernoulli"\nrate = 0.1\n[[job]]\nquorum = 2\n'
    experiment = load(write(tmp_path, text), ["job.model.hidden=[3, 4]"])
    again = tmp_path / "again.toml"
    again.write_text(dumps(experiment.values()))
    assert load(again) == experiment
    assert load(experiment) == experiment
    assert pickle.loads(pickle.dumps(experiment)) == experiment


def test_the_seed_is_everybodys(tmp_path: Path) -> None:
    text = '[[job]]\nseed = 3\n[[impairment]]\nmodel = "bernoulli"\nrate = 0.1\nseed = 4\n'
    path = write(tmp_path, text)
    as_written, reseeded = load(path), load(path, seed=9)
    assert (as_written.job[0].seed, as_written.impairment[0].seed) == (3, 4)
    assert (reseeded.seed, reseeded.job[0].seed, reseeded.impairment[0].seed) == (9, 9, 9)


def test_settings_reach_into_defaults(tmp_path: Path) -> None:
    experiment = load(
        write(tmp_path, "seed = 1\n"), ["job.push.granularity=20", "topology.delay=2ms"]
    )
    assert experiment.job[0].push.args == {"version": 3, "granularity": 20}
    assert experiment.topology.args == {"delay": "2ms"}


def test_ones_own_program_is_found_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.p4").write_text("")
    experiment = load(write(tmp_path, '[switch]\nprogram = "mine.p4"\n'))
    assert experiment.switch.program == str(tmp_path / "mine.p4")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[job]]\nslotz = 4\n", 'e.toml:2: unknown key job.0.slotz: did you mean "slots"?'),
        (
            "[output]\nzzz = 4\n",
            "e.toml:2: unknown key output.zzz: known: baseline, gradients_mb, pcap, report,"
            " target_accuracy",
        ),
        ("[[job]]\nquorum = 32768\n", "e.toml:2: job.0.quorum = 32768: expected from 1 to 32767"),
        (
            "[[job]]\ntimeout_ms = 0\n",
            "e.toml:2: job.0.timeout_ms = 0: expected from 1e-06 to 1000000000000.0",
        ),
        ("[[job]]\nretries = -1\n", "e.toml:2: job.0.retries = -1: expected at least 0"),
        ("[[job]]\nlocal_steps = 0\n", "e.toml:2: job.0.local_steps = 0: expected at least 1"),
        ("[[job]]\nbound = 7\n", "e.toml:2: job.0.bound = 7: expected 6, 8 or 10"),
        (
            "[[job]]\nreduce_ns_per_value = inf\n",
            "e.toml:2: job.0.reduce_ns_per_value = inf: expected a finite number at least 0",
        ),
        (
            '[switch]\nprogram = "tos_compress.p4"\n[[job]]\nmarked = true\nbound = 6\n'
            'aggregation = "ps"\n[topology]\nkind = "ring"\n',
            'e.toml:3: marked = true with push = "thc": the network compresses float32 values only:'
            ' use push = "float32", or marked = false',
        ),
        ("[[job]]\nlr = -1.5\n", "e.toml:2: job.0.lr = -1.5: expected above 0"),
        (
            "[[job]]\nmomentum = 1\n",
            "e.toml:2: job.0.momentum = 1: expected at least 0 and below 1",
        ),
        (
            "[[job]]\nslots = 7\n",
            "e.toml:2: job.0.slots = 7: expected from 2 to 65534 and a multiple of 2",
        ),
        (
            "[[job]]\nepochs = 1.5\n",
            "e.toml:2: job.0.epochs = 1.5: expected a whole number at least 1",
        ),
        ('[[job]]\nlr = "x"\n', 'e.toml:2: job.0.lr = "x": expected a number above 0'),
        ("[[job]]\nsync = 1\n", "e.toml:2: job.0.sync = 1: expected true or false"),
        ("[[job]]\nname = 1\n", "e.toml:2: job.0.name = 1: expected text in quotes"),
        ("[[job]]\nsum_bits = 9\n", "e.toml:2: job.0.sum_bits = 9: expected 8, 16 or 32"),
        (
            '[[job]]\naggregation = "tree"\n',
            'e.toml:2: job.0.aggregation = "tree": expected "optireduce", "plan", "ps", "ring",'
            ' "shared" or "switch", or your own: "module:object", or "file.py" (docs/own-parts.md)',
        ),
        ("[[job]]\npush = { bits = 4 }\n", "e.toml:2: job.0.push.name is missing"),
        ("[[job]]\npush = 4\n", "e.toml:2: job.0.push = 4: expected a table"),
        (
            '[[job]]\npush = [["w*", "thc"]]\n',
            'e.toml:2: no tensor is called "w*": model mlp has layer0.weights, layer0.bias,'
            " layer1.weights, layer1.bias",
        ),
        (
            '[[job]]\npush = [["*.weights", "thc"]]\n',
            'e.toml:2: no pattern fits tensor layer0.bias: add ["*", "float32"] as the last',
        ),
        (
            '[[job]]\npush = [["*", 3]]\n',
            'e.toml:2: ["*", 3]: expected a pattern and a codec, as in a list such as'
            ' [["*.weights", "threelc"], ["*", "float32"]]',
        ),
        (
            "[[job]]\npush = []\n",
            'e.toml:2: expected a list such as [["*.weights", "threelc"], ["*", "float32"]]',
        ),
        (
            "[[job]]\nlocal_steps = 2\n",
            'e.toml:2: local_steps = 2 with aggregation = "switch": only a parameter server\'s'
            ' workers may send nothing in a round: use aggregation = "ps" without marked, or'
            " local_steps = 1",
        ),
        ("job = 4\n", "e.toml:1: job = 4: expected a list"),
        (
            "[job]\nquorum = 2\n",
            "e.toml:1: [job] is a single table: write [[job]], as there may be several",
        ),
        (
            '[switch]\ntarget = "absent"\n',
            'e.toml:2: no target "absent": known: bmv2, embedded, tna, tofino, or your own:'
            ' "module:object", or "file.py" (docs/own-parts.md)',
        ),
        (
            "[topology]\ndelay = 2\n",
            'e.toml:2: delay = 2 is 2 ns: write the unit, such as delay = "2ms", or "2ns" if'
            " nanoseconds are meant",
        ),
        (
            "[topology]\nrate = 25\n",
            'e.toml:2: rate = 25 is 25 bit/s: write the unit, such as rate = "25Mbit", or "25bit"'
            " if bits are meant",
        ),
        (
            "[topology]\nworkers = 65\n",
            "e.toml:2: 65 workers in a job that one switch sums: it has 64 at most; write workers"
            ' under [[job]], several jobs with their first_host, or aggregation = "switch" with'
            ' kind = "leaf-spine" and leaves = 2 or more',
        ),
        (
            "[topology]\nloss = 0.01\n",
            'e.toml:2: topology star has no option "loss": it is an [[impairment]] of the'
            ' experiment, with model = "bernoulli" or "burst"',
        ),
        (
            '[topology]\nbw = "10Mbit"\n',
            'e.toml:2: topology star has no option "bw": did you mean "rate"?',
        ),
        (
            '[topology]\ndelay = 2\nrate = 3\n[switch]\nprogram = "none.p4"\n[[job]]\n'
            'lr = -1\nquorum = 5\n[[impairment]]\nmodel = "bernoulli"\nrate = "5%"\n',
            'e.toml:2: delay = 2 is 2 ns: write the unit, such as delay = "2ms", or "2ns" if'
            " nanoseconds are meant\n"
            'e.toml:3: rate = 3 is 3 bit/s: write the unit, such as rate = "3Mbit", or "3bit" if'
            " bits are meant\n"
            "e.toml:5: program {folder}/none.p4: no such file; shipped: shared.p4, shared_tna.p4,"
            " thc.p4, thc_tna.p4, tos_compress.p4, tos_compress_tna.p4\n"
            "e.toml:7: job.0.lr = -1: expected above 0\n"
            "e.toml:8: quorum = 5 of 4 workers: use 1 to 4\n"
            'e.toml:11: impairment.0.rate = "5%": expected a number from 0 to 1, a share: 0.05 is'
            " 5 %",
        ),
        (
            '[topology]\ndelay = 2\nrate = 3\n[switch]\nprogram = "none.p4"\n[[job]]\n'
            "lr = -1\nquorum = 5\n",
            'e.toml:2: delay = 2 is 2 ns: write the unit, such as delay = "2ms", or "2ns" if'
            " nanoseconds are meant\n"
            'e.toml:3: rate = 3 is 3 bit/s: write the unit, such as rate = "3Mbit", or "3bit" if'
            " bits are meant\n"
            "e.toml:5: program {folder}/none.p4: no such file; shipped: shared.p4, shared_tna.p4,"
            " thc.p4, thc_tna.p4, tos_compress.p4, tos_compress_tna.p4\n"
            "e.toml:7: job.0.lr = -1: expected above 0\n"
            "e.toml:8: quorum = 5 of 4 workers: use 1 to 4",
        ),
        (
            '[topology]\ndelay = "2ms"\n[[job]]\ntimeout_ms = 3\n',
            "e.toml:4: timeout_ms = 3 is not above 4.01 ms, the least time from h4 to the switch, 8"
            " times through its pipeline and back: no result would ever be in time: use"
            " timeout_ms = 8.02 or more",
        ),
        (
            '[topology]\nrate = "1Mbit"\n[[job]]\ntimeout_ms = 3\n',
            "e.toml:4: timeout_ms = 3 is not above 13.4 ms, the least time from h4 to the switch, 8"
            " times through its pipeline and back: no result would ever be in time: use"
            " timeout_ms = 26.9 or more",
        ),
        (
            "[switch]\nlatency_us = 1000\n[[job]]\nsum_bits = 16\ntimeout_ms = 4\n",
            "e.toml:5: timeout_ms = 4 is not above 4 ms, the least time from h4 to the switch, 4"
            " times through its pipeline and back: no result would ever be in time: use"
            " timeout_ms = 8 or more",
        ),
        (
            "[switch]\nqueue_depth = 4\n",
            "e.toml:2: queue_depth without queue_rate: packets wait in a switch's own queues only"
            " where these have a rate, in packets a second",
        ),
        (
            '[switch]\ntarget = "bmv2"\nqueue_rate = 4\n',
            'e.toml:3: queue_rate with target "bmv2": only targets "embedded" and "tna" take'
            " the queues of their switches from the experiment",
        ),
        (
            '[switch]\nprogram = "thc_tna.p4"\n',
            'e.toml:2: program thc_tna.p4 is for Tofino: use target = "tna", or program = "thc.p4"',
        ),
        (
            'name = "a/b"\n',
            "e.toml:1: name = \"a/b\": expected letters, digits, '_', '.' and '-',"
            " a letter or digit first",
        ),
        ("job = []\n", "e.toml:1: 0 jobs: there may be 1 to 256"),
        (
            '[switch]\nprogram = "none.p4"\n',
            "e.toml:2: program {folder}/none.p4: no such file; shipped: shared.p4, shared_tna.p4,"
            " thc.p4, thc_tna.p4, tos_compress.p4, tos_compress_tna.p4",
        ),
        (
            "[[job]]\nquorum = 5\n",
            "e.toml:2: quorum = 5 of 4 workers: use 1 to 4",
        ),
        (
            "[[job]]\nworkers = 3\nfirst_host = 3\n",
            "e.toml:2: 3 workers from host 3 on do not fit the topology's 4",
        ),
        (
            "[[job]]\nfirst_host = 9\n",
            "e.toml:1: 1 workers from host 9 on do not fit the topology's 4",
        ),
        (
            "[topology]\nservers = 2\n",
            "e.toml:2: servers is not a key: a host for servers is added where a job needs one",
        ),
        (
            "[[job]]\n[[job]]\nsum_bits = 16\n",
            "e.toml:3: sum_bits = 16 beside 8 of job job0: the switch's program has one width"
            " for all jobs",
        ),
        (
            '[[job]]\npull = "float16"\n',
            'e.toml:2: a switch answers with the sums as they are: pull is for aggregation = "ps"',
        ),
        (
            '[[impairment]]\nmodel = "bernoulli"\nrate = 0.1\nlink = "h9"\n',
            'e.toml:4: no link "h9": known: h1, h2, h3, h4, h5, or "*" for all',
        ),
    ],
)
def test_a_refusal_names_place_key_and_what_is_allowed(
    tmp_path: Path, text: str, message: str
) -> None:
    assert refusal(write(tmp_path, text)) == message.replace("{folder}", str(tmp_path))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (
            '[topology]\nrat = "1Gbit"\n',
            'e.toml:2: topology star has no option "rat": did you mean',
        ),
        ('[[job]]\npush = "thb"\n', 'e.toml:2: no codec "thb", did you mean "thc"?'),
        ("[[job]]\nbatch = 500\n", "e.toml:2: 1438 training rows over 4 workers are 359 each"),
        (
            '[[job]]\nmodel = "mlq"\n',
            'e.toml:2: no model "mlq": did you mean "mlp"? use one of mlp, softmax',
        ),
        ('[[job]]\ndata = "no:x"\n', "e.toml:2: data no:x: cannot import no (No module named"),
        (
            '[[job]]\npush = "float32"\n',
            "e.toml:2: codec float32: its codes cannot be summed in the switch: use a summable"
            ' codec such as thc, or aggregation = "ps"',
        ),
        (
            "[[job]]\npush = { name = 'thc', granularity = 80 }\n",
            "e.toml:2: granularity 80 × 4 workers = 320 does not fit 8-bit sums",
        ),
    ],
)
def test_refusals_of_other_rooms_come_with_the_place(tmp_path: Path, text: str, start: str) -> None:
    assert refusal(write(tmp_path, text)).startswith(start)


def test_keys_in_a_wrong_section_are_led_to_theirs(tmp_path: Path) -> None:
    text = """workers = 3
epochs = 4
[topology]
packet_loss = 0.1
[switch]
rate = "1Mbit"
[[job]]
loss = 0.1
data = "digit"
model = { name = "mlp", hiden = [3] }
"""
    place = "it is an [[impairment]] of the experiment, with model ="
    assert refusal(write(tmp_path, text)).splitlines() == [
        "e.toml:1: unknown key workers: it is a key of [topology], [[job]] and [[impairment]]",
        "e.toml:2: unknown key epochs: it is a key of [[job]]",
        f'e.toml:4: topology star has no option "packet_loss": {place} "bernoulli" or "burst"',
        "e.toml:6: unknown key switch.rate: it is a key of [topology], [[impairment]] and"
        " [[traffic]]",
        f'e.toml:8: unknown key job.0.loss: {place} "bernoulli" or "burst"',
        'e.toml:9: no data "digit": did you mean "digits"? use one of blank, breast_cancer,'
        ' digits, wine, or your own: "module:object", or "file.py" (docs/own-parts.md)',
        "e.toml:10: model mlp: called with features, classes, hiden, but it takes (features,"
        ' classes, hidden=(54,)) (did you mean "hidden"?)',
    ]


TYPES = (
    '"norm", "norm result", "indices", "sums", "straggler", "partial", "status", "epoch",'
    ' "question", "part", "mean", "stream",'
    ' "values", "ack", "other"'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'model = "random"',
            '2: impairment.0.model = "random": expected "bernoulli", "nth", "burst", "corruption",'
            ' "duplication", "reordering", "jitter", "drop list", "recorded", "straggler", "crash",'
            ' "late join" or "restart"',
        ),
        ("rate = 0.1", "1: impairment.0.model is missing"),
        ('model = "nth"', "1: impairment.0.n is missing"),
        ('model = "nth"\nn = 0', "3: impairment.0.n = 0: expected at least 1"),
        ('model = "nth"\nn = "3"', '3: impairment.0.n = "3": expected a whole number at least 1'),
        (
            'model = "bernoulli"\nrate = 0\nrates = 0.1',
            '4: unknown key impairment.0.rates: did you mean "rate"?',
        ),
        (
            'model = "nth"\nn = 2\nrate = 0.1',
            '4: unknown key impairment.0.rate: it is a key of model "bernoulli", "corruption",'
            ' "duplication" or "reordering", and this is "nth"',
        ),
        (
            'model = "bernoulli"\nrate = 1.5',
            "3: impairment.0.rate = 1.5: expected from 0 to 1, a share: 0.05 is 5 %",
        ),
        (
            'model = "nth"\nn = 2\ndirection = "out"',
            '4: impairment.0.direction = "out": expected "up", "down" or "both"',
        ),
        (
            'model = "nth"\nn = 2\nflow = "results"',
            '4: impairment.0.flow = "results": expected "agg", "stream", "all" or a list of'
            f" {TYPES}",
        ),
        (
            'model = "drop list"\npackets = [{ slots = 1 }]',
            '3: unknown key impairment.0.packets.0.slots: did you mean "slot"?',
        ),
        (
            'model = "drop list"\npackets = [{ verdict = "lose" }]',
            '3: impairment.0.packets.0.verdict = "lose": expected "drop", "delay", "leave out",'
            ' "corrupt" or "duplicate"',
        ),
        (
            'model = "drop list"\npackets = [{ type = "sum" }]',
            f'3: impairment.0.packets.0.type = "sum": expected {TYPES}',
        ),
        (
            'model = "straggler"\ncount = 5\ndelay_ms = 1',
            "3: impairment straggler: count = 5: the job has 4 workers",
        ),
        (
            'model = "straggler"\ncount = 1\ndelay_ms = 0',
            "4: impairment.0.delay_ms = 0: expected at least 1e-06",
        ),
        (
            'model = "straggler"\ncount = 1\ndelay_ms = 1\nrounds = 3',
            "5: impairment.0.rounds = 3: expected a list",
        ),
        (
            'model = "straggler"\ndelay_ms = 1',
            "1: impairment straggler: give either workers (a list) or count",
        ),
        (
            'model = "straggler"\ncount = 1',
            "1: impairment straggler: give either delay_ms or leave_out = true",
        ),
        (
            'model = "straggler"\ncount = 1\ndelay_ms = 1\nevery = 2\nrounds = [1]',
            "1: impairment straggler: give one of probability, every and rounds",
        ),
        (
            'model = "straggler"\ncount = 1\ndelay_ms = 1\nevery = 0',
            "5: impairment.0.every = 0: expected at least 1",
        ),
        (
            'model = "straggler"\nworkers = [4]\ndelay_ms = 1',
            "3: impairment straggler: worker 4: the job's are 0 to 3",
        ),
        (
            'model = "straggler"\nworkers = [-1]\ndelay_ms = 1',
            "3: impairment.0.workers.0 = -1: expected at least 0",
        ),
    ],
)
def test_impairments_that_cannot_be(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(write(tmp_path, f"[[impairment]]\n{text}\n")) == f"e.toml:{message}"


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "[[job]]\nquorum = 32768\nslotz = 4\n[output]\npcap = 3\n")
    assert refusal(path).splitlines() == [
        "e.toml:2: job.0.quorum = 32768: expected from 1 to 32767",
        'e.toml:3: unknown key job.0.slotz: did you mean "slots"?',
        "e.toml:5: output.pcap = 3: expected true or false",
    ]


def test_a_setting_is_named_where_it_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path, "[[job]]\nquorum = 2\n")
    assert refusal(path, "job.quorum=9") == (
        "--set job.quorum=9: quorum = 9 of 4 workers: use 1 to 4"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["jobs.quorum=3"], '--set jobs.quorum=3: unknown key jobs: did you mean "job"?'),
        (["topolgy.workers=3"], "--set topolgy.workers=3: unknown key topolgy: did you mean"),
        (
            ["topology.workers=1"],
            "--set topology.workers=1: quorum = 2 of 1 workers: use 1 to 1",
        ),
        (
            ["job.aggregation=ring", "job.reliability=retransmit", "job.push=float32"],
            '--set job.aggregation=ring: aggregation = "ring" with quorum = 2 of 4 workers',
        ),
        (["job.push.bit=3"], '--set job.push.bit=3: thc has no parameter "bit", did you mean'),
    ],
)
def test_a_setting_is_named_for_what_it_makes_wrong(
    tmp_path: Path, settings: list[str], message: str
) -> None:
    path = write(tmp_path, "[[job]]\nquorum = 2\n")
    assert refusal(path, *settings).startswith(message)


def test_a_setting_mends_what_the_file_has_wrong(tmp_path: Path) -> None:
    path = write(tmp_path, "[[job]]\nquorum = 65\npush = 'thc'\n")
    (job,) = load(path, ["job.quorum=3", "job.push.granularity=20"]).job
    assert job.quorum == 3 and job.push.args == {"version": 3, "granularity": 20}


def test_recorded_experiments_are_not_judged_by_what_is_meant(tmp_path: Path) -> None:
    path = write(tmp_path, "[topology]\ndelay = 2\n[[job]]\ntimeout_ms = 1e-6\n")
    assert load_deployment(path, recorded=True).jobs[0].config.transport.timeout_ns == 1


def test_one_jobs_error_is_printed_at_that_job(tmp_path: Path) -> None:
    text = '[topology]\nkind = "ring"\nworkers = 2\n[[job]]\nworkers = 1\n[[job]]\n'
    assert refusal(write(tmp_path, text)).splitlines() == [
        "e.toml:6: job job1: its workers are attached to switches s1, s2, and switch s1 has workers"
        " and passes on what switch s2 sums: a switch sums for workers or for switches: use kind ="
        ' "leaf-spine", or a switch without workers above both, place the workers on one switch, or'
        ' use aggregation = "ps", or "ring" with "retransmit"'
    ]


def _keys(model: type[BaseModel]) -> set[str]:
    return set(model.model_fields)


@pytest.mark.parametrize("section", [Experiment, TopologySection, SwitchSection, Job, Output])
def test_every_key_is_documented(section: type[BaseModel]) -> None:
    text = (ROOT / "docs" / "experiments.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))
    sections = set(re.findall(r"^## \[+(\w+)\]+", text, re.MULTILINE))
    assert _keys(section) - rows - sections == set()


SHIPPED = sorted(p for p in (ROOT / "experiments").glob("*.toml") if not is_study(p))


@pytest.mark.parametrize("path", SHIPPED, ids=str)
def test_shipped_experiments_are_accepted(path: Path) -> None:
    assert load(path).name == path.stem


def test_documented_defaults_are_the_defaults() -> None:
    text = (ROOT / "docs" / "experiments.md").read_text()
    for section in (TopologySection, SwitchSection, Job, Output):
        for key, field in section.model_fields.items():
            default: Any = field.default
            if isinstance(default, int | float | str) and default != "":
                shown = dumps({"x": default})[4:-1]
                assert re.search(rf"^\| `{key}` \| `?{re.escape(shown)}`? ", text, re.MULTILINE), (
                    key
                )


def test_problems_of_all_sections_are_said_at_once(tmp_path: Path) -> None:
    """Each problem with its line, also where one of another section is found first."""
    path = tmp_path / "all.toml"
    path.write_text("""
[topology]
workers = 4
rate = 25
loss = 0.01

[switch]
target = "embeded"
program = "ruter.p4"

[[job]]
push = "thcc"
epoch = 3
quorum = 9
workers = 2

[[job]]
push = { name = "thc", bitz = 3 }
data = "digitz"
workers = 2
first_host = 3

[[impairment]]
model = "bernoulli"
rate = 5
link = "h99"

[[impairment]]
model = "burst"
p = 0.01

[[impairment]]
model = "nth"
n = 3
link = "h98"

[[traffic]]
source = "h1"
""")
    with pytest.raises(ExperimentError) as refused:
        load(path)
    lines = [line.removeprefix(f"{path}:") for line in str(refused.value).splitlines()]
    starts = {
        4: "rate = 25 is 25 bit/s: write the unit",
        5: 'topology star has no option "loss": it is an [[impairment]] of the experiment',
        8: 'no target "embeded": did you mean "embedded"? known: bmv2, embedded, ',
        9: f"program {tmp_path}/ruter.p4: no such file; shipped: ",
        12: 'no codec "thcc", did you mean "thc"? ',
        13: 'unknown key job.0.epoch: did you mean "epochs"?',
        14: "quorum = 9 of 2 workers: use 1 to 2",
        18: 'thc has no parameter "bitz", did you mean "bits"? ',
        19: 'no data "digitz": did you mean "digits"? use one of ',
        25: "impairment.0.rate = 5: expected from 0 to 1, a share: 0.05 is 5 %",
        28: "impairment.1.r is missing",
        35: 'no link "h98": ',
        37: "traffic.0.destination is missing",
    }
    found = {int(number): text for number, _, text in (line.partition(": ") for line in lines)}
    assert found.keys() == starts.keys()
    assert [n for n, text in found.items() if not text.startswith(starts[n])] == []
