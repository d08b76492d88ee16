"""The data to resume a comparison or a study as if it had never been killed.

The texts of all files are stored, with a hash of each expanded job file: so a changed variable or
included file is detected, and so is another kernel or another blklab.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from blklab import programs
from blklab.base import plain
from blklab.domain.comparison import Setup
from blklab.domain.task import said
from blklab.errors import InputError
from blklab.store import packing

_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Request:
    """A comparison that was begun."""

    setup: Setup
    rig: str
    options: dict[str, str | None]
    """The rig's options."""
    objective: str
    out: str
    """The directory for the report and `results.json`."""
    loads: tuple[str, ...] = ()
    """See `fingerprints`."""
    budget: str = ""
    """The budget, as the user wrote it, if the comparison repeats until the answer is known."""


def fingerprints(setup: Setup) -> tuple[str, ...]:
    """The hash of each job file with its variables and includes expanded; for programs, of their
    parameters."""
    return tuple(map(said, setup.workloads))


def to_bytes(request: Any) -> bytes:
    """The stored form; `request` is any dataclass."""
    return packing.pack_json(request)


def from_bytes(where: str, kept: Any, kind: type[_Kind]) -> _Kind:
    """The request that `to_bytes` was given. DamagedError, which names `where`, for anything
    else."""
    return packing.column(where, kept, kind, plain.path_from_text)


def request_from_bytes(where: str, kept: Any) -> Request:
    """The request of a comparison, from any version of blklab. DamagedError as `from_bytes`."""
    found = from_bytes(where, kept, Request)
    return replace(found, setup=of_any_version(found.setup))


def of_any_version(setup: Setup) -> Setup:
    """A set-up of the store. In older versions the entry of a program had no kind."""
    return replace(setup, workloads=tuple(map(programs.of_stored, setup.workloads)))


def check_same(
    what: str, kept: Mapping[str, Any], now: Mapping[str, Any], request: Request
) -> None:
    """InputError if further runs would differ from the stored ones.

    `kept` and `now` are the results of `describe` then and now.
    """
    if request.loads != fingerprints(request.setup):
        raise InputError(
            f"{what} cannot be resumed: a job file expands differently now; its variables or the "
            "files that it includes have changed"
        )
    now = json.loads(plain.encode(now))
    for key in dict.fromkeys((*kept, *now)):
        before, after = kept.get(key), now.get(key)
        if key == "versions":
            # Python does not affect the measurement.
            before, after = ({**(v or {}), "python": ""} for v in (before, after))
        if before != after:
            raise InputError(f"{what} cannot be resumed: {_difference(key, before, after)}")


def _difference(key: str, before: Any, after: Any) -> str:
    if key == "versions":
        return f"it was begun by blklab {before.get('blklab')}, this is {after.get('blklab')}"
    if key == "rig_setup":
        texts = (str((value or {}).get("text")) for value in (before, after))
        return "it ran on {}; now it would run on {}".format(*texts)
    return f"its {key.replace('_', ' ')} would change"
