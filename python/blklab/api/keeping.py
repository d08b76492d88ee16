"""The store during a call that runs experiments: open it, begin, resume, and report what is stored.

The default store must not stop a run: if it cannot be used, the listener gets a note and the runs
are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from blklab.api.listener import Listener
from blklab.base.homes import NoHomeError
from blklab.errors import BlklabError, Kept, RunError, StoppedError, StoreError
from blklab.store import place
from blklab.store.place import StorePlace

if TYPE_CHECKING:
    from datetime import datetime

    from blklab.domain.comparison import Planned, Setup
    from blklab.domain.events import Keeper
    from blklab.domain.result import Result
    from blklab.rigs import Rig
    from blklab.store.database import Store
    from blklab.store.single import Single

_Begun = TypeVar("_Begun")


def open_for_runs(store: str | None, rig: str, listener: Listener) -> Store | None:
    """The store for new runs of that rig; None if the default store cannot be used. StoreError if
    it is one that the user has chosen."""
    from blklab.store.opening import open_store

    where = find_place(store, listener)
    if where is None:
        return None
    try:
        # Runs on a real disk took real time: they must survive a power cut.
        return open_store(where, durable=rig != "sim", tell=listener.note)
    except StoreError as error:
        _cannot_store(error, where, listener)
        return None


def find_place(store: str | None, listener: Listener) -> StorePlace | None:
    """The store's place; None if there is no home directory for the default store."""
    try:
        return place.find(store)
    except NoHomeError as error:
        _cannot_store(error, None, listener)
        return None


def begin(start: Callable[[], _Begun], store: Store, listener: Listener) -> _Begun | StoreError:
    """The result of `start` in the store; the reason if the default store fails."""
    try:
        return start()
    except StoreError as error:
        _cannot_store(error, store.place, listener)
        return error


def place_of_single(store: str | None, setup: Setup, rig: Rig, listener: Listener) -> Single | None:
    """The place of a single run in the store; None if the default store cannot be used. InputError
    if a disk, a workload or a scheduler is wrong."""
    from blklab.experiment.describe import describe
    from blklab.store.single import Single, check

    where = find_place(store, listener)
    rig.put_right()
    described = describe(setup, rig)
    if where is None:
        return None
    if where.file is None:
        server = open_for_runs(store, rig.name, listener)
        return None if server is None else Single(where, described, server)
    try:
        check(where)
    except BlklabError as error:
        _cannot_store(error, where, listener)
        return None
    return Single(where, described)


def keep_single(
    single: Single, planned: Planned, result: Result, begun_at: datetime, ended_at: datetime
) -> None:
    """Both times are UTC. StoreError or RunError, one line, if it cannot be kept."""
    single.keep(planned, result, begun_at, ended_at)
    if single.many_wait:
        from blklab.store.opening import open_store

        # It is stored; the next command that opens the store reports its problem.
        with suppress(StoreError):
            open_store(single.place).close()


@contextmanager
def resumable(keepers: Callable[[], Sequence[Keeper]], *, study: bool) -> Iterator[None]:
    """Surrounds the runs: the error of an interrupt or a failed run lists the stored runs of
    `keepers`, and a later call may resume them."""
    with _listing_stored(keepers, study=study), _releasing_on_error(keepers):
        yield


@contextmanager
def _releasing_on_error(keepers: Callable[[], Sequence[Keeper]]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        for keeper in keepers():
            keeper.release()
        raise


@contextmanager
def _listing_stored(keepers: Callable[[], Sequence[Keeper]], *, study: bool) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        if (kept := _stored(keepers(), study=study)) is None:
            raise
        stopped = StoppedError("interrupted")
        stopped.kept = kept
        raise stopped from None
    except RunError as error:
        error.kept = _stored(keepers(), study=study)
        raise


@contextmanager
def completing(keepers: Sequence[Keeper], listener: Listener, *, study: bool) -> Iterator[None]:
    """Surrounds writing the report, after the last run: marks the comparisons as complete, and
    reports the runs that could not be stored."""
    try:
        yield
    except BlklabError as error:
        for keeper in keepers:
            keeper.finish()
        error.kept = _stored(keepers, study=study, complete=True)
        raise
    for keeper in keepers:
        keeper.finish()
        if keeper.name and keeper.lost:
            listener.note(f"{keeper.name}: {keeper.lost}")


def number_of(keeper: Keeper) -> int | None:
    """The number of its comparison in the store; None if it is not stored."""
    return int(keeper.name) if keeper.name else None


def _stored(keepers: Sequence[Keeper], *, study: bool, complete: bool = False) -> Kept | None:
    numbers = tuple(keeper.name for keeper in keepers if keeper.name)
    return Kept(numbers, study, complete) if numbers else None


def _cannot_store(error: BlklabError, where: StorePlace | None, listener: Listener) -> None:
    if where is not None and where.chosen:
        raise error
    listener.note(f"results will not be stored: {error}; choose a store with --store")


def numbers_of(keepers: Mapping[str, Keeper]) -> dict[str, int]:
    """The numbers of the stored parts."""
    return {name: int(keeper.name) for name, keeper in keepers.items() if keeper.name}
