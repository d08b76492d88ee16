"""What the commands that run something do about the store: begin, go on, tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blklab.base.homes import NoHomeError
from blklab.cli import console
from blklab.errors import BlklabError, InputError, RunError, StoppedError, StoreError
from blklab.experiment.plan import plan
from blklab.rigs import rig as rig_of

if TYPE_CHECKING:
    from blklab.domain.comparison import Planned, Setup
    from blklab.domain.events import Keeper
    from blklab.domain.result import Result
    from blklab.rigs import Rig
    from blklab.store.database import Store
    from blklab.store.place import Place
    from blklab.store.request import Request
    from blklab.store.single import Single
    from blklab.study.model import Study
    from blklab.study.run import Ready

StoreName = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE|URL",
        help="Store of results: a file, or postgresql+psycopg://... [default: "
        "$BLKLAB_STORE, else blklab/results.db in your data directory]",
    ),
]
NoKeep = Annotated[bool, typer.Option("--no-keep", help="Do not store the results.")]
Resume = Annotated[
    bool,
    typer.Option("--resume", help="Continue an interrupted comparison: ID; default: the latest."),
]
_GO_WITH_RESUME = ("resume", "store", "jobs", "out", "objective", "as_json")


@dataclass(frozen=True)
class Work:
    """A comparison that is about to run, or to run on."""

    request: Request
    described: dict[str, Any]
    rig: Rig
    keeper: Keeper | None
    """None until it is `begin`'s: what is refused before its first run is not kept."""
    store: Store | None = None


def check_resume(context: typer.Context, resume: bool, argument: str) -> None:
    """InputError if something is said that a comparison that goes on cannot be told."""
    told = [name for name in context.params if is_told(context, name)]
    if resume:
        if "no_keep" in told:
            raise InputError(
                "--no-keep: --resume continues a stored comparison, and stores the rest"
            )
        for name in told:
            if name not in (*_GO_WITH_RESUME, argument):
                raise InputError(f"--{name.replace('_', '-')}: --resume uses the original options")
    elif argument in told:
        raise InputError(
            f"'{context.params[argument]}': not expected; to resume a number, add --resume"
        )


