"""The report: complete, self-contained, small enough, and safe with any strings."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from blklab import report
from blklab.domain.comparison import plan
from blklab.domain.events import Nowhere
from blklab.domain.job_figures import Service
from blklab.domain.measurement import from_json
from blklab.domain.over_time import OverTime, PileUp, PileUps
from blklab.domain.result import Figure
from blklab.domain.results_file import Results
from blklab.domain.setup import SetupData
from blklab.execute import Local, carry_out
from blklab.experiment.analyse import analyse
from blklab.report import parts, payload
from tests.browser import DESKTOP, PHONE, Browser, drawn, needs_browser
from tests.test_comparison import Plausible, setup

HOSTILE = "</script><script>window.hacked=1</script><b onmouseover='x'>\u2028&amp;\"'"


def results(name: str = "hdd") -> Results:
    """Made results in which every free string is `name`."""
    question = setup(repeats=2)
    rig = Plausible()
    runs = carry_out(plan(question), rig, Local(2, rig), lambda _: None, Nowhere(""))
    labels = {"hdd": name}
    documents = json.loads(json.dumps([asdict(run) for run in runs]))
    for document in documents:
        document["disk"] = labels.get(document["disk"], document["disk"])
        if document["story"]:
            document["story"]["jobs"] = [name] * len(document["story"]["jobs"])
    described = {
        "rig": "sim",
        "rig_setup": {"text": name},
        "seed": 1,
        "repeats": 2,
        "host": {},
        "ignore_unsupported": False,
        "versions": {"blklab": "0", "python": "3"},
        "disks": [
            {
                "label": label,
                "summary": name,
                "overrides": [],
                "limits": {"rotational": True},
                "parameters": [
                    {"key": "rpm", "value": name, "unit": "", "help": name, "source": name}
                ],
            }
            for label in (name, "ssd:dies=4")
        ],
        "workloads": [
            {"name": job.name, "summary": name, "text": name, "ignored": [name]}
            for job in question.workloads
        ],
        "schedulers": [
            {
                "label": spec.label,
                "name": spec.name,
                "summary": name,
                "follows": name,
                "tunables": [],
            }
            for spec in question.schedulers
        ],
    }
    return Results(cast(SetupData, described), tuple(from_json(document) for document in documents))


def page(kept: Results) -> str:
    return report.render(kept, analyse(kept.runs, "both"))


class Parts(HTMLParser):
    """Tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.inside = ""
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] += data
        elif self.inside != "style":
            self.words.append(data)


def test_the_page_asks_nothing_of_any_network() -> None:
    text = page(results())
    for tag, attributes in Parts(text).tags:
        assert tag not in {"link", "iframe", "img", "object", "embed"}
        assert "src" not in attributes
        assert not (attributes.get("href") or "#").startswith("http")
    assert "default-src 'none'" in text


needs_bundle = pytest.mark.skipif(
    not parts.BUNDLE.is_file(), reason="Plotly's bundle was not fetched: `make setup` with npm"
)
WITHOUT_BUNDLE = Path("/nonexistent")
VERSION = re.compile(r"plotly\.js (?:\(basic - minified\) )?v(\S+)")


@needs_bundle
def test_the_bundle_has_the_version_of_the_python_package(monkeypatch: pytest.MonkeyPatch) -> None:
    small = VERSION.search(parts.plotly())
    monkeypatch.setattr(parts, "BUNDLE", WITHOUT_BUNDLE)
    whole = VERSION.search(parts.plotly())
    assert small and whole and small[1] == whole[1]
    locked = json.loads((files("blklab.report") / "bundle/package-lock.json").read_text())
    [bundle] = [one for name, one in locked["packages"].items() if name]
    assert bundle["version"] == small[1]
    assert bundle["integrity"].startswith("sha512-")


@needs_bundle
def test_a_page_with_the_bundle_is_a_third_of_one_with_all_of_plotly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = len(page(results()))
    monkeypatch.setattr(parts, "BUNDLE", WITHOUT_BUNDLE)
    assert small < 1.6e6
    assert 3 * small < len(page(results())) < 6e6


def test_hostile_names_stay_text_everywhere() -> None:
    text = page(results(HOSTILE))
    parts = Parts(text)
    assert len(parts.scripts) == 3
    assert not [tag for tag, attributes in parts.tags if "onmouseover" in attributes]
    data = json.loads(parts.scripts[0])
    assert data["cells"][0]["disk"] == HOSTILE
    assert HOSTILE in "".join(parts.words)


