"""Invented machines below a directory, and an ``ssh`` that runs the sent script on them.

``python -m tests.fleet_machines`` makes the answers in ``examples/fleet`` again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_IDENTIFY = 60
WD = "WDC WD10EZRX-00A8LB0"
BFQ: Mapping[str, Any] = {
    "scheduler": "none mq-deadline kyber [bfq]",
    "tunables": {"slice_idle": "8", "slice_idle_us": "8000", "low_latency": "1"},
}
_SSH = """#!{python}
import os, subprocess, sys, time
from pathlib import Path

fleet = Path({fleet!r})
words = sys.argv[1:]
host = words[words.index("--") + 1].rpartition("@")[2]
if not (fleet / host).exists():
    print(f"ssh: Could not resolve hostname {{host}}: Name or service not known", file=sys.stderr)
    sys.exit(255)
script = sys.stdin.read()
with (fleet / "log").open("a") as log:
    log.write(f"{{host}} {{'cat' if 'exec cat' in script else 'answer'}}\\n")
top = fleet / host
mode = (top / "mode").read_text().strip() if (top / "mode").exists() else ""
kind, _, rest = mode.partition(" ")
is_copy = "exec cat" in script
if kind == "refuse":
    sys.exit(print(f"Warning: x\\n{{rest}}", file=sys.stderr) or 255)
if kind == "hang" or (kind == "hang-copy" and is_copy):
    if is_copy:
        sys.stdout.buffer.write(b"ARROW1")
        sys.stdout.flush()
    (fleet / "hangs").touch()
    time.sleep(600)
if kind == "say":
    print(rest)
    sys.exit(0)
if kind == "flood":
    while True:
        sys.stdout.buffer.write(b"x" * 65536)
script = script.replace("sys=/sys\\n", f"sys={{top}}/sys\\n", 1)
script = script.replace("proc=/proc\\n", f"proc={{top}}/proc\\n", 1)
script = script.replace("root=\\n", f"root={{top}}\\n", 1)
script = script.replace(" '/", f" '{{top}}/").replace(" /var/", f" {{top}}/var/")
if kind == "cut-copy" and is_copy:
    script = script.replace("exec cat --", "exec head -c 1000 --")
if kind == "greet":
    print("Welcome to", host, flush=True)
if kind == "cut":
    script = script.replace("printf 'end", "exit 0; printf 'end")
trace = ["strace", "-f", "-A", "-o", str(fleet / "calls"), "-e", "trace=%file"]
path = f"{{top}}/bin:{{os.environ['PATH']}}"
command = [*(trace if kind == "trace" else []), "/bin/sh", "-s"]
done = subprocess.run(command, input=script.encode(), env=os.environ | {{"PATH": path}})
if kind == "greet":
    print("Bye from", host)
