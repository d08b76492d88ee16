"""The settings to apply, as attributes of a queue, from their text form."""

from __future__ import annotations

import re
from collections.abc import Mapping

from blklab.base.text import shown
from blklab.domain.scheduler import split
from blklab.errors import InputError, nearest
from blklab.host.devices.queue import IOSCHED, SCHEDULER, SETTABLE, Queue, in_order

# Characters that need no quoting in a rule or a profile.
_VALUE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def parse(spec: str, queue: Queue) -> dict[str, str]:
    """``scheduler:tunable=value,...`` as attributes with values; `queue` decides which tunables
    belong to the queue. InputError if it cannot be valid."""
    scheduler, changes = split(spec)
    given = {SCHEDULER: _value(scheduler, "scheduler")}
    return given | {_attribute(name, queue): _value(value, name) for name, value in changes.items()}


def of_queue(changes: Mapping[str, str]) -> dict[str, str]:
    """Attributes of the queue itself. InputError for an unknown attribute or an invalid value."""
    for name in changes:
        if name not in SETTABLE:
            raise InputError(f"--set: no setting '{shown(name)}'{nearest(name, SETTABLE)}")
    return {name: _value(value, name) for name, value in changes.items()}


def together(*parts: Mapping[str, str]) -> dict[str, str]:
    """Several of them merged, where later ones override earlier ones, in the order in which to set
    them.

    InputError if there is nothing to set.
    """
    every: dict[str, str] = {}
    for part in parts:
        every |= part
    if not every:
        raise InputError("nothing to apply: name a scheduler, --preset, --from or --set")
    return {name: every[name] for name in in_order(every)}


def beside(earlier: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """`new`, with the `earlier` settings that it does not replace; a new scheduler drops the
    tunables of the old one."""
    changed = new.get(SCHEDULER, earlier.get(SCHEDULER)) != earlier.get(SCHEDULER)
    kept = {
        name: value for name, value in earlier.items() if not (changed and name.startswith(IOSCHED))
    }
    return together(kept, new)


def check(settings: Mapping[str, str]) -> None:
    """InputError if settings from a file could not have been written by blklab."""
    for name, value in settings.items():
        known = name in (SCHEDULER, *SETTABLE) or (
            name.startswith(IOSCHED) and _NAME.fullmatch(name.removeprefix(IOSCHED))
        )
        if not known or not _VALUE.fullmatch(value):
            raise InputError(f"not a setting of blklab's: {shown(name)}={shown(value)}")


def text(settings: Mapping[str, str]) -> str:
    """For the user: ``bfq, low_latency=0, nr_requests=64``."""
    words = [
        value if name == SCHEDULER else f"{name.removeprefix(IOSCHED)}={value}"
        for name, value in settings.items()
    ]
    return ", ".join(words)


def _attribute(name: str, queue: Queue) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(f"'{shown(name)}': not the name of a tunable; expected a-z, 0-9 and '_'")
    # async_depth belongs to the queue in Linux 7, to the scheduler in earlier versions.
    if name == "async_depth":
        return name if (queue.disk / "queue" / name).exists() else IOSCHED + name
    return name if name in SETTABLE else IOSCHED + name


def _value(value: str, name: str) -> str:
    if not _VALUE.fullmatch(value):
        raise InputError(
            f"{shown(name)}: expected at most 64 of A-Z, a-z, 0-9, '.', '_' and '-', found "
            f"'{shown(value)}'"
        )
    return value
