"""The report in headless Chromium: what is clicked shows what the run folder says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradplane.pages.report import page
from gradplane.runs.records.run_data import RunData
from gradplane.runs.records.summary import Summary


def opened(browser: Any, path: Path, width: int = 1280, fragment: str = "") -> None:
    """Open a page and wait until its figures are drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get("about:blank")
    browser.get(path.resolve().as_uri() + fragment)
    WebDriverWait(browser, 60).until(
        lambda driver: driver.execute_script("return document.documentElement.dataset.ready")
    )


def element(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def errors(browser: Any) -> list[Any]:
    return [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]


@pytest.fixture(scope="module")
def path(lossy_run: Summary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a run with losses and a straggler."""
    return page.write([lossy_run.folder], tmp_path_factory.mktemp("page") / "report.html")


def test_a_click_opens_the_round_as_recorded(browser: Any, path: Path, lossy_run: Summary) -> None:
    opened(browser, path)
    run = RunData.read(lossy_run.folder)
    slowest = max(run.metrics, key=lambda line: line["finished"] - line["started"])
    element(browser, "button[data-round]").click()
    assert element(browser, "#round").get_attribute("value") == str(slowest["training_round"])
    assert element(browser, "#why").text.startswith(f"Round {slowest['training_round']} took ")
    computed = browser.execute_script(
        "const bars = document.getElementById('timeline').data.find((t) => t.name === 'compute');"
        "return bars.x;"
    )
    expected = [(w["computed"] - w["started"]) / 1e6 for w in slowest["workers"]]
    assert computed == pytest.approx(expected)
    assert errors(browser) == []


def test_lanes_say_the_rack_and_slots_their_root(
    browser: Any, small_run: Callable[..., Summary], tmp_path: Path
) -> None:
    racks = ("topology.kind=leaf-spine", "topology.leaves=2", "topology.workers=4")
    run = small_run(*racks, "job.reliability=retransmit")
    opened(browser, page.write([run.folder], tmp_path / "report.html"), fragment="#round-0")
    lanes, slots = browser.execute_script(
        "const timeline = document.getElementById('timeline');"
        "const slots = timeline.data.find((t) => t.name === 'slots');"
        "return [timeline.layout.yaxis.ticktext, slots.text];"
    )
    assert lanes == ["worker 0 (s1)", "worker 1 (s1)", "worker 2 (s2)", "worker 3 (s2)"]
    assert slots[0].startswith("slot 0, use 1, summed up to s3: workers 0, 1, 2, 3 in the sum")
    assert errors(browser) == []


def test_workers_are_chosen_and_rounds_stepped(browser: Any, path: Path) -> None:
    opened(browser, path, fragment="#round-2")
    assert element(browser, "#why").text.startswith("Round 2 took ")
    lanes = "return document.getElementById('timeline').layout.yaxis.ticktext"
    assert browser.execute_script(lanes) == ["worker 0", "worker 1", "worker 2"]
    element(browser, "#workers input[value='1']").click()
    assert browser.execute_script(lanes) == ["worker 0", "worker 2"]
    element(browser, "#forth").click()
    assert element(browser, "#why").text.startswith("Round 3 took ")
    assert browser.execute_script("return location.hash") == "#round-3"
    assert errors(browser) == []


def test_linked_axes_follow_the_keyboard_and_a_key_hides_a_series(browser: Any, path: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    opened(browser, path)
    element(browser, ".opens .figure").send_keys("+")
    ranges = (
        "return [...document.querySelectorAll('.opens .figure')].filter((d) => d.figure.link)"
        ".map((d) => d.layout.xaxis.range.join())"
    )
    WebDriverWait(browser, 60).until(lambda driver: set(driver.execute_script(ranges)) == {"1,4"})
    element(browser, ".key button[data-series='this run']").click()
    shown = "return document.querySelector('[data-figure=\"0\"]').data.map((t) => t.visible)"
    assert browser.execute_script(shown) == ["legendonly"]
    assert errors(browser) == []


OVERLAPS = """
const found = [];
for (const layer of document.querySelectorAll(".xaxislayer-above, .yaxislayer-above")) {
  const across = layer.classList.contains("xaxislayer-above");
  const [from, to] = across ? ["left", "right"] : ["top", "bottom"];
  const labels = [...layer.querySelectorAll(across ? ".xtick text" : ".ytick text")];
  const boxes = labels.map((label) => [label.textContent, label.getBoundingClientRect()])
    .sort(([, a], [, b]) => a[from] - b[from]);
  for (let i = 1; i < boxes.length; i++) {
    const [[first, a], [second, b]] = [boxes[i - 1], boxes[i]];
    if (a[to] > b[from] + 3) found.push(`${first}, ${second}`);
  }
}
return found;
"""


def test_labels_of_axes_keep_apart_also_when_the_window_narrows(browser: Any, path: Path) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    opened(browser, path)
    assert browser.execute_script("return document.querySelectorAll('.xtick text').length") > 20
    logarithmic = (
        "const {data, layout} = document.querySelector('[data-figure=\"0\"]').figure;"
        "layout.xaxis = {...layout.xaxis, type: 'log', range: [Math.log10(0.25), Math.log10(7)]};"
        "return draw(document.querySelector('[data-figure=\"0\"]'), data, layout);"
    )
    browser.execute_script(logarithmic)
    labels = (
        "return [...document.querySelectorAll('[data-figure=\"0\"] .xtick text')]"
        ".map((label) => label.textContent).join()"
    )
    WebDriverWait(browser, 60).until(lambda d: d.execute_script(labels) == "0.5,1,2,5")
    assert browser.execute_script(OVERLAPS) == []
    tall = "return document.querySelector('#timeline .main-svg').getBoundingClientRect().height"
    height = browser.execute_script(tall)
    metrics = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    wide = "return document.querySelector('#timeline .main-svg').getBoundingClientRect().width"
    WebDriverWait(browser, 60).until(lambda d: d.execute_script(wide) < 400)
    assert browser.execute_script(tall) == height
    WebDriverWait(browser, 60).until(lambda d: d.execute_script(OVERLAPS) == [])
    assert errors(browser) == []


def test_a_narrow_page_does_not_scroll_sideways(
    browser: Any, path: Path, lossy_run: Summary, tmp_path: Path
) -> None:
    for shown in (path, page.write([lossy_run.folder] * 2, tmp_path / "comparison.html")):
        opened(browser, shown, width=400)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
        assert errors(browser) == []
