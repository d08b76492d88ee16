"""The search of ``blklab tune`` beside Optuna's own, on tables in which every setting was measured.

``python -m validation.moot DIRECTORY [--seeds N] [--out FILE] [--only TEXT]``. DIRECTORY has tables
of MOOT (Menzies et al., "MOOT: a repository of many multi-objective optimization tasks", MSR 2026;
github.com/timm/moot, MIT; ``optimize/config`` of it): a line for each setting of a program, with
the values of its options and what was measured with them. None of them has to do with disks, and
the search was made without them. Without DIRECTORY it is skipped, with that reason.

Columns whose names end in ``+`` or ``-`` are to be large or small, all others are options. A
setting is as good as it is near to the best of all columns at once: the distance to that point,
each column from 0 to 1. A search asks for settings that a table may not have, and gets the nearest
row.

Both searches look at equally many rows of a table: ours first, with `SHARE` of the table (at least
what its screening takes and `LEAST` more, at most `MOST` more), then Optuna's estimator as it comes
(``TPESampler``) with as many. The regret is how much farther than the table's best row the found
one is. Tables with fewer than `ROWS` times the budget are left out. The exit code is 1 if the mean
of our regrets is above Optuna's, or if ours is worse on so many tables that chance would make it
that in less than `BAR` of cases.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from blklab.base.files import write_whole
from blklab.domain.experiment import SchedulerSpec
from blklab.domain.space import Knob, Space
from blklab.tuning import goal
from blklab.tuning.bench import Bench, Score
from blklab.tuning.search import search

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARE = 0.05
LEAST = 40
MOST = 200
ROWS = 4
SEEDS = 3
BAR = 0.05
_LEVELS = 9
"""Values of an option with more: as many as most tunables have."""
_ASKED = 2
"""Times the settings of ours that Optuna may ask for, since it asks for some again."""
_NAME = "table"


@dataclass(frozen=True)
class Column:
    """An option: the values that are tried, by number."""

    name: str
    levels: int
    usual: int
    """The most frequent one, from which a search begins."""
    is_ordered: bool


class Table:
    """Every setting that was measured."""

    def __init__(self, file: Path) -> None:
        with file.open(encoding="utf-8", newline="") as opened:
            head, *rows = [row for row in csv.reader(opened) if row]
        head = [name.strip() for name in head]
        goals = [place for place, name in enumerate(head) if name.endswith(("+", "-"))]
        options = [place for place in range(len(head)) if place not in goals]
        rows = [row for row in rows if len(row) == len(head) and _are_numbers(row, goals)]
        self.name = file.stem
        self.distance = _distance(
            np.array([[float(row[place]) for place in goals] for row in rows]),
            [head[place].endswith("+") for place in goals],
        )
        found = [_column(head[place], [row[place].strip() for row in rows]) for place in options]
        kept = [(column, levels) for column, levels in found if column.levels > 1]
        self.columns = tuple(column for column, _ in kept)
        self._levels = np.stack([levels for _, levels in kept], axis=1)
        spans = np.array([max(column.levels - 1, 1) for column in self.columns])
        self._weight = np.where([column.is_ordered for column in self.columns], 1.0 / spans, 0.0)
        self._unlike = np.where([column.is_ordered for column in self.columns], 0.0, 1.0)

    @property
    def space(self) -> Space:
        """Its options, as tunables."""
        knobs = tuple(
            Knob(f"option{number}", tuple(range(column.levels)), column.usual)
            for number, column in enumerate(self.columns)
        )
        return Space(SchedulerSpec(_NAME), knobs)

    def nearest(self, levels: Sequence[int]) -> int:
        """The number of the row that is most like these; the first of several."""
        off = np.abs(self._levels - np.array(levels, dtype=np.int16))
        apart = off @ self._weight + (off > 0) @ self._unlike
        return int(np.argmin(apart))


def _are_numbers(row: Sequence[str], places: Sequence[int]) -> bool:
    try:
        return all(np.isfinite(float(row[place])) for place in places)
    except ValueError:
        return False


def _distance(values: NDArray[np.float64], more_is_better: Sequence[bool]) -> NDArray[np.float64]:
    low, high = values.min(axis=0), values.max(axis=0)
    part = (values - low) / np.where(high > low, high - low, 1.0)
    missing = np.where(more_is_better, 1.0 - part, part)
    return cast("NDArray[np.float64]", np.sqrt((missing**2).mean(axis=1)))


def _column(name: str, texts: Sequence[str]) -> tuple[Column, NDArray[np.int16]]:
    """An option, and its value in each row, by number."""
    every = list(dict.fromkeys(texts))
    is_ordered = all(_are_numbers([text], [0]) for text in every)
    if is_ordered:
        numbers = np.array([float(text) for text in texts])
        values = np.unique(numbers)
        if len(values) > _LEVELS:
            values = np.unique(np.quantile(values, np.linspace(0, 1, _LEVELS), method="nearest"))
        levels = np.abs(numbers[:, None] - values[None, :]).argmin(axis=1)
    else:
        values = np.array(every)
        levels = np.array([every.index(text) for text in texts])
    usual = int(np.bincount(levels).argmax())
    return Column(name, len(values), usual, is_ordered), levels.astype(np.int16)


@dataclass(frozen=True)
class _Asked:
    """All of the question that a search looks at."""

    objective: goal.Objective


class _TableBench:
    """Answers from a table, as a bench does from runs."""

    def __init__(self, table: Table) -> None:
        self.question = _Asked(goal.parse("throughput"))
        self.rows: set[int] = set()
        self._table, self._space = table, table.space

    def scores(self, specs: Sequence[SchedulerSpec]) -> list[Score | None]:
        return [self._score(spec) for spec in specs]

    def _score(self, spec: SchedulerSpec) -> Score:
        row = self._table.nearest(list(self._space.values(spec).values()))
        self.rows.add(row)
        return Score(0.0, (-float(self._table.distance[row]),))


def ours(table: Table, trials: int, seed: int) -> tuple[float, int, int]:
    """The distance of the setting that ``blklab tune``'s search recommends; the settings that it
    has asked for, and the rows that it has seen."""
    bench = _TableBench(table)
    found = search(cast("Bench", bench), [table.space], trials, seed)
    return -found.best[0][1].gains[0], found.trials, len(bench.rows)


def optunas(table: Table, asked: int, rows: int, seed: int) -> float:
    """The distance of the best of so many rows by Optuna's default estimator, where our search has
    asked for so many settings."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    options: Mapping[str, BaseDistribution] = {
        f"option{number}": IntDistribution(0, column.levels - 1)
        if column.is_ordered
        else CategoricalDistribution(range(column.levels))
        for number, column in enumerate(table.columns)
    }
    seen: set[int] = set()
    for _ in range(_ASKED * asked):
        if len(seen) == rows:
            break
        trial = study.ask(dict(options))
        row = table.nearest([trial.params[name] for name in options])
        seen.add(row)
        study.tell(trial, float(table.distance[row]))
    return float(min(table.distance[row] for row in seen))


