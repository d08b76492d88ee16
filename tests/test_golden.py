"""The simulator's results are unchanged; all cases: ``make golden``."""

from __future__ import annotations

import dataclasses
import random

import pytest

from tests import golden

SAMPLE = 48
"""Cases of each test run, others each time."""


def test_a_sample_of_the_kept_hashes_comes_out_again() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    sample = random.Random(seed).sample(golden.cases(), SAMPLE)
    _, wrong = golden.differing(sample)
    assert not wrong, f"see: python -m tests.golden --sample {SAMPLE} --seed {seed}"


def test_every_case_is_kept_and_nothing_else() -> None:
    assert {case.label for case in golden.cases()} == golden.kept().keys()


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 2},
        {"scheduler": "mq-deadline:fifo_batch=1"},
        {"disk": "wd10ezrx:rpm=7200"},
        {"host": (("submit_ns", 5000),)},
    ],
)
def test_another_run_has_another_hash(changed: dict[str, object]) -> None:
    """A hash depends on the measurements, so a change is detected."""
    case = golden.Case("wd10ezrx", "random:3", "mq-deadline")
    assert golden.hashed(dataclasses.replace(case, **changed)) != golden.hashed(case)  # type: ignore[arg-type]
    assert golden.hashed(case) == golden.hashed(case)
