"""The page of ``blklab trace show --html``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.ipc
import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from typer.testing import CliRunner

import blklab
from blklab.cli import app
from blklab.errors import InputError
from tests.browser import DESKTOP, PHONE, Browser, drawn, needs_browser

JOB = """
[global]
direct=1
[reader]
rw=randread
bs=4k
size=1g
number_ios=300
[copy]
rw=write
bs=256k
size=128m
offset=20g
ioengine=libaio
iodepth=8
number_ios=400
"""


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("job.fio").write_text(JOB)
    blklab.record_run("job.fio", "both.rec", disk="wd10ezrx")
    return "both.rec"


def payload(file: str) -> dict[str, Any]:
    found = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', Path(file).read_text()
    )
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    own: list[dict[str, Any]] = data.pop("traces")
    return data | own[0]


def test_the_pictures_have_every_io_and_byte(recording: str) -> None:
    reading = blklab.trace_page(recording, "page.html")
    data = payload("page.html")
    assert reading.count == 700
    for grid in ("places", "latencies"):
        assert np.sum(data[grid]["reads"]) == 300
        assert np.sum(data[grid]["others"]) == 400
    step_s = data["step"] * {"s": 1.0, "ms": 1e-3}[data["unit"]]
    reads, writes = data["kinds"]
    assert (reads["name"], writes["name"]) == ("reads", "writes")
    assert np.sum(reads["ios"]) * step_s == pytest.approx(300, rel=0.01)
    assert np.sum(writes["mb_s"]) * step_s == pytest.approx(400 * 0.262144, rel=0.01)
    took_ns = 300 * reading.operations[0].q2c_ns.mean + 400 * reading.operations[1].q2c_ns.mean
    assert np.sum(data["depth"]) * step_s * 1e9 == pytest.approx(took_ns, rel=0.01)
    # The reader is at the disk's start, the copy at 20 GiB.
    rows = len(data["places"]["reads"][0])
    high = np.nonzero(np.sum(data["places"]["others"], axis=0))[0] / rows * data["places"]["gb"]
    assert 20 < high.min() <= high.max() < 23, "steps of half a GB"
    assert np.nonzero(np.sum(data["places"]["reads"], axis=0))[0].max() / rows < 0.1


def test_percentiles_are_those_of_the_trace(recording: str) -> None:
    reading = blklab.trace_page(recording, "page.html")
    data = payload("page.html")
    known = [value for value in data["percentiles"]["99"] if value is not None]
    assert max(known) == pytest.approx(reading.q2c_ns.max / 1e6, rel=0.25)
    assert len(known) > 100


def test_the_command_prints_the_figures_and_writes_the_page(recording: str) -> None:
    done = CliRunner().invoke(app, ["trace", "show", recording, "--html", "page.html"])
    assert done.exit_code == 0, done.output
    assert done.stdout.rstrip().endswith("Page: page.html")
    assert "reader" in done.stdout and Path("page.html").exists()


def test_a_trace_without_completions_has_no_latency(tmp_path: Path) -> None:
    rows = "".join(f"{second},read,{second * 4096},4096\n" for second in range(50))
    (tmp_path / "places.csv").write_text("time,op,offset,size\n" + rows)
    reading = blklab.trace_page(tmp_path / "places.csv", tmp_path / "page.html", trace_format="csv")
    text = (tmp_path / "page.html").read_text()
    assert reading.count == 50
    assert "The trace has no completions" in text
    assert "figure-latencies" not in text


def test_names_of_processes_are_text(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    (tmp_path / "job.fio").write_text(f"[{name}]\nrw=read\nsize=64k\ndirect=1\n")
    blklab.record_run(tmp_path / "job.fio", tmp_path / "x.rec", disk="su800-128gb")
    blklab.trace_page(tmp_path / "x.rec", tmp_path / "page.html")
    assert name not in (tmp_path / "page.html").read_text()


def test_an_empty_trace_and_standard_input_are_refused(recording: str) -> None:
    Path("empty").write_bytes(b"")
    with pytest.raises(InputError, match="empty: the file is empty"):
        blklab.trace_page("empty", "page.html")
    done = CliRunner().invoke(app, ["trace", "show", "-", "--html", "page.html"])
    assert isinstance(done.exception, InputError) and "reads a trace twice" in str(done.exception)
    assert not Path("page.html").exists()


@needs_browser
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_a_browser_draws_every_picture(
    browser: Browser, recording: str, size: tuple[int, int]
) -> None:
    blklab.trace_page(recording, "page.html")
    document = browser.opened(Path.cwd(), Path("page.html").read_text(), size)
    assert drawn(document) == {"places0", "rate", "ios", "latencies0", "depth"}
    assert document.count("data:image/png") >= 2, "the grids"
    assert browser.overflow() <= 0


@needs_browser
def test_a_part_of_the_time_is_chosen_for_all_pictures(browser: Browser, recording: str) -> None:
    blklab.trace_page(recording, "page.html")
    browser.opened(Path.cwd(), Path("page.html").read_text())
    script = """
    const done = arguments[0], plots = [...document.querySelectorAll(".plot")];
    Plotly.relayout(plots[0], {"xaxis.range[0]": 1, "xaxis.range[1]": 2}).then(() =>
      setTimeout(() => done(plots.map((plot) => plot._fullLayout.xaxis.range)), 500));
    """
    ranges = browser.driver.execute_async_script(script)
    assert ranges == [[1, 2]] * 5


def chosen(browser: Browser) -> tuple[int, int]:
    """The window, in steps."""
    found = browser.driver.execute_script("return ['from', 'until'].map((id) => byId(id).value)")
    return int(found[0]), int(found[1])


def test_the_page_has_what_was_served_in_each_step(recording: str) -> None:
    blklab.trace_page(recording, "page.html")
    served = payload("page.html")["served"]
    assert sorted(served["processes"]) == ["copy 2", "reader 1"]
    rows = np.array(served["of_processes"])
    # Columns: step, row, came, reads, others, bytes read, bytes written.
    for row, name in enumerate(served["processes"]):
        own = rows[rows[:, 1] == row].sum(axis=0)
        expected = [300, 300, 0, 300 * 4096, 0] if "reader" in name else [400, 0, 400, 0, 400 << 18]
        assert own[2:7].tolist() == expected
    whole = blklab.served_trace(recording, slowest=1)
    assert served["slow"][0]["took"] == pytest.approx(
        ((whole.slow[0].io.completed_ns or 0) - whole.slow[0].io.queued_ns) / 1e3
    )


@needs_browser
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_a_window_is_chosen_by_dragging_and_tells_what_was_served(
    browser: Browser, recording: str, size: tuple[int, int]
) -> None:
    blklab.trace_page(recording, "page.html")
    browser.opened(Path.cwd(), Path("page.html").read_text(), size)
    answer = browser.driver.find_element(By.ID, "answer")
    # At first it is around the slowest I/O.
    assert "The disk served" in answer.text
    plot = browser.driver.find_element(By.CSS_SELECTOR, "#figure-latencies0 .plot")
    browser.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    width = plot.size["width"] // 5
    ActionChains(browser.driver).move_to_element(plot).click_and_hold().move_by_offset(
        width, 0
    ).release().perform()
    first, last = chosen(browser)
    steps = len(payload("page.html")["depth"])
    assert 0.35 * steps < first < 0.65 * steps and 0.1 * steps < last - first < 0.4 * steps
    reads = payload("page.html")["served"]["of_processes"]
    came = sum(row[2] for row in reads if first <= row[0] < last)
    came_in_rows = """
    return [...document.querySelectorAll("#answer tbody tr")].map((row) => row.cells[3].textContent)
    """
    texts = browser.driver.execute_script(came_in_rows)
    assert sum(int(text.replace(",", "")) for text in texts) == came
    assert re.search(r"(reader|copy) \d", answer.text)
    bands = "return [...document.querySelectorAll('.plot')].map((one) => one.layout.shapes[0].x0)"
    assert len(set(browser.driver.execute_script(bands))) == 1
    assert browser.overflow() <= 0


@needs_browser
def test_a_window_is_chosen_by_the_keyboard(browser: Browser, recording: str) -> None:
    blklab.trace_page(recording, "page.html")
    browser.opened(Path.cwd(), Path("page.html").read_text(), PHONE)
    browser.driver.find_element(By.ID, "whole").click()
    steps = len(payload("page.html")["depth"])
    assert chosen(browser) == (0, steps)
    slider = browser.driver.find_element(By.ID, "from")
    slider.send_keys(Keys.ARROW_RIGHT * 3)
    assert chosen(browser) == (3, steps)
    # The other end gives way.
    slider.send_keys(Keys.END)
    assert chosen(browser) == (steps - 1, steps)
    browser.driver.find_element(By.ID, "worst").click()
    assert chosen(browser) != (steps - 1, steps)
    assert (
        "at the disk, which meanwhile completed"
        in browser.driver.find_element(By.ID, "answer").text
    )


@needs_browser
def test_two_recordings_are_laid_over_each_other(browser: Browser, recording: str) -> None:
    blklab.record_run("job.fio", "<b>bfq.rec", disk="wd10ezrx", scheduler="bfq")
    blklab.trace_page(recording, "page.html", beside=["<b>bfq.rec"])
    document = browser.opened(Path.cwd(), Path("page.html").read_text(), PHONE)
    pictures = {"places0", "places1", "rate", "ios", "latencies0", "latencies1", "depth"}
    assert drawn(document) == pictures
    assert "<b>bfq" not in document.partition("<script")[0]
    assert browser.overflow() <= 0
    lines = "return document.querySelector('#figure-rate .plot').data.map((line) => line.name)"
    assert browser.driver.execute_script(lines) == ["both.rec", "&lt;b&gt;bfq.rec"]


def test_traces_beside_need_a_page_and_are_few(recording: str) -> None:
    done = CliRunner().invoke(app, ["trace", "show", recording, "--beside", recording])
    assert isinstance(done.exception, InputError) and "--beside: needs --html" in str(
        done.exception
    )
    with pytest.raises(InputError, match="--beside: 4 traces; at most 3"):
        blklab.trace_page(recording, "page.html", beside=[recording] * 4)


def test_bursts_of_the_simulator_are_no_finding(recording: str) -> None:
    # Writeback takes no CPU time there, so that a burst has one time.
    blklab.record_run("readers-vs-writer", "bursts.rec", disk="wd10ezrx")
    gaps = pyarrow.ipc.open_stream("bursts.rec").read_all()["gap_ns"].to_numpy()
    assert np.count_nonzero(gaps == 0) > 0.1 * len(gaps)
    assert [
        one.kind for one in blklab.read_trace("bursts.rec").findings if one.weight != "note"
    ] == []
