"""The command line: exit status, what is printed, how errors look."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

import gradplane
from gradplane._shipped_programs import SHIPPED
from gradplane.cli import main
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary
from gradplane.switch import packet_rates

ROOT = Path(__file__).parents[2]
PACKET = "00" * 12 + "0800" + "45" + "00" * 19
Runs = Callable[..., Summary]
Outcome = tuple[int, str, str]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Run a command in 80 columns: exit status, standard output, standard error."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["gradplane", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main.main()
        code = ended.value.code
        return (code if isinstance(code, int) else 0, *capsys.readouterr())

    return run


Command = Callable[..., Outcome]


def test_version(command: Command) -> None:
    assert command("--version") == (0, f"gradplane {gradplane.__version__}\n", "")


def test_help_loads_nothing_heavy() -> None:
    """Modules that take long to import are imported by the command that needs them."""
    heavy = "{'numpy', 'pydantic', 'matplotlib', 'grpc', 'numba', 'finsy', 'scapy'}"
    code = f"import sys, gradplane.cli.app; print(sorted(set(sys.modules) & {heavy}))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert found.stdout == "[]\n"


def test_a_wrong_experiment_is_refused_without_what_only_a_run_needs(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('[topology]\nkind = "star"\nwrkers = 4\n[[job]]\nmodel = "mlp"\n')
    heavy = ["numba", "llvmlite", "grpc", "finsy", "google.protobuf", "pcpp", "sklearn", "scipy"]
    heavy += ["torch", "matplotlib", "jinja2", "mininet", "rich", "asyncio"]
    heavy += ["gradplane.switch.compiler", "gradplane.controller.connection"]
    heavy += ["gradplane.hosts.drivers.roles", "gradplane.runs.run_experiment"]
    code = (
        "import sys; from gradplane.cli.main import main\n"
        f"try: main(['run', {str(file)!r}])\n"
        f"finally: print(sorted(set(sys.modules) & set({heavy})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert 'topology star has no option "wrkers": did you mean "workers"?' in done.stderr
    assert (done.returncode, done.stdout) == (1, "[]\n")


@pytest.mark.parametrize(
    "arguments", [("report", "absent"), ("run", "absent"), ("codecs",)], ids=lambda a: a[0]
)
def test_nothing_is_imported_from_the_current_folder_unasked(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    for name in ("random", "numpy", "queue", "typer", "pydantic"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} was imported')\n")
    done = subprocess.run(
        [sys.executable, "-m", "gradplane", *arguments],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert "was imported" not in done.stdout + done.stderr


def test_run_prints_a_table_and_the_reports_path(
    command: Command, experiment_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    arguments = ["--net", "sim", "--out", out, "--seed", 3, "--set", "job.epochs=1"]
    arguments += ["--set", "output.report=true"]
    status, output, errors = command("run", experiment_file, *arguments)
    assert (status, errors) == (0, "")
    lines = output.splitlines()
    assert lines[0] == "run: starting"
    assert lines[1].startswith("run: training round 0 loss ") and lines[1].endswith(
        " losses injected 0"
    )
    assert lines[-1] == f"report: {out}/report.html"
    rows = [line.split("  ")[0].strip() for line in lines]
    assert "bytes up a round (+ headers)" in rows and "losses injected" in rows
    assert max(map(len, lines[:-1])) <= 80


def test_run_prints_its_summary_as_json_or_nothing(
    command: Command, experiment_file: Path, tmp_path: Path
) -> None:
    options = ("--net", "sim", "--set", "output.baseline=false", "--set", "output.report=false")
    code, out, err = command("run", experiment_file, *options, "--out", tmp_path / "a", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == json.loads((tmp_path / "a" / "summary.json").read_text())
    old = 'impairment=[{model="drop list", packets=[{link="h2", slot=3, round=1}]}]'  # has a note
    options += ("--set", old, "--out", tmp_path / "b", "-q")
    assert command("run", experiment_file, *options) == (0, "", "")


def test_run_verbose_prints_a_line_for_each_round(
    command: Command, experiment_file: Path, tmp_path: Path
) -> None:
    status, output, _ = command(
        "run", experiment_file, "--net", "sim", "--out", tmp_path / "run", "-v"
    )
    assert status == 0
    rounds = [int(n) for n in re.findall(r"^run: training round (\d+) loss", output, re.MULTILINE)]
    assert rounds == [0, 1, 2, 3, 4, 5]
    assert "--verbose: not with --quiet" in command("run", experiment_file, "-v", "-q")[2]


def test_plan_prints_its_json(command: Command) -> None:
    choice = ("lstm", "--system", "pcie-25g", "--codec", "randomk")
    code, out, _ = command("plan", *choice, "--json")
    assert code == 0 and json.loads(out)["system"]


def test_the_citation_is_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {gradplane.__version__}\n" in text


def test_run_refuses_in_a_line_without_a_traceback(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "e.toml"
    path.write_text("[[job]]\nslotz = 4\n")
    assert command("run", path) == (
        1,
        "",
        f'gradplane: {path}:2: unknown key job.0.slotz: did you mean "slots"?\n',
    )
    assert command("run", tmp_path / "none.toml") == (
        1,
        "",
        f"gradplane: {tmp_path}/none.toml: No such file or directory\n",
    )


def test_a_used_folder_is_refused(command: Command, experiment_file: Path, tmp_path: Path) -> None:
    status, _, errors = command("run", experiment_file, "--net", "sim", "--out", tmp_path)
    assert (status, errors) == (
        1,
        f"gradplane: {tmp_path} exists, and runs are never overwritten: use another --out\n",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "x.toml", "--net", "ns3"),
        ("run", "x.toml", "--seed", "-1"),
        ("walk",),
        ("trace", "x.p4", "--packet", "zz"),
        ("report",),
    ],
)
def test_wrong_usage_is_status_2(command: Command, arguments: tuple[str, ...]) -> None:
    status, output, errors = command(*arguments)
    assert (status, output) == (2, "")
    assert "Usage: gradplane" in errors


def test_replay_and_report(command: Command, small_run: Runs, tmp_path: Path) -> None:
    run = small_run()
    status, output, _ = command("replay", run.folder)
    assert status == 0
    assert output.startswith("equal: 6 rounds, every gradient, code, sum and weight\n")
    assert command("replay", run.folder, "-q") == (0, "", "")
    changed = ("--set", "job.epochs=1", "--out", tmp_path / "changed", "--quiet")
    assert command("replay", run.folder, *changed) == (0, "", "")
    assert str(run) == f"small: test accuracy {run.test_accuracy:.2%}, in {run.folder}"
    out = tmp_path / "r.html"
    assert command("report", run.folder, "--out", out) == (0, f"report: {out}\n", "")
    assert out.read_text().startswith("<!DOCTYPE html>")
    status, output, _ = command("report", *[run.folder] * 4, "--out", out)
    assert status == 0 and max(map(len, output.splitlines()[:-1])) <= 80
    rows = [line.split() for line in output.splitlines() if line.startswith(f" {run.folder.name}")]
    assert len(rows) == 4 and rows[0] == rows[3]


def test_records_are_a_line_a_packet(command: Command, small_run: Runs) -> None:
    folder = small_run().folder
    status, output, _ = command("records", folder)
    header, first, *_ = output.splitlines()
    assert status == 0
    assert header.split(",")[:6] == ["job", "worker", "ticket", "slot", "use", "result"]
    assert first.split(",")[5] == "in time"
    norms = command("records", folder, "--kind", "norm")[1].splitlines()
    at = norms[0].split(",").index("norm")
    assert all(0 < float(line.split(",")[at]) < 100 for line in norms[1:]) and len(norms) > 1
    nothing = command("records", folder, "--kind", "stall")
    assert nothing[:2] == (0, "") and "has no records of kind stall" in nothing[2]
    assert command("records", folder, "--kind", "x")[0] == 2


def test_topology_draws_the_tree_of_each_job(command: Command) -> None:
    status, out, _ = command(
        "topology", "thc-racks", "--set", "job.quorums=[4, 1]", "--set", "topology.delay=2ms"
    )
    assert status == 0
    lines = [line.strip("│├└─ ") for line in out.splitlines()]
    assert lines[:5] == [
        "job thc-racks: 8 workers, summed in 4 switches",
        "s3: adds the sums of 2 switches, waits for 1, root of slots 0, 2, 4, 6, 8-bit slots 0 to"
        " 7",
        "gets 8 routes, 2 receivers, 2 members, group 1 of 2 ports",
        "s1: adds the codes of 4 workers, child 0 of s3 and s4 by ports 5 and 6, 25 Mbit/s,"
        " 8-bit slots 0 to 7",
        "gets 8 routes, 4 of them by flow, 6 receivers, 10 parents, 8 uplinks, 4 members, 2,048"
        " values in 128 lookup tables, group 1 of 4 ports",
    ]
    assert lines[-3:] == [lines[2], "s1: above", "s2: above"]
    assert "h5: worker 4, port 1, 25 Mbit/s, 2 ms" in lines
    status, out, _ = command("topology", "thc-star", "--set", "job.aggregation=ps")
    assert out.splitlines()[:4] == [
        'job thc-star: 4 workers, aggregation = "ps": no switch sums it',
        "└── s1: forwards",
        "    ├── gets 5 routes",
        "    ├── h1: worker 0, port 1, 25 Mbit/s",
    ]
    assert out.splitlines()[-1] == "    └── h5: server, port 5, 25 Mbit/s"


def test_a_users_topology_is_drawn_as_shipped_ones_are(command: Command, tmp_path: Path) -> None:
    (tmp_path / "pair.py").write_text(
        "from gradplane.topologies import *\n"
        "def pair(workers, servers=0):\n"
        "    links = (Link('h1', 's1', 0, 1), Link('h2', 's2', 0, 1, delay=2_000_000),\n"
        "             Link('h3', 's2', 0, 2), Link('s1', 's2', 9, 9, 10_000_000, 500_000))\n"
        "    hosts = tuple(map(HostNode.numbered, (1, 2, 3)))\n"
        "    return Topology('pair', hosts, (SwitchNode('s1'), SwitchNode('s2')), links)\n"
    )
    experiment = tmp_path / "x.toml"
    experiment.write_text(
        '[topology]\nkind = "pair.py"\nworkers = 2\n[[job]]\naggregation = "ps"\npush = "int8"\n'
    )
    status, out, _ = command("topology", experiment)
    assert status == 0
    assert [line.strip("│├└─ ") for line in out.splitlines()[1:]] == [
        "s1: forwards",
        "gets 3 routes",
        "h1: worker 0, port 1, no limit",
        "s2: port 9, 10 Mbit/s, 0.5 ms",
        "s2: forwards",
        "gets 3 routes",
        "h2: worker 1, port 1, no limit, 2 ms",
        "h3: server, port 2, no limit",
        "s1: port 9, 10 Mbit/s, 0.5 ms",
    ]


def test_codecs(command: Command) -> None:
    status, output, _ = command("codecs")
    assert status == 0
    rows = [" ".join(line.split()) for line in output.splitlines()]
    assert "thc bits=4, granularity=30, p=0.03125, in 4 bits no" in rows and "version=3" in rows
    assert "float32 - no no" in rows
    status, output, _ = command("codecs", "bench", "thc", "float32", "--values", "4096")
    assert status == 0
    assert max(map(len, output.splitlines())) <= 80
    rows = [line.split() for line in output.splitlines() if line.startswith((" thc", " float"))]
    assert [rows[1][0], *rows[1][3:]] == ["float32", "1.00", "32.00", "0", "0", "0"]
    assert [rows[0][0], *rows[0][3:5]] == ["thc", "7.97", "4.02"]
    assert all(0 < float(error) < 0.1 for error in rows[0][5:])


def test_bench_prints_its_json(command: Command) -> None:
    status, output, _ = command("codecs", "bench", "float32", "--values", "64", "--json")
    found = json.loads(output)
    assert (status, found["values"], found["seed"]) == (0, 64, 1)
    assert found["codecs"]["float32"].pop("encode_gb_per_second") > 0
    assert found["codecs"]["float32"].pop("decode_gb_per_second") > 0
    errors = {f"nmse_{kind}": 0.0 for kind in ("normal", "lognormal", "real")}
    assert found["codecs"]["float32"] == {"ratio": 1.0, "bits_per_value": 32.0, **errors}


def test_bench_takes_parameters_as_an_experiment_does(command: Command) -> None:
    few, many = "{name='topk', fraction=0.01}", '{ name = "topk", fraction = 0.5 }'
    status, output, _ = command("codecs", "bench", few, many, "--values", "512", "--json")
    found = json.loads(output)["codecs"]
    assert status == 0 and found[few]["ratio"] > 10 * found[many]["ratio"]
    status, _, errors = command("codecs", "bench", "{name=topk}")
    assert status == 2 and "write a TOML table, such as" in errors


def test_codecs_on_recorded_gradients(command: Command, tmp_path: Path) -> None:
    status, output, _ = command("codecs", "bench", "int8", "--gradients", "digits-cnn")
    assert status == 0 and "9,930 values in 6 layers; steps 1, 20, 100; 4 workers" in output
    assert re.search(r"^   conv1.weight +144 +148 +5.5e-05 ", output, re.MULTILINE), output
    status, output, _ = command("codecs", "bench", "int8", "--gradients", "digits-cnn", "--json")
    found = json.loads(output)
    assert status == 0 and found["steps"] == [1, 20, 100]
    assert [row["layer"] for row in found["codecs"]["int8"]] == ["all layers", *found["layers"]]
    (tmp_path / "g.npz").write_bytes(b"x")
    status, _, errors = command("codecs", "advise", "--gradients", str(tmp_path / "g.npz"))
    assert status == 1 and errors.startswith(f"gradplane: {tmp_path / 'g.npz'}: no NumPy archive")
    status, _, errors = command("codecs", "bench", "--gradients", "digits-cnn", "--values", "3")
    assert status == 2 and "not with --values" in errors


def test_codecs_list_is_what_codecs_prints(command: Command) -> None:
    assert command("codecs", "list") == command("codecs")


def test_shipped_experiments(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, output, _ = command("experiments")
    assert status == 0
    assert re.search(r"^ thc-star +The demo: 4 workers around one switch", output, re.MULTILINE)
    assert max(map(len, output.splitlines())) <= 80
    monkeypatch.chdir(tmp_path)
    assert command("experiments", "--copy", "thc-star") == (0, "thc-star.toml\n", "")
    status, _, errors = command("experiments", "--copy", "thc-star")
    assert (status, errors) == (1, "gradplane: thc-star.toml exists: give another file or folder\n")
    assert command("experiments", "folder")[0] == 2


def test_a_shipped_experiment_runs_by_its_name(command: Command, tmp_path: Path) -> None:
    settings = ["job.epochs=1", "job.batch=300", "output.baseline=false"]
    flags = [word for setting in settings for word in ("--set", setting)]
    status, output, _ = command("run", "thc-star", "--net", "sim", "--out", tmp_path / "r", *flags)
    assert status == 0 and "test accuracy" in output


def test_a_replay_with_settings_says_its_network(
    command: Command, small_run: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunData, "network", "mininet")
    folder, change = small_run().folder, ("--set", "job.epochs=1")
    status, output, _ = command("replay", folder, *change, "--out", tmp_path / "changed")
    assert status == 0
    assert output.splitlines()[0] == (
        "The recorded run was on mininet, this one is on sim: their times differ; use --net mininet"
        " to run it there"
    )
    assert command("replay", folder, "--net", "sim")[0] == 2
    assert command("replay", folder, *change, "--net", "ns3")[0] == 2


def test_an_unknown_codec_is_refused(command: Command) -> None:
    status, _, errors = command("codecs", "bench", "thd")
    assert status == 1
    assert errors.startswith('gradplane: no codec "thd", did you mean "thc"?')


def test_p4_check_and_info(command: Command, tmp_path: Path) -> None:
    program = ROOT / "p4" / "thc.p4"
    assert command("p4", "check", program) == (0, f"{program}: ok\n", "")
    status, output, _ = command("p4", "info", program, "--summary")
    assert status == 0
    assert "ThcIngress.routes" in output and "hdr.ipv4.dst_addr: lpm<32>" in output
    legacy = Path(__file__).parents[1] / "switch" / "stf" / "exercises" / "legacy.p4"
    output = command("p4", "info", legacy, "--summary")[1]
    assert re.search(r"action (profile|selector) ", output)
    status, output, _ = command("p4", "info", program, "-D", "SLOTS=16")
    assert status == 0
    assert "size: 16\n" in output
    status, output, _ = command("p4", "config", program, "-D", "SLOTS=16")
    assert status == 0
    assert "table routes" in json.loads(output)["source"]


def test_p4_config_of_several_programs(command: Command) -> None:
    first, second = "thc_tna.p4", "tos_compress_tna.p4"
    scopes = ["--pipe-scope", "thc_tna=0,1", "--pipe-scope", "tos_compress_tna=2,3"]
    status, output, _ = command("p4", "config", first, second, *scopes)
    assert status == 0
    config = json.loads(output)
    assert config["pipe_scopes"] == {"thc_tna": [0, 1], "tos_compress_tna": [2, 3]}
    assert "table routes" in config["programs"]["thc_tna"]["source"]
    status, _, errors = command("p4", "config", first, "thc.p4")
    what = "2 programs are given, for tna, v1model: only the pipes of a chip (tna) run several"
    assert (status, errors) == (1, f"gradplane: {what}\n")
    status, _, errors = command("p4", "config", first, second, "--pipe-scope", "thc=0")
    assert (status, "there is no pipeline 'thc'" in errors) == (1, True)


def test_p4_commands_find_shipped_programs_by_name_and_own_files_first(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = SHIPPED / "thc.p4"
    assert command("p4", "check", "thc.p4") == (0, f"{shipped}: ok\n", "")
    status, output, _ = command("p4", "fit", "tos_compress_tna.p4", "--json")
    assert status == 0
    assert json.loads(output)["program"] == str(SHIPPED / "tos_compress_tna.p4")
    status, output, _ = command("trace", "thc.p4", "--packet", PACKET)
    assert (status, "ThcIngress.port_in" in output) == (0, True)
    Path("thc.p4").write_text("const int x = y;")
    status, _, errors = command("p4", "check", "thc.p4")
    assert (status, errors.partition("\n")[0]) == (1, "thc.p4:1:15: error: y is not declared")
    assert command("p4", "check", "./none.p4")[0] == 1


def test_p4_ir_prints_a_line_a_statement(command: Command, tmp_path: Path) -> None:
    program = tmp_path / "small.p4"
    program.write_text(
        "#include <v1model.p4>\n"
        "header a_t { bit<16> sum; }\n"
        "struct h_t { a_t a; }\n"
        "struct m_t { }\n"
        "parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {\n"
        "    state start { p.extract(h.a); transition accept; }\n"
        "}\n"
        "control V(inout h_t h, inout m_t m) {\n"
        "    apply { verify_checksum(true, { h.a.sum }, h.a.sum, HashAlgorithm.csum16); }\n"
        "}\n"
        "control N(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply { } }\n"
        "control C(inout h_t h, inout m_t m) { apply { } }\n"
        "control D(packet_out p, in h_t h) { apply { p.emit(h); } }\n"
        "V1Switch(P(), V(), N(), N(), C(), D()) main;\n"
    )
    status, lowered, errors = command("p4", "ir", program)
    assert (status, errors) == (0, "")
    assert lowered.split("\n\n")[1:3] == [
        "parser P(out h_t h, inout m_t m, inout standard_metadata_t s)\n"
        "  state start\n    extract h.a\n    goto accept",
        "control V(inout h_t h, inout m_t m)\n"
        '  verify_checksum(in true, in tuple<bit<16>>{h.a.sum}, in h.a.sum, "csum16")',
    ]
    status, prepared, _ = command("p4", "ir", program, "--prepared")
    assert status == 0
    assert "verify_checksum(in (h.a.isValid() && true), in tuple" in prepared


def test_p4_check_finds_what_p4info_cannot_describe(command: Command, tmp_path: Path) -> None:
    psa = (ROOT / "tests" / "switch" / "p4runtime" / "programs" / "psa_switch.p4").read_text()
    program = tmp_path / "wrong.p4"
    program.write_text(psa.replace("@max_group_size(4)", "@max_group_size(few)"))
    for subcommand in ("check", "info", "config"):
        status, _, errors = command("p4", subcommand, program)
        assert status == 1
        assert f"{program}:36:" in errors
        assert "error: @max_group_size(few): expected one number" in errors


def test_p4_check_knows_what_the_programs_architecture_runs(
    command: Command, tmp_path: Path
) -> None:
    psa = (ROOT / "tests" / "switch" / "p4runtime" / "programs" / "psa_switch.p4").read_text()
    program = tmp_path / "wrong.p4"
    program.write_text(
        psa.replace("h.packet_out.setInvalid();", "h.packet_out.setInvalid(); x();").replace(
            "typedef bit<48> mac_t;", "typedef bit<48> mac_t; extern void x();"
        )
    )
    status, _, errors = command("p4", "check", program)
    assert status == 0
    assert "warning: extern x: user-defined" in errors
    program.write_text(psa.replace("h.packet_out.setInvalid();", "random(h.packet_out);"))
    status, _, errors = command("p4", "check", program)
    assert status == 1
    assert "error: random is not declared" in errors


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "control c(); package Other(c a); control d() { apply { } } Other(d()) main;",
            ":1:60: warning: the program's main is of type Other; supported packages:"
            " PNA_NIC (pna), PSA_Switch (psa), Switch (tna), V1Switch (v1model)",
        ),
        ("bit<8> f(in bit<8> a) { return a; }", ":1:1: warning: the program has no package `main`"),
        (
            "control c(); package PSA_Switch(c ig, c eg); control d() { apply { } }"
            " PSA_Switch(d(), d()) main;",
            ":1:72: warning: the program's own PSA_Switch has the parameters ig, eg, that of psa"
            " has ingress, pre, egress, bqe",
        ),
    ],
)
def test_p4_check_takes_programs_of_any_architecture(
    command: Command, tmp_path: Path, text: str, why: str
) -> None:
    program = tmp_path / "other.p4"
    program.write_text(text)
    status, output, errors = command("p4", "check", program)
    assert (status, output) == (0, f"{program}: ok\n")
    assert errors == f"{program}{why}: only checked, it cannot run here\n"
    for other in (("p4", "info", program), ("trace", program, "--packet", "00")):
        status, _, errors = command(*other)
        assert status == 1
        assert errors.startswith(f"{program}:{why.split(': ')[0][1:]}: error: ")


def test_p4_errors_come_with_place_and_caret(command: Command, tmp_path: Path) -> None:
    program = tmp_path / "wrong.p4"
    program.write_text("control c() { apply { x = 1; } }\n")
    status, output, errors = command("p4", "check", program)
    assert (status, output) == (1, "")
    first, source, caret = errors.splitlines()[:3]
    assert first.startswith(f"{program}:1:23: error: ")
    assert source == "    control c() { apply { x = 1; } }"
    assert caret == " " * 26 + "^"


def test_trace_shows_what_happens_to_a_packet(command: Command) -> None:
    status, output, _ = command("trace", ROOT / "p4" / "thc.p4", "--packet", PACKET, "--port", 2)
    assert status == 0
    assert "extract hdr.ethernet (112 bits at 0)" in output
    assert "meta.port = 2" in output
    status, output, _ = command("trace", ROOT / "p4" / "thc.p4", "--packet", PACKET, "--json")
    assert status == 0 and output.startswith("{\n")


def test_the_switchs_options_go_to_the_switch(command: Command) -> None:
    status, _, errors = command("switch", "none.p4", "--no-such-option")
    assert status == 2
    assert "--no-such-option" in errors
    status, _, errors = command("switch", "none.p4", "--", "--grpc-server-addr", "127.0.0.1:0")
    assert status == 1
    assert "none.p4" in errors


def test_an_address_in_use_is_told_from_one_that_is_wrong() -> None:
    """Nothing but our own lines: gRPC prints to the terminal, too, unless it is told not to."""
    way_out = "choose another with --grpc-server-addr HOST:PORT (port 0: any free one)"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        for address, reason in {
            taken: "another program listens there (`ss -ltnp` shows which)",
            "127.0.0.1.9:1": "no machine has this name",
        }.items():
            words = ["switch", str(ROOT / "p4" / "thc.p4"), "--", "--grpc-server-addr", address]
            done = subprocess.run(
                [sys.executable, "-m", "gradplane", *words], capture_output=True, text=True
            )
            *notes, last = done.stderr.splitlines()
            assert last == f"cannot listen on {address}: {reason}; {way_out}"
            assert done.returncode == 1
            assert all(note.startswith("note: --grpc-server-addr") for note in notes)


def test_grpcs_own_lines_stay_off_the_terminal(tmp_path: Path) -> None:
    """A client that is refused and a channel that breaks say nothing beside our message."""
    code = """