def test_the_page_tells_question_setup_method_and_answer() -> None:
    words = " ".join("".join(Parts(page(results())).words).split())
    assert "Which I/O scheduler suits hdd and ssd:dies=4?" in words
    assert "2 schedulers" in words and "2 repeats with different seeds, on modelled disks" in words
    for expected in ("Set-up", "seeds 1 to 2", "Method", "Student's t"):
        assert expected in words
    assert "mq-deadline:fifo_batch=1 is" in words


def test_thinned_series_keep_every_byte() -> None:
    kept = results()
    run = next(run for run in kept.runs if run.story)
    assert run.story is not None
    # A run may end within an interval.
    duration_ns = run.duration_ns - run.story.interval_ns // 3
    drawn = payload._story(run.story, duration_ns, 1e6)
    starts_s = np.array([*drawn["t"], duration_ns / 1e9])
    drawn_bytes = (np.array(drawn["rate"]) * np.diff(starts_s)).sum() * 1e6
    expected = sum(run.story.series["read_bytes"]) + sum(run.story.series["write_bytes"])
    assert drawn_bytes == pytest.approx(expected, rel=2e-3)


def test_pictures_hold_no_more_points_than_they_have_room_for() -> None:
    kept = results()
    data = payload.build(kept, analyse(kept.runs, "both"))
    for cell in data["cells"]:
        for story in cell["stories"].values():
            assert len(story["t"]) <= payload.SERIES_POINTS
            assert len(story["overview"]["t"]) <= payload.TRACE_POINTS
            assert len(story["detail"]["t"]) <= payload.TRACE_POINTS
        for line in cell["cdf"].values():
            assert line["tail"][-1] == pytest.approx(1e-4)
            assert line["latency"] == sorted(line["latency"])


def test_a_workload_without_io_is_drawn() -> None:
    kept = results()
    empty = [replace(run, bytes_per_s=0.0, latencies={}) for run in kept.runs]
    assert "not measured" in page(Results(kept.setup, tuple(empty)))


def unmeasured(column: str) -> Results:
    """Results without this column of the series."""
    kept = results()
    return Results(
        kept.setup,
        tuple(
            replace(run, story=replace(run.story, series=run.story.series | {column: []}))
            if run.story
            else run
            for run in kept.runs
        ),
    )


def reasons(column: str) -> dict[str, str]:
    """The text of a page about them."""
    kept = unmeasured(column)
    cells = payload.build(kept, analyse(kept.runs, "both"))["cells"]
    return dict(cells[0]["unmeasured"])


def test_missing_measurements_are_stated_and_not_drawn_as_zero() -> None:
    assert list(reasons("read_bytes")) == ["processes"]
    assert reasons("in_flight_milli")["queue"].startswith("Not measured: ")
    assert reasons("read_clat_max_ns") == {}
    story = next(run.story for run in results().runs if run.story)
    drawn = payload._story(replace(story, series=story.series | {"write_bytes": []}), 10**9, 1e6)
    assert set(drawn["rate"]) == {None}
    assert None not in drawn["inFlight"]


PICTURES = {"ranking", "cdf", "rate", "latency", "waits", "overview", "detail", "depth"}


