"""Plans of apply: choices, keys, rules, rivals; on simulated machines, without setting anything."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from blklab.cli import app
from blklab.domain import specs
from blklab.errors import InputError
from blklab.host import roots
from blklab.host.devices import queue
from blklab.host.devices.deciders import order
from blklab.host.udev.parse import parse
from blklab.settings import change, choice, keys, profile, record, rule
from blklab.settings import presets as known
from blklab.settings import status as states
from blklab.settings.change import Plan
from blklab.settings.keys import Key
from blklab.settings.rule import Part
from tests.applying import Asked
from tests.fake_sysfs import Machine

_SCSI = "pci0000:00/ata1/host0/target0:0:0/{}:0:0:0"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def sata(machine: Machine, name: str, number: int, **attributes: str) -> None:
    """A SCSI disk; its names are in its parent device."""
    bus = _SCSI.format(number)
    machine.disk(name, number=f"8:{16 * number}", bus=bus)
    machine.link(f"sys/devices/{bus}/block/{name}/device", Path("../.."))
    for key, text in ({"uevent": ""} | attributes).items():
        machine.write(f"sys/devices/{bus}/{key}", text)


def planned(machine: Machine, name: str, spec: str, of: str = "id", form: str = "auto") -> Plan:
    target = queue.named(name, machine.roots)
    wanted = choice.together(choice.parse(spec, target))
    return change.plan(target, wanted, of, form, machine.roots)


def test_a_disk_is_told_from_others_by_what_the_kernel_calls_it(machine: Machine) -> None:
    sata(machine, "sda", 0, wwid="naa.5000", model="ST3320620AS")
    sata(machine, "sdb", 1, wwid="naa.5001", model="ST3320620AS")
    machine.disk("nvme0n1", number="259:0", bus="nvme", files={"wwid": "eui.0025"})
    machine.disk("vda", number="254:0", bus="virtio0", files={"serial": "disk-1"})
    assert planned(machine, "sda", "bfq").entry.key.text == 'ATTRS{wwid}=="naa.5000"'
    assert planned(machine, "nvme0n1", "bfq").entry.key.text == 'ATTR{wwid}=="eui.0025"'
    assert planned(machine, "vda", "bfq").entry.key.text == 'ATTR{serial}=="disk-1"'
    model = planned(machine, "sda", "bfq", of="model")
    assert model.entry.key.text == 'ATTRS{model}=="ST3320620AS"'
    assert [disk.name for disk in model.disks] == ["sda", "sdb"]
    kind = planned(machine, "sda", "bfq", of="kind")
    assert kind.entry.key.text == 'KERNEL=="sd*", ATTR{queue/rotational}=="1"'
    assert [disk.name for disk in kind.disks] == ["sda", "sdb"]


@pytest.mark.parametrize("when", ["before it is found", "while it is read"])
def test_another_disk_of_the_kind_that_goes_meanwhile_is_left_out(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    for number, name in enumerate(("sda", "sdb", "sdc")):
        sata(machine, name, number)
    asked, of_one = "sda" if when == "before it is found" else "sdb", keys.of_one

    def pulled_out(disk: queue.Queue, where: roots.Roots) -> str:
        told = of_one(disk, where)
        if disk.name == asked:
            (machine.top / "sys/block/sdb").unlink()
        return told

    monkeypatch.setattr(keys, "of_one", pulled_out)
    made = planned(machine, "sda", "bfq", of="kind")
    assert [disk.name for disk in made.disks] == ["sda", "sdc"]
    assert [disk.name for disk in made.entry.disks] == list(made.rivals) == ["sda", "sdc"]


def test_a_disk_that_goes_while_all_are_looked_at_is_left_out(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sata(machine, "sda", 0)
    disks, listed = queue.disks, [["sda", "sdb"]]
    monkeypatch.setattr(queue, "disks", lambda of: listed.pop() if listed else disks(of))
    part = Part(Key("kind", ('KERNEL=="sd*"',)), {"scheduler": "bfq"})
    assert rule.disks([part], machine.roots) == {"sda": {"scheduler": "bfq"}}


def test_a_disk_that_is_called_otherwise_now_is_not_missing(machine: Machine) -> None:
    sata(machine, "sda", 0, wwid="naa.5000")
    entry = planned(machine, "sda", "mq-deadline").entry
    assert states.status([entry], machine.roots).missing == ()
    before = entry.disks[0]
    entry.disks[:] = [replace(before, name="sdx")]
    now = states.status([entry], machine.roots)
    assert ([disk.name for disk in now.disks], now.missing) == (["sda"], ())
    entry.disks[:] = [replace(before, name="sdx", identity='ATTRS{wwid}=="naa.5009"')]
    assert states.status([entry], machine.roots).missing == ("sdx",)


def test_all_of_a_kind_are_set_and_all_are_put_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated disks: the real ones of a kind do not all belong to the test."""
    monkeypatch.delenv(record.VARIABLE, raising=False)
    for number, name in enumerate(("sda", "sdb")):
        sata(machine, name, number)
    machine.disk("nvme0n1", number="259:0", bus="nvme")
    disks = {name: queue.named(name, machine.roots) for name in ("sda", "sdb", "nvme0n1")}
    before = {name: disk.settings() for name, disk in disks.items()}
    made = planned(machine, "sda", "bfq", of="kind")
    change.carry_out(made, machine.roots, Asked())
    active = {name: disk.read("scheduler") for name, disk in disks.items()}
    assert active == {"sda": "bfq", "sdb": "bfq", "nvme0n1": "mq-deadline"}
    assert rule.place(machine.roots).read_text() == made.rules
    _, left = change.undo(machine.roots, Asked())
    assert left == []
    assert {name: disk.settings() for name, disk in disks.items()} == before
    assert not rule.place(machine.roots).exists()


