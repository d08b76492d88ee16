"""A real disk and the machine in words and figures, for the report and the results."""

from __future__ import annotations

import os
import platform

from blklab.base.text import shown
from blklab.base.units import size_text
from blklab.domain.conditions import LiveRigData
from blklab.domain.setup import DiskData, ParameterData
from blklab.host.devices import device
from blklab.host.devices.queue import IOSCHED
from blklab.host.machine import cpu_model, fio_version, memory_bytes
from blklab.host.roots import HERE, Roots
from blklab.rigs.live.danger import full_id
from blklab.rigs.live.surroundings import governors
from blklab.rigs.live.target import Target


def target(found: Target, roots: Roots = HERE) -> DiskData:
    """The result of a rig's ``describe_disk``: the limits of the first disk below, and the settings
    of all of them."""
    around = device.Surroundings.read(roots)
    disks = [device.describe(name, around) for name in found.disks]
    first = disks[0]
    told = first.identity
    size = sum(disk.size_bytes for disk in disks)
    names = ", ".join(shown(disk.name) for disk in disks)
    what = f"on {names}" if found.device is None else names
    return {
        "name": shown(" ".join(part for part in (told.vendor, told.model) if part) if told else "")
        or shown(first.name),
        "summary": f"{what}: {size_text(size)}, {'' if first.rotational else 'not '}rotating",
        "kind": "hdd" if first.rotational else "ssd",
        "transport": shown(told.transport) if told else "",
        "limits": {
            "capacity_bytes": size,
            "rotational": bool(first.rotational),
            "hw_queues": first.hardware_queues,
            "queue_depth": first.queue_depth,
            "volatile_write_cache": first.attributes.get("write_cache") == "write back",
        },
        "parameters": [row for disk in disks for row in _settings(disk, roots)],
    }


def _settings(disk: device.Device, roots: Roots) -> list[ParameterData]:
    """All original settings of its queue."""
    tunables = {IOSCHED + name: value for name, value in disk.tunables.items()}
    identity = {"id": full_id(disk.name, roots)}
    identity |= {"firmware": disk.identity.firmware} if disk.identity else {}
    return [
        {
            "key": f"{shown(disk.name)}: {name}",
            "value": shown(value),
            "unit": "",
            "help": "",
            "source": "as it was before",
        }
        for name, value in (identity | disk.attributes | tunables).items()
    ]


def machine(cache: str, roots: Roots = HERE) -> LiveRigData:
    """The result of a rig's ``describe``."""
    cpus = len(os.sched_getaffinity(0))
    memory = memory_bytes()
    kernel = platform.release()
    version = shown(fio_version() or "fio of unknown version")
    deciding = governors(roots)
    text = f"Linux {kernel} on {cpus} CPUs, {size_text(memory)} of memory; {version}, cache {cache}"
    return {
        "text": text + (f"; CPU frequency: {', '.join(deciding)}" if deciding else ""),
        "linux": kernel,
        "cpus": cpus,
        "cpu": shown(cpu_model(roots.proc) or platform.machine()),
        "memory_bytes": memory,
        "governors": deciding,
        "fio": version,
        "cache": cache,
    }
