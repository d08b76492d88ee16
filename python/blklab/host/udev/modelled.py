"""A disk that is not there, as udev would see it: a small tree of sysfs files in a directory.

With it the rules of a file are judged for a disk model. Beside what the kernel says of a disk, the
properties are known that udev's own rules import before any rule for schedulers
(``60-block.rules``, ``60-persistent-storage.rules``): ``ID_BUS``, ``ID_MODEL``, ``ID_TYPE``,
``ID_ATA_ROTATION_RATE_RPM``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from blklab.host.roots import Roots

_SCSI = "devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0"
_NVME = "devices/pci0000:00/0000:01:00.0/nvme/nvme0"
_MAX_SECTORS_KB = 4096
"""The default of Linux since 6.17."""


@dataclass(frozen=True)
class Facts:
    """What a rule may ask about a disk."""

    model: str
    transport: str
    """``sata``, ``sas`` or ``nvme``."""
    rotational: bool
    sectors: int
    hw_queues: int
    default: str
    """The scheduler that the kernel chooses."""
    rpm: int = 0
    schedulers: tuple[str, ...] = ("none", "mq-deadline", "kyber", "bfq")

    @property
    def name(self) -> str:
        """The kernel's name."""
        return "nvme0n1" if self.transport == "nvme" else "sda"


def written(facts: Facts, top: Path) -> tuple[Path, Roots]:
    """Write its files below `top`, which is empty; returns its directory in sysfs and the roots to
    look at. OSError."""
    roots = Roots.under(top)
    parent = roots.sys / (_NVME if facts.transport == "nvme" else _SCSI)
    disk = parent / ("" if facts.transport == "nvme" else "block") / facts.name
    number = "259:0" if facts.transport == "nvme" else "8:0"
    active = [f"[{name}]" if name == facts.default else name for name in facts.schedulers]
    files = {
        "dev": number,
        "size": str(facts.sectors),
        "removable": "0",
        "ro": "0",
        "diskseq": "1",
        "uevent": f"MAJOR={number.partition(':')[0]}\nMINOR=0\nDEVNAME={facts.name}\nDEVTYPE=disk",
        "queue/rotational": str(int(facts.rotational)),
        "queue/scheduler": " ".join(active),
        "queue/zoned": "none",
        "queue/logical_block_size": "512",
        "queue/nr_requests": "64" if facts.hw_queues == 1 else "1023",
        "queue/read_ahead_kb": str(2 * _MAX_SECTORS_KB if facts.rotational else 128),
        "queue/max_sectors_kb": str(_MAX_SECTORS_KB),
        "queue/wbt_lat_usec": "75000" if facts.rotational else "2000",
    }
    for queue in range(facts.hw_queues):
        (disk / "mq" / str(queue)).mkdir(parents=True)
    for name, text in files.items():
        _write(disk / name, text)
    _write(parent / "model", facts.model)
    _write(parent / "uevent", "")
    (disk / "subsystem").symlink_to(roots.sys / "class/block")
    (parent / "subsystem").symlink_to(
        roots.sys / ("class/nvme" if facts.transport == "nvme" else "bus/scsi")
    )
    (parent / "driver").symlink_to(
        roots.sys / ("bus/pci/drivers/nvme" if facts.transport == "nvme" else "bus/scsi/drivers/sd")
    )
    _write(roots.run / "udev/data" / f"b{number}", _database(facts))
    return disk, roots


def _database(facts: Facts) -> str:
    properties = {"ID_TYPE": "disk", "ID_MODEL": facts.model.replace(" ", "_")}
    if facts.transport == "sata":
        properties |= {"ID_BUS": "ata", "ID_ATA": "1"}
        properties["ID_ATA_ROTATION_RATE_RPM"] = str(facts.rpm if facts.rotational else 0)
    elif facts.transport == "sas":
        properties |= {"ID_BUS": "scsi", "ID_SCSI": "1"}
    return "\n".join(f"E:{name}={value}" for name, value in properties.items())


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
