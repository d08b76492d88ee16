"""The disk model on which a group of disks is simulated."""

from __future__ import annotations

import re

from blklab.disks import DISKS
from blklab.domain import core, defaults, specs, validation
from blklab.domain.experiment import Disk
from blklab.fleet.groups import Group
from blklab.fleet.hosts import AUTO, Fleet

BY_KIND = {"hdd": "desktop-5900rpm", "nvme": "950pro-256gb", "ssd": "su800-128gb"}
"""Models that stand for disks of their kind."""
_WORD = re.compile(r"[A-Z0-9]+")
_WORD_LEAST = 7
"""The length of a maker's number of a model: ``ST4000DM000``, ``WD10EZRX``."""


def chosen_model(group: Group, fleet: Fleet) -> tuple[Disk, str]:
    """The model, and how far it stands for the disks, in words: by the file of hosts, else the
    model of that name, else one of the kind."""
    name, told = fleet.model(group.model), "named in the file of hosts"
    if name == AUTO:
        name, told = _of_name(group.model), "the model of these disks"
    if not name:
        kind = "nvme" if group.transport == "nvme" else "hdd" if group.rotational else "ssd"
        name, told = BY_KIND[kind], "a model of their kind, not of these disks"
    found = specs.disk(name)
    note = validation.note(found)
    return found, f"{told}; {note.removeprefix(f'{found.label}: ')}" if note else told


def kernel_default(group: Group, model: Disk) -> str:
    """The kernel's own choice: by the disks' queues if these show it, else by the model's."""
    said = {one.disk.default for one in group.members}
    [only] = said if len(said) == 1 else [None]
    return only or defaults.of_linux(model)


def _of_name(model: str) -> str:
    """The disk model that has the disks' own name; empty if there is none."""
    words = _numbers(model)
    whole = _joined(model)
    for name in DISKS.names():
        its = core.disk_model(specs.disk(name)).name
        if words & _numbers(its) or (whole and whole == _joined(its)):
            return name
    return ""


def _numbers(text: str) -> set[str]:
    """Words with letters and digits that are long enough to be a maker's number."""
    return {
        word
        for word in _WORD.findall(text.upper())
        if len(word) >= _WORD_LEAST and not word.isdigit() and not word.isalpha()
    }


def _joined(text: str) -> str:
    """Without spaces, and without a word that only some writers use."""
    return "".join(word for word in _WORD.findall(text.upper()) if word != "SSD")
