"""Recorded loads under other schedulers."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import blklab
from blklab.domain.recordings import WAYS, Fit, Way
from blklab.errors import InputError, RunError
from tests.competing import COMPETING, recorded

BLKLAB = str(Path(sys.executable).with_name("blklab"))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("recording") / "load.rec")


def run(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([BLKLAB, *words], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_a_recording_has_every_io_of_the_run_with_its_process(recording: Path) -> None:
    reading = blklab.read_trace(recording)
    assert (reading.level, reading.resolution_ns) == ("bio", 1)
    assert {(one.name, one.count) for one in reading.processes} == {("copy", 256), ("reader", 150)}
    assert not [one for one in reading.findings if one.weight == "unusable"]


@pytest.mark.parametrize("way", ["closed", "inferred"])
def test_a_replay_in_the_same_place_is_the_recorded_run(way: Way, tmp_path: Path) -> None:
    host = {"submit_ns": 0, "complete_ns": 0}
    file = tmp_path / "load.rec"
    truth = blklab.record_run(COMPETING, file, disk="wd10ezrx", scheduler="bfq", host=host)
    found = blklab.replay_trace(file, disk="wd10ezrx", scheduler="bfq", way=way, host=host)
    assert found.result.duration_ns == pytest.approx(truth.duration_ns, rel=0.01)
    assert found.result.notes == ()
    names = [job.name for job in found.result.jobs]
    assert names == ["copy-1", "reader-2"]
    for job, replayed in zip(truth.jobs, found.result.jobs, strict=True):
        for side in ("read", "write"):
            assert replayed.direction(side).ios == job.direction(side).ios
            assert replayed.direction(side).bytes == job.direction(side).bytes


def test_a_scheduler_that_serves_readers_first_is_named_with_what_the_others_do(
    recording: Path,
) -> None:
    found = blklab.whatif(
        recording, disk="wd10ezrx", schedulers=["none", "bfq:slice_idle=0", "deadline"], draws=2
    )
    assert len(found.rows) == 9
    assert set(found.best) == set(WAYS)
    assert len(found.drawn) == 2
    for way, best in found.best.items():
        rows = [row for row in found.rows if row.way == way]
        least = min(row.latency_ns for row in rows)
        assert set(best) == {row.scheduler for row in rows if row.latency_ns <= least * 1.02}
    agreed = set.intersection(*map(set, found.best.values()), *map(set, found.drawn))
    assert set(found.winners) == agreed
    assert found.sentence().startswith("Not known" if not agreed else ("No ", *agreed))


def test_the_same_answer_again_and_as_json(recording: Path) -> None:
    words = ("whatif", recording, "--disk", "su800-128gb", "--draws", "1", "--json")
    one, other = (run(*words).stdout for _ in range(2))
    assert one == other
    told = json.loads(one)
    assert len(told["rows"]) == 12
    assert told["ios"] == 406
    assert told["answer"]


def test_a_terminal_gets_the_answer_first(recording: Path) -> None:
    lines = run("whatif", recording, "--disk", "wd10ezrx", "--draws", "1").stdout.splitlines()
    assert lines[0].endswith(".")
    assert "406 I/Os" in lines[1]
    assert lines[-1].startswith("Best on 1 drawn disks: ")
    heads = [line.split() for line in lines]
    assert ["scheduler", "open", "closed", "inferred"] in heads


def test_a_part_of_a_trace_counts_its_times_from_its_start(recording: Path) -> None:
    whole = blklab.load_recording(recording)
    part = blklab.load_recording(recording, from_ns=500_000_000, until_ns=1_000_000_000)
    assert 0 < part.count < whole.count
    assert part.last_ns < 500_000_000
    with pytest.raises(InputError, match="no I/O in that part"):
        blklab.load_recording(recording, from_ns=10**15)


def test_a_trace_without_completions_is_replayed_at_its_times_and_says_so(tmp_path: Path) -> None:
    chance = random.Random(3)
    file = tmp_path / "times.trace"
    rows = (
        f"{number * 2_000_000} 0 {chance.randrange(1 << 30)} 8 {chance.randrange(2)}"
        for number in range(200)
    )
    file.write_text("\n".join(rows) + "\n")
    found = blklab.whatif(file, disk="wd10ezrx", draws=0, schedulers=["none", "bfq"])
    assert set(found.best) == {"open"}
    assert any("no completions" in note for note in found.notes)
    assert sum(job.read.ios + job.write.ios for job in found.rows[0].result.jobs) == 200


def test_addresses_beyond_the_end_are_refused_wrapped_or_scaled(tmp_path: Path) -> None:
    file = tmp_path / "load.rec"
    job = "[a]\ndirect=1\nrw=randread\nbs=4k\nsize=4g\noffset=400g\nnumber_ios=50\nnorandommap\n"
    blklab.record_run(job, file, disk="wd10ezrx")
    with pytest.raises(InputError, match=r"I/O 1: sectors \d+ to \d+; the disk has 2500\d+"):
        blklab.replay_trace(file, disk="su800-128gb")
    fits: tuple[Fit, ...] = ("wrap", "scale")
    for fit in fits:
        found = blklab.replay_trace(file, disk="su800-128gb", fit=fit)
        assert found.result.notes == (f"50 I/Os have another address than recorded ({fit})",)
        assert found.result.disk.read_ios == 50


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("whatif", "none.rec", "--disk", "wd10ezrx"), "none.rec: cannot be read: No such file"),
        (("whatif", "LOAD", "--disk", "wd10ezrx", "--fit", "squeeze"), "--fit: no 'squeeze'"),
        (("whatif", "LOAD", "--disk", "wd10ezrx", "--objective", "joy"), "objective: no 'joy'"),
        (("whatif", "LOAD", "--disk", "wd10ezrx", "--from", "9"), "--from: expected a time"),
        (("whatif", "LOAD", "--disk", "wd10ezrx", "--from", "2h"), "--from: expected a time"),
        (("whatif", "LOAD", "--disk", "wd10ezrx", "--device", "9:9"), "no I/O of device '9:9'"),
        (("whatif", "LOAD", "--disk", "wd10ezrx", "--scheduler", "bqf"), "bqf"),
        (("whatif", "LOAD", "--disk", "wd10ezrx", "--scheduler", "bfq@mine"), "simulator only"),
        (("whatif", "text", "--disk", "wd10ezrx"), "text: "),
        (("record", "randread", "--disk", "wd10ezrx", "--out", "text"), "text: exists already"),
        (("record", "randread", "--disk", "wd10ezrx", "--out", "no/where"), "No such file"),
    ],
)
def test_a_wrong_name_value_or_file_is_one_line(
    words: tuple[str, ...],
    line: str,
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("no trace\n")
    done = subprocess.run(
        [BLKLAB, *(str(recording) if word == "LOAD" else word for word in words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {1, 2}, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert line in done.stderr
    assert Path("text").read_text() == "no trace\n"


def test_a_recording_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="No such file"):
        blklab.record_run("randread", tmp_path / "none/x.rec", disk="su800-128gb")
    assert not list(tmp_path.iterdir())
