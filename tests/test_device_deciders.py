"""What sets a disk's scheduler: each source is found in its files, and the last one wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.host.devices import queue
from blklab.host.devices.deciders import order
from blklab.host.devices.deciders.order import Decision
from tests.fake_sysfs import Machine

_UDEV = 'ACTION=="add|change", KERNEL=="sd[a-z]", ATTR{queue/scheduler}="bfq"'
_ONE_QUEUE = {"mq/0/nr_tags": "32"}
_KYBER = "none mq-deadline [kyber] bfq"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.write("proc/sys/kernel/osrelease", "6.12.1")
    return made


def decided(machine: Machine, name: str = "sda") -> Decision:
    return order.decide(queue.named(name, machine.roots), machine.roots)


def found(machine: Machine) -> list[tuple[str, str, str | None, bool]]:
    """Source, attribute, value, certainty."""
    return [(one.by, one.attribute, one.value, one.sure) for one in decided(machine).influences]


def place(machine: Machine, path: str) -> str:
    return str(machine.top / path)


def test_only_the_kernel_decides(machine: Machine) -> None:
    machine.disk("sda", files=_ONE_QUEUE)
    assert decided(machine).text == "kernel default"


@pytest.mark.parametrize(
    ("name", "queues", "available", "expected"),
    [
        ("sda", 1, "none [mq-deadline] bfq", "mq-deadline"),
        ("sda", 1, "[none] bfq", "none"),
        ("nvme0n1", 8, "[none] mq-deadline", "none"),
        ("loop0", 1, "[none] mq-deadline", "none"),
        # An adapter's queues may share their tags.
        ("sda", 8, "[none] mq-deadline", None),
    ],
)
def test_the_kernels_own_choice(
    machine: Machine, name: str, queues: int, available: str, expected: str | None
) -> None:
    bus = "virtual" if name == "loop0" else "pci0000:00/ata1/host0"
    files = {f"mq/{number}/nr_tags": "32" for number in range(queues)}
    machine.disk(name, bus=bus, files=files, queue={"scheduler": available})
    assert decided(machine, name).default == expected


def test_a_udev_rule_is_named_with_file_and_line(machine: Machine) -> None:
    machine.disk("sda", files=_ONE_QUEUE, queue={"scheduler": "none mq-deadline [bfq]"})
    machine.write("etc/udev/rules.d/60-io.rules", f"# mine\n{_UDEV}")
    decision = decided(machine)
    assert decision.text == f"udev rule {place(machine, 'etc/udev/rules.d/60-io.rules')}:2"
    assert decision.by is not None
    assert (decision.by.line, decision.by.value) == (2, "bfq")


def test_a_rule_that_does_not_hold_any_more_is_no_explanation(machine: Machine) -> None:
    machine.disk("sda", files=_ONE_QUEUE, queue={"scheduler": _KYBER})
    assert decided(machine).text == (
        "set by hand or by a program (the kernel's default is mq-deadline)"
    )
    machine.write("etc/udev/rules.d/60-io.rules", _UDEV)
    assert decided(machine).text == (
        f"changed since: udev rule {place(machine, 'etc/udev/rules.d/60-io.rules')}:1 says bfq"
    )


def test_a_rule_that_cannot_be_judged_is_only_perhaps_the_reason(machine: Machine) -> None:
    machine.disk("sda", files=_ONE_QUEUE, queue={"scheduler": _KYBER})
    machine.write("etc/udev/rules.d/60-io.rules", 'PROGRAM="x", ATTR{queue/scheduler}="kyber"')
    rules = place(machine, "etc/udev/rules.d/60-io.rules")
    assert decided(machine).text == f"perhaps udev rule {rules}:1"


def test_elevator_on_the_command_line_is_ignored_and_that_is_said(machine: Machine) -> None:
    machine.disk("sda", files=_ONE_QUEUE)
    machine.write("proc/cmdline", "quiet elevator=deadline ro")
    decision = decided(machine)
    assert decision.text == "kernel default"
    assert decision.influences[0].why == "Linux 6.12.1 ignores elevator=, as all since 5.0 do"
    machine.write("proc/sys/kernel/osrelease", "4.12.0")
    assert found(machine) == [("kernel command line", "scheduler", "deadline", True)]


def test_tmpfiles_of_one_name_are_overridden_and_patterns_work(machine: Machine) -> None:
    machine.disk("sda")
    line = (
        "w /sys/block/sd?/queue/scheduler - - - - {}\nw+ /sys/block/sdb/queue/nr_requests - - - - 1"
    )
    machine.write("usr/lib/tmpfiles.d/io.conf", line.format("kyber"))
    assert found(machine) == [("tmpfiles.d line", "scheduler", "kyber", True)]
    machine.write("etc/tmpfiles.d/io.conf", line.format("bfq"))
    assert found(machine) == [("tmpfiles.d line", "scheduler", "bfq", True)]


def test_sysfsutils(machine: Machine) -> None:
    machine.disk("sda")
    machine.write("etc/sysfs.conf", "# x\nblock/sda/queue/iosched/slice_idle = 0\nmode x = 1")
    assert found(machine) == [("sysfsutils line", "iosched/slice_idle", "0", False)]
    machine.write("etc/init.d/sysfsutils", "")
    assert found(machine) == [("sysfsutils line", "iosched/slice_idle", "0", True)]


def test_a_unit_counts_if_it_is_enabled(machine: Machine) -> None:
    machine.disk("sda")
    command = "/bin/sh -c 'echo kyber > /sys/block/sda/queue/scheduler'"
    unit = f"[Service]\nType=oneshot\nExecStart=-\\\n {command}"
    machine.write("etc/systemd/system/io.service", unit)
    assert found(machine) == [("systemd unit", "scheduler", "kyber", False)]
    assert decided(machine).influences[0].why == "io.service is not enabled"
    machine.link("etc/systemd/system/multi-user.target.wants/io.service", Path("../io.service"))
    assert found(machine) == [("systemd unit", "scheduler", "kyber", True)]
    assert decided(machine).influences[0].line == 3


def test_drop_in_files_of_a_unit_count_and_are_read_again_after_a_change(
    machine: Machine,
) -> None:
    machine.disk("sda")
    machine.write("usr/lib/systemd/system/io.service", "[Service]\nExecStart=/bin/true")
    assert found(machine) == []
    more = "etc/systemd/system/io.service.d/more.conf"
    command = "ExecStartPost=sh -c 'echo {} > /sys/block/sda/queue/scheduler'"
    for scheduler in ("bfq", "kyber"):
        file = machine.write(more, command.format(scheduler))
        assert found(machine) == [("systemd unit", "scheduler", scheduler, False)]
    file.rename(file.with_name("more.conf~"))
    assert found(machine) == []


def test_a_unit_for_another_disk_is_none_of_ours_and_a_loop_is_not_known(machine: Machine) -> None:
    machine.disk("sda")
    directory = "usr/lib/systemd/system"
    machine.write(
        f"{directory}/a.service", "ExecStart=sh -c 'echo bfq > /sys/block/sdb/queue/scheduler'"
    )
    machine.write(
        f"{directory}/b.service",
        "ExecStart=sh -c 'for d in /sys/block/*; do echo bfq > $$d/queue/scheduler; done'",
    )
    machine.write(
        f"{directory}/c.service", "ExecStart=sh -c 'echo bfq > /sys/block/$$D/queue/scheduler'"
    )
    assert found(machine) == [
        ("systemd unit", "scheduler", None, False),
        ("systemd unit", "scheduler", "bfq", False),
    ]


def test_a_script_of_a_unit_and_rc_local(machine: Machine) -> None:
    machine.disk("sda")
    directory = "/sys/block/sda/queue"
    script = f"#!/bin/sh\n# echo bfq > {directory}/scheduler\necho 8 > {directory}/nr_requests"
    machine.write("usr/local/sbin/tune", script)
    machine.write("etc/systemd/system/t.service", "ExecStart=/usr/local/sbin/tune")
    assert found(machine) == [("systemd unit", "nr_requests", "8", False)]
    local = machine.write("etc/rc.local", script)
    assert len(found(machine)) == 1
    local.chmod(0o755)
    assert found(machine)[1:] == [("rc.local line", "nr_requests", "8", True)]


def test_tlp_pairs_disks_and_schedulers(machine: Machine) -> None:
    machine.disk("sda")
    machine.write("etc/tlp.conf", 'DISK_DEVICES="nvme0n1 sda"\nDISK_IOSCHED="none bfq" # x')
    assert found(machine) == [("TLP setting", "scheduler", "bfq", True)]
    machine.write("etc/tlp.conf", 'DISK_IOSCHED="keep keep"')
    assert found(machine) == []
    machine.link("dev/disk/by-id/ata-Disk_1", Path("../../sda"))
    for scheduler, expected in (("bfq", [("TLP setting", "scheduler", "bfq", True)]), ("_", [])):
        text = f'DISK_DEVICES="ata-Disk_1"\nDISK_IOSCHED="{scheduler}"'
        machine.write("etc/tlp.conf", text)
        assert found(machine) == expected


def test_tuned_counts_while_it_runs_and_the_including_profile_wins(machine: Machine) -> None:
    machine.disk("sda")
    machine.write("etc/tuned/active_profile", "mine")
    machine.write(
        "usr/lib/tuned/profiles/base/tuned.conf",
        "[main]\nsummary=x\n[disk]\nelevator=mq-deadline\nreadahead=>4096\n",
    )
    machine.write(
        "etc/tuned/mine/tuned.conf",
        "[main]\ninclude=base\n[disk]\nelevator=kyber # quick\n"
        "[sysfs]\n/sys/block/sd*/queue/nr_requests=32\n",
    )
    assert [row[3] for row in found(machine)] == [False, False, False]
    machine.write("proc/77/cmdline", "/usr/bin/python3\0-Es\0/usr/sbin/tuned\0-l")
    assert found(machine) == [
        ("tuned profile", "scheduler", "kyber", True),
        ("tuned profile", "read_ahead_kb", None, False),
        ("tuned profile", "nr_requests", "32", True),
    ]
    last = order.last_word(decided(machine).influences, "scheduler")
    assert last is not None
    assert last.place == place(machine, "etc/tuned/mine/tuned.conf:4")


@pytest.mark.parametrize(
    ("devices", "expected"),
    [("sda", 1), ("sdb", 0), ("!sda", 0), ("!sdb", 1), ("nvme*, sd*", 1), ("sd*, !sda", 0)],
)
def test_tuned_names_and_excludes_disks(machine: Machine, devices: str, expected: int) -> None:
    machine.disk("sda")
    machine.write("etc/tuned/active_profile", "mine")
    profile = f"[x]\ntype=disk\ndevices={devices}\nelevator=kyber"
    machine.write("etc/tuned/mine/tuned.conf", profile)
    assert len(found(machine)) == expected


def test_tuned_gives_a_disk_to_the_section_of_the_lowest_priority_that_fits(
    machine: Machine,
) -> None:
    machine.disk("sda")
    machine.write("etc/tuned/active_profile", "base mine")
    machine.write("usr/lib/tuned/base/tuned.conf", "[disk]\nelevator=kyber")
    own = "[mine]\ntype=disk\npriority=-1\ndevices_udev_regex=^ID_SERIAL=Disk_1$\nelevator=bfq"
    machine.write("etc/tuned/mine/tuned.conf", own)
    assert [row[2] for row in found(machine)] == ["bfq", "kyber"]
    machine.write("run/udev/data/b8:0", "E:ID_SERIAL=Disk_1")
    assert [row[2] for row in found(machine)] == ["bfq"]
    machine.write("run/udev/data/b8:0", "E:ID_SERIAL=Disk_12")
    assert [row[2] for row in found(machine)] == ["kyber"]


def test_tuned_profiles_that_include_each_other_end(machine: Machine) -> None:
    machine.disk("sda")
    machine.write("etc/tuned/active_profile", "a")
    for name, other in (("a", "b"), ("b", "a")):
        text = f"[main]\ninclude={other}\n[disk]\nelevator={name}"
        machine.write(f"etc/tuned/{name}/tuned.conf", text)
    assert found(machine) == [("tuned profile", "scheduler", "a", False)]


def test_the_later_one_has_the_last_word(machine: Machine) -> None:
    machine.disk("sda", queue={"scheduler": _KYBER})
    machine.write("etc/udev/rules.d/60-io.rules", _UDEV)
    machine.write("etc/tmpfiles.d/io.conf", "w /sys/block/sda/queue/scheduler - - - - none")
    machine.write("etc/tuned/active_profile", "mine")
    machine.write("proc/77/cmdline", "python3\0/usr/sbin/tuned")
    machine.write("etc/tuned/mine/tuned.conf", "[disk]\nelevator=kyber")
    assert [one.by for one in decided(machine).influences] == [
        "udev rule",
        "tmpfiles.d line",
        "tuned profile",
    ]
    assert decided(machine).text.startswith("tuned profile ")
