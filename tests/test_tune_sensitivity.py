"""`blklab tune --sensitivity`: effects around settings, which pairs interact, and the page."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import blklab
from blklab.cli import app
from blklab.domain.experiment import SchedulerSpec
from blklab.domain.space import Knob, Space
from blklab.report.tuned import Picture
from blklab.tuning.bench import Score
from blklab.tuning.sensitivity import Scores, effects_around
from tests.browser import DESKTOP, PHONE, Browser, needs_browser
from tests.test_tune import JOB

BASE = SchedulerSpec("mq-deadline")
SPACE = Space(
    BASE,
    (
        Knob("fifo_batch", (0, 16, 64), 16),
        Knob("writes_starved", (0, 2, 8), 2),
        Knob("front_merges", (0, 1), 1),
    ),
)
REPEATS = 8


def law(effects: Mapping[frozenset[str], float], noise: float = 0.01) -> Scores:
    """Scores of a made-up disk: each change, and each pair of changes, multiplies the figure."""

    def scores(specs: Sequence[SchedulerSpec]) -> list[list[Score | None]]:
        found: list[list[Score | None]] = []
        for spec in specs:
            there = {f"{name}={value}" for name, value in spec.settings}
            log = sum(math.log(ratio) for names, ratio in effects.items() if names <= there)
            chance = random.Random(spec.label)
            found.append([Score(0.0, (log + chance.gauss(0.0, noise),)) for _ in range(REPEATS)])
        return found

    return scores


def test_each_end_of_each_tunable_has_its_effect() -> None:
    found = effects_around(SPACE, BASE, law({frozenset({"fifo_batch=0"}): 0.5}))
    assert (found.around, found.repeats) == ("mq-deadline", REPEATS)
    ends = {(one.tunable, one.value, one.usual) for one in found.moved}
    assert ends == {
        ("fifo_batch", 0, 16),
        ("fifo_batch", 64, 16),
        ("writes_starved", 0, 2),
        ("writes_starved", 8, 2),
        ("front_merges", 0, 1),
    }
    first, *others = found.moved
    assert (first.tunable, first.value) == ("fifo_batch", 0)
    assert first.gain.estimate == pytest.approx(0.5, rel=0.02) and first.gain.high < 0.6
    assert all(one.gain.low <= 1.0 <= one.gain.high for one in others)
    # One effect makes no pair.
    assert found.pairs == ()


@given(
    st.floats(0.3, 0.8),
    st.floats(1.2, 3.0),
    st.sampled_from([0.4, 1.0, 2.5]),
)
def test_a_pair_interacts_if_and_only_if_its_effects_do_not_multiply(
    one: float, other: float, both: float
) -> None:
    a, b = "fifo_batch=0", "writes_starved=8"
    effects = {frozenset({a}): one, frozenset({b}): other, frozenset({a, b}): both}
    [pair] = effects_around(SPACE, BASE, law(effects)).pairs
    assert {pair.one.tunable, pair.other.tunable} == {"fifo_batch", "writes_starved"}
    gap = pair.interaction
    assert gap.estimate == pytest.approx(both, rel=0.05)
    if both != 1.0:
        assert not gap.low <= 1.0 <= gap.high
    assert pair.together.estimate == pytest.approx(one * other * both, rel=0.05)


def test_ends_that_the_rig_refuses_and_those_without_a_figure_are_left_out() -> None:
    good = law({frozenset({"fifo_batch=0"}): 0.5})

    def scores(specs: Sequence[SchedulerSpec]) -> list[list[Score | None]]:
        found = [list(row) for row in good(specs)]
        for spec, row in zip(specs, found, strict=True):
            if dict(spec.settings).get("writes_starved") == "8":
                row[:] = [None] * REPEATS
            if "front_merges" in dict(spec.settings):
                row[3] = Score(0.0, (-math.inf,))
        return found

    found = effects_around(SPACE, BASE, scores)
    names = {(one.tunable, one.value) for one in found.moved}
    assert names == {("fifo_batch", 0), ("fifo_batch", 64), ("writes_starved", 0)}


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5))
def test_a_picture_has_room_for_all_its_dots_and_1_in_the_middle(ratios: list[float]) -> None:
    gains = [blklab.Interval(one, one / 2, one * 2) for one in ratios]
    picture = Picture(gains)
    assert picture.bar(blklab.Interval(1.0, 1.0, 1.0)).at == 50.0
    for gain in gains:
        bar = picture.bar(gain)
        assert 0.0 <= bar.low <= bar.at <= bar.high <= 100.0
        assert (bar.way == "better") == (gain.low > 1.0)


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object], str]:
    """A page, the answer as JSON, and what the terminal shows of the same."""
    place = tmp_path_factory.mktemp("tuned")
    (place / "load.fio").write_text(JOB)
    words = ["tune", "--disk", "desktop-5900rpm", "--workload", str(place / "load.fio")]
    words += ["--objective", "p99(reader)", "--scheduler", "bfq", "--against", "bfq"]
    words += ["--trials", "16", "--repeats", "4", "--sensitivity", "--out", str(place / "out")]
    words += ["--store", str(place / "store.db")]
    told = CliRunner().invoke(app, words)
    as_json = CliRunner().invoke(app, [*words, "--json"])
    assert (told.exit_code, as_json.exit_code) == (0, 0), told.output
    return place / "out/tune.html", json.loads(as_json.stdout), told.stdout


def test_the_answer_has_the_effects_around_what_is_recommended(
    answer: tuple[Path, dict[str, object], str],
) -> None:
    page, found, told = answer
    around = found["sensitivity"]
    assert isinstance(around, dict)
    assert (around["around"], around["repeats"]) == (found["best"], 4)
    assert {"slice_idle", "low_latency", "nr_requests"} <= {
        one["tunable"] for one in around["moved"]
    }
    assert found["page"] == str(page)
    assert "What each tunable changes, with 4 fresh seeds:" in told
    text = page.read_text()
    for one in around["moved"]:
        assert one["tunable"] in text
    assert "http://" not in text and "https://" not in text


@needs_browser
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_the_page_fits_and_every_dot_is_on_its_axis(
    answer: tuple[Path, dict[str, object], str],
    browser: Browser,
    size: tuple[int, int],
    tmp_path: Path,
) -> None:
    page, *_ = answer
    browser.opened(tmp_path, page.read_text(), size)
    assert browser.overflow() <= 0
    dots = browser.driver.execute_script(
        "return [...document.querySelectorAll('.axis b')].map((dot) => {"
        " const own = dot.getBoundingClientRect(),"
        " axis = dot.parentElement.getBoundingClientRect();"
        " return own.width > 8 && own.left >= axis.left - 8 && own.right <= axis.right + 8; })"
    )
    assert dots and all(dots)
