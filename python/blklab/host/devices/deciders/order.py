"""Everything that may set a queue, in boot order, and what set it last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from blklab.base.text import shown
from blklab.host import reading
from blklab.host.devices import identity, modules
from blklab.host.devices.deciders import boot, cmdline, tuned, udev, units
from blklab.host.devices.deciders.influence import Influence
from blklab.host.devices.queue import SCHEDULER, MissingError, Queue, same
from blklab.host.roots import Roots

ALL: tuple[Callable[[Queue, Roots], Iterator[Influence]], ...] = (
    cmdline.influences,
    udev.influences,
    boot.tmpfiles,
    boot.sysfs_conf,
    units.influences,
    boot.rc_local,
    boot.tlp,
    tuned.influences,
)
"""From the first to the last; a later one overrides an earlier."""

# Drivers that ask for no scheduler: BLK_MQ_F_NO_SCHED_BY_DEFAULT, loop's since Linux 5.14.
_WITHOUT = ("loop",)


@dataclass(frozen=True)
class Decision:
    """What sets a disk's scheduler."""

    text: str
    """For a person."""
    by: Influence | None
    """The line that set it last; None if it is the kernel's default, or not known."""
    default: str | None
    """The kernel's default; None if it cannot be determined."""
    influences: tuple[Influence, ...]
    """All that set anything of the queue, in order."""


def influences(queue: Queue, roots: Roots) -> list[Influence]:
    """Everything that sets, or may set, anything of this queue, in order."""
    return [found for one in ALL for found in one(queue, roots)]


def last_word(found: Sequence[Influence], attribute: str) -> Influence | None:
    """The last influence that surely sets it."""
    return next((one for one in reversed(found) if one.attribute == attribute and one.sure), None)


def kernel_default(queue: Queue, roots: Roots) -> str | None:
    """The kernel's default scheduler, as of Linux 5.0 to 7.3: mq-deadline for one
    hardware queue or one set of tags, none for several. ``block/elevator.c``."""
    try:
        available = queue.schedulers().available
    except MissingError:
        return None
    if "mq-deadline" not in available or queue.name.startswith(_WITHOUT):
        return "none" if "none" in available else None
    count = len(reading.names(queue.disk / "mq"))
    if count == 1:
        return "mq-deadline"
    if count == 0 or modules.release(roots).startswith(("3.", "4.")):
        return None
    # SCSI adapters may share one set of tags among their queues; sysfs does not show this.
    of_scsi = identity.identity(queue.disk).transport in ("sata", "sas", "fc", "iscsi", "pci")
    return None if of_scsi else "none"


def decide(queue: Queue, roots: Roots) -> Decision:
    """What sets this disk's scheduler."""
    found = tuple(influences(queue, roots))
    default = kernel_default(queue, roots)
    try:
        schedulers = queue.schedulers()
    except MissingError:
        return Decision("it has no scheduler", None, None, found)
    active = schedulers.active
    if schedulers.available == ("none",):
        return Decision("there is nothing to choose", None, default, found)
    last = last_word(found, SCHEDULER)
    perhaps = [
        one
        for one in found[found.index(last) + 1 if last else 0 :]
        if one.attribute == SCHEDULER and not one.sure and one.value in (None, active)
        and one.by != "kernel command line"
    ]  # fmt: skip
    return Decision(_text(active, last, perhaps, default), last, default, found)


def _text(
    active: str, last: Influence | None, perhaps: Sequence[Influence], default: str | None
) -> str:
    maybe = f"; perhaps {perhaps[-1].by} {shown(perhaps[-1].place)}" if perhaps else ""
    if last and last.value is not None and same(last.value, active):
        return f"{last.by} {shown(last.place)}"
    if last:
        told = f"{last.by} {shown(last.place)} says {shown(last.value or '')}"
        return f"changed since: {told}{maybe}"
    if default == active:
        return f"kernel default{maybe}"
    if maybe:
        return maybe.removeprefix("; ")
    if default is None:
        return "kernel default, or set by hand"
    return f"set by hand or by a program (the kernel's default is {default})"
