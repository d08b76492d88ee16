"""Programs of guests, recorded and replayed elsewhere: `validation.programs` and its tables."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest
from validation import programs
from validation.programs import AGAIN, BAR, SETS, WINNER_DIFFERENCE, Row

from blklab.domain.recordings import WAYS

DATA = Path(__file__).parents[1] / "docs/data"
TABLES = {
    "first": "whatif-programs",
    "second": "whatif-programs-second",
    "held out": "whatif-programs-held-out",
    "fourth": "whatif-programs-fourth",
}
"""The kept table of each set."""
OF_PYTHON = (
    "sqlite",
    "create a tree",
    "read a tree",
    "files with fsync",
    "updates in place",
    "save documents",
)
"""Programs that need only Python and a shell: what other tools do depends on their version."""


def kept(name: str) -> tuple[dict[str, Any], list[Row]]:
    found: dict[str, Any] = json.loads((DATA / f"{TABLES[name]}.json").read_text())
    return found, [Row(**row) for row in found["rows"]]


def row(replayed: str, span_ns: int, true_ns: int) -> Row:
    off = span_ns / true_ns - 1
    return Row("copy", "hdd none", replayed, "inferred", span_ns, true_ns, off, off)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_its_set_and_its_shares_follow_from_its_rows(name: str) -> None:
    found, rows = kept(name)
    places = [" ".join(place) for place in SETS[name].places]
    expected = {
        (program.name, one, other, way)
        for program in SETS[name].programs
        for one in places
        for other in places
        for way in (*WAYS, AGAIN)
        if (one == other) == (way == AGAIN)
    }
    assert {(one.program, one.recorded, one.replayed, one.way) for one in rows} == expected
    for way, shares in found["shares"].items():
        own = [one for one in rows if one.way == way]
        for figure, (most, _) in BAR.items():
            within = sum(abs(getattr(one, f"{figure}_off")) <= most for one in own)
            assert shares[figure] == pytest.approx(within / len(own)), (way, figure)


def test_a_winner_counts_where_the_schedulers_differ_and_is_right_if_it_is_near_the_best() -> None:
    places = ("ssd none", "ssd bfq")

    def judged(spans: tuple[int, int], true: tuple[int, int]) -> tuple[int, int]:
        return programs.winners([row(*one) for one in zip(places, spans, true, strict=True)])

    best = 1000
    nearly = round(best * (1 + WINNER_DIFFERENCE)) - 1
    assert judged((best, 2 * best), (best, nearly)) == (0, 0)
    assert judged((best, 2 * best), (best, 2 * best)) == (1, 1)
    assert judged((2 * best, best), (best, 2 * best)) == (0, 1)


def test_a_program_and_its_replays_are_those_of_the_table(
    kernel: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One program in two of its places, another one each day."""
    assert kernel
    chance = Random(date.today().toordinal())
    name, program = chance.choice(
        [
            (name, program)
            for name, one in SETS.items()
            for program in one.programs
            if program.name in OF_PYTHON
        ]
    )
    places = tuple(chance.sample(SETS[name].places, 2))
    monkeypatch.setitem(programs.SETS, name, programs.Set((program,), places))
    out = tmp_path / "rows.json"
    assert programs.main(["--set", name, "--out", str(out)]) in (0, 1)
    _, rows = kept(name)
    known = {(one.program, one.recorded, one.replayed, one.way): one for one in rows}
    found = [Row(**one) for one in json.loads(out.read_text())["rows"]]
    assert len(found) == len(WAYS) * 2 + 2
    for one in found:
        where = (one.program, one.recorded, one.replayed, one.way)
        # Another version of Python does a little more or less.
        assert one.true_span_ns == pytest.approx(known[where].true_span_ns, rel=0.01), where
        assert one.span_off == pytest.approx(known[where].span_off, abs=0.02), where