@needs_browser
@pytest.mark.parametrize("name", ["hdd", HOSTILE])
def test_a_browser_draws_every_picture_without_an_error(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    document = browser.opened(tmp_path, page(results(name)))
    assert drawn(document) == PICTURES
    assert "window.hacked=1</script>" not in document.replace("\\u003c", "")


@needs_browser
def test_a_browser_draws_the_same_pictures_with_all_of_plotly(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "BUNDLE", WITHOUT_BUNDLE)
    document = browser.opened(tmp_path, page(results()))
    assert drawn(document) == PICTURES
    assert "plotly.js (basic" not in document


@needs_browser
@pytest.mark.parametrize("name", ["hdd", HOSTILE])
def test_on_a_phone_nothing_reaches_beyond_the_edge(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    document = browser.opened(tmp_path, page(results(name)), PHONE)
    assert drawn(document) == PICTURES
    assert browser.overflow() <= 0


def long_runs() -> Results:
    """Two hours in 200 intervals each, with a pile-up after one."""
    kept = results()
    level = tuple(range(10**6, 10**6 + 200))
    found = (PileUp(3600 * 10**9, 20 * 10**9, 40.0, 9e6),)
    made = PileUps(10**9, 8.0, 2e6, found, 1, 20 * 10**9)
    course = OverTime(36 * 10**9, 200, "read", level, (400,) * 200, level, level, level, level,
                      level, made)  # fmt: skip
    return Results(kept.setup, tuple(replace(run, over_time=course) for run in kept.runs))


@needs_browser
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_the_course_of_long_runs_is_drawn_with_their_pile_ups(
    browser: Browser, tmp_path: Path, size: tuple[int, int]
) -> None:
    document = browser.opened(tmp_path, page(long_runs()), size)
    assert drawn(document) == PICTURES | {"steady"}
    assert "Steadiness: p99 of reads, interval by interval" in document
    assert "First repeat. Red: pile-ups." in document
    assert "2 pile-ups in 2 runs, in repeat 1 at 1:00:00 (20 s)" in document
    assert browser.overflow() <= 0


def test_short_runs_have_no_picture_of_their_course() -> None:
    kept = results()
    cells = payload.build(kept, analyse(kept.runs, "both"))["cells"]
    assert all(cell["steady"] is None for cell in cells)
    kept = long_runs()
    cells = payload.build(kept, analyse(kept.runs, "both"))["cells"]
    curve = cells[0]["steady"]["curves"]["none"]
    assert (cells[0]["steady"]["time"], curve["pileUps"], len(curve["t"])) == (
        "h",
        [[1.0, 1.005556]],
        200,
    )


@needs_browser
def test_a_browser_says_why_a_picture_is_missing(browser: Browser, tmp_path: Path) -> None:
    document = browser.opened(tmp_path, page(unmeasured("read_bytes")))
    assert drawn(document) == PICTURES - {"rate", "latency"}
    assert document.count("<span>Not measured: with fio itself") == 2


@needs_browser
@pytest.mark.parametrize("operation", ["operation", None])
def test_a_program_has_its_figure_and_no_pictures_of_processes(
    browser: Browser, tmp_path: Path, operation: str | None
) -> None:
    kept = results()
    none: dict[str, list[int]] = {"issued_ns": [], "completed_ns": [], "queued_ns": [], "op": [],
                                  "sector": [], "process": []}  # fmt: skip
    runs = tuple(
        replace(
            run,
            figure=Figure(2.0 + run.repeat, "s", higher_is_better=False),
            latencies={operation: next(iter(run.latencies.values()))} if operation else {},
            story=run.story
            and replace(
                run.story,
                jobs=(),
                series={"in_flight_milli": run.story.series["in_flight_milli"]},
                overview=none,
                detail=none,
            ),
        )
        for run in kept.runs
    )
    document = browser.opened(tmp_path, page(Results(kept.setup, runs)))
    assert "figure, s: less is better" in document
    assert ("p99 of operations" in document) == bool(operation)
    assert drawn(document) == {"ranking", "depth", *(["cdf"] if operation else [])}
    assert document.count("<span>No commands of the disk were recorded.</span>") == 2
    assert document.count("<span>Not measured: a program other than fio") == 2


@needs_browser
@pytest.mark.parametrize("processes", [1, 2])
def test_the_service_of_each_process_is_drawn_where_there_are_several(
    browser: Browser, tmp_path: Path, processes: int
) -> None:
    kept = results()
    served = Service(("a", "b"), (0, 5), (10, 20, 30), (0, 1, 0), (512, 1024, 512))
    names = ("a", "b")[:processes]
    runs = tuple(
        replace(run, service=served, story=replace(run.story, jobs=names)) if run.story else run
        for run in kept.runs
    )
    document = browser.opened(tmp_path, page(Results(kept.setup, runs)))
    several = {"service", "waits"}
    assert drawn(document) == (PICTURES | several if processes > 1 else PICTURES - several)
    hidden = re.findall(r'<figure id="figure-(\w+)" hidden', document)
    assert set(hidden) == {"steady"} | (set() if processes > 1 else several)


@needs_browser
@pytest.mark.parametrize(("clones", "colours"), [((2, 1), (2, 1)), ((32, 10), (1, 1))])
def test_a_legend_has_each_job_once_with_the_colours_of_its_processes(
    browser: Browser, tmp_path: Path, clones: tuple[int, int], colours: tuple[int, int]
) -> None:
    kept = results()
    jobs = ("stream",) * clones[0] + ("greedy",) * clones[1]
    reads = one_read_of_each(len(jobs))
    runs = tuple(
        replace(run, story=replace(run.story, jobs=jobs, overview=reads, detail=reads))
        if run.story
        else run
        for run in kept.runs
    )
    document = browser.opened(tmp_path, page(Results(kept.setup, runs)))
    waits = re.search(r'<figure id="figure-waits".*?</figcaption>', document, re.S)
    assert waits
    labels = re.findall(r"<b>((?:<i [^>]*></i>)+)([^<]*)</b>", waits[0])
    told = [name if count == 1 else f"{name} \u00d7 {count}"
            for name, count in zip(("stream", "greedy"), clones, strict=True)]  # fmt: skip
    assert [text.strip() for _, text in labels] == told
    assert tuple(chips.count("<i ") for chips, _ in labels) == colours
    assert len(set(re.findall(r"background: ([^;]+)", waits[0]))) == sum(colours)


def swept(name: str, operations: tuple[str, ...] = ("read", "read")) -> Results:
    """Results of two loads that differ in a number, both with latencies of these."""
    kept = results(name)
    first, second = [load["name"] for load in kept.setup["workloads"]][:2]
    names = {first: f"{name}:numjobs=4", second: f"{name}:numjobs=16"}
    measured = dict(zip(names, operations, strict=True))
    runs = tuple(
        replace(
            run,
            workload=names[run.workload],
            latencies={measured[run.workload]: next(iter(run.latencies.values()))},
        )
        for run in kept.runs
        if run.workload in names
    )
    loads = [
        load | {"name": names[load["name"]]}
        for load in kept.setup["workloads"]
        if load["name"] in names
    ]
    return Results(kept.setup | {"workloads": loads}, runs)


@needs_browser
@pytest.mark.parametrize("name", ["randrw", HOSTILE.replace(":", "")])
def test_a_sweep_draws_a_curve_per_disk_with_a_line_per_scheduler(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    kept = swept(name)
    document = browser.opened(tmp_path, page(kept))
    assert drawn(document) == PICTURES | {"sweep"}
    figure = re.search(r'<figure id="figure-sweep".*?</figure>', document, re.S)
    assert figure
    assert len(re.findall(r'class="trace scatter', figure[0])) == 2 * len(kept.setup["schedulers"])
    ticks = re.findall(r'class="xtick"><text[^>]*>([^<]*)<', figure[0])
    assert ticks == ["4", "16"]
    choice = re.search(r'<select id="sweep">(.*?)</select>', document, re.S)
    assert choice
    assert choice[1].count("<option") == len(kept.setup["disks"])
    assert "window.hacked=1</script>" not in document.replace("\\u003c", "")


def test_latencies_of_different_operations_are_no_curve() -> None:
    kept = swept("randrw", ("read", "write"))
    data = payload.build(kept, analyse(kept.runs, "both"))["sweeps"]
    assert [(curve["p99"], set(curve["lines"]["none"])) for curve in data] == [("", {"rate"})] * 2
    assert all("p99" not in curve["told"] for curve in data)


def test_the_winner_at_each_number_follows_the_verdicts() -> None:
    kept = swept("randrw")
    # Only at 16 is one of them three times as fast.
    fast = kept.setup["schedulers"][1]["label"]
    runs = tuple(
        replace(run, bytes_per_s=3e6 * (1 + run.repeat / 1e4))
        if run.scheduler == fast and run.workload.endswith("16")
        else replace(run, bytes_per_s=1e6 * (1 + run.repeat / 1e4))
        for run in kept.runs
    )
    data = payload.build(kept, analyse(runs, "both"))["sweeps"]
    for curve in data:
        said = curve["told"].partition(".")[0]
        assert said == f"Best throughput: none clearly at 4, {fast} at 16"


def one_read_of_each(processes: int) -> dict[str, list[int]]:
    """A trace, one command after the other."""
    turns = list(range(processes))
    return {
        "queued_ns": [turn * 1000 for turn in turns],
        "issued_ns": [turn * 1000 + 100 for turn in turns],
        "completed_ns": [turn * 1000 + 900 for turn in turns],
        "sector": [turn * 8 for turn in turns],
        "op": [0] * processes,
        "process": turns,
    }
