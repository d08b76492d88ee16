"""A real disk and the machine in words and figures, for the report and the results."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from blklab.devices import queue
from blklab.devices.queue import IOSCHED
from blklab.devices.roots import HERE, Roots
from blklab.devices.text import shown
from blklab.live.danger import full_id
from blklab.live.surroundings import governors
from blklab.live.target import Target
from blklab.units import size_text

_SECTOR_BYTES = 512


def target(found: Target, roots: Roots = HERE) -> dict[str, Any]:
    """As ``describe_disk`` of a rig has it; the limits of the first disk below, the settings of
    all of them."""
    disks = [queue.named(name, roots) for name in found.disks]
    first = disks[0]
    attributes = first.attributes()
    model = " ".join(_text(roots, first.name, "device/model").split()) or first.name
    size = sum(int(_text(roots, disk.name, "size") or 0) * _SECTOR_BYTES for disk in disks)
    rotational = attributes.get("rotational") == "1"
    names = ", ".join(shown(disk.name) for disk in disks)
    what = f"on {names}" if found.device is None else names
    return {
        "name": shown(model),
        "summary": f"{what}: {size_text(size)}, {'rotating' if rotational else 'not rotating'}",
        "kind": "hdd" if rotational else "ssd",
        "transport": shown(_text(roots, first.name, "device/transport")),
        "limits": {
            "capacity_bytes": size,
            "rotational": rotational,
            "hw_queues": len(list((first.disk / "mq").glob("[0-9]*"))),
            "queue_depth": int(_text(roots, first.name, "device/queue_depth") or 0),
            "logical_block_bytes": int(attributes.get("logical_block_size", "0")),
            "physical_block_bytes": int(attributes.get("physical_block_size", "0")),
            "volatile_write_cache": attributes.get("write_cache") == "write back",
        },
        "parameters": [
            {"key": f"{disk.name}: {name}", "value": shown(value), "unit": "", "help": "",
             "source": "as it was before"}
            for disk in disks
            for name, value in
            [("id", full_id(disk.name, roots)),
             *disk.attributes().items(),
             *((IOSCHED + name, value) for name, value in disk.tunables().items())]
        ],
    }  # fmt: skip


def machine(cache: str, roots: Roots = HERE) -> dict[str, Any]:
    """As ``describe`` of a rig has it."""
    cpus = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    kernel = platform.release()
    fio = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=False)
    version = shown(fio.stdout.strip())
    deciding = governors(roots)
    text = f"Linux {kernel} on {cpus} CPUs, {size_text(memory)} of memory; {version}, cache {cache}"
    return {
        "text": text + (f"; CPU frequency: {', '.join(deciding)}" if deciding else ""),
        "kernel": kernel,
        "cpus": cpus,
        "cpu": _cpu(roots),
        "memory_bytes": memory,
        "governors": deciding,
        "fio": version,
        "cache": cache,
    }


def _cpu(roots: Roots) -> str:
    for line in (roots.proc / "cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return shown(line.partition(":")[2].strip())
    return platform.machine()


def _text(roots: Roots, disk: str, attribute: str) -> str:
    try:
        path: Path = roots.sys / "block" / disk / attribute
        return path.read_bytes().decode(errors="backslashreplace").strip()
    except OSError:
        return ""
