"""How `blklab fleet` grows with its machines: ``python benches/fleet.py [--machines 500]``.

The machines are invented, four disks each, and their ``ssh`` is a script: what remains is blklab's
own work, and the sent script's. Making and removing their files takes longer, and is not counted.

* *collect*: all machines answer, 16 at a time.
* *describe*: their answers are read, and their disks described.
* *rule*: the rule of a third of the disks of one model, told apart by the machines' names.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import blklab
from blklab.fleet import collect, disks, rules
from blklab.fleet.groups import DiskLoad, Member, groups

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.fleet_machines import WD, FakeFleet

_LOADS = 3


def made(top: Path, count: int) -> tuple[FakeFleet, list[str]]:
    """So many machines."""
    fleet = FakeFleet(top / "fleet")
    names = [f"h{number:04}" for number in range(count)]
    for number, name in enumerate(names):
        machine = fleet.machine(name)
        for letter in "abc":
            machine.sata(f"sd{letter}", WD, f"WD-{letter}{number:07}")
        machine.nvme("nvme0n1", "Samsung SSD 950 PRO 256GB", f"{number:016}", queues=32)
    return fleet, names


def main() -> None:
    """Prints the seconds of each step, and the load of the machine meanwhile."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--machines", type=int, default=500)
    count = parser.parse_args().machines
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        fleet, names = made(top, count)
        os.environ["PATH"] = fleet.path
        (top / "hosts.toml").write_text(f"[[host]]\nnames = {names}\nworkloads = ['randread']\n")
        begun_s = time.monotonic()
        every = blklab.collect_fleet(top / "hosts.toml", top / "kept")
        assert all(one.reached for one in every)
        collected_s = time.monotonic()
        machines = {}
        for name in names:
            answer, when = collect.read_answer(top / "kept" / name)
            machines[name] = disks.machine(name, answer, when, top / "trees" / name)
        described_s = time.monotonic()
        members = [
            Member(disk, (DiskLoad(load, load, workload=load),))
            for number, machine in enumerate(machines.values())
            for disk in machine.disks
            for load in (str(number % _LOADS),)
        ]
        found = groups(members)
        begun_rule_s = time.monotonic()
        everywhere = rules.Everywhere(machines)
        assert rules.make(found[0], "bfq", everywhere) is not None
        ended_s = time.monotonic()
    print(f"{count} machines, {len(members)} disks, load average {os.getloadavg()[0]:.1f}")
    print(f"collect   {collected_s - begun_s:6.1f} s")
    print(f"describe  {described_s - collected_s:6.1f} s")
    print(f"rule      {ended_s - begun_rule_s:6.1f} s, of {len(found[0].members)} disks")


if __name__ == "__main__":
    main()