def test_disks_that_call_themselves_the_same_are_refused(machine: Machine) -> None:
    for number, name in enumerate(("sda", "sdb")):
        sata(machine, name, number, wwid="t10.Generic")
    with pytest.raises(InputError, match="sda: sdb have the same id; use --for model"):
        planned(machine, "sda", "bfq")


def test_udevs_own_name_for_a_disk_that_the_kernel_has_none_for(machine: Machine) -> None:
    sata(machine, "sda", 0)
    with pytest.raises(InputError, match="sda does not report its id; use --for kind"):
        planned(machine, "sda", "bfq")
    machine.write("run/udev/data/b8:0", "E:ID_SERIAL=Generic_Flash-0:0")
    with pytest.raises(InputError, match="no udev rule can distinguish it"):
        planned(machine, "sda", "bfq")
    machine.write("usr/lib/udev/rules.d/60-persistent-storage.rules", 'IMPORT{builtin}="usb_id"')
    assert planned(machine, "sda", "bfq").entry.key.text == 'ENV{ID_SERIAL}=="Generic_Flash-0:0"'


@settings(max_examples=60, deadline=None)
@given(text=st.text(min_size=1, max_size=30), head=st.from_regex(r"[A-Z]{4}", fullmatch=True))
def test_a_disk_with_any_name_gets_one_rule_that_matches_it(text: str, head: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        machine = Machine(Path(directory))
        name = f"{head}{text}"
        machine.disk("vda", number="254:0", bus="virtio0")
        place = Path(directory) / "sys/block/vda/serial"
        place.write_bytes(name.encode(errors="replace"))
        made = planned(machine, "vda", "bfq:low_latency=0")
        assert [disk.name for disk in made.disks] == ["vda"]
        assert made.rules.isascii()
        assert len(made.rules.splitlines()) == 6
        file = Path(directory) / "x.rules"
        file.write_text(made.rules)
        lines = parse(file)
        assert [line.error for line in lines] == ["", "", ""]
        told = ["ACTION", "SUBSYSTEM", "ENV", "ATTR", "ATTR"]
        assert [[token.key for token in line.tokens] for line in lines] == [
            told,
            [*told, "GOTO"],
            ["LABEL"],
        ]


@pytest.mark.parametrize(
    "text",
    ['a", RUN+="/bin/evil', 'a\nRUN+="x"', "disk|*", "*****", "a\\", "$env{X}", "%k", "\xff\udcff"],
)
def test_no_name_ends_the_quotes_or_means_more_than_itself(text: str) -> None:
    made = keys.pattern(text)
    assert re.fullmatch(r"[A-Za-z0-9_.:+=,@/ ?*-]*", made)
    assert "*" not in made or not text.isascii()


def test_the_lines_stand_in_the_order_in_which_they_can_be_set(machine: Machine) -> None:
    sata(machine, "sda", 0, wwid="naa.5000")
    target = queue.named("sda", machine.roots)
    wanted = choice.together(
        choice.parse("bfq:slice_idle=0,strict_guarantees=1", target),
        choice.of_queue(specs.settings(["nr_requests=64", "read_ahead_kb=512"])),
    )
    text = rule.text([Part(Key("id", ('ATTRS{wwid}=="naa.5000"',)), wanted)])
    lines = [line for line in text.splitlines() if "ATTR{queue" in line]
    assert [re.findall(r"ATTR\{queue/(.*?)\}=", line)[0] for line in lines] == [
        "scheduler", "nr_requests", "iosched/strict_guarantees", "read_ahead_kb",
        "iosched/slice_idle",
    ]  # fmt: skip


def test_settings_applied_to_one_disk_do_not_spread_to_all_of_its_model(machine: Machine) -> None:
    for number, name in enumerate(("sda", "sdb")):
        sata(machine, name, number, wwid=f"naa.{number}")
    one = planned(machine, "sda", "kyber")
    record.save([replace(one.entry, done=True)], machine.roots)
    said = "kyber was applied to sda alone, and would now reach 2 disks"
    target = queue.named("sda", machine.roots)
    with pytest.raises(InputError, match=said):
        change.plan(target, {"nr_requests": "9"}, "kind", "auto", machine.roots)
    # A setting that is given again was requested; it stays with the disk alone.
    assert planned(machine, "sda", "none", of="kind").entry.settings == {"scheduler": "none"}
    alone = change.plan(target, {"nr_requests": "9"}, "id", "auto", machine.roots)
    assert alone.entry.settings == {"scheduler": "kyber", "nr_requests": "9"}


def test_the_latest_that_means_a_disk_decides_alone(machine: Machine) -> None:
    """No event may switch one scheduler on after another."""
    sata(machine, "sda", 0, wwid="naa.5000")
    sata(machine, "sdb", 1, wwid="naa.5001")
    every = Part(Key("kind", ('KERNEL=="sd*"',)), {"scheduler": "bfq", "nr_requests": "9"})
    one = Part(Key("id", ('ATTRS{wwid}=="naa.5000"',)), {"scheduler": "kyber"})
    of = {name: queue.named(name, machine.roots) for name in ("sda", "sdb")}
    content = rule.text([every, one])
    assert rule.wanted(content, of["sda"], machine.roots) == {"scheduler": "kyber"}
    assert rule.wanted(content, of["sdb"], machine.roots) == every.settings
    content = rule.text([one, every])
    assert rule.wanted(content, of["sda"], machine.roots) == every.settings
    assert len(rule.effects(content, of["sda"], machine.roots)) == 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("x", "sda: this kernel has no scheduler 'x'; there is: bfq, kyber, mq-deadline, none"),
        ("mq-deadlin", "did you mean 'mq-deadline'"),
        ("bfq:low_latency", "expected tunable=value, found 'low_latency'"),
        (
            'bfq:low_latency=0"',
            "low_latency: expected at most 64 of A-Z, a-z, 0-9, '.', '_' and '-', found '0\"'",
        ),
        ("bfq:../../x=1", "bfq: expected tunable=value, found '../../x=1'"),
        ("", "scheduler '': expected name[:tunable=value,...]"),
        ("b\x1bfq", r"scheduler 'b\\x1bfq': expected name"),
    ],
)
def test_each_wrong_choice_is_one_line(machine: Machine, spec: str, message: str) -> None:
    sata(machine, "sda", 0, wwid="naa.5000")
    with pytest.raises(InputError, match=re.escape(message) if "\\" not in message else message):
        planned(machine, "sda", spec)


