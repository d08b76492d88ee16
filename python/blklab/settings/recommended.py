"""Recommendations of a comparison, of a search, of a study's part, or of a comparison in the
store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from blklab.base.text import shown
from blklab.domain import results_file as files
from blklab.domain import specs, stored
from blklab.domain.comparison import OBJECTIVES
from blklab.domain.results_file import Results
from blklab.errors import InputError, nearest
from blklab.experiment.analyse import analyse
from blklab.experiment.statistics import Unranked
from blklab.experiment.words import sentence
from blklab.host.devices import queue as queues
from blklab.host.roots import Roots
from blklab.rigs.live.danger import full_id
from blklab.store import place, read
from blklab.store.opening import open_store
from blklab.store.place import StorePlace
from blklab.study import kept_files as studies
from blklab.tuning import kept_answer
from blklab.tuning.kept_answer import KeptAnswer


@dataclass(frozen=True)
class Source:
    """The source of a recommendation."""

    name: str
    """For a person."""
    results: Results
    objective: str
    """The objective of its run, as far as it is known."""
    store: StorePlace | None = None
    """The store with that number."""
    answer: KeptAnswer | None = None
    """The answer of the search that these results confirm."""

    @property
    def under_sudo(self) -> list[str]:
        """The option that names this store under sudo, because root's default store differs."""
        if self.store is None:
            return []
        file = self.store.file
        return ["--store", str(file.absolute()) if file else self.store.text]


def find(
    text: str, part: str | None, store: str | None, tell: Callable[[str], None] = lambda _: None
) -> Source:
    """The number of a comparison in the store; the directory of a study, with the name of one of
    its parts unless it has one only; ``results.json`` or the directory that it lies in, which may
    be that of a search.

    `tell` receives a line for each run that the store could not import. InputError or StoreError
    if it does not exist, or has no such part.
    """
    is_study = not text.isdigit() and (Path(text) / studies.FILE).is_file()
    if part is not None and not is_study:
        raise InputError(f"--of-part: {shown(text)} is not the directory of a study")
    if text.isdigit():
        return _of_number(text, place.find(store), tell)
    if store is not None:
        raise InputError(f"--store: only works with a number; {shown(text)} is a path")
    if is_study:
        return _of_study(Path(text), part)
    results = files.load(Path(text))
    answer = kept_answer.load(Path(text)) if Path(text).is_dir() else None
    return Source(text, results, "both", answer=answer)


def _of_number(text: str, where: StorePlace, tell: Callable[[str], None]) -> Source:
    number = stored.number(text)
    found = read.comparison(open_store(where, make=False, tell=tell), number)
    results = found.results()
    if not results.runs:
        raise InputError(
            f"comparison {number}: no repeat is complete yet, there is no recommendation"
        )
    return Source(f"comparison {number}", results, found.listed.objective, where)


def _of_study(directory: Path, name: str | None) -> Source:
    study, outcomes = studies.load(directory)
    ran = {
        outcome.part: (outcome.results, part.objective)
        for part, outcome in zip(study.parts, outcomes, strict=True)
        if outcome.results is not None
    }
    if not ran:
        raise InputError(f"{directory}: no part of this study has run")
    if name is None and len(ran) > 1:
        raise InputError(f"--of-part: name the part of the study; there is: {', '.join(ran)}")
    chosen = next(iter(ran)) if name is None else name
    if chosen not in ran:
        known = chosen in {part.name for part in study.parts}
        what = f"part '{chosen}' was left out" if known else f"no part '{shown(chosen)}'"
        raise InputError(f"--of-part: {what} in {directory}{nearest(chosen, ran)}")
    results, objective = ran[chosen]
    return Source(f"{directory}, {chosen}", results, objective)


def scheduler(source: Source, disk: str | None, objective: str | None) -> tuple[str, str]:
    """The recommended scheduler as on the command line, with its sentence. A search answers by its
    own objective, a comparison by `objective`.

    InputError if there is no winner.
    """
    if source.answer is not None and objective is None:
        return _searched(source.answer, source.name, disk)
    if objective is not None and objective not in OBJECTIVES:
        raise InputError(f"--objective: no '{shown(objective)}'{nearest(objective, OBJECTIVES)}")
    by = objective or source.objective
    results = source.results
    answers = analyse(results.runs, by, anytime=results.anytime).recommendations
    if disk is None and len(answers) > 1:
        raise InputError(f"--of-disk: name the disk of the comparison{nearest('', answers)}")
    of = next(iter(answers)) if disk is None else disk
    if of not in answers:
        raise InputError(f"--of-disk: no disk '{shown(of)}' in {source.name}{nearest(of, answers)}")
    verdict = answers[of][by]
    said = sentence(verdict, by)
    # With one scheduler, as in a run of blklab fio, there is no comparison.
    if isinstance(verdict, Unranked) or not verdict.winner or not verdict.behind:
        raise InputError(f"{source.name} recommends nothing for {of}, {by}: {said}")
    return specs.scheduler(verdict.winner).text, f"{of}, {by}: {said}"


def _searched(answer: KeptAnswer, name: str, disk: str | None) -> tuple[str, str]:
    if disk not in (None, answer.disk):
        raise InputError(
            f"--of-disk: no disk '{shown(disk or '')}' in {name}{nearest('', [answer.disk])}"
        )
    if answer.best == answer.reference:
        raise InputError(f"{name} recommends no change: {answer.said}")
    return specs.scheduler(answer.best).text, f"{answer.disk}: {answer.said}"


def disks(source: Source, disk: str | None, roots: Roots) -> list[str]:
    """This machine's disks on which a live result was measured, found by their ids.

    InputError if it was measured on a model, or on disks that are missing here.
    """
    setup = source.results.setup
    rows = [row for row in setup["disks"] if disk in (None, row["label"])]
    settings = [row for one in rows for row in one["parameters"]]
    ids_then = [str(row["value"]) for row in settings if row["key"].endswith(": id")]
    if setup["rig"] != "live" or not ids_then:
        raise InputError(f"apply: name a disk; {source.name} was measured on a model")
    here = {shown(full_id(name, roots)): name for name in queues.disks(roots)}
    for one in ids_then:
        if one not in here:
            raise InputError(
                f"{source.name} was measured on {shown(one)}, which is missing here; name a disk"
            )
    return [here[one] for one in ids_then]