def is_told(context: typer.Context, name: str) -> bool:
    """Whether the user has said it."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def opened(store: str | None, rig: str) -> Store | None:
    """The store to keep in. None, and a line on stderr, if the usual one cannot be used;
    StoreError if the user has chosen it."""
    from blklab.store.opening import open_store

    where = _place(store)
    if where is None:
        return None
    try:
        # What took real time on a real disk is to outlive a power cut.
        return open_store(where, durable=rig != "sim", tell=console.print_note)
    except StoreError as error:
        _not_kept(error, where.chosen)
        return None


def begin(work: Work) -> Keeper:
    """Where the runs go: of a new comparison its place in the store, if there is one, whose number
    is told on stderr."""
    from blklab.domain import events
    from blklab.store import keep

    if work.keeper is not None:
        return work.keeper
    if work.store is None:
        return events.Nowhere("")
    try:
        count = len(plan(work.request.setup))
        keeper = keep.begin(work.store, work.described, work.request, count)
    except StoreError as error:
        _not_kept(error, work.store.place.chosen)
        return events.Nowhere(str(error))
    console.print_notes([f"stored as {keeper.name}; to see it: blklab results show {keeper.name}"])
    return keeper


def begin_study(
    kept: Store | None, study: Study, parts: Sequence[Ready], out: str
) -> Mapping[str, Keeper]:
    """A new study in the store, if there is one; tells its numbers on stderr."""
    from blklab.study import in_store

    if kept is None:
        return {}
    try:
        keepers = in_store.begin(kept, study, parts, out)
    except StoreError as error:
        _not_kept(error, kept.place.chosen)
        return {}
    numbers = [keeper.name for keeper in keepers.values()]
    console.print_notes([f"stored as {', '.join(numbers)}; to see them: blklab results"])
    return keepers


def opened_for(store: str | None, parts: Sequence[Ready]) -> Store | None:
    """As `opened`, for a study."""
    rigs = {part.rig.name for part in parts if part.rig}
    return opened(store, "sim" if rigs == {"sim"} else "")


def new(
    store: str | None,
    setup: Setup,
    place: Rig,
    options: Mapping[str, str | None],
    objective: str,
    out: str,
    budget: str | None = None,
    *,
    no_keep: bool = False,
) -> Work:
    """A comparison to begin with; `budget` if it is repeated within one. InputError if a disk, a
    load or a scheduler is wrong."""
    from blklab.experiment.describe import describe
    from blklab.store.request import Request, fingerprints

    place.put_right()
    described = describe(setup, place)
    for load in described["workloads"]:
        console.print_ignored(load["ignored"])
    told = dict(options) | _the_same_kernel(described)
    request = Request(setup, place.name, told, objective, out, fingerprints(setup), budget or "")
    if budget:
        described["stopping"] = {"text": f"not at its end; the budget was {budget}"}
    return Work(request, described, place, None, None if no_keep else opened(store, place.name))


def resumed(store: str | None, number: str | None) -> Work:
    """A comparison that was killed. InputError if there is none, or if what is to run would not
    be like what has."""
    from blklab.experiment.describe import describe
    from blklab.store import ids, keep, place, request
    from blklab.store.opening import open_store
    from blklab.store.unfinished import left

    kept = open_store(place.find(store), durable=True, make=False, tell=console.print_note)
    found = left(kept, None if number is None else ids.number(number), study=False)
    asked = request.from_bytes(f"comparison {found.id}: request", found.request, request.Request)
    if asked.budget:
        raise InputError(
            f"comparison {found.id} cannot be resumed: it had a budget of {asked.budget}; what has "
            f"run is kept: blklab report {found.id}"
        )
    where = rig_of(asked.rig, asked.options)
    where.put_right()
    now = describe(asked.setup, where)
    request.check_same(f"comparison {found.id}", found.setup, now, asked)
    return Work(asked, found.setup, where, keep.go_on(kept, found.id))


def begin_single(store: str | None, setup: Setup, rig: Rig) -> Single | None:
    """Where a single run will be kept. None, and a line on stderr, if the usual store cannot be
    used; an error if the user has chosen it. InputError if a disk, a load or a scheduler is
    wrong."""
    from blklab.experiment.describe import describe
    from blklab.store import waiting
    from blklab.store.single import Single

    where = _place(store)
    rig.put_right()
    described = describe(setup, rig)
    if where is None:
        return None
    if where.file is None:
        server = opened(store, rig.name)
        return None if server is None else Single(where, described, server)
    try:
        waiting.check(where)
    except BlklabError as error:
        _not_kept(error, where.chosen)
        return None
    return Single(where, described)


def end_single(
    single: Single, planned: Planned, result: Result, begun_at: datetime, ended_at: datetime
) -> None:
    """Keep it; a line on stderr if that fails, for its figures are there all the same."""
    try:
        single.keep(planned, result, begun_at, ended_at)
    except BlklabError as error:
        console.print_note(f"this run is not stored: {error}")


@contextmanager
def telling(keepers: Sequence[Keeper], command: str) -> Iterator[None]:
    """Whoever interrupts, and whoever's run fails, is told how to go on; with the `keepers` that
    there are then."""
    try:
        yield
    except KeyboardInterrupt:
        if not (how := _how_to_go_on(keepers, command)):
            raise
        raise StoppedError(f"interrupted; {how}") from None
    except RunError as error:
        if how := _how_to_go_on(keepers, command):
            error.args = (f"{error}; {how}",)
        raise


def _how_to_go_on(keepers: Sequence[Keeper], command: str) -> str:
    name = next((keeper.name for keeper in keepers if keeper.name), "")
    return (
        f"finished runs are stored; to continue: blklab {command} --resume {name}" if name else ""
    )


@contextmanager
def written(keepers: Sequence[Keeper], command: str) -> Iterator[None]:
    """Around writing the report: where the figures are if that fails, and what is not kept."""
    try:
        yield
    except BlklabError as error:
        kept = [keeper.name for keeper in keepers if keeper.name]
        for keeper in keepers:
            keeper.finish()
        if kept:
            how = f"blklab {command} --resume {kept[0]} --out DIRECTORY"
            error.args = (f"{error}; finished runs are stored: {how}",)
        raise
    for keeper in keepers:
        keeper.finish()
        if keeper.name and keeper.lost:
            console.print_notes([f"{keeper.name}: {keeper.lost}"])


def _the_same_kernel(described: Mapping[str, Any]) -> dict[str, str | None]:
    """The kernel that runs now, by its key: the default may be another one tomorrow."""
    kernel = described["rig_setup"].get("kernel")
    return {"kernel": kernel["key"]} if kernel else {}


def _place(store: str | None) -> Place | None:
    """None, and a line on stderr, if there is no home directory for the usual one."""
    from blklab.store import place

    try:
        return place.find(store)
    except NoHomeError as error:
        _not_kept(error, chosen=False)
        return None


def _not_kept(error: BlklabError, chosen: bool) -> None:
    if chosen:
        raise error
    console.print_notes([f"results will not be stored: {error}; choose a store with --store"])
