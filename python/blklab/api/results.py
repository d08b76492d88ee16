"""``blklab.results`` and the other functions about stored comparisons."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from blklab import report as pages
from blklab.api.compare import Objective, checked_objective
from blklab.api.listener import SILENT, Listener
from blklab.api.names import EXPORT_FORMATS
from blklab.base.files import write_together, write_whole
from blklab.base.text import shown
from blklab.domain import results_file
from blklab.domain.results_file import Results
from blklab.domain.setup import SetupData, Value
from blklab.domain.stored import number
from blklab.domain.stored import since as times
from blklab.errors import InputError, nearest
from blklab.experiment.analyse import Analysis, analyse
from blklab.experiment.summary import summarise
from blklab.report.difference import Difference
from blklab.report.difference import difference as side_by_side
from blklab.rigs import check
from blklab.store import exchange, importing, keep, place, read, tables
from blklab.store.database import Store
from blklab.store.opening import exists, open_store
from blklab.store.read import Listed
from blklab.study import kept_files as studies
from blklab.study.judge import judge

ExportFormat = Literal["json", "csv", "parquet"]


@dataclass(frozen=True)
class Stored:
    """A comparison of the store."""

    listed: Listed
    """Number, times, machine, state, names."""
    facts: dict[str, dict[str, Value]]
    """Machine and versions."""
    results: Results
    """Set-up, and the runs of all repeats that are complete."""
    analysis: Analysis
    """Rankings and verdicts by disk and workload; recommendations by disk."""
    setup: SetupData
    """The set-up as planned, also for an interrupted comparison."""

    def summary(self) -> dict[str, Any]:
        """Rankings, verdicts and recommendations as plain data; units are in the names."""
        return summarise(self.analysis)


@dataclass(frozen=True)
class Imported:
    """Imported comparisons, by their numbers in this store."""

    new: tuple[int, ...]
    there_already: tuple[int, ...]


def results(
    *,
    disks: Sequence[str] = (),
    workloads: Sequence[str] = (),
    schedulers: Sequence[str] = (),
    rigs: Sequence[str] = (),
    since_: str | None = None,
    store: str | None = None,
    listener: Listener = SILENT,
) -> list[Listed]:
    """The stored comparisons, the latest first; none if there is no store yet.

    Args:
        disks, workloads, schedulers, rigs: only those with one of these; part of a name is enough
            for disks.
        since_: begun since ``2026-11-22``, or ``30m``, ``12h``, ``7d`` ago.
        store: a file or a URL; None is the default store.
        listener: `Listener.note` for each comparison that is damaged and left out.

    Raises:
        blklab.errors.InputError: a rig or a time is wrong.
        blklab.errors.StoreError: the store cannot be used.
    """
    for name in rigs:
        check(name)
    wanted = read.Filter(
        disks=disks,
        workloads=workloads,
        schedulers=schedulers,
        rigs=rigs,
        since=times(since_) if since_ else "",
    )
    if not exists(place.find(store)):
        return []
    return read.listed(_opened(store, listener), wanted, listener.note)


def store_text(store: str | None = None) -> str:
    """The place of the store, for display: the file, or the URL without its password.
    InputError if `store` is neither a path nor the URL of a database."""
    return place.find(store).text


def stored(
    number: int | str,
    *,
    objective: Objective | None = None,
    store: str | None = None,
    listener: Listener = SILENT,
) -> Stored:
    """A stored comparison with its answers.

    Args:
        objective: the figure that ranks schedulers; None is the comparison's own.

    Raises:
        blklab.errors.InputError: no comparison has that number.
        blklab.errors.StoreError: the store cannot be used, or the data shared by all runs are
            damaged.
    """
    wanted = checked_objective(objective) if objective else None
    found = read.comparison(_opened(store, listener), _number(number), tell=listener.note)
    kept = found.results()
    answers = analyse(kept.runs, wanted or found.listed.objective, anytime=kept.anytime)
    return Stored(found.listed, found.facts, kept, answers, found.setup)


def difference(
    first: Sequence[int | str],
    second: Sequence[int | str],
    *,
    store: str | None = None,
    listener: Listener = SILENT,
) -> Difference:
    """Two sets of stored comparisons: the second's figures divided by the first's.

    Raises:
        blklab.errors.InputError: a number is wrong, or they have nothing in common.
    """
    opened = _opened(store, listener)
    sides = [
        [read.comparison(opened, _number(one), tell=listener.note) for one in numbers]
        for numbers in (first, second)
    ]
    found = side_by_side(*sides)
    if not found.pairs:
        names = [",".join(map(str, numbers)) for numbers in (first, second)]
        raise InputError(
            f"{names[0]} and {names[1]} have no scheduler on the same disk under the same workload"
        )
    return found


def export(
    numbers: Sequence[int | str],
    form: ExportFormat = "json",
    *,
    out: str | os.PathLike[str] | None = None,
    store: str | None = None,
    listener: Listener = SILENT,
) -> bytes:
    """Stored comparisons for other machines and programs; `out` is a file for it.

    Args:
        form: ``json``: everything, for `import_results` elsewhere; ``csv`` and ``parquet``: a row
            for each run.

    Raises:
        blklab.errors.InputError: there is no such comparison or format.
        ImportError: pyarrow, which parquet needs, is missing: ``blklab[arrow]``.
    """
    if form not in EXPORT_FORMATS:
        raise InputError(f"--format: no '{form}'{nearest(form, EXPORT_FORMATS)}")
    opened = _opened(store, listener)
    several = [
        read.comparison(opened, _number(one), raw=form == "json", tell=listener.note)
        for one in dict.fromkeys(numbers)
    ]
    make: dict[str, Callable[[Sequence[read.Comparison]], bytes]] = {
        "json": exchange.to_bytes,
        "csv": lambda those: tables.csv_text(those).encode(),
        "parquet": tables.parquet,
    }
    content = make[form](several)
    if out is not None:
        write_together({Path(out): content})
    return content


def import_results(
    file: str | os.PathLike[str], *, store: str | None = None, listener: Listener = SILENT
) -> Imported:
    """Import another machine's `export` as JSON, completely or not at all.

    Raises:
        blklab.errors.InputError: the file is not an export, or is damaged.
        blklab.errors.StoreError: the store cannot be written to.
    """
    several = exchange.read(Path(file))
    opened = open_store(place.find(store), durable=True, tell=listener.note)
    new, old = importing.put(opened, several)
    return Imported(tuple(new), tuple(old))


def remove_results(
    numbers: Sequence[int | str], *, store: str | None = None, listener: Listener = SILENT
) -> list[int]:
    """Remove comparisons with all their runs, or none of them; it cannot be undone.

    Raises:
        blklab.errors.InputError: one does not exist, or still runs.
    """
    wanted = list(dict.fromkeys(map(_number, numbers)))
    keep.remove(_opened(store, listener), wanted)
    return wanted


def write_report(
    what: str | int | os.PathLike[str],
    *,
    objective: Objective | None = None,
    out: str | os.PathLike[str] | None = None,
    store: str | None = None,
    listener: Listener = SILENT,
) -> Path:
    """Write the report again from stored results, without running anything. Returns its path.

    Args:
        what: the number of a comparison; ``results.json`` or its directory; the directory of a
            study.
        objective: the figure that ranks schedulers; None is the comparison's own, for a directory
            ``both``.
        out: the page to write, for a study the directory; None: beside the results, for a number
            ``reports/NUMBER/report.html``.

    Raises:
        blklab.errors.InputError: there are no such results, or none that are complete.
    """
    text = os.fspath(what) if isinstance(what, os.PathLike) else str(what)
    wanted = checked_objective(objective) if objective else None
    page = None if out is None else Path(out)
    path = Path(text)
    if store is not None and not text.isdigit():
        raise InputError(f"--store: only works with a number; {shown(text)} is a path")
    if text.isdigit():
        return _report_of_number(text, wanted, page, store, listener)
    if (path / studies.FILE).is_file():
        if wanted is not None:
            raise InputError("--objective: each part of a study has its own")
        return _report_of_study(path, page or path)
    return _report_of_file(path, wanted or "both", page)


def _report_of_number(
    number: str, objective: Objective | None, out: Path | None, store: str | None, told: Listener
) -> Path:
    found = stored(number, objective=objective, store=store, listener=told)
    if not found.results.runs:
        raise InputError(f"{number}: no repeat is complete yet, there is nothing to compare")
    row = found.listed
    title = f"{row.study}: {row.part}" if row.study else None
    page = out or Path("reports") / number / "report.html"
    write_whole(page, pages.render(found.results, found.analysis, title=title))
    return page


def _report_of_study(directory: Path, out: Path) -> Path:
    study, outcomes = studies.load(directory)
    write_together(pages.study_files(study, outcomes, judge(study, outcomes), out))
    return out / "report.html"


def _report_of_file(path: Path, objective: Objective, out: Path | None) -> Path:
    kept = results_file.load(path)
    page = out or (path if path.is_dir() else path.parent) / "report.html"
    write_whole(page, pages.render(kept, analyse(kept.runs, objective, anytime=kept.anytime)))
    return page


def _opened(store: str | None, listener: Listener) -> Store:
    return open_store(place.find(store), make=False, tell=listener.note)


def _number(one: int | str) -> int:
    return number(str(one))