def test_a_setting_of_the_queue_that_does_not_exist(machine: Machine) -> None:
    with pytest.raises(InputError, match="--set: no setting 'nr_request'; did you mean"):
        choice.of_queue(specs.settings(["nr_request=3"]))
    with pytest.raises(InputError, match="--set: expected name=value, found 'nr_requests'"):
        choice.of_queue(specs.settings(["nr_requests"]))
    with pytest.raises(InputError, match="nothing to apply"):
        choice.together({}, {})


def test_a_scheduler_that_is_a_module_is_loaded_unless_that_is_forbidden(machine: Machine) -> None:
    bus = _SCSI.format(0)
    machine.disk("sda", bus=bus, queue={"scheduler": "none [mq-deadline]"})
    machine.write(f"sys/devices/{bus}/uevent", "")
    machine.write(f"sys/devices/{bus}/wwid", "naa.5000")
    machine.write("proc/sys/kernel/osrelease", "6.12.1")
    machine.write("lib/modules/6.12.1/modules.dep", "kernel/block/kyber-iosched.ko.xz:")
    assert planned(machine, "sda", "kyber").module == "kyber-iosched"
    assert planned(machine, "sda", "mq-deadline").module == ""
    blocker = machine.write("etc/modprobe.d/x.conf", "blacklist kyber_iosched")
    with pytest.raises(InputError, match=f"may not be loaded: {blocker}:1"):
        planned(machine, "sda", "kyber")


