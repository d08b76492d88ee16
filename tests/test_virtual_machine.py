"""Real udev, modules, disks that come and go, a reset: in a virtual machine with Debian's kernel.

One machine for all tests here, switched on twice: an emulated computer takes its time.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests import virtual_machine
from tests.virtual_machine import Ended, Machine

pytestmark = pytest.mark.skipif(
    virtual_machine.missing() is not None, reason=str(virtual_machine.missing())
)

LINUX_CHOICE = "mq-deadline"
"""A disk's scheduler if nothing sets one: with one CPU it has one hardware queue."""
BLKLAB = Path(sys.executable).parent / "blklab"
TESTS = Path(__file__).parent
_LOADED = (
    *("blklab.api.apply", "blklab.api.machine", "blklab.api.simulate", "blklab.cli.apply"),
    *("blklab.cli.devices", "blklab.cli.fio", "blklab.experiment.describe"),
    *("blklab.rigs.live.rig", "blklab.rigs.sim", "blklab.settings.words", "blklab.store.single"),
    *("elftools.elf.elffile", "pydantic.plugin._loader", "typer._adapters"),
)
"""What the forked commands use; a fork loads by itself what is missing."""

_WORDS = f"""
executable={BLKLAB}
blklab() {{ $executable "$@"; }}
soon() {{ for _ in $(seq 600); do "$@" && return; sleep 0.1; done; echo "never: $*"; return 1; }}
of_serial() {{ readlink -f /dev/disk/by-id/*_"$1" | xargs -n1 basename; }}
scheduler() {{ sed 's/.*\\[\\(.*\\)\\].*/\\1/' /sys/block/$1/queue/scheduler; }}
reads() {{ awk '{{print $1}}' /sys/block/$1/stat; }}
turning=$(of_serial turning)
flash=$(of_serial flash)
is_there() {{ test -b /dev/disk/by-id/*_turning; }}
put_in() {{
  for host in /sys/class/scsi_host/*/scan; do echo "- - -" >$host; done
  soon is_there
  udevadm settle
  turning=$(of_serial turning)
}}
"""
"""What the steps share, which are one program of bash."""

FIRST = {
    "words": _WORDS,
    "no_ublk": "blklab disk create wd10ezrx",
    "ublk": """
modprobe ublk_drv
env --default-signal=INT $executable disk create su800-128gb &
soon test -b /dev/ublkb0
blklab disk list
cat /sys/block/ublkb0/queue/rotational
dd if=/dev/ublkb0 of=/dev/null bs=4k count=100 iflag=direct status=none
kill -INT $!
wait $!
""",
    "ublk_gone": "blklab disk list; ls /dev/ublkb* 2>/dev/null || echo nothing",
    "forks": f"""
{sys.executable} -P {TESTS / "forks.py"} /run/forks {" ".join(_LOADED)} &
soon test -S /run/forks
blklab() {{ {sys.executable} -IS {TESTS / "fork_client.py"} /run/forks {BLKLAB} "$@"; }}
""",
    "apply": "scheduler $turning; blklab apply $turning bfq:slice_idle=0; scheduler $turning",
    "holds": "blklab status",
    "by_hand": "echo none >/sys/block/$turning/queue/scheduler; blklab status",
    "pulled_out": "echo 1 >/sys/block/$turning/device/delete; blklab status",
    "put_in": """
put_in
scheduler $turning
cat /sys/block/$turning/queue/iosched/slice_idle
blklab status
""",
    "undo": "blklab undo; scheduler $turning; ls /etc/udev/rules.d",
    "job": """
mkfs.ext4 -q /dev/$turning
mkdir /tmp/turning
mount /dev/$turning /tmp/turning
cat >/tmp/long.fio <<END
[reader]
rw=randread
bs=4k
direct=1
size=16m
time_based
runtime=600
END
""",
    "unplugged": """
blklab fio /tmp/long.fio --rig live --disk /tmp/turning --scheduler kyber &
soon pgrep -x fio
before=$(reads $turning)
more() { test $(reads $turning) -gt $((before + 50)); }
soon more
scheduler $turning
echo 1 >/sys/block/$turning/device/delete
wait $!
""",
    "unplugged_after": "blklab restore",
    "plugged_again": """
umount -l /tmp/turning
put_in
mount /dev/$turning /tmp/turning
blklab restore && ls -A /tmp/turning
""",
    "reset": """
blklab fio /tmp/long.fio --rig live --disk /dev/$flash --scheduler bfq &
borrowed() { test "$(scheduler $flash)" = bfq; }
soon borrowed
soon pgrep -x fio
scheduler $flash >/tmp/share/borrowed
sync
echo 1 >/proc/sys/kernel/sysrq
echo b >/proc/sysrq-trigger
sleep 60
""",
}