import sys
from gradplane.cli import main
import grpc
sys.argv = ["gradplane", "--version"]
try:
    main.main()
except SystemExit:
    pass
try:
    grpc.server(None).add_insecure_port("10.99.1.1:1")
except RuntimeError:
    pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("trace thc.p4 --pcap crosss.pcap", "crosss.pcap: No such file or directory; {}cross.pcap"),
        ("lab runn.py", "there is no script runn.py; {}run.py"),
        ("torchrun thc-star runn.py", "there is no script runn.py; {}run.py"),
        ("switch thc.p4 --commands comands.txt", "comands.txt: there is no such file; {}commands"),
        ("switch thc.p4 --externs runn.py", "externs runn.py: there is no such file; {}run.py"),
        ("stf thc.p4 tst.stf", "there is no packet test tst.stf; {}test.stf"),
        ("report mien", "mien: no such run folder; {}mine"),
        ("report own.toml", "own.toml: a file, and not a run's folder: gradplane run own.toml mak"),
        ("run own", "own: neither a file nor a shipped experiment: {}own.toml?"),
        ("run own.toml", "own.toml: the file is empty"),
        ("plan vgg16 --system nvlink-100g --codec run.py", "run.py: a compression is a TOML file"),
        ("trace thc.p4 --packet ff --commands s1.json", "s1.json: not JSON: Expecting value"),
    ],
)
def test_a_file_that_is_missing_is_answered_with_the_nearest(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, near: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("cross.pcap", "run.py", "commands.txt", "test.stf", "own.toml", "s1.json"):
        Path(name).touch()
    Path("mine").mkdir()
    status, out, err = command(*words.split())
    assert status in (1, 2)
    assert near.format("did you mean ") in out + err


def test_p4_bench_measures_packets_with_entries(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet_rates, "SECONDS", 0)
    program = SHIPPED / "tos_compress.p4"
    commands = tmp_path / "entries.txt"
    commands.write_text("table_add TosIngress.routes TosIngress.forward 10.0.0.0/8 => 1 2\n")
    packet = bytes(Ether() / IP(dst="10.0.0.1") / UDP() / bytes(50)).hex()
    given = "p4", "bench", program, "--packet", packet, "--packet", packet
    status, output, _ = command(*given, "--commands", commands)
    assert status == 0 and max(map(len, output.splitlines())) <= 80
    assert "2 packets of 92 bytes in the mean, of which 2 leave" in output
    assert "process_buffer" in output
    values = json.loads(command(*given, "--commands", commands, "--json")[1])
    (way,) = values["ways"]
    assert way["packets"] == 2 and "routes: forward" in way["steps"] and way["ns"] > 0
    refused = command("p4", "bench", program)
    assert refused[0] == 2 and "give --pcap FILE or --packet HEX" in refused[2]