def test_a_stacked_device_has_nothing_to_choose(machine: Machine) -> None:
    machine.disk("dm-0", number="253:0", bus="virtual", queue={"scheduler": "none"})
    with pytest.raises(InputError, match="dm-0: no scheduler fits it; see the disks below"):
        planned(machine, "dm-0", "bfq")


def test_later_rules_and_services_with_other_values_are_named(machine: Machine) -> None:
    sata(machine, "sda", 0, wwid="naa.5000")
    kyber = 'KERNEL=="sd*", ATTR{queue/scheduler}="kyber"'
    machine.write("etc/udev/rules.d/60-early.rules", kyber)
    assert planned(machine, "sda", "bfq").rivals == {"sda": []}
    machine.write("etc/udev/rules.d/99-later.rules", f"# x\n{kyber}")
    machine.write(
        "etc/udev/rules.d/60-run.rules",
        'KERNEL=="sd*", RUN+="/bin/sh -c \'echo none > /sys/block/%k/queue/scheduler\'"',
    )
    machine.write("etc/tmpfiles.d/io.conf", "w /sys/block/sda/queue/scheduler - - - - bfq")
    machine.write("etc/rc.local", "#!/bin/sh\necho 9 > /sys/block/sda/queue/nr_requests").chmod(
        0o755
    )
    found = planned(machine, "sda", "bfq").rivals["sda"]
    assert [(Path(one.file).name, one.line, one.value) for one in found] == [
        ("99-later.rules", 2, "kyber"),
        ("60-run.rules", 1, "none"),
    ]


