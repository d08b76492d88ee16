"""What it takes to go on with a comparison, or a study, as if it had never been killed.

The texts of all files are kept, and what their job files came to: a variable or an included file
that has changed meanwhile is noticed, and so is another kernel or another blklab.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

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
    """What the rig was told, by option."""
    objective: str
    out: str
    """Where the report and `results.json` go."""
    loads: tuple[str, ...] = ()
    """See `fingerprints`."""
    budget: str = ""
    """If it is repeated until the answer is known: the time for that, as the user wrote it."""


def fingerprints(setup: Setup) -> tuple[str, ...]:
    """Of what each job file says, with its variables and includes put in; of programs their
    parameters."""
    return tuple(map(said, setup.workloads))


def to_bytes(request: Any) -> bytes:
    """As it is kept; `request` is any dataclass."""
    return packing.pack_json(request)


def from_bytes(where: str, kept: Any, kind: type[_Kind]) -> _Kind:
    """What `to_bytes` was given. DamagedError, which says `where`, if it was something else."""
    return packing.column(where, kept, kind, plain.path_from_text)


def check_same(
    what: str, kept: Mapping[str, Any], now: Mapping[str, Any], request: Request
) -> None:
    """InputError if the runs to come would not be like those that are there.

    `kept` and `now` are what `describe` said then and says now.
    """
    if request.loads != fingerprints(request.setup):
        raise InputError(
            f"{what} cannot go on: a job file comes to something else now; its variables or the "
            "files that it includes have changed"
        )
    now = json.loads(plain.encode(now))
    for key in dict.fromkeys((*kept, *now)):
        before, after = kept.get(key), now.get(key)
        if key == "versions":
            # Python has no part in what is measured.
            before, after = ({**(v or {}), "python": ""} for v in (before, after))
        if before != after:
            raise InputError(f"{what} cannot go on: {_difference(key, before, after)}")


def _difference(key: str, before: Any, after: Any) -> str:
    if key == "versions":
        return f"it was begun by blklab {before.get('blklab')}, this is {after.get('blklab')}"
    if key == "rig_setup":
        texts = (str((value or {}).get("text")) for value in (before, after))
        return "it ran on {}; now it would run on {}".format(*texts)
    return f"its {key.replace('_', ' ')} would not be what it was"
