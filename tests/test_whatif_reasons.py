"""Which mechanism made the difference, in the answer of ``blklab whatif``: planted cases."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blklab
from blklab.cli import app
from blklab.errors import InputError

HARD, ONE_AT_A_TIME, FLASH = "wd10ezrx", "wd10ezrx:ncq=false", "su800-128gb"
KYBER = "kyber:read_lat_nsec=50000,write_lat_nsec=10000000000"
COPY = """
[global]
direct=1
size=1g
[copy]
rw=randwrite
bs=64k
ioengine=libaio
iodepth=64
number_ios=1500
[reader]
rw=randread
bs=8k
number_ios=150
thinktime=2000
"""
STREAM = """
[global]
direct=1
[stream]
rw=read
bs=64k
size=64m
thinktime=500
[random]
rw=randread
bs=8k
size=8g
offset=400g
ioengine=libaio
iodepth=4
number_ios=600
"""
FAR = """
[far]
direct=1
rw=randread
bs=4k
size=100g
ioengine=libaio
iodepth=128
number_ios=3000
"""
SMALL = """
[global]
direct=1
rw=write
bs=4k
ioengine=libaio
iodepth=128
size=32m
[one]
[two]
offset=100g
"""
FLOOD = """
[global]
direct=1
size=8g
[flood]
rw=randwrite
bs=128k
ioengine=libaio
iodepth=128
number_ios=8000
[reader]
rw=randread
bs=4k
ioengine=libaio
iodepth=4
number_ios=8000
"""


def found(
    place: Path, job: str, disk: str, schedulers: list[str], objective: str = "latency"
) -> blklab.WhatIf:
    (place / "job.fio").write_text(job)
    blklab.record_run(place / "job.fio", place / "load.rec", disk=disk)
    return blklab.whatif(
        place / "load.rec", disk=disk, schedulers=schedulers, objective=objective, draws=0
    )


@pytest.mark.parametrize(
    ("job", "disk", "better", "objective", "mechanisms", "words"),
    [
        (COPY, ONE_AT_A_TIME, "mq-deadline", "latency", ["reads first"],
         r"a read overtook [\d.]+ writes, under none 0; the disk began 99 % of reads within"),
        (COPY, HARD, "bfq", "latency", ["weight-raising"],
         r"raised the weight of reader-2 \d+ times.*; without that \(low_latency=0\) it has"),
        (STREAM, ONE_AT_A_TIME, "bfq:low_latency=0", "throughput", ["idling"],
         r"idled for stream-1 [\d,]+ times, \d+ ms in all.*without that \(slice_idle=0, .*MB/s"),
        (FAR, ONE_AT_A_TIME, "mq-deadline", "throughput", ["seeks"],
         r"sought less far: [\d.]+ GiB .* instead of [\d.]+ GiB under none; the disk took"),
        (SMALL, ONE_AT_A_TIME, "mq-deadline", "throughput", ["merging"],
         r"merged more: \d+ requests of [\d.]+ KiB instead of 16,384 of 4 KiB under none"),
        (FLOOD, FLASH, KYBER, "latency", ["limits"],
         r"held back writes [\d,]+ times, [\d.]+ s in all, with at most 1 at the disk; without"),
    ],
    ids=["reads first", "weight-raising", "idling", "seeks", "merging", "limits"],
)  # fmt: skip
def test_the_planted_mechanism_is_named_and_no_other(
    tmp_path: Path,
    job: str,
    disk: str,
    better: str,
    objective: str,
    mechanisms: list[str],
    words: str,
) -> None:
    answer = found(tmp_path, job, disk, ["none", better], objective)
    assert (answer.explained, answer.present) == (better, "none")
    assert [reason.mechanism for reason in answer.reasons] == mechanisms
    assert all(reason.share >= 0.5 for reason in answer.reasons)
    assert re.search(words, answer.reasons[0].sentence), answer.reasons[0].sentence


def test_a_mechanism_that_costs_the_other_scheduler_is_named_as_that_ones(tmp_path: Path) -> None:
    # Idling for readers whose next place is far away leaves the arm still, for which others wait.
    readers = "".join(f"[reader{number}]\noffset={50 * number}g\n" for number in range(6))
    job = "[global]\ndirect=1\nrw=randread\nbs=4k\nsize=1g\nthinktime=3000\nnumber_ios=200\n"
    answer = found(
        tmp_path, job + readers, ONE_AT_A_TIME, ["none", "bfq:low_latency=0"], "throughput"
    )
    assert answer.explained == "none"
    [reason] = answer.reasons
    assert (reason.mechanism, reason.scheduler) == ("idling", "bfq:low_latency=0")


def test_schedulers_that_do_not_differ_have_no_reason(tmp_path: Path) -> None:
    job = "[alone]\ndirect=1\nrw=randread\nbs=4k\nsize=1g\nnumber_ios=200\n"
    answer = found(tmp_path, job, HARD, ["none", "mq-deadline", "bfq"])
    assert (answer.explained, answer.reasons) == ("", ())


def test_the_recorded_scheduler_is_the_present_one_unless_another_is_chosen(
    tmp_path: Path,
) -> None:
    (tmp_path / "job.fio").write_text(COPY)
    file = tmp_path / "load.rec"
    blklab.record_run(tmp_path / "job.fio", file, disk=ONE_AT_A_TIME, scheduler="mq-deadline")
    chosen = ["none", "kyber", "mq-deadline"]
    answers = [
        blklab.whatif(file, disk=ONE_AT_A_TIME, schedulers=chosen, draws=0, present=present)
        for present in (None, "none")
    ]
    assert [answer.explained for answer in answers] == ["kyber", "kyber"]
    assert [answer.present for answer in answers] == ["mq-deadline", "none"]
    with pytest.raises(InputError, match="present: 'bfq' is not one of the schedulers"):
        blklab.whatif(file, disk=ONE_AT_A_TIME, schedulers=chosen, present="bfq")


def test_the_command_prints_the_reason(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(FAR)
    file = tmp_path / "load.rec"
    blklab.record_run(tmp_path / "job.fio", file, disk=ONE_AT_A_TIME)
    words = [
        *("whatif", str(file), "--disk", ONE_AT_A_TIME, "--objective", "throughput"),
        *("--draws", "0", "--scheduler", "none", "--scheduler", "mq-deadline"),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "Why mq-deadline, and not none: mq-deadline sought less far:" in text
    as_json = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert [reason["mechanism"] for reason in as_json["reasons"]] == ["seeks"]
