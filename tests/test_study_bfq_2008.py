"""The study of the first BFQ: its runs, and the statements of its file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from blklab.studies import STUDIES

Judgement = dict[str, Any]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("study") / "out"
    command = [sys.executable, "-m", "blklab", "run", "bfq-2008", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def judgements(directory: Path) -> list[Judgement]:
    assert (directory / "report.html").read_text().startswith("<!doctype html>")
    told: list[Judgement] = json.loads((directory / "study.json").read_text())["judgements"]
    return told


def drawn(directory: Path, part: str) -> Any:
    """The data of the pictures in the report of a part."""
    page = (directory / part / "report.html").read_text()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def outcomes(judgements: list[Judgement], part: str, text: str) -> dict[str, str]:
    """By load."""
    return {
        row["workload"]: row["outcome"]
        for row in judgements
        if row["part"] == part and text in row["text"]
    }


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("alike", "the two behave alike"),
        ("random", "There is no difference"),
        ("random", "longest waits are longer"),
        ("shares-bfq", "proportional to the weights"),
        ("shares-bfq", "All three end together"),
        ("shares-cfq", "fair in time only"),
        ("shares-cfq", "do not end together"),
        ("streams", "one peak"),
        ("streams", "always below CFQ's"),
        ("streams", "end earlier"),
        ("streams-tuned", "average latency is below"),
        ("streams-tuned", "after their start"),
    ],
)
def test_this_comes_out(judgements: list[Judgement], part: str, text: str) -> None:
    assert set(outcomes(judgements, part, text).values()) == {"reproduced"}


@pytest.mark.parametrize("text", ["slightly higher", "higher completion latency"])
def test_sequential_readers_are_as_published_where_the_disk_is_slow(
    judgements: list[Judgement], text: str
) -> None:
    found = outcomes(judgements, "sequential", text)
    assert found.pop("sequential-inner") == "reproduced"
    sizes = (16, 32, 64)
    assert found == {f"sequential:numjobs={readers}": "not reproduced" for readers in sizes}


def test_each_statement_that_is_not_reproduced_has_a_reason(judgements: list[Judgement]) -> None:
    missed = [row for row in judgements if row["outcome"] == "not reproduced"]
    assert missed
    stated = tomllib.loads(STUDIES.paths()["bfq-2008"].read_text())
    claims = [claim for part in stated["part"] for claim in part["claim"]]
    reasons = {claim["not_reproduced"] for claim in claims if "not_reproduced" in claim}
    # Not the default words for a statement without a reason.
    assert {row["why"] for row in missed} <= reasons


def test_every_claim_was_measured(judgements: list[Judgement]) -> None:
    assert len(judgements) == 25
    assert {row["outcome"] for row in judgements} == {"reproduced", "not reproduced"}


@pytest.mark.parametrize("part", ["sequential", "random"])
def test_throughput_is_drawn_over_the_number_of_readers(directory: Path, part: str) -> None:
    [curve] = drawn(directory, part)["sweeps"]
    assert (curve["parameter"], curve["numbers"]) == ("numjobs", [16, 32, 64])
    for scheduler in ("bfq-2008", "cfq-2008"):
        assert all(middle > 0 for middle, _, _ in curve["lines"][scheduler]["rate"])


def test_completion_latency_of_each_process_is_drawn_over_time(directory: Path) -> None:
    [cell] = drawn(directory, "streams")["cells"]
    assert {"bfq-2008", "cfq-2008"} <= cell["stories"].keys()
    for story in cell["stories"].values():
        assert set(story["overview"]["process"]) == set(range(10 + 32))
        assert min(story["overview"]["took"]) > 0


@pytest.mark.parametrize("part", ["shares-bfq", "shares-cfq"])
def test_service_of_each_process_is_drawn_over_time(directory: Path, part: str) -> None:
    [cell] = drawn(directory, part)["cells"]
    for story in cell["stories"].values():
        received = [max(line["mb"]) for line in story["service"]]
        # 64, 64 and 128 MiB in MB, of which the picture shows the multiples of its step.
        assert received == pytest.approx([67.1, 67.1, 134.2], rel=0.05)
