"""Hypothesis profiles, the only place where its settings for all tests are made; and small runs.

`test`, the default, gives the same answer every time: examples follow from the test alone, and no
verdict depends on how fast or busy the machine is. `fuzz` draws new examples in each run, keeps
those that failed and shrinks them; `make fuzz` sets it (tests/fuzz_properties.py).

The runs are on the simulated network; each is made once, and tests only read it.
"""

import gc
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from gradplane.runs.records.summary import Summary
from gradplane.runs.run_experiment import run

# Tests start many processes; without bytecode files each would compile all its modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Triton's kernels are interpreted. It asks once, when it is imported, which PyTorch's compiler
# does, too.
os.environ["TRITON_INTERPRET"] = "1"
# Ten thousand tests are objects that are kept, and tests that compile programs make many: garbage
# collection took a fifth of the processor time of tests/switch.
gc.set_threshold(1_000_000, 20, 20)

# What several tests share is in modules beside them, each of a name of its own
# (test_imports.py); the scripts have tests, too. Pytest's importlib mode finds none of them.
TESTS = Path(__file__).parent
_shared = {str(path.parent) for path in TESTS.rglob("*.py") if not path.name.startswith("test_")}
sys.path += sorted({*_shared, str(TESTS.parent / "scripts")} - {str(TESTS), *sys.path})

_ANY_SPEED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("test", derandomize=True, database=None, max_examples=50, **_ANY_SPEED)
settings.register_profile("fuzz", print_blob=True, **_ANY_SPEED)
_profile = os.environ.get("GRADPLANE_HYPOTHESIS_PROFILE", "test")
settings.load_profile(_profile)
if _profile == "test":
    # Hypothesis also draws constants that it finds in the modules loaded so far, and those depend
    # on the tests that ran before.
    assert hasattr(providers, "_get_local_constants")
    providers._get_local_constants = providers.Constants

# Few tests that take long: begun last, as xdist does with files of few tests, they would leave
# the other processors idle at the end.
LONG = (
    "tests/studies/test_studies.py",
    "tests/torch/",
    "tests/runs/",
    "tests/docs/",
    "tests/fit/test_calibration.py",
    "tests/switch/check/test_check_fuzz.py",
    "tests/switch/testgen/",
    "tests/pages/",
    "tests/topologies/",
    "tests/controller/",
    "tests/cli/",
    "tests/test_",
)

WINDOW = 1200, 900
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

SMALL = """
[topology]
workers = 3

[[job]]
model = { name = "mlp", hidden = [20] }
epochs = 2
batch = 150
timeout_ms = 20

[output]
baseline = false
report = false
"""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the files of a run in several processes: long ones first, then by their tests."""
    if not hasattr(config, "workerinput"):
        return
    files = [item.nodeid.partition("::")[0] for item in items]
    tests = Counter(files)

    def place(file: str) -> tuple[int, int, str]:
        long = [number for number, start in enumerate(LONG) if file.startswith(start)]
        return min(long, default=len(LONG)), -tests[file], file

    places = {file: place(file) for file in tests}
    pairs = sorted(zip(files, items, strict=True), key=lambda pair: places[pair[0]])
    items[:] = [item for _, item in pairs]


def pytest_collection_finish() -> None:
    """Leave the tests and modules out of garbage collections, of which each would visit them."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Leave out all that there is then, too: pytest collects five times more before it ends."""
    gc.freeze()


CRASHED: list[str] = []
"""The processes of a run in several that ended before their tests did."""


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Note the process; with `--max-worker-restart=0` the others end the run (see Makefile)."""
    if error:
        CRASHED.append(node.gateway.id)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which processes crashed, and why tests were skipped: how many in which file."""
    for process in CRASHED:
        terminalreporter.section("not all tests ran")
        terminalreporter.write_line(
            f"{process} crashed in the test that failed with its name; what was left of its tests,"
            " and of those that no process had begun, did not run"
        )
    reasons: dict[str, Counter[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        reasons.setdefault(reason, Counter())[report.nodeid.partition("::")[0]] += 1
    if reasons:
        terminalreporter.section("skipped, and why")
    for reason, files in sorted(reasons.items(), key=lambda pair: -pair[1].total()):
        terminalreporter.write_line(f"{files.total()} skipped: {reason}")
        for file, count in files.items():
            terminalreporter.write_line(f"    {count} in {file}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Yield a headless Chromium, driven by Selenium, that keeps a log of its console."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if not (CHROMIUM and DRIVER):
        pytest.skip("chromium and chromedriver (Debian: chromium-driver) are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture()
def browser(chromium: Any) -> Any:
    """Return the browser as it started: no page of an earlier test writes into its log, and none
    has left its window or screen at another size."""
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.set_window_size(*WINDOW)
    chromium.get("about:blank")
    chromium.get_log("browser")
    return chromium


@pytest.fixture(scope="session")
def experiment_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an experiment of three workers and 2 epochs of 3 rounds, 1,510 values: 2 packets a
    round."""
    path = tmp_path_factory.mktemp("experiments") / "small.toml"
    path.write_text(SMALL)
    return path


Runs = Callable[..., Summary]


@pytest.fixture(scope="session")
def small_run(experiment_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Return a run of the small experiment with these settings; equal settings share a folder."""
    made: dict[tuple[str, ...], Summary] = {}

    def get(*settings: str) -> Summary:
        if settings not in made:
            out = tmp_path_factory.mktemp("runs") / "run"
            made[settings] = run(experiment_file, out, net="sim", settings=settings)
        return made[settings]

    return get


@pytest.fixture(scope="session")
def lossy_run(small_run: Runs) -> Summary:
    """Return a run with losses both ways, a straggler, quorum 2 and synchronisation."""
    return small_run(
        "job.quorum=2",
        "job.sync=true",
        "job.slots=4",
        'impairment=[{model="bernoulli", rate=0.1}, {model="straggler", count=1, delay_ms=5}]',
    )