SECOND = {
    "again": _WORDS,
    "restore": "scheduler $flash; blklab restore",
    "restore_again": "blklab restore",
}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


@pytest.fixture(scope="module")
def ran(machine: Machine) -> dict[str, Ended]:
    """The first time, which ends by a reset."""
    return machine.run(FIRST)


@pytest.fixture(scope="module")
def ran_again(machine: Machine, ran: dict[str, Ended]) -> dict[str, Ended]:
    """The second."""
    assert "reset" not in ran
    return machine.run(SECOND)


def test_a_missing_ublk_module_is_reported_with_the_command_that_loads_it(
    ran: dict[str, Ended],
) -> None:
    assert ran["no_ublk"].exit_code == 1
    assert re.fullmatch(r"blklab-disk: .*`modprobe ublk_drv`.*\n", ran["no_ublk"].output)


def test_a_modelled_disk_is_a_disk_of_a_real_host(ran: dict[str, Ended]) -> None:
    assert ran["ublk"].exit_code == 0
    lines = ran["ublk"].output.splitlines()
    assert any(re.fullmatch(r"/dev/ublkb0\tlive\tpid \d+", line) for line in lines)
    assert "0" in lines
    (report,) = (json.loads(line) for line in lines if line.startswith("{"))
    assert report["reads"] >= 100
    assert report["lateness"]["count"] >= 100
    assert ran["ublk_gone"] == Ended(0, "nothing\n")


def test_a_scheduler_that_is_a_module_is_loaded_and_set(ran: dict[str, Ended]) -> None:
    assert ran["apply"].exit_code == 0
    lines = ran["apply"].output.splitlines()
    assert (lines[0], lines[-1]) == (LINUX_CHOICE, "bfq")
    assert "applied and verified" in ran["apply"].output
    assert ran["holds"].exit_code == 0
    assert ": holds" in ran["holds"].output


def test_an_undo_by_hand_is_detected(ran: dict[str, Ended]) -> None:
    assert ran["by_hand"].exit_code == 1
    assert "scheduler is none, bfq was applied" in ran["by_hand"].output


def test_a_disk_inserted_again_gets_the_applied_settings(ran: dict[str, Ended]) -> None:
    assert "missing, or with another id" in ran["pulled_out"].output
    assert ran["put_in"].exit_code == 0
    assert ran["put_in"].output.splitlines()[:2] == ["bfq", "0"]
    assert ": holds" in ran["put_in"].output


def test_undo_leaves_no_rule_and_the_kernels_own_choice(ran: dict[str, Ended]) -> None:
    assert ran["undo"].exit_code == 0
    undone, scheduler = ran["undo"].output.splitlines()
    assert undone.startswith("undone: 1. bfq, slice_idle=0")
    assert scheduler == LINUX_CHOICE


def test_of_a_disk_that_is_pulled_out_under_fio_each_trouble_is_one_line(
    ran: dict[str, Ended],
) -> None:
    assert ran["unplugged"].exit_code == 1
    lines = ran["unplugged"].output.splitlines()
    assert "kyber" in lines
    said = [line for line in lines if not (line == "kyber" or line.isdecimal())]
    assert all(line.startswith("blklab: ") for line in said)
    assert any("the disk is gone; nothing to restore" in line for line in said)
    assert said[-1].startswith("blklab: fio: ")


def test_its_test_files_are_removed_when_it_is_there_again(ran: dict[str, Ended]) -> None:
    after = ran["unplugged_after"]
    assert after.exit_code == 1
    assert re.fullmatch(r"blklab: /tmp/turning/\S+: not removed: .*\n", after.output)
    assert ran["plugged_again"].exit_code == 0
    assert ran["plugged_again"].output.splitlines()[-1] == "lost+found"


def test_a_reset_in_the_middle_leaves_nothing_to_put_back(
    machine: Machine, ran_again: dict[str, Ended]
) -> None:
    assert (machine.share / "borrowed").read_text() == "bfq\n"
    assert ran_again["restore"].output.splitlines()[0] == LINUX_CHOICE
    assert ran_again["restore"].exit_code == 0
    assert ran_again["restore_again"] == Ended(0, "nothing to restore\n")
