"""udev's rules, when the disk appears and when it changes."""

from __future__ import annotations

from collections.abc import Iterator

from blklab.host.devices.deciders.influence import Influence
from blklab.host.devices.queue import Queue
from blklab.host.roots import Roots
from blklab.host.udev import judge


def influences(queue: Queue, roots: Roots) -> Iterator[Influence]:
    """What the rules of both events do to it; a line that applies to both events is listed once."""
    at = {action: judge.effects(queue.disk, action, roots) for action in judge.ACTIONS}
    seen = {(effect.line, effect.attribute) for effect in at["change"]}
    only_first = [one for one in at["add"] if (one.line, one.attribute) not in seen]
    for effect in [*only_first, *at["change"]]:
        yield Influence(
            "udev rule",
            str(effect.line.file),
            effect.line.number,
            effect.attribute,
            effect.value,
            effect.sure,
            effect.why,
            effect.program,
        )