@dataclass(frozen=True)
class Row:
    """A table, with the regrets of both, one for each seed."""

    table: str
    rows: int
    options: int
    seen: tuple[int, ...]
    ours: tuple[float, ...]
    optunas: tuple[float, ...]
    at_random: float
    """The regret of the median row."""


def compared(table: Table, trials: int, seeds: int) -> Row:
    """Both searches with each seed."""
    best = float(table.distance.min())
    mine = [ours(table, trials, seed) for seed in range(seeds)]
    theirs = [optunas(table, asked, seen, seed) for seed, (_, asked, seen) in enumerate(mine)]
    return Row(
        table.name,
        len(table.distance),
        len(table.columns),
        tuple(seen for _, _, seen in mine),
        tuple(distance - best for distance, _, _ in mine),
        tuple(distance - best for distance in theirs),
        float(np.median(table.distance)) - best,
    )


def budget(table: Table) -> int | None:
    """The trials of a search after its screening; None if the table is too small for it."""
    screening = 1 + 9 * len(table.columns)
    rows = min(max(round(SHARE * len(table.distance)), screening + LEAST), screening + MOST)
    return rows - screening if ROWS * rows <= len(table.distance) else None


def verdict(rows: Sequence[Row]) -> tuple[str, bool]:
    """In words, and whether ours is no worse."""
    pairs = [(statistics.mean(row.ours), statistics.mean(row.optunas)) for row in rows]
    better = sum(mine < other for mine, other in pairs)
    worse = sum(mine > other for mine, other in pairs)
    mine, other = (statistics.mean(one) for one in zip(*pairs, strict=True))
    chance = _by_chance(worse, better + worse)
    return (
        f"mean regret {mine:.4f}, Optuna's {other:.4f}; better on {better}, worse on {worse} of "
        f"{len(pairs)} tables (so many worse ones by chance: {chance:.3g})",
        mine <= other and chance >= BAR,
    )


def _by_chance(heads: int, throws: int) -> float:
    """The probability of at least so many heads."""
    ways = sum(math.comb(throws, count) for count in range(heads, throws + 1))
    return ways / float(2**throws)


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(prog="python -m validation.moot", description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each table")
    parser.add_argument("--out", type=Path, help="write each table's regrets there, as JSON")
    parser.add_argument("--only", default="", help="tables with this text in their names")
    asked = parser.parse_args(arguments)
    if asked.directory is None:
        print("skipped: no directory with tables of MOOT")
        return 0
    rows = []
    for file in sorted(asked.directory.glob("*.csv")):
        if asked.only not in file.stem:
            continue
        table = Table(file)
        trials = budget(table)
        if trials is None:
            print(f"{table.name}: left out, only {len(table.distance):,} rows", flush=True)
            continue
        row = compared(table, trials, asked.seeds)
        rows.append(row)
        print(
            f"{row.table}: {row.rows:,} rows, {row.options} options, {max(row.seen)} seen; regret "
            f"{statistics.mean(row.ours):.4f}, Optuna's {statistics.mean(row.optunas):.4f}, of the "
            f"median row {row.at_random:.3f}",
            flush=True,
        )
    if not rows:
        print(f"{asked.directory}: no table that is large enough")
        return 1
    text, is_good = verdict(rows)
    print(text)
    if asked.out:
        document = {"seeds": asked.seeds, "rows": [asdict(row) for row in rows]}
        write_whole(asked.out, json.dumps(document, indent=1) + "\n")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
