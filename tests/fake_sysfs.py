"""A fake machine: a directory of ordinary files, laid out like sysfs, /dev and others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from blklab.host.roots import Roots

_QUEUE = {
    "scheduler": "none [mq-deadline] kyber bfq",
    "nr_requests": "64",
    "read_ahead_kb": "128",
    "rotational": "1",
    "wbt_lat_usec": "75000",
    "max_sectors_kb": "1280",
    "nomerges": "0",
    "logical_block_size": "512",
    "iosched/fifo_batch": "16",
    "iosched/read_expire": "500",
}


@dataclass
class Machine:
    """The machine below `top`; `roots` is the program's argument."""

    top: Path

    @property
    def roots(self) -> Roots:
        return Roots.under(self.top)

    def write(self, path: str, text: str) -> Path:
        """A file below the top, with the line end that the kernel gives."""
        place = self.top / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n", errors="surrogateescape")
        return place

    def link(self, path: str, target: Path) -> None:
        place = self.top / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def disk(
        self,
        name: str,
        *,
        number: str = "8:0",
        bus: str = "pci0000:00/0000:00:1f.2",
        queue: Mapping[str, str | None] | None = None,
        files: Mapping[str, str] | None = None,
        sectors: int = 2048,
    ) -> Path:
        """A whole disk with its node; a `queue` value of None leaves the attribute out."""
        where = f"sys/devices/{bus}/block/{name}"
        values = {"size": str(sectors), "dev": number, "diskseq": "1", "ro": "0", "removable": "0"}
        for key, text in (values | dict(files or {})).items():
            self.write(f"{where}/{key}", text)
        for key, value in (_QUEUE | dict(queue or {})).items():
            if value is not None:
                self.write(f"{where}/queue/{key}", value)
        self._known(name, number, self.top / where, "disk")
        self.link(f"sys/block/{name}", self.top / where)
        return self.top / where

    def partition(self, disk: Path, name: str, *, number: str, sectors: int = 1024) -> Path:
        where = f"{disk.relative_to(self.top)}/{name}"
        start = str(2048)
        for key, text in {"partition": "1", "size": str(sectors), "start": start}.items():
            self.write(f"{where}/{key}", text)
        self.write(f"{where}/dev", number)
        self._known(name, number, self.top / where, "partition")
        return self.top / where

    def _known(self, name: str, number: str, directory: Path, kind: str) -> None:
        major, minor = number.split(":")
        (directory / "uevent").write_text(
            f"MAJOR={major}\nMINOR={minor}\nDEVNAME={name.replace('!', '/')}\nDEVTYPE={kind}\n"
        )
        (directory / "subsystem").symlink_to(self.top / "sys/class/block")
        self.link(f"sys/class/block/{name}", directory)
        self.link(f"sys/dev/block/{number}", directory)
        # A fake node is a file: a real one needs root.
        self.write(f"dev/{name.replace('!', '/')}", "")
