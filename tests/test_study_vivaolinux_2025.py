"""The study of the script that adds up bandwidths: its runs, and the statements of its pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import blklab
from blklab.cli import app
from blklab.studies import STUDIES

NAME = "vivaolinux-2025"


@pytest.fixture(scope="module")
def judgements(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    made = tmp_path_factory.mktemp("study")
    words = ["run", NAME, "--json", "--out", str(made), "--store", str(made / "results.db")]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["judgements"]
    return rows


def of(judgements: list[dict[str, Any]], kind: str, load: str) -> list[dict[str, Any]]:
    return [row for row in judgements if row["kind"] == kind and load in row["workload"]]


@pytest.mark.parametrize("load", ["seqread", "randread"])
def test_with_one_request_at_a_time_there_is_nothing_to_choose(
    judgements: list[dict[str, Any]], load: str
) -> None:
    [*alone, summed] = of(judgements, "order", load)
    assert len(alone) == {"seqread": 1, "randread": 3}[load]
    assert " + " in summed["workload"]
    for row in alone:
        assert row["outcome"] == "not reproduced"
        assert "no significant difference" in row["found"]
    for row in of(judgements, "difference", load):
        assert abs(row["measured"]["estimate"]) < 0.1


def test_writes_alone_put_bfq_ahead_as_linux_throttles_them_under_the_others(
    judgements: list[dict[str, Any]],
) -> None:
    [single] = of(judgements, "single-run", "")
    assert single["workload"] == "seqread + seqwrite + randread + randwrite"
    assert "of 5 single runs the best: bfq in 5;" in single["found"]
    bfq, deadline = (
        float(found.replace(",", ""))
        for found in re.findall(r"(?:bfq|mq-deadline) ([\d,.]+\d)", single["found"])
    )
    assert 1.0 < bfq / deadline < 1.1
    assert of(judgements, "order", " + ")[0]["outcome"] == "reproduced"
    # Of writes alone BFQ is ahead by as much as published, 1.6 %: no winner on drawn disks.
    [by, *_] = of(judgements, "difference", "seqwrite")
    assert by["outcome"] == "reproduced"
    assert by["measured"]["low"] > 2
    # Without that throttling the order is the other one.
    found = {
        name: blklab.simulate("seqwrite", disk="desktop-5900rpm", scheduler=name).jobs[0].write
        for name in ("bfq", "mq-deadline:wbt_lat_usec=0")
    }
    bfq, deadline = (side.bytes / side.runtime_ns for side in found.values())
    assert deadline > 1.01 * bfq


def test_each_statement_without_a_match_has_a_reason() -> None:
    text = Path(STUDIES.find(NAME).path).read_text()
    assert text.count("[[part.claim]]") == text.count("not_reproduced = ")
