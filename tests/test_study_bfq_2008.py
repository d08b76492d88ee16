"""The study of the first BFQ: its runs, and the statements of its file."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from blklab.studies import STUDIES

Judgement = dict[str, Any]


@pytest.fixture(scope="module")
def judgements(tmp_path_factory: pytest.TempPathFactory) -> list[Judgement]:
    out = tmp_path_factory.mktemp("study") / "out"
    command = [sys.executable, "-m", "blklab", "run", "bfq-2008", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    told: list[Judgement] = json.loads((out / "study.json").read_text())["judgements"]
    return told


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
    assert found.pop("sequential-16-inner") == "reproduced"
    assert found == {f"sequential-{readers}": "not reproduced" for readers in (16, 32, 64)}


def test_each_statement_that_is_not_reproduced_has_a_reason(judgements: list[Judgement]) -> None:
    missed = [row for row in judgements if row["outcome"] == "not reproduced"]
    assert missed
    stated = tomllib.loads(STUDIES.paths()["bfq-2008"].read_text())
    claims = [claim for part in stated["part"] for claim in part["claim"]]
    reasons = {claim["not_reproduced"] for claim in claims if "not_reproduced" in claim}
    # Not the default words for a statement without a reason.
    assert {row["why"] for row in missed} <= reasons


def test_every_claim_was_measured(judgements: list[Judgement]) -> None:
    unknown = [row for row in judgements if row["outcome"] not in ("reproduced", "not reproduced")]
    # Measured, but with too few repeats for so small a difference.
    assert [(row["part"], row["workload"]) for row in unknown] == [("random", "random-16")]
    assert "may be 8.7 % apart" in unknown[0]["found"]
