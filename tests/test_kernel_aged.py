"""File systems with a past: their free space is in pieces between old files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from blklab.errors import InputError
from blklab.programs.file_system import FileSystem, parse
from blklab.rigs.kernel.file_systems import to_order
from blklab.rigs.kernel.program_load import ProgramLoad
from tests import real_kernel
from tests.test_kernel_programs import experiment

BLKLAB = str(Path(sys.executable).with_name("blklab"))
DISK = "su800-128gb:capacity_sectors=33554432"
"""16 GiB."""
LOOK = (
    "df --output=pcent,iused /mnt | tail -1; "
    "dd if=/dev/zero of=/mnt/new bs=1M count=256 conv=fsync status=none; "
    "/usr/sbin/filefrag -v /mnt/new; ls /mnt/old-*/* | wc -l"
)


def looked(kernel: str, mkfs: str, *options: str) -> tuple[int, list[tuple[int, int]], int]:
    """Per cent of the space in use, first block and length of each piece of a new file of 256 MiB,
    and the number of old files."""
    done = subprocess.run(
        [BLKLAB, "kernel", "run", f"--kernel={kernel}", f"--disk={DISK}", f"--mkfs={mkfs}",
         *options, "--", "sh", "-c", LOOK],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    row = re.compile(r" *\d+: *\d+\.\. *\d+: *(\d+)\.\. *\d+: *(\d+):")
    pieces = [(int(m[1]), int(m[2])) for line in lines if (m := row.match(line))]
    assert sum(length for _, length in pieces) == 256 << 8
    return int(lines[0].split()[0].rstrip("%")), pieces, int(lines[-1])


def test_a_new_file_lies_in_pieces_between_old_files_and_a_seed_decides_where(kernel: str) -> None:
    percent, new, old = looked(kernel, "ext4")
    assert (percent, old) == (1, 0) and len(new) <= 4
    percent, pieces, old = looked(kernel, "ext4:aged=80")
    # df counts without what is reserved for root, a twentieth.
    assert 80 / 0.96 <= percent <= 80 / 0.94 + 1 and old > 1000
    assert len(pieces) > 4 * len(new)
    assert looked(kernel, "ext4:aged=80") == (percent, pieces, old)
    assert looked(kernel, "ext4:aged=80", "--seed=2")[1] != pieces
    assert looked(kernel, "ext4:aged=50")[0] == pytest.approx(percent - 32, abs=2)


@pytest.mark.parametrize("kind", ["xfs", "btrfs"])
def test_other_file_systems_age_too(kind: str) -> None:
    with_all = real_kernel.with_file_systems()
    percent, pieces, old = looked(with_all, f"{kind}:aged=60")
    assert 55 <= percent <= 66 and old > 1000
    assert len(pieces) > 2


def test_it_is_part_of_the_order_with_the_seed_of_the_run() -> None:
    found = parse("ext4:aged=80%,noatime,-b=4096")
    assert found == FileSystem(
        "ext4", ("-b", "4096"), ("noatime",), 80, "ext4:aged=80%,noatime,-b=4096"
    )
    assert to_order(found, Path("/mnt"), 7)["aged"] == {"percent": 80, "seed": 7}
    assert "aged" not in to_order(parse("ext4"), Path("/mnt"), 7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ext4:aged", "--fs: ext4:aged: expected aged=80, the space that old files have, 10 to 90"),
        ("ext4:aged=95", "expected aged=80"),
        ("ext4:aged=5", "expected aged=80"),
        ("ext4:aged=half", "expected aged=80"),
        ("ext4:aged=80.5", "expected aged=80"),
        ("f2fs:aged=50", "f2fs has an entry for each block that a file has"),
    ],
)
def test_a_wrong_age_is_one_line(text: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_program_has_to_fit_beside_the_old_files() -> None:
    room = ProgramLoad.of(experiment("record-write")).room_bytes
    small = f"wd10ezrx:capacity_sectors={2 * room // 4096 * 8}"
    ProgramLoad.of(experiment("record-write", fs="ext4:aged=40", disk=small))
    with pytest.raises(InputError, match="may need 1 GiB; its old files leave "):
        ProgramLoad.of(experiment("record-write", fs="ext4:aged=60", disk=small))
