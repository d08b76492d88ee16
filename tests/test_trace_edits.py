"""Recordings made of traces: cut, scaled, merged, without names."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import blklab
from blklab.cli import app
from blklab.errors import InputError, RunError

EXAMPLE = Path(__file__).parents[1] / "examples/commits.blkparse"


def run(*arguments: object, expected: int = 0) -> str:
    done = CliRunner().invoke(app, ["trace", *map(str, arguments)])
    assert done.exit_code == expected, done.output
    return done.output


def rows(recording: Path) -> pl.DataFrame:
    return pl.read_ipc_stream(recording).with_columns(queue_ns=pl.col("gap_ns").cum_sum())


def numbers(frame: pl.DataFrame, column: str) -> list[int]:
    return [int(value) for value in frame[column].to_list()]


@pytest.fixture
def whole(tmp_path: Path) -> pl.DataFrame:
    blklab.import_trace(EXAMPLE, tmp_path / "whole")
    return rows(tmp_path / "whole")


def test_the_parts_of_a_trace_are_its_whole(tmp_path: Path, whole: pl.DataFrame) -> None:
    middle = sorted(numbers(whole, "queue_ns"))[whole.height // 2]
    run("cut", EXAMPLE, "--out", tmp_path / "a", "--until", f"{middle}ns")
    run("cut", EXAMPLE, "--out", tmp_path / "b", "--from", f"{middle}ns")
    a, b = rows(tmp_path / "a"), rows(tmp_path / "b")
    assert max(numbers(a, "queue_ns")) < middle
    again = pl.concat([a["queue_ns"], b["queue_ns"] + middle])
    assert again.to_list() == whole["queue_ns"].to_list()
    assert pl.concat([a["sector"], b["sector"]]).to_list() == whole["sector"].to_list()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 400), st.integers(1, 400), st.integers(0, 64), st.integers(0, 64))
def test_a_cut_keeps_what_an_independent_filter_keeps(
    tmp_path_factory: pytest.TempPathFactory, first: int, length: int, least: int, more: int
) -> None:
    place = tmp_path_factory.mktemp("cut")
    whole = rows(blklab.import_trace(EXAMPLE, place / "whole").path)
    step = max(numbers(whole, "sector")) // 300
    start, end = first * step, (first + length) * step
    placed = (pl.col("sector") >= start) & (pl.col("sector") + pl.col("sectors") <= end)
    sized = pl.col("sectors").is_between(least, least + more)
    expected = whole.filter((pl.col("sectors") == 0) | (placed & sized))
    sizes = (least * 512, (least + more) * 512)
    try:
        made = blklab.cut_trace(
            EXAMPLE, place / "cut", place_bytes=(start * 512, end * 512), size_bytes=sizes
        )
    except InputError as error:
        assert str(error).endswith("no I/O is left")
        assert not expected.height
        assert not (place / "cut").exists()
        return
    assert rows(made.path)["sector"].to_list() == expected["sector"].to_list()


def test_a_process_is_cut_out_by_name_or_number(tmp_path: Path, whole: pl.DataFrame) -> None:
    run("cut", EXAMPLE, "--out", tmp_path / "name", "--process", "kworker/u8:1")
    run("cut", EXAMPLE, "--out", tmp_path / "number", "--process", "77")
    assert (tmp_path / "name").read_bytes() == (tmp_path / "number").read_bytes()
    assert rows(tmp_path / "name").height == whole.filter(pl.col("pid") == 77).height == 16
    run("cut", EXAMPLE, "--out", tmp_path / "ops", "--operation", "write", "--size", "..4KiB")
    found = rows(tmp_path / "ops")
    assert set(found["op"]) == {"write"}
    assert max(numbers(found, "sectors")) <= 8


def test_twice_as_fast_arrives_in_half_the_time_with_the_same_latencies(
    tmp_path: Path, whole: pl.DataFrame
) -> None:
    text = run("scale", EXAMPLE, "--out", tmp_path / "fast", "--time", "0.5")
    fast = rows(tmp_path / "fast")
    assert fast["queue_ns"].to_list() == [time // 2 for time in whole["queue_ns"]]
    for column in ("q2i_ns", "i2d_ns", "d2c_ns", "sector"):
        assert fast[column].to_list() == whole[column].to_list()
    assert "I/Os a second" in text


def test_a_scaled_disk_keeps_streams(tmp_path: Path) -> None:
    job = "[a]\nrw=read\nbs=64k\nsize=64m\noffset=500g\ndirect=1\n"
    blklab.record_run(job, tmp_path / "stream", disk="wd10ezrx")
    made = blklab.scale_trace(tmp_path / "stream", tmp_path / "small", capacity_bytes=128 * 10**9)
    (before,) = made.before
    assert before.sequential == before.count - 1
    assert made.after.sequential >= made.after.count - 6, "areas of 16 MiB move as a whole"
    assert made.after.end_sector * 512 < 128 * 10**9
    place = before.end_sector / before.capacity_sectors if before.capacity_sectors else 0.5
    assert made.after.end_sector * 512 / (128 * 10**9) == pytest.approx(place, abs=0.01)
    replayed = blklab.replay_trace(made.path, disk="su800-128gb")
    assert replayed.result.notes == ()


def test_merged_traces_have_all_ios_and_separate_processes(
    tmp_path: Path, whole: pl.DataFrame
) -> None:
    run("merge", EXAMPLE, EXAMPLE, "--out", tmp_path / "both", "--apart")
    both = rows(tmp_path / "both")
    assert both.height == 2 * whole.height
    assert both["queue_ns"].is_sorted()
    second = both.filter(pl.col("pid") >= 2**22)
    first = both.filter(pl.col("pid") < 2**22)
    assert first["sector"].to_list() == whole["sector"].to_list()
    end = max(map(sum, whole.select("sector", "sectors").rows()))
    assert min(numbers(second.filter(pl.col("sectors") > 0), "sector")) >= end
    with pytest.raises(InputError, match="1 traces; expected two at least"):
        blklab.merge_traces([EXAMPLE], tmp_path / "one")


def test_an_anonymous_trace_shows_no_name_and_costs_little(tmp_path: Path) -> None:
    text = run(
        "anonymise", EXAMPLE, "--out", tmp_path / "hidden", "--disk", "wd10ezrx", "--seed", 3
    )
    assert "replayed on wd10ezrx" in text
    content = (tmp_path / "hidden").read_bytes()
    found = rows(tmp_path / "hidden")
    assert set(found["process"]) <= {f"process-{number}" for number in range(1, 9)}
    assert set(found["device"]) == {"device-1"}
    assert max(numbers(found, "pid")) < 10
    assert b"kworker" not in content


def test_places_of_an_anonymous_trace_are_drawn_within_4_gib(tmp_path: Path) -> None:
    job = "[a]\nrw=randread\nsize=40g\nnumber_ios=400\ndirect=1\n"
    blklab.record_run(job, tmp_path / "open", disk="wd10ezrx")
    before = numbers(rows(tmp_path / "open"), "sector")
    one = blklab.anonymise_trace(tmp_path / "open", tmp_path / "one")
    blklab.anonymise_trace(tmp_path / "open", tmp_path / "other")
    places = [numbers(rows(tmp_path / name), "sector") for name in ("one", "other")]
    assert places[0] != places[1]
    assert sum(a == b for a, b in zip(before, places[0], strict=True)) < 40
    group = 4 * 2**30 // 512
    assert [sector // group for sector in places[0]] == [sector // group for sector in before]
    (fidelity, *_) = blklab.trace_fidelity(tmp_path / "open", one.path, disk="wd10ezrx")
    assert fidelity.scheduler == "none"
    assert fidelity.bytes_per_s == pytest.approx(1, abs=0.05)
    assert fidelity.latency == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cut", "--place", "10"], "--place: found '10'; expected a range such as 4KiB..64KiB"),
        (["cut", "--place", "1x..2"], "--place: found '1x'; expected a size"),
        (["cut", "--size", "8KiB..4KiB"], "expected a range that is not empty"),
        (["cut", "--operation", "erase"], "operation 'erase'; expected one of: read, write"),
        (["cut", "--process", "none-such"], "no I/O is left"),
        (["cut", "--from", "5"], "--from: expected a time such as 4s"),
        (["scale", "--time", "0"], "expected a number above 0"),
        (["scale", "--time", "nan"], "expected a number above 0"),
        (["scale", "--disk-size", "1"], "expected a sector of 512 at least"),
        (["anonymise", "--device", "9:9"], "no I/O of device '9:9'"),
        (["anonymise", "--disk", "wd10ezrx", "--fit", "stretch"], "--fit: no 'stretch'"),
        (["anonymise", "--disk", "wd10ezr"], "wd10ezr"),
    ],
)
def test_a_wrong_change_is_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    command, *options = arguments
    done = CliRunner().invoke(
        app, ["trace", command, str(EXAMPLE), "--out", str(tmp_path / "out"), *options]
    )
    assert isinstance(done.exception, InputError), done.output
    assert said in str(done.exception)
    assert not [*tmp_path.iterdir()], "nothing is written"


def test_nothing_is_left_of_a_change_that_failed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    broken = tmp_path / "broken"
    broken.write_text("1,hm,1,Read,0,512,1\n2,hm,1,Erase,0,512,1\n")
    with pytest.raises(InputError, match=r"broken:2: msr"):
        blklab.cut_trace(broken, out)
    out.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        blklab.anonymise_trace(EXAMPLE, out)
    assert out.read_text() == "mine"
    with pytest.raises(RunError, match="No such file"):
        blklab.cut_trace(EXAMPLE, tmp_path / "missing" / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "out"]


def test_a_pipe_is_refused_before_it_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for file in (pipe, "-"):
        for change in (blklab.cut_trace, blklab.scale_trace, blklab.anonymise_trace):
            with pytest.raises(InputError, match=r"a pipe cannot be read twice; .*trace import"):
                change(file, tmp_path / "out")
        with pytest.raises(InputError, match="a pipe cannot be read twice"):
            blklab.merge_traces([EXAMPLE, file], tmp_path / "out")
    assert [*tmp_path.iterdir()] == [pipe]
