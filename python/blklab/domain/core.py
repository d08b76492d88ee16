"""What the compiled core knows without running anything: which schedulers, tunables and options
there are, and whether the text of a job, a disk, a scheduler or a host is right.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from blklab import _core
from blklab.base.catalogue import Entry
from blklab.domain.experiment import Disk, environment_variables
from blklab.errors import InputError

TOO_LARGE = "seed or host value: out of range for 64 bits"


def version() -> str:
    """The core's version."""
    return _core.version()


def schedulers() -> list[dict[str, Any]]:
    """Name, summary, source and tunables of every scheduler."""
    table: list[dict[str, Any]] = json.loads(_core.schedulers())
    return table


def decision_kinds() -> list[str]:
    """Every kind of decision that a scheduler notes, in the order of their numbers."""
    return _core.decision_kinds()


def describe_disk(disk: Disk) -> dict[str, Any]:
    """What a disk file says, key by key, with what was changed. InputError if it is wrong."""
    return _json(disk_model(disk).describe())


def drawn_disk(disk: Disk, seed: int) -> Disk:
    """A disk drawn from the ranges of its file's estimates. InputError if its file is wrong."""
    with wrong_input():
        text, values = disk_model(disk).draw(seed)
    return replace(disk, file=replace(disk.file, text=text), drawn=tuple(values))


def disk_model(disk: Disk) -> _core.Disk:
    """The model of a disk. InputError if its file is wrong."""
    with wrong_input():
        return _core.Disk(disk.file.text, disk.file.place, list(disk.overrides))


def environment() -> dict[str, list[dict[str, Any]]]:
    """The tunables of queue, page cache and host, by these names."""
    tables: dict[str, list[dict[str, Any]]] = json.loads(_core.environment())
    return tables


def check_host(changed: Mapping[str, int]) -> dict[str, int]:
    """Every tunable of host and page cache, with these changed. InputError if wrong."""
    return host(changed).values


def host(changed: Mapping[str, int]) -> _core.Host:
    """The modelled host. InputError if a name or value is wrong."""
    with wrong_input():
        return _core.Host(dict(changed))


def describe_job(entry: Entry, ignore_unsupported: bool, *, real: bool = False) -> dict[str, Any]:
    """What a job file says, section by section; if `real`, to real fio on a real disk. InputError
    if it is wrong."""
    return _json(job(entry, host({}), ignore_unsupported, real=real).describe())


def job(
    entry: Entry, there: _core.Host, ignore_unsupported: bool, *, real: bool = False
) -> _core.Job:
    """A job file on this host; if `real`, for real fio on a real disk. InputError if it is
    wrong."""
    with wrong_input():
        return _core.Job(
            entry.text, entry.place, environment_variables(), there, ignore_unsupported, real
        )


def ignored_options(entry: Entry, ignore_unsupported: bool, *, real: bool = False) -> list[str]:
    """A line for each option of a job file that is left out; see `describe_job`. InputError if the
    file is wrong."""
    return [
        f"{option['path']}:{option['line']}: {option['name']}={option['value']}: {option['why']}"
        for option in describe_job(entry, ignore_unsupported, real=real)["ignored"]
    ]


@contextlib.contextmanager
def wrong_input() -> Iterator[None]:
    """InputError for what the core refuses."""
    try:
        yield
    except OverflowError as error:
        raise InputError(TOO_LARGE) from error
    except ValueError as error:
        raise InputError(str(error)) from error


def _json(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


@functools.cache
def option_names() -> dict[str, frozenset[str]]:
    """Of each option of a job file, by any of its names: all of its names."""
    known = {}
    for row in json.loads(_core.workload_options()):
        names = frozenset({row["name"], *row["aliases"]})
        known.update(dict.fromkeys(names, names))
    return known
