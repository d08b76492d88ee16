"""What would be applied: choices, keys, rules, rivals; on made-up machines, nothing is set."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from blklab.apply import change, choice, keys, profile, rule
from blklab.apply import presets as known
from blklab.apply.change import Plan
from blklab.apply.keys import Key
from blklab.apply.rule import Part
from blklab.cli import app
from blklab.devices import queue, roots
from blklab.devices.deciders import order
from blklab.errors import InputError
from blklab.udev.parse import parse
from tests.fake_sysfs import Machine

_SCSI = "pci0000:00/ata1/host0/target0:0:0/{}:0:0:0"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def sata(machine: Machine, name: str, number: int, **attributes: str) -> None:
    """A SCSI disk; its device is the parent that has the names."""
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


def test_disks_that_call_themselves_the_same_are_refused(machine: Machine) -> None:
    for number, name in enumerate(("sda", "sdb")):
        sata(machine, name, number, wwid="t10.Generic")
    with pytest.raises(InputError, match="sda: sdb call themselves the same; use --for model"):
        planned(machine, "sda", "bfq")


def test_udevs_own_name_for_a_disk_that_the_kernel_has_none_for(machine: Machine) -> None:
    sata(machine, "sda", 0)
    with pytest.raises(InputError, match="sda says nothing that tells its id; use --for kind"):
        planned(machine, "sda", "bfq")
    machine.write("run/udev/data/b8:0", "E:ID_SERIAL=Generic_Flash-0:0")
    with pytest.raises(InputError, match="no udev rule can tell it"):
        planned(machine, "sda", "bfq")
    machine.write("usr/lib/udev/rules.d/60-persistent-storage.rules", 'IMPORT{builtin}="usb_id"')
    assert planned(machine, "sda", "bfq").entry.key.text == 'ENV{ID_SERIAL}=="Generic_Flash-0:0"'


@settings(max_examples=60, deadline=None)
@given(text=st.text(min_size=1, max_size=30), head=st.from_regex(r"[A-Z]{4}", fullmatch=True))
def test_whatever_a_disk_calls_itself_the_rule_is_one_rule_and_fits_it(
    text: str, head: str
) -> None:
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
        choice.of_queue(["nr_requests=64", "read_ahead_kb=512"]),
    )
    text = rule.text([Part(Key("id", ('ATTRS{wwid}=="naa.5000"',)), wanted)])
    lines = [line for line in text.splitlines() if "ATTR{queue" in line]
    assert [re.findall(r"ATTR\{queue/(.*?)\}=", line)[0] for line in lines] == [
        "scheduler", "nr_requests", "iosched/strict_guarantees", "read_ahead_kb",
        "iosched/slice_idle",
    ]  # fmt: skip


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
        ('bfq:low_latency=0"', "'0\"' is no value of it"),
        ("bfq:../../x=1", "not the name of a tunable"),
        ("", "'' is no value of it"),
        ("b\x1bfq", r"'b\\x1bfq' is no value of it"),
    ],
)
def test_each_wrong_choice_is_one_line(machine: Machine, spec: str, message: str) -> None:
    sata(machine, "sda", 0, wwid="naa.5000")
    with pytest.raises(InputError, match=re.escape(message) if "\\" not in message else message):
        planned(machine, "sda", spec)


def test_a_setting_of_the_queue_that_does_not_exist(machine: Machine) -> None:
    with pytest.raises(InputError, match="--set: no setting 'nr_request'; did you mean"):
        choice.of_queue(["nr_request=3"])
    with pytest.raises(InputError, match="--set: expected name=value, found 'nr_requests'"):
        choice.of_queue(["nr_requests"])
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


def test_those_who_come_later_and_want_something_else_are_named(machine: Machine) -> None:
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
        # What theirs sets beside it is not lost.
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
        ([], "apply: say which disk"),
        (["sda"], "nothing to apply"),
        (["sda", "bfq", "--preset", "hongkong-2025/nvme"], "give one of a scheduler"),
        (["sda", "--preset", "hongkong-2025/nvm"], "did you mean 'hongkong-2025/nvme'"),
        (["sda", "bfq", "--for", "all"], "--for: no 'all'"),
        (["sda", "bfq", "--as", "rule"], "--as: no 'rule'"),
        (["sdz", "bfq"], "no block device 'sdz'"),
        (["sda", "--from", "nothing"], "nothing: No such file"),
        (["sda", "--set", "x=1"], "--set: no setting 'x'"),
    ],
)
def test_each_wrong_command_is_told(
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


def test_the_recommendation_of_a_result_is_taken_and_none_is_refused(fake: Path) -> None:
    command = ["compare", "--repeats", "3", "--workload", "randread"]
    assert CliRunner().invoke(app, command).exit_code == 0
    kept = fake / "reports/compare"
    spec, said = choice.of_result(kept, "desktop-5900rpm", "throughput")
    assert spec == "mq-deadline"
    assert said.startswith("desktop-5900rpm, throughput: mq-deadline is ")
    with pytest.raises(InputError, match="--of-disk: say whose recommendation; there is: "):
        choice.of_result(kept, None, "both")
    with pytest.raises(InputError, match="--of-disk: no disk 'x'"):
        choice.of_result(kept, "x", "both")
    with pytest.raises(InputError, match="recommends nothing for 950pro-256gb, both: no"):
        choice.of_result(kept, "950pro-256gb", "both")
    with pytest.raises(InputError, match="--objective: no 'speed'"):
        choice.of_result(kept, None, "speed")


def test_a_live_result_is_for_the_disks_that_it_was_measured_on(
    fake: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["compare", "--repeats", "3", "--workload", "randread", "--disk", "desktop-5900rpm"]
    assert CliRunner().invoke(app, command).exit_code == 0
    machine = Machine(tmp_path_factory.mktemp("machine"))
    sata(machine, "sdb", 1, wwid="naa.5001")
    monkeypatch.setattr(roots, "HERE", machine.roots)
    given = ["apply", "--from", "reports/compare", "--dry-run", "--objective", "throughput"]

    with pytest.raises(InputError, match=r"apply: say which disk; .* was measured on a model"):
        CliRunner().invoke(app, given, catch_exceptions=False)
    named = CliRunner().invoke(app, [given[0], "sdb", *given[1:]], catch_exceptions=False)
    assert "sdb: already set so" in named.stdout

    place = fake / "reports/compare/results.json"
    document = json.loads(place.read_text())
    document["setup"]["rig"] = "live"
    # It was called sda then.
    row = {"key": "sda: id", "value": "sdb-naa.5001"}
    document["setup"]["disks"][0]["parameters"] = [row]
    place.write_text(json.dumps(document))
    done = CliRunner().invoke(app, given, catch_exceptions=False)
    assert 'ATTRS{wwid}=="naa.5001", ATTR{queue/scheduler}="mq-deadline"' in done.stdout
    row["value"] = "ata-Another\x1b"
    place.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"measured on ata-Another\\x1b, which is not here"):
        CliRunner().invoke(app, given, catch_exceptions=False)
    document["setup"]["disks"] = [1]
    place.write_text(json.dumps(document))
    with pytest.raises(InputError, match="not the results of 'blklab compare'"):
        CliRunner().invoke(app, given, catch_exceptions=False)
