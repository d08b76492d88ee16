"""Rules of all kinds, judged by us and by udev itself on a real device, at random.

udev runs in a mount namespace of its own, with its own /dev, /run and rules, so that it leaves
nothing behind; it only writes read_ahead_kb of a loop device that is the test's.
"""

from __future__ import annotations

import contextlib
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from blklab.host.devices import queue
from blklab.host.roots import HERE
from blklab.host.udev import judge
from tests import loop_device

_LINES = 250
_ALONE = """\
mount -t tmpfs tmpfs /run && mount --bind "$1/empty" /usr/lib/udev/rules.d &&
mount --bind "$1/etc/udev/rules.d" /etc/udev/rules.d && mount -t tmpfs tmpfs /dev &&
mknod /dev/null c 1 3 && exec udevadm test --action="$2" "/sys/block/$3"
"""


def require() -> None:
    loop_device.require()
    for program in ("udevadm", "unshare"):
        if not shutil.which(program):
            pytest.skip(f"needs {program}: apt-get install udev util-linux")
    if not Path("/etc/udev/rules.d").is_dir():
        pytest.skip("needs /etc/udev/rules.d")
    done = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True)
    if done.returncode:
        pytest.skip("needs a mount namespace, which this container refuses")


@contextlib.contextmanager
def restored(name: str) -> Iterator[None]:
    """A loop device keeps its read-ahead when its file is detached."""
    disk = queue.named(name)
    before = disk.settings()
    yield
    disk.write_all(before)


def by_udev(top: Path, action: str, name: str) -> list[str]:
    """udev's writes, in order."""
    (top / "empty").mkdir(exist_ok=True)
    command = ["unshare", "-m", "sh", "-c", _ALONE, "sh", str(top), action, name]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    written = re.findall(r"ATTR '.*/queue/read_ahead_kb' writing '(\d+)'", done.stderr)
    assert "DEVPATH=" in done.stdout, done.stderr
    return written


def one_match(draw: random.Random, name: str, known: list[str]) -> str:
    operator = draw.choice(["==", "==", "!="])
    words = [
        name,
        "loop*",
        "loop[0-9]",
        "loop[!0-9]*",
        "sd*|loop*",
        "sd*",
        "*",
        "",
        "l?op*",
        "nvme*",
    ]
    words += [f"{name[:-1]}?", r"loop\*", f"{name}|sda", "loop[0-9]*|", "[!s]*"]
    key = draw.choice(["KERNEL", "KERNEL", "SUBSYSTEM", "ACTION", "ENV", "ATTR", "ATTR", "ATTRS",
                       "KERNELS", "SUBSYSTEMS", "TEST", "DEVPATH", "DRIVER"])  # fmt: skip
    if key == "TEST":
        path = draw.choice(
            ["queue/scheduler", "absent", "/sys/block/%k/queue", "%S%p/ro", "q*", "*/scheduler"]
        )
        return f'TEST{operator}"{path}"'
    if key in ("SUBSYSTEM", "SUBSYSTEMS"):
        return f'{key}{operator}"{draw.choice(["block", "bl*", "scsi|block", "subsystem", "x"])}"'
    if key == "ACTION":
        return f'ACTION{operator}"{draw.choice(["add", "change", "add|change", "remove"])}"'
    if key == "DEVPATH":
        return f'DEVPATH{operator}"{draw.choice(["*/virtual/*", "/devices/pci*", "/block/*"])}"'
    if key == "ENV":
        which = draw.choice([*known, "DEVTYPE", "MAJOR", "ABSENT", ".HIDDEN", "DEVNAME"])
        value = draw.choice(["disk", "partition", "7", "?*", "", "1", "one", "[0-9]", "/dev/l*"])
        return f'ENV{{{which}}}{operator}"{value}"'
    if key in ("ATTR", "ATTRS"):
        which = draw.choice(["queue/rotational", "size", "removable", "absent", "queue/write_cache",
                             "dev", "queue/scheduler", "ro", "loop/autoclear"])  # fmt: skip
        value = draw.choice(["0", "1", "[01]", "write *", "7:*", "*bfq*", "32768", "", "?*", "0 "])
        return f'{key}{{{which}}}{operator}"{value}"'
    return f'{key}{operator}"{draw.choice(words)}"'


def rules(draw: random.Random, name: str) -> str:
    lines, known, jumps = [], ["MINE"], set[int]()
    for number in range(_LINES):
        matches = [one_match(draw, name, known) for _ in range(draw.randint(0, 2))]
        done = [f'ATTR{{queue/read_ahead_kb}}="{4 * number + 4}"']
        if draw.random() < 0.2:
            known.append(f"P{number}")
            value = draw.choice(["1", "one", "$kernel", "%k", "$attr{size}", "$$", "a%%b", "%n"])
            done.append(f'ENV{{P{number}}}{draw.choice(["=", "="])}"{value}"')
        if draw.random() < 0.1:
            jumps.add(number + 3)
            done.append(f'GOTO="l{number + 3}"')
        if number % 10 == 0:
            lines.append("# a comment, \\")
        joint = draw.choice([", ", ",", " , \\\n  ", ", \\\n# in between\n\t"])
        if number in jumps:
            lines.append(f'LABEL="l{number}"')
        lines.append(joint.join([*matches, *done]))
        if number % 17 == 0:
            lines.append(
                draw.choice(['KERNEL=="x', "nonsense", 'NOKEY=="1", ENV{X}="1"', 'ATTR="x'])
            )
    return "\n".join([*lines, *(f'LABEL="l{number}"' for number in range(_LINES, _LINES + 3))])


@pytest.mark.parametrize("seed", range(8))
def test_judged_as_udev_does_it(tmp_path: Path, seed: int) -> None:
    require()
    draw = random.Random(seed)
    etc = tmp_path / "etc/udev/rules.d"
    etc.mkdir(parents=True)
    with loop_device.attached(tmp_path) as name, restored(name):
        (etc / "50-some.rules").write_text(rules(draw, name) + "\n")
        (etc / "40-first.rules").write_text(rules(draw, name) + "\n")
        nowhere = tmp_path / "nowhere"
        roots = replace(HERE, etc=tmp_path / "etc", run=nowhere, usr=nowhere, lib=nowhere)
        for action in judge.ACTIONS:
            ours = judge.effects(Path("/sys/block") / name, action, roots)
            assert all(effect.sure for effect in ours), [e for e in ours if not e.sure][:3]
            assert [effect.value for effect in ours] == by_udev(tmp_path, action, name)
            assert len(ours) > 20