sys.exit(done.returncode)
"""
_UDEVADM = """#!/bin/sh
for last; do :; done
[ -f "{top}/udev/${{last##*=}}" ] || exec cat "{top}/udev/${{last##*/}}"
"""


@dataclass
class FakeFleet:
    """All machines; `top` has a directory for each."""

    top: Path

    def __post_init__(self) -> None:
        self.top.mkdir(parents=True, exist_ok=True)
        program = self.top / "bin/ssh"
        program.parent.mkdir()
        program.write_text(_SSH.format(python=sys.executable, fleet=str(self.top)))
        program.chmod(0o755)

    @property
    def path(self) -> str:
        """PATH with this ssh."""
        return f"{self.top / 'bin'}{os.pathsep}{os.environ['PATH']}"

    def machine(self, name: str) -> FakeMachine:
        """The machine that answers to that name; a new one has no disks."""
        return FakeMachine(self.top / name)

    def mode(self, name: str, mode: str) -> None:
        """How the connection to a machine goes wrong; empty: it does not."""
        place = self.top / name / "mode"
        place.parent.mkdir(exist_ok=True)
        place.write_text(mode)

    def calls(self) -> list[str]:
        """Each call of ssh: host, and ``answer`` or ``cat``."""
        log = self.top / "log"
        return log.read_text().splitlines() if log.exists() else []


@dataclass
class FakeMachine:
    """Its files are below `top`."""

    top: Path

    def __post_init__(self) -> None:
        if self.top.exists():
            return
        self.write("proc/sys/kernel/hostname", self.top.name)
        self.write("proc/sys/kernel/osrelease", "6.12.41+deb13-amd64")
        (self.top / "sys/block").mkdir(parents=True)
        program = self.top / "bin/udevadm"
        program.parent.mkdir()
        program.write_text(_UDEVADM.format(top=self.top))
        program.chmod(0o755)
        (self.top / "udev").mkdir()

    def write(self, path: str, text: str) -> Path:
        """A file below the top, with the line end that the kernel gives."""
        place = self.top / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")
        return place

    def _link(self, path: str, target: str) -> None:
        place = self.top / path
        place.parent.mkdir(parents=True, exist_ok=True)
        (self.top / target).mkdir(parents=True, exist_ok=True)
        place.symlink_to(self.top / target)

    def _disk(
        self, name: str, parent: str, below: str, bus: str, driver: str, queue: Mapping[str, str]
    ) -> str:
        where = f"{parent}/{below}{name}"
        index = len(list((self.top / "sys/block").iterdir()))
        number = f"8:{16 * index}" if name.startswith("sd") else f"259:{index}"
        files = {
            "dev": number,
            "ro": "0",
            "removable": "0",
            "diskseq": str(index + 1),
            "uevent": f"MAJOR={number.partition(':')[0]}\nDEVNAME={name}\nDEVTYPE=disk",
            "queue/read_ahead_kb": "128",
            "queue/max_sectors_kb": "1280",
        }
        for key, text in (files | {f"queue/{key}": text for key, text in queue.items()}).items():
            self.write(f"{where}/{key}", text)
        self.write(f"{parent}/uevent", f"DRIVER={driver}")
        self._link(f"{where}/device", parent)
        self._link(f"{where}/subsystem", "sys/class/block")
        self._link(f"{parent}/subsystem", f"sys/bus/{bus}")
        self._link(f"{parent}/driver", f"sys/bus/{bus}/drivers/{driver}")
        self._link(f"sys/block/{name}", where)
        return where

    def sata(
        self,
        name: str,
        model: str,
        serial: str,
        *,
        rotational: bool = True,
        scheduler: str = "none [mq-deadline] kyber bfq",
        sectors: int = 7_814_037_168,
        tunables: Mapping[str, str] | None = None,
    ) -> None:
        """A SATA disk, whose SCSI name has 16 characters."""
        unit = ord(name[-1]) - ord("a")
        parent = (
            f"sys/devices/pci0000:00/0000:00:1f.2/ata{unit + 1}/host{unit}/target{unit}:0:0/"
            f"{unit}:0:0:0"
        )
        queue = {"rotational": str(int(rotational)), "nr_requests": "64", "scheduler": scheduler}
        usual = {
            "read_expire": "500", "write_expire": "5000", "writes_starved": "2",
            "front_merges": "1", "fifo_batch": "16", "async_depth": "48",
            "prio_aging_expire": "10000",
        }  # fmt: skip
        active = scheduler.partition("[")[2].partition("]")[0]
        values = (usual if active == "mq-deadline" else {}) | dict(tunables or {})
        queue |= {f"iosched/{key}": value for key, value in values.items()}
        where = self._disk(name, parent, "block/", "scsi", "sd", queue)
        self.write(f"{where}/size", str(sectors))
        self.write(f"{where}/mq/0/nr_tags", "32")
        self.write(f"{parent}/model", f"{model[:16]:16}")
        self.write(f"{parent}/vendor", "ATA     ")
        self.write(f"{parent}/rev", "CC52")
        self.write(f"{parent}/wwid", f"t10.ATA     {model:40}{serial:20}")
        self.write(f"{parent}/queue_depth", "32")
        page = bytearray(572)
        page[_IDENTIFY + 46 : _IDENTIFY + 54] = _swapped("CC52", 8)
        page[_IDENTIFY + 54 : _IDENTIFY + 94] = _swapped(model, 40)
        (self.top / parent / "vpd_pg89").write_bytes(page)
        udev = {
            "DEVNAME": f"/dev/{name}",
            "ID_BUS": "ata",
            "ID_TYPE": "disk",
            "ID_MODEL": model.replace(" ", "_"),
            "ID_SERIAL": f"{model.replace(' ', '_')}_{serial}",
            "ID_FS_UUID": "secret",
        }
        self.write(f"udev/{name}", "\n".join(f"{key}={value}" for key, value in udev.items()))

    def nvme(
        self,
        name: str,
        model: str,
        serial: str,
        *,
        queues: int = 8,
        scheduler: str = "[none] mq-deadline kyber bfq",
        sectors: int = 500_118_192,
    ) -> None:
        """An NVMe disk."""
        parent = f"sys/devices/pci0000:00/0000:01:00.0/nvme/{name.rpartition('n')[0]}"
        queue = {"rotational": "0", "nr_requests": "1023", "scheduler": scheduler}
        where = self._disk(name, parent, "", "nvme", "nvme", queue)
        self.write(f"{where}/size", str(sectors))
        self.write(f"{where}/wwid", f"eui.{serial}")
        for number in range(queues):
            self.write(f"{where}/mq/{number}/nr_tags", "1023")
        self.write(f"{parent}/model", f"{model:40}")
        self.write(f"{parent}/serial", f"{serial:20}")
        self.write(f"{parent}/transport", "pcie")
        udev = {"ID_MODEL": model.replace(" ", "_"), "ID_SERIAL": f"{model}_{serial}"}
        self.write(f"udev/{name}", "\n".join(f"{key}={value}" for key, value in udev.items()))


def _swapped(text: str, size: int) -> bytes:
    """As IDENTIFY DEVICE has it: the two characters of each word swapped."""
    padded = f"{text:{size}}".encode()
    return b"".join(padded[at : at + 2][::-1] for at in range(0, size, 2))


def example(top: Path) -> FakeFleet:
    """The machines of ``examples/fleet``."""
    fleet = FakeFleet(top)
    for number, name in enumerate(("mail1", "mail2", "backup1", "files1"), 1):
        fleet.machine(name).sata("sda", WD, f"WD-WCC1U000000{number}")
    fleet.machine("backup2").sata("sda", WD, "WD-WCC1U0000005", **BFQ)
    web = fleet.machine("web1")
    web.nvme("nvme0n1", "Samsung SSD 950 PRO 256GB", "0025385000000001")
    return fleet


_RECORDINGS: Mapping[str, tuple[str, str, int]] = {
    "mail1": ("readers-vs-writer", "mq-deadline", 1),
    "mail2": ("readers-vs-writer", "mq-deadline", 2),
}


def make_example(out: Path) -> None:
    """Collect from the invented machines into `out`, with simulated recordings."""
    import blklab

    with tempfile.TemporaryDirectory() as directory:
        fleet = example(Path(directory) / "fleet")
        for host, (workload, scheduler, seed) in _RECORDINGS.items():
            place = fleet.top / host / "var/tmp/day.rec"
            place.parent.mkdir(parents=True)
            blklab.record_run(
                f"{workload}:runtime=20",
                place,
                disk="wd10ezrx",
                scheduler=scheduler,
                seed=seed,
            )
        command = [
            str(Path(sys.executable).with_name("blklab")),
            "fleet",
            str(ROOT / "examples/fleet.toml"),
        ]
        shutil.rmtree(out, ignore_errors=True)
        subprocess.run(
            [*command, "--collect", str(out)], env=os.environ | {"PATH": fleet.path}, check=False
        )


if __name__ == "__main__":
    make_example(ROOT / "examples/fleet")
