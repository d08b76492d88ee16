"""A scheduler as the user writes it, for a guest: what goes to `queue/`, what to `queue/iosched/`.

What the simulator knows is checked by its tables. Any other name may be the kernel's own, or
come of a patch: the guest's kernel accepts or refuses it, in one line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from blklab.domain import core
from blklab.errors import InputError

_WORD = re.compile(r"[\w-]+", re.ASCII)
# In 6.12 `async_depth` lies with the scheduler's settings, in 7.3 with the queue's.
_ASYNC_DEPTH_OF_QUEUE = 7
ADAPTER_TAGS = 32
"""Commands that a SATA adapter takes."""
GUEST_TAGS = 128
"""Commands that a disk takes in a guest, which has one CPU and so one hardware queue. See the facts
about the guest in the notes for developers."""


@dataclass(frozen=True)
class Scheduler:
    """A scheduler with its tunables."""

    name: str
    settings: dict[str, Any]
    """Everything that is known of it and of the queue, with what was changed."""
    changed: dict[str, Any]
    """What the user has set."""

    def for_guest(self, queue: dict[str, Any], version: str) -> dict[str, Any]:
        """Its part of ``guest.json`` for a kernel that calls itself `version` (``7.3.4``).

        `queue` goes to ``queue/`` where nothing else is said.
        """
        of_queue = {row["name"] for row in core.environment()["queue"]} | queue.keys()
        if has_queue_async_depth(version):
            of_queue.add("async_depth")
        told = queue | self.changed
        if not told.get("nr_requests", 1):
            # The kernel's choice, which is not written as a number.
            del told["nr_requests"]
        # nr_requests first: Linux 7 changes async_depth with it.
        ordered = sorted(told.items(), key=lambda setting: setting[0] != "nr_requests")
        there = {name: value for name, value in ordered if name in of_queue}
        iosched = {name: value for name, value in told.items() if name not in of_queue}
        return {"scheduler": self.name, "queue": there, "iosched": iosched}

    def queue(self) -> dict[str, Any]:
        """The queue's tunables as the simulator has them; 0 is the kernel's choice."""
        names = (row["name"] for row in core.environment()["queue"])
        return {name: self.settings[name] for name in names if self.settings[name]}


def has_queue_async_depth(version: str) -> bool:
    """Whether `async_depth` is the queue's in a kernel that calls itself `version`."""
    return int(version.partition(".")[0]) >= _ASYNC_DEPTH_OF_QUEUE


def parse(spec: str) -> Scheduler:
    """``name:tunable=value,...``. InputError if it cannot be right."""
    name, colon, text = spec.partition(":")
    if not _WORD.fullmatch(name):
        raise InputError(f"scheduler '{spec}': expected name[:tunable=value,...]")
    table = {row["name"]: row["tunables"] for row in core.schedulers()}
    # Every scheduler has the queue's tunables, and none has no others.
    like = name if name in table else "none"
    known = {row["name"] for row in [*table[like], *core.environment()["queue"]]}
    ours, own = [], {}
    for change in text.split(",") if colon else []:
        key, equals, value = (part.strip() for part in change.partition("="))
        if not (equals and value and _WORD.fullmatch(key)):
            raise InputError(f"scheduler '{spec}': expected tunable=value, found '{change}'")
        if key in known:
            ours.append(change)
        else:
            own[key] = value
    checked = core.check_scheduler(f"{like}:{','.join(ours)}" if ours else like)
    return Scheduler(name, checked["settings"] | own, checked["changed"] | own)
