"""Traces: what the commands and functions say of one, and recordings of it."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow.ipc
import pytest
from typer.testing import CliRunner
from validation import anonymous
from validation import traces as validation

import blklab
from blklab.cli import app
from blklab.errors import InputError, RunError

EXAMPLE = Path(__file__).parents[1] / "examples/commits.blkparse"
ROW = "1,hm,1,Read,0,512,1\n"


def run(*arguments: object, expected: int = 0) -> str:
    done = CliRunner().invoke(app, ["trace", *map(str, arguments)])
    assert done.exit_code == expected, done.output
    return done.output


def record(time_ns: int, action: int, sector: int, sectors: int, pid: int = 7) -> bytes:
    """A record of blktrace 7."""
    head = struct.pack("=IIQQII", 0x65617407, 0, time_ns, sector, sectors * 512, action)
    return head + struct.pack("=IIIHH", pid, 8 << 20, 0, 0, 0)


def reads(count: int) -> bytes:
    """Reads, each with its queue, issue and completion events."""
    made = b""
    for n in range(count):
        begun = 1_000_000 * n + 7 * n
        steps = ((1, 4, 0), (4, 4, 500), (12, 4, 800), (7, 6, 1500), (8, 7, 90_001))
        for action, category, after in steps:
            event = action | (1 << category | 1) << 16
            made += record(begun + after, event, 8 * n, 8)
    return made


def test_a_trace_is_shown_with_its_mix_times_and_processes() -> None:
    text = run("show", EXAMPLE)
    assert "blkparse; level bio, clock 1 ns\n40 I/Os" in text
    for words in ("read         20  50.0 %", "Q2C    in all", "kworker/u8:1 77    16"):
        assert words in text
    found = json.loads(run("show", EXAMPLE, "--json"))
    assert found["count"] == 40
    assert [row["name"] for row in found["operations"]] == ["read", "write"]
    assert found["operations"][1]["fua"] == 4
    assert {row["kind"] for row in found["findings"]} == {"merges", "writeback"}


def test_an_unusable_trace_ends_with_exit_code_1(tmp_path: Path) -> None:
    assert "merges: 12, first at 28" in run("check", EXAMPLE)
    text = run("check", EXAMPLE, "--disk-size", "1MiB", expected=1)
    assert "unusable: beyond-the-disk" in text
    trace = tmp_path / "seconds"
    trace.write_text("8\n16\n")
    found = json.loads(run("check", trace, "--json", expected=1))
    assert [row["kind"] for row in found["findings"]] == ["no-times", "no-operation"]


def test_a_wrong_trace_is_one_line_with_its_place(tmp_path: Path) -> None:
    trace = tmp_path / "msr.csv"
    trace.write_text(ROW + "2,hm,1,Erase,0,512,1\n")
    with pytest.raises(InputError, match=r"msr\.csv:2: msr: operation 'Erase'; expected") as caught:
        blklab.read_trace(trace)
    assert (caught.value.line, caught.value.found) == (2, "Erase")
    trace.write_bytes(reads(2)[:-48] + b"x" * 48)
    with pytest.raises(InputError, match="record 10: begins with 0x78787878"):
        blklab.read_trace(trace)
    for content, reason in ((b"", "the file is empty"), (b"\0\1\2", "the format is not known")):
        trace.write_bytes(content)
        with pytest.raises(InputError, match=reason):
            blklab.read_trace(trace)
    with pytest.raises(InputError, match="cannot be read: No such file"):
        blklab.read_trace(tmp_path / "none")
    with pytest.raises(InputError, match="no format 'blktrac'; did you mean 'blktrace'"):
        blklab.read_trace(EXAMPLE, trace_format="blktrac")
    with pytest.raises(InputError, match="no I/O of device '8:1'"):
        blklab.read_trace(EXAMPLE, device="8:1")
    with pytest.raises(InputError, match="--disk-size: found '5 apples'"):
        CliRunner().invoke(app, ["trace", "check", str(EXAMPLE), "--disk-size", "5 apples"],
                           catch_exceptions=False)  # fmt: skip


def test_a_recording_is_the_trace_and_others_read_it(tmp_path: Path) -> None:
    trace, recording = tmp_path / "t.gz", tmp_path / "t.arrow"
    trace.write_bytes(gzip.compress(reads(300)))
    made = blklab.import_trace(trace, recording)
    assert made.recording_bytes == recording.stat().st_size
    again = blklab.read_trace(recording)
    assert (again.format, again.source, again.count) == ("blklab", "blktrace 7", 300)
    assert again.q2c_ns == made.reading.q2c_ns
    table = pyarrow.ipc.open_stream(recording).read_all()
    assert table.column_names == [row.name for row in blklab.recording_columns()]
    frame = table.to_pandas()
    assert (frame["d2c_ns"] == 90_001 - 1500).all()
    assert frame["gap_ns"].cumsum().iloc[-1] == 299 * 1_000_007
    assert pl.read_ipc_stream(recording)["sector"].to_list() == [8 * n for n in range(300)]
    with pytest.raises(InputError, match="exists already"):
        blklab.import_trace(trace, recording)
    with pytest.raises(RunError, match="No such file"):
        blklab.import_trace(trace, tmp_path / "no/t.arrow")


def test_nothing_is_left_of_an_import_that_fails(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    trace.write_text(ROW + "nothing\n")
    with pytest.raises(InputError, match="trace:2: msr: time 'nothing'"):
        blklab.import_trace(trace, tmp_path / "out")
    trace.write_bytes(record(5, 2 | 1 << 26, 0, 0))
    with pytest.raises(InputError, match="the trace has no I/O"):
        blklab.import_trace(trace, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["trace"]


def test_a_trace_comes_from_a_pipe() -> None:
    command = [sys.executable, "-m", "blklab", "trace", "show", "-", "--json"]
    done = subprocess.run(command, input=reads(3), capture_output=True, check=True)
    assert json.loads(done.stdout)["count"] == 3


def test_any_file_of_blktrace_brings_those_of_the_other_cpus(tmp_path: Path) -> None:
    events = [reads(2)[at : at + 48] for at in range(0, 480, 48)]
    for cpu in (0, 1):
        (tmp_path / f"x.blktrace.{cpu}").write_bytes(b"".join(events[cpu::2]))
    for name in ("x.blktrace.1", "x"):
        found = blklab.read_trace(tmp_path / name)
        assert (found.count, found.files, found.q2c_ns.count) == (2, 2, 2)


@pytest.mark.skipif(shutil.which("blkparse") is None, reason="blkparse is not installed")
def test_blkparses_own_text_of_a_binary_trace_gives_the_same(tmp_path: Path) -> None:
    (tmp_path / "x.blktrace.0").write_bytes(reads(50))
    done = subprocess.run(
        ["blkparse", "-i", "x"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    text = tmp_path / "text"
    text.write_text(done.stdout)
    found, binary = blklab.read_trace(text), blklab.read_trace(tmp_path / "x")
    assert found.source == "blkparse"
    for name in ("count", "last_ns", "q2q_ns", "q2i_ns", "i2d_ns", "d2c_ns", "seeks_sectors"):
        assert getattr(found, name) == getattr(binary, name), name


def test_the_cost_of_anonymous_copies_is_measured_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{n / 50},read,{(n * 7919 % 4000) << 20},4096\n" for n in range(600))
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "places.csv").write_text("time,op,offset,size\n" + rows)
    (folder / "few.csv").write_text("time,op,offset,size\n" + "\n".join(rows.split("\n")[:20]))
    assert anonymous.main([str(folder), "--out", str(tmp_path / "cost.json")]) == 0
    kept = json.loads((tmp_path / "cost.json").read_text())["rows"]
    assert [(row["trace"], row["ios"]) for row in kept] == [("places.csv", 600)] * 2
    assert all(0 <= row["rate_median"] <= row["rate_most"] < 0.5 for row in kept)
    assert all(row["seek_before_bytes"] > 0 < row["seek_after_bytes"] for row in kept)
    assert "few.csv: 20 I/Os; left out: fewer than 500" in capsys.readouterr().out


def test_the_validation_compares_formats_and_says_why_it_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BLKLAB_TRACES", raising=False)
    assert validation.main([]) == 0
    assert "skipped: no folder with traces" in capsys.readouterr().out
    rows = [(5_633_898_868_514, 0x2A, 512, 77), (5_633_899_000_000, 0x28, 6656, 7)]
    packed = (struct.pack("<IIIHHQQ", 1, size, 1, op, 0x100, at, us) for us, op, size, at in rows)
    (tmp_path / "cloudPhysicsIO.vscsi").write_bytes(b"".join(packed))
    lines = [f"1,{us // 10**6},{op:x},{size},{at}" for us, op, size, at in rows]
    csv = tmp_path / "cloudPhysicsIO.csv"
    csv.write_text("\n".join(["version,time,op,size,lbn", *lines, ""]))
    assert validation.main([str(tmp_path)]) == 0
    csv.write_text(csv.read_text().replace("28,6656", "2a,6656"))
    assert validation.main([str(tmp_path)]) == 1
    assert "sector, sectors, op, second as in cloudPhysicsIO.vscsi: NO" in capsys.readouterr().out
