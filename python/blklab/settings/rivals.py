"""Rules and services that would undo applied settings: they come later and set other values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from blklab.host.devices.deciders import order
from blklab.host.devices.deciders.influence import Influence
from blklab.host.devices.queue import Queue, same
from blklab.host.roots import Roots
from blklab.settings import rule

_RULE = "udev rule"
_IGNORED = "kernel command line"


def rivals(disk: Queue, wanted: Mapping[str, str], roots: Roots) -> list[Influence]:
    """Influences after our rule that set one of these attributes to another or an unknown value, in
    order."""
    return [
        one
        for one in order.influences(disk, roots)
        if one.attribute in wanted
        and one.by != _IGNORED
        and (one.value is None or not same(one.value, wanted[one.attribute]))
        and _comes_later(one)
    ]


def _comes_later(one: Influence) -> bool:
    if one.by != _RULE:
        return True
    name = Path(one.file).name
    return name != rule.NAME and (one.program or name > rule.NAME)
