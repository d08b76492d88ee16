"""What is to be set, as attributes of a queue: from words, from a result, or from a preset."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from blklab.devices import queue as queues
from blklab.devices.queue import IOSCHED, SCHEDULER, SETTABLE, Queue, in_order
from blklab.devices.roots import Roots
from blklab.devices.text import shown
from blklab.errors import InputError, nearest

# What may stand in a rule or a profile without being quoted.
_VALUE = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def parse(spec: str, queue: Queue) -> dict[str, str]:
    """``scheduler:tunable=value,...`` as attributes with values; `queue` says which of the
    tunables are the queue's own. InputError if it cannot be right."""
    scheduler, colon, changes = spec.partition(":")
    given = {SCHEDULER: _value(scheduler, "scheduler")}
    for change in changes.split(",") if colon else []:
        name, equals, value = (part.strip() for part in change.partition("="))
        if not (name and equals and value):
            raise InputError(f"'{shown(spec)}': expected tunable=value, found '{shown(change)}'")
        given[_attribute(name, queue)] = _value(value, name)
    return given


def of_queue(changes: Iterable[str]) -> dict[str, str]:
    """``name=value`` of ``--set``: attributes of the queue itself."""
    given = {}
    for change in changes:
        name, equals, value = (part.strip() for part in change.partition("="))
        if name not in SETTABLE:
            raise InputError(f"--set: no setting '{shown(name)}'{nearest(name, SETTABLE)}")
        if not equals:
            raise InputError(f"--set: expected name=value, found '{shown(change)}'")
        given[name] = _value(value, name)
    return given


def together(*parts: Mapping[str, str]) -> dict[str, str]:
    """Several of them, later ones first where they differ, in the order in which to set them.

    InputError if nothing is left to set.
    """
    every: dict[str, str] = {}
    for part in parts:
        every |= part
    if not every:
        raise InputError("nothing to apply: name a scheduler, --preset, --from or --set")
    return {name: every[name] for name in in_order(every)}


def beside(earlier: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """`new`, and what was applied `earlier` and is not said anew; the tunables of a scheduler go
    with it."""
    changed = new.get(SCHEDULER, earlier.get(SCHEDULER)) != earlier.get(SCHEDULER)
    kept = {
        name: value for name, value in earlier.items() if not (changed and name.startswith(IOSCHED))
    }
    return together(kept, new)


def of_result(path: Path, disk: str | None, objective: str) -> tuple[str, str]:
    """The recommendation of ``results.json``: the scheduler as on the command line, and the
    sentence that goes with it. InputError if it names no winner."""
    from blklab.compare import store
    from blklab.compare.analyse import OBJECTIVES, analyse
    from blklab.compare.words import sentence
    from blklab.specs import on_kernel

    if objective not in OBJECTIVES:
        raise InputError(f"--objective: no '{shown(objective)}'{nearest(objective, OBJECTIVES)}")
    kept = store.load(path)
    answers = analyse(kept.runs, objective, anytime=kept.anytime).recommendations
    if disk is None and len(answers) > 1:
        raise InputError(f"--of-disk: say whose recommendation{nearest('', answers)}")
    of = next(iter(answers)) if disk is None else disk
    if of not in answers:
        raise InputError(f"--of-disk: no disk '{shown(of)}' in {path}{nearest(of, answers)}")
    verdict = answers[of][objective]
    said = sentence(verdict, objective)
    if verdict is None or not verdict.winner:
        raise InputError(f"{path} recommends nothing for {of}, {objective}: {said}")
    return on_kernel(verdict.winner)[0], f"{of}, {objective}: {said}"


def disks_of_result(path: Path, disk: str | None, roots: Roots) -> list[str]:
    """This machine's disks that a live result was measured on, found by their ids.

    InputError if it was measured on a model, or on disks that are not here.
    """
    from blklab.compare import store
    from blklab.live.danger import full_id

    setup = store.load(path).setup
    try:
        rows = [row for row in setup["disks"] if disk in (None, row["label"])]
        settings = [row for one in rows for row in one["parameters"]]
        live = setup["rig"] == "live"
        ids = [str(row["value"]) for row in settings if str(row["key"]).endswith(": id")]
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: not the results of 'blklab compare' ({error})") from error
    if not live or not ids:
        raise InputError(f"apply: say which disk; {path} was measured on a model")
    here = {shown(full_id(name, roots)): name for name in queues.disks(roots)}
    for one in ids:
        if one not in here:
            raise InputError(f"{path} was measured on {shown(one)}, which is not here; name a disk")
    return [here[one] for one in ids]


def check(settings: Mapping[str, str]) -> None:
    """InputError if settings that were read from a file could not have come from here."""
    for name, value in settings.items():
        known = name in (SCHEDULER, *SETTABLE) or (
            name.startswith(IOSCHED) and _NAME.fullmatch(name.removeprefix(IOSCHED))
        )
        if not known or not _VALUE.fullmatch(value):
            raise InputError(f"not a setting of blklab's: {shown(name)}={shown(value)}")


def text(settings: Mapping[str, str]) -> str:
    """For a person: ``bfq, low_latency=0, nr_requests=64``."""
    words = [
        value if name == SCHEDULER else f"{name.removeprefix(IOSCHED)}={value}"
        for name, value in settings.items()
    ]
    return ", ".join(words)


def _attribute(name: str, queue: Queue) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(f"'{shown(name)}': not the name of a tunable")
    # Linux 7 has async_depth with the queue, earlier ones with the scheduler.
    if name == "async_depth":
        return name if (queue.disk / "queue" / name).exists() else IOSCHED + name
    return name if name in SETTABLE else IOSCHED + name


def _value(value: str, name: str) -> str:
    if not _VALUE.fullmatch(value):
        raise InputError(f"{shown(name)}: '{shown(value)}' is no value of it")
    return value