def test_the_profile_of_tuned_names_the_disk_by_udevs_name_and_wins(machine: Machine) -> None:
    sata(machine, "sda", 0, wwid="naa.5000")
    sata(machine, "sdb", 1, wwid="naa.5001")
    machine.write("run/udev/data/b8:0", "E:ID_SERIAL=Disk (1)")
    machine.write("run/udev/data/b8:16", "E:ID_SERIAL=Disk 2")
    machine.write("proc/77/cmdline", "python3\0/usr/sbin/tuned")
    machine.write("etc/tuned/active_profile", "base also")
    base = "[disk]\nelevator=kyber\nreadahead=>4096\ndevices=sd*\npriority=3\n"
    machine.write("usr/lib/tuned/profiles/base/tuned.conf", base)
    machine.write("usr/lib/tuned/profiles/also/tuned.conf", "[sysctl]\n")
    made = planned(machine, "sda", "bfq:slice_idle=0")
    assert made.rivals == {"sda": []}
    assert made.profile.splitlines()[1:] == [
        "[main]",
        "summary=What blklab has applied to disks",
        "include=base,also",
        "",
        "[blklab_1]",
        "type=disk",
        "priority=-11",
        "devices_udev_regex=^ID_SERIAL=Disk..1.$",
        "elevator=bfq",
        # Other settings of the administrator's rule are kept.
        "readahead=>4096",
    ]
    place = profile.place(machine.roots)
    assert place == machine.top / "etc/tuned/profiles/blklab/tuned.conf"
    machine.write(str(place.relative_to(machine.top)), made.profile)
    machine.write("etc/tuned/active_profile", "blklab")
    last = {}
    for name in ("sda", "sdb"):
        every = order.influences(queue.named(name, machine.roots), machine.roots)
        word = order.last_word(every, "scheduler")
        last[name] = word.value if word else None
    assert last == {"sda": "bfq", "sdb": "kyber"}


def test_tuned_cannot_hold_a_tunable_alone(machine: Machine) -> None:
    sata(machine, "sda", 0, wwid="naa.5000")
    target = queue.named("sda", machine.roots)
    with pytest.raises(InputError, match="tuned sets schedulers and read_ahead_kb only"):
        change.plan(target, {"nr_requests": "9"}, "id", "tuned", machine.roots)


@pytest.mark.parametrize("name", list(known.PRESETS))
def test_presets_can_be_planned(machine: Machine, name: str) -> None:
    sata(machine, "sda", 0, wwid="naa.5000")
    preset = known.find(name)
    target = queue.named("sda", machine.roots)
    parsed = choice.parse(preset.scheduler, target) if preset.scheduler else {}
    wanted = choice.together(parsed, preset.queue)
    choice.check(wanted)
    made = change.plan(target, wanted, "id", "auto", machine.roots)
    assert made.entry.settings == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "apply: name a disk"),
        (["sda"], "nothing to apply"),
        (["sda", "bfq", "--preset", "hongkong-2025/nvme"], "give one of: a scheduler"),
        (["sda", "--preset", "hongkong-2025/nvm"], "did you mean 'hongkong-2025/nvme'"),
        (["sda", "bfq", "--for", "all"], "--for: no 'all'"),
        (["sda", "bfq", "--as", "rule"], "--as: no 'rule'"),
        (["sdz", "bfq"], "no block device 'sdz'"),
        (["sda", "--from", "nothing"], "nothing: No such file"),
        (["sda", "--set", "x=1"], "--set: no setting 'x'"),
    ],
)
def test_each_wrong_command_is_reported(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    sata(machine, "sda", 0, wwid="naa.5000")
    monkeypatch.setattr(roots, "HERE", machine.roots)
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(app, ["apply", *arguments, "--dry-run"], catch_exceptions=False)


def test_dry_run_shows_everything_and_changes_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sata(machine, "sda", 0, wwid="naa.5000")
    machine.write("etc/udev/rules.d/99-later.rules", 'KERNEL=="sda", ATTR{queue/scheduler}="none"')
    monkeypatch.setattr(roots, "HERE", machine.roots)
    before = sorted(machine.top.rglob("*"))
    done = CliRunner().invoke(
        app, ["apply", "sda", "bfq:low_latency=0", "--nr-requests", "32", "--dry-run"]
    )
    assert done.exit_code == 0
    assert sorted(machine.top.rglob("*")) == before
    for expected in (
        "sda: scheduler mq-deadline -> bfq, nr_requests 64 -> 32, low_latency - -> 0",
        f"would write {machine.top}/etc/udev/rules.d/99-blklab.rules",
        'ATTRS{wwid}=="naa.5000", ATTR{queue/nr_requests}="32"',
        "may be undone by udev rule",
        "99-later.rules:1, which sets scheduler to none",
    ):
        assert expected in done.stdout
