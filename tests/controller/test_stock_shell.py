"""p4runtime-shell, the stock client, installs a job's lookup tables on the running switch."""

import subprocess
import sys

import pytest
from controller_cases import SMALL, THC_TNA, pipeline_of, plan

from gradplane.cli import p4runtime_shell
from gradplane.controller import Setup, configure

INSTALL = f"""
global_options["verbose"] = False
import re
for name in [table.name for table in tables]:
    match = re.fullmatch(r"(ThcIngress\\.block\\d+\\.)lookup(\\d)", name)
    for index, value in enumerate({SMALL} if match else ()):
        entry = table_entry[name](action=f"{{match[1]}}set{{match[2]}}")
        entry.match["job"] = "5"
        entry.match["index"] = str(index)
        entry.action["value"] = str(value)
        entry.insert()
"""


@pytest.fixture
def run(tmp_path, server):
    """Run a script with the shell's names, as `gradplane shell --script` does."""

    def run_script(text, **options):
        script = tmp_path / "script.py"
        script.write_text(text)
        return p4runtime_shell.open_shell(server.address, script=script, **options)

    return run_script


def test_it_installs_the_lookup_tables(run, server, pipeline):
    configure(server.address, pipeline, Setup("10.0.0.254", "00:00:00:00:00:fe", (), ()))
    assert run(INSTALL) == 0
    assert server.lookup_entries(5) == dict(enumerate(SMALL))


def test_it_installs_those_of_the_program_for_tofino(run, server):
    setup = Setup("10.0.0.254", "00:00:00:00:00:fe", (), ())
    configure(server.address, pipeline_of(THC_TNA), setup)
    assert run(INSTALL) == 0
    assert server.lookup_entries(5) == dict(enumerate(SMALL))


def test_it_loads_a_program_and_what_it_wrote_is_a_job_like_any_other(
    run, server, pipeline, tmp_path
):
    info, config = tmp_path / "p4info.txt", tmp_path / "config"
    info.write_bytes(pipeline.p4info)
    config.write_bytes(pipeline.device_config)
    group = "g = multicast_group_entry(6); g.add(1, 1); g.add(2, 2); g.insert()\n"
    assert run(INSTALL + group, config=(info, config)) == 0
    assert [(r.port, r.instance) for r in server.state.multicast[6]] == [(1, 1), (2, 2)]
    job = plan(5, workers=2, table=(0, 1), granularity=1)
    configure(server.address, pipeline, Setup("10.0.0.254", "00:00:00:00:00:fe", (), (job,)))
    assert server.lookup_entries(5) == {0: 0, 1: 1}


def test_a_script_that_fails_says_so(run, server, pipeline, capfd):
    configure(server.address, pipeline, Setup("10.0.0.254", "00:00:00:00:00:fe", (), ()))
    assert run("table_entry['ThcIngress.nothing']") == 1
    assert "UserError" in capfd.readouterr().err


def test_the_prompt(server, pipeline):
    """A user's input works at the stock shell's own prompt."""
    configure(server.address, pipeline, Setup("10.0.0.254", "00:00:00:00:00:fe", (), ()))
    call = f"from gradplane.cli import p4runtime_shell as p; p.open_shell({server.address!r})"
    typed = "print([t.name for t in tables][:1])\nexit\n"
    done = subprocess.run(
        [sys.executable, "-c", call], input=typed, capture_output=True, text=True, check=True
    )
    assert "Welcome to the IPython shell for P4Runtime" in done.stdout
    assert "ThcEgress.receivers" in done.stdout
