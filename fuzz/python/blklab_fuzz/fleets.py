"""What `blklab fleet` reads: the file of hosts, and the answers of machines."""

from __future__ import annotations

import shutil
from pathlib import Path

from blklab.base.catalogue import Entry
from blklab.fleet import answer, disks, hosts, rules
from blklab.fleet.groups import DiskLoad, Member, groups
from blklab.host.udev.parse import parse as lines_of
from blklab_fuzz.checks import refusing, scratch

_SET = {("ATTR", "queue/scheduler"), ("GOTO", ""), ("LABEL", "")}


def fleet_hosts(data: bytes) -> None:
    """A file of hosts: each host has a directory of its own, and no name is an option of ssh."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    with refusing(data):
        found = hosts.parse(Entry("fuzz", Path("fuzz.toml"), text))
        labels = [one.label for one in found.hosts]
        assert labels and len(set(labels)) == len(labels)
        for one in found.hosts:
            assert not one.name.startswith("-") and "/" not in one.label
            assert one.label not in ("", ".", "..")
            assert all(path.startswith("/") and path.isprintable() for path in one.recordings)


def fleet_answer(data: bytes) -> None:
    """A machine's answer: its files stay below the directory, and a rule for one of its disks sets
    only the scheduler."""
    top = scratch() / "fleet"
    try:
        with refusing(data):
            found = disks.machine("fuzz", answer.parse(data, "fuzz"), "", top)
            load = (DiskLoad("x", "x", workload="x"),)
            for group in groups([Member(one, load) for one in found.disks]):
                made = rules.make(group, "bfq", rules.Everywhere({"fuzz": found}))
                text = "" if made is None else rules.text([made], ())
                if made is not None:
                    told = rules.overruled(made, group, {"fuzz": found})
                    assert all(one.isprintable() for one in told), told
                for line in lines_of(Path("fuzz.rules"), text):
                    assert not line.error, line.error
                    changed = {(t.key, t.name) for t in line.tokens if not t.is_match}
                    assert changed <= _SET, changed
        resolved = top.resolve()
        assert all(path.resolve().is_relative_to(resolved) for path in top.rglob("*"))
    finally:
        shutil.rmtree(top, ignore_errors=True)
