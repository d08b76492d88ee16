"""``blklab explain``: the timeline is complete and correct, in every output format."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as Packets

from blklab import rigs
from blklab.base.catalogue import Entry
from blklab.domain import core, specs
from blklab.domain.experiment import Experiment, Window
from blklab.errors import InputError
from blklab.report.timeline import LANES, page, payload
from blklab.timelines import summary, text, window
from blklab.timelines.decisions import KINDS, SPANS
from blklab.timelines.timeline import Request, Timeline, build, names
from blklab.timelines.timeline import lanes as lanes_of
from tests import real_kernel
from tests.browser import Browser, drawn, needs_browser
from tests.test_cli import failing, run
from tests.test_report import HOSTILE, Parts

JOB = (
    "[global]\nruntime=2\ntime_based\ndirect=1\nsize=1g\n[reader]\nrw=read\nbs=64k\nnumjobs=2\n"
    "[seeker]\nrw=randread\nthinktime=3ms\n[writer]\nrw=randwrite\nioengine=libaio\niodepth=20\n"
)
DISK = "wd10ezrx:ncq=false"
DECIDING = [info.name for info in core.schedulers() if info.name not in ("none", "noop")]
MS = 1_000_000


def timeline(
    scheduler: str,
    *,
    job: str = JOB,
    disk: str = DISK,
    at_ms: tuple[int, int] = (500, 1500),
    most: int = 5000,
    wanted: tuple[str, ...] = (),
    load: str = "load",
) -> Timeline:
    asked = Window(at_ms[0] * MS, at_ms[1] * MS, window.KEPT)
    experiment = Experiment(
        Entry("load", Path("load.fio"), job),
        specs.disk(disk),
        specs.scheduler(scheduler),
        1,
        window=asked,
    )
    return build(
        rigs.rig("sim").run(experiment),
        load=load,
        disk=disk,
        scheduler=scheduler,
        rig="sim",
        from_ns=asked.from_ns,
        until_ns=asked.until_ns,
        wanted=wanted,
        most=most,
    )


def test_every_kind_of_decision_has_its_words() -> None:
    assert list(KINDS) == core.decision_kinds()
    assert {kind.span for kind in KINDS.values()} - {""} == set(SPANS)
    assert all((kind.span == "") == (kind.edge == "") for kind in KINDS.values())


@pytest.mark.parametrize("scheduler", DECIDING)
def test_a_request_is_queued_then_dispatched_then_on_disk_then_completed(scheduler: str) -> None:
    found = timeline(scheduler)
    assert len(found.requests) > 50
    for request in found.requests:
        assert request.began_ns is not None
        way = (request.queued_ns, request.issued_ns, request.began_ns, request.completed_ns)
        assert way == tuple(sorted(way))
        assert request.completed_ns >= found.from_ns and request.queued_ns <= found.until_ns
    assert found.requests_left_out == found.decisions_left_out == 0


@pytest.mark.parametrize("scheduler", DECIDING)
def test_decisions_and_spans_are_within_the_window_and_turns_do_not_overlap(
    scheduler: str,
) -> None:
    found = timeline(scheduler)
    for decision in found.decisions:
        assert found.from_ns <= decision.at_ns <= found.until_ns <= found.run_ns
    for span in found.spans:
        assert found.from_ns <= span.start_ns <= span.end_ns <= found.until_ns
    turns = [span for span in found.spans if span.kind == "turn"]
    assert all(one.end_ns <= next_.start_ns for one, next_ in itertools.pairwise(turns))
    same = {(span.kind, span.of, span.row) for span in found.spans}
    for key in same:
        spans = [span for span in found.spans if (span.kind, span.of, span.row) == key]
        assert all(a.end_ns <= b.start_ns for a, b in itertools.pairwise(spans)), key


def test_mq_deadlines_batches_are_of_the_length_that_they_may_have() -> None:
    found = timeline("mq-deadline:fifo_batch=3")
    ends = [d.words for d in found.decisions if d.kind == "batch-end"]
    assert len(ends) > 10
    counts = {int(re.findall(r"\d+", words)[0]) for words in ends}
    assert max(counts) == 3
    assert set(found.rows.values()) == {
        *("reader.0", "reader.1", "seeker", "writer", "(scheduler)")
    }


def test_cfq_gives_turns_and_idles_for_readers_that_read_on() -> None:
    found = timeline("cfq")
    turns = [span for span in found.spans if span.kind == "turn"]
    assert {found.rows[span.row] for span in turns} >= {"reader.0", "reader.1"}
    idle = [span for span in found.spans if span.kind == "idling"]
    assert {found.rows[span.row] for span in idle} >= {"reader.0", "reader.1"}
    assert all(span.end_ns - span.start_ns <= 8 * MS for span in idle)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 30), st.integers(0, 2)), max_size=60))
def test_lanes_hold_requests_one_behind_the_other_and_are_as_few_as_can_be(
    ways: list[tuple[int, int, int]],
) -> None:
    requests = [
        Request(n, row, "read", 0, 8, at, at, at, at + took)
        for n, (at, took, row) in enumerate(sorted(ways))
    ]
    lanes = lanes_of(requests)
    for row in range(3):
        own = [r for r in requests if r.row == row]
        for lane in {lanes[r.number] for r in own}:
            inside = [r for r in own if lanes[r.number] == lane]
            pairs = itertools.pairwise(inside)
            assert all(a.completed_ns <= b.queued_ns for a, b in pairs)
        most = max(
            (sum(r.queued_ns <= at < r.completed_ns for r in own) for at in range(130)), default=0
        )
        assert max((lanes[r.number] for r in own), default=0) <= max(most, 1)


def test_clones_are_told_apart_and_a_job_means_all_of_its_clones() -> None:
    assert names(["a", "b", "a"]) == ["a.0", "b", "a.1"]
    found = timeline("mq-deadline", wanted=("reader",))
    assert set(found.rows.values()) == {"reader.0", "reader.1", "(scheduler)"}
    found = timeline("mq-deadline", wanted=("reader.1",))
    assert set(found.rows.values()) == {"reader.1", "(scheduler)"}
    assert {found.rows[request.row] for request in found.requests} == {"reader.1"}


def test_omitted_requests_are_counted_and_shown_ones_are_complete() -> None:
    every, few = timeline("mq-deadline"), timeline("mq-deadline", most=10)
    assert len(few.requests) == 10
    assert few.requests_left_out == len(every.requests) - 10
    ended = [r for r in every.requests if r.completed_ns <= few.until_ns]
    assert [(r.queued_ns, r.sector) for r in few.requests] == [
        (r.queued_ns, r.sector) for r in ended
    ]
    assert few.decisions == [d for d in every.decisions if d.at_ns <= few.until_ns]
    assert few.decisions_left_out == len(every.decisions) - len(few.decisions)
    told = summary.left_out(few)
    assert f"{few.requests_left_out:,} requests completed later than" in told
    assert f"{few.decisions_left_out:,} decisions after" in told and "--from" in told
    assert summary.left_out(every) == ""


def test_a_name_cannot_move_the_cursor_of_a_terminal() -> None:
    found = timeline("mq-deadline", job=JOB.replace("[reader]", "[re\x1b[2Jader\u202e]"))
    assert list(found.rows.values())[:2] == ["re\ufffd[2Jader\ufffd.0", "re\ufffd[2Jader\ufffd.1"]


def test_among_many_processes_only_those_with_events_have_a_row() -> None:
    job = "[a]\nrw=randread\ndirect=1\nsize=1m\nnumjobs=100\n[late]\nstartdelay=9\nsize=1m\n"
    assert "late" not in timeline("mq-deadline", job=job, at_ms=(0, 50)).rows.values()
    few = job.replace("numjobs=100", "numjobs=2")
    assert "late" in timeline("mq-deadline", job=few, at_ms=(0, 50)).rows.values()


def test_states_that_began_before_the_window_are_known_in_it() -> None:
    job = (real_file("side-by-side.fio")).replace("runtime=32", "runtime=8")
    whole = timeline("bfq", job=job, at_ms=(0, 6000), most=100_000)
    part = timeline("bfq", job=job, at_ms=(5000, 6000), most=100_000)
    assert part.decisions == [d for d in whole.decisions if d.at_ns >= part.from_ns]
    raised = [s for s in part.spans if s.kind == "raised weight" and s.start_ns == part.from_ns]
    assert raised and all(span.began for span in raised)
    clipped = [
        (s.kind, s.row, max(s.start_ns, part.from_ns), s.end_ns, s.began, s.ended)
        for s in whole.spans
        if s.end_ns > part.from_ns
    ]
    found = [(s.kind, s.row, s.start_ns, s.end_ns, s.began, s.ended) for s in part.spans]
    assert sorted(found) == sorted(clipped)


def real_file(name: str) -> str:
    return (Path(__file__).parents[1] / "examples" / name).read_text()


def test_the_text_has_every_moment_in_order_of_time() -> None:
    found = timeline("cfq")
    lines = text.lines(found)
    assert [line.at_ns for line in lines] == sorted(line.at_ns for line in lines)
    assert [line.what for line in lines if line.decided] == [d.words for d in found.decisions]
    for step in ("queued", "dispatched", "on disk", "completed"):
        told = [line for line in lines if not line.decided and step in line.what]
        times = {
            "queued": [r.queued_ns for r in found.requests],
            "dispatched": [r.issued_ns for r in found.requests],
            "on disk": [r.began_ns or 0 for r in found.requests],
            "completed": [r.completed_ns for r in found.requests],
        }[step]
        inside = [at for at in times if found.from_ns <= at <= found.until_ns]
        assert len([line for line in told if re.search(rf"[# ,]{step}\b", line.what)]) >= len(
            inside
        )
    asked = [line.what for line in lines if " at " in line.what and line.what.startswith("#")]
    numbers = [line.split()[0] for line in asked]
    assert len(numbers) == len(set(numbers)) == len(found.requests)


# The page


def test_the_page_asks_nothing_of_any_network_and_hostile_names_stay_text() -> None:
    job = JOB.replace("[reader]", "[<img src=x onerror=alert(1)>]")
    whole = page(timeline("mq-deadline", job=job, load=HOSTILE))
    parts = Parts(whole)
    for tag, attributes in parts.tags:
        assert tag not in {"link", "iframe", "img", "object", "embed"}
        assert "src" not in attributes and "onerror" not in attributes
    assert len(parts.scripts) == 3
    assert "<img src=x onerror=alert(1)>.0" in "".join(parts.words)
    assert len(whole) < 8e6


def test_the_picture_has_a_bar_for_every_request_and_none_leaves_the_window() -> None:
    found = timeline("cfq", at_ms=(500, 1700))
    data = payload(found)
    for bars in data["bars"].values():
        ends = [a + b for a, b in zip(bars["start"], bars["width"], strict=True)]
        assert min(bars["start"]) >= data["from"] - 1e-6 and max(ends) <= data["until"] + 1e-6
        lengths = {len(column) for column in bars.values()}
        assert len(lengths) == 1
    served = sum(len(data["bars"][f"on disk: {op}"]["start"]) for op in ("read", "write"))
    inside = [
        (max(r.began_ns or 0, found.from_ns), min(r.completed_ns, found.until_ns))
        for r in found.requests
    ]
    assert served == sum(began < ended for began, ended in inside) > 300
    tops = [row["top"] for row in data["rows"]]
    assert tops == sorted(tops, reverse=True)
    assert all(row["top"] - row["bottom"] <= LANES + 2 for row in data["rows"])


@needs_browser
@pytest.mark.parametrize("scheduler", ["none", "kyber", "cfq"])
def test_a_browser_draws_the_timeline_without_an_error(
    browser: Browser, tmp_path: Path, scheduler: str
) -> None:
    job = JOB.replace("[reader]", "[<img src=x onerror=alert(1)>]")
    document = browser.opened(tmp_path, page(timeline(scheduler, job=job, load=HOSTILE)))
    assert drawn(document) == {"timeline"}
    assert "<img" not in document.partition("<script")[0]


# The command

EXPLAIN = ("explain", "readers-vs-writer", "--disk", DISK)


def test_the_command_prints_a_head_the_moments_and_each_process() -> None:
    done = run(*EXPLAIN, "--scheduler", "mq-deadline", "--from", "4s", "--until", "6s")
    assert done.exit_code == 0
    assert "readers-vs-writer on wd10ezrx:ncq=false under mq-deadline: 4s to" in done.stdout
    for expected in ("a batch of reads begins", "reader.1", "dispatched", "in the scheduler"):
        assert expected in done.stdout
    assert re.search(r"left out: \d+ requests completed later than", done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_command_writes_page_and_trace(tmp_path: Path) -> None:
    html, pftrace = tmp_path / "a.html", tmp_path / "a.pftrace"
    done = run(
        *EXPLAIN, "--scheduler", "kyber", "--until", "1s", "--process", "reader",
        *("--out", str(html), "--perfetto", str(pftrace)),
    )  # fmt: skip
    assert done.stdout == f"Timeline: {html}\nPerfetto trace: {pftrace}\n"
    assert html.read_text().startswith("<!doctype html>")
    assert Packets.FromString(pftrace.read_bytes()).packet


def test_a_rig_without_decisions_is_noted() -> None:
    done = run(*EXPLAIN, "--until", "100ms")
    assert done.stderr == (
        "blklab: wd10ezrx:ncq=false: not validated: changed, the file's figures describe another "
        "disk\n"
        "blklab: none records no decisions: only the requests are shown\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--process", "raeder"], "has no process 'raeder'; did you mean 'reader'?"),
        (["--process", "reader.2"], "has no process 'reader.2'; did you mean 'reader.1'?"),
        (["--from", "2s", "--until", "1s"], "--until 1s: the window is empty"),
        (["--from", "1s", "--until", "1s"], "--until 1s: the window is empty"),
        (["--from", "4"], "--from: expected a time such as 4s, 250ms or 80us, found '4'"),
        (["--until", "1e99s"], "--until: expected a time such as"),
        (["--from", "400s"], "--from 400s: the run ends at 3"),
        (["--from", "4s", "--until", "4.000000001s", "--process", "writer"], "nothing happens"),
        (["--requests", "0"], "Invalid value for '--requests'"),
        (["--out", "/dev/null/y.html"], "/dev/null: /dev/null is not a directory"),
        (["--scheduler", "mq-deadlin"], "did you mean 'mq-deadline'?"),
        (["--rig", "real"], "no rig 'real'"),
        (["--kernel", "mine"], "--kernel: the rig 'sim' has no such option"),
    ],
)
def test_each_way_to_get_it_wrong_is_one_line(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    code, err = failing(capfd, monkeypatch, *EXPLAIN, *arguments)
    assert code == 2
    assert message in err and err.count("\n") == 1


def test_an_empty_stretch_says_when_something_happens() -> None:
    job = "[a]\nrw=randread\ndirect=1\nsize=1m\nthinktime=100ms\nruntime=1\ntime_based\n"
    found = timeline("mq-deadline", job=job, at_ms=(10, 11))
    experiment = Experiment(
        Entry("a", Path("a.fio"), job), specs.disk(DISK), specs.scheduler("mq-deadline"), 1
    )
    with pytest.raises(InputError, match=r"from 0.01s to 0.011s of .*; a request is queued at"):
        window.check_found(found, rigs.rig("sim").run(experiment))


def test_a_kernel_tells_its_requests_and_says_that_it_tells_no_decisions() -> None:
    real_kernel.image()
    command = [
        *(sys.executable, "-m", "blklab", *EXPLAIN, "--rig", "kernel", "--driver", "native"),
        *("--scheduler", "bfq", "--until", "500ms", "--process", "reader"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert "does not report its scheduler's decisions" in done.stderr
    assert "--rig sim" in done.stderr
    assert re.search(r"reader.0 +#\d+ .*dispatched", done.stdout)
    assert "on disk" not in done.stdout
