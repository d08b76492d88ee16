"""`blklab fleet` judges: groups, recommendations, rules that match no other disk, and losers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import blklab
from blklab import JudgedFleet
from blklab.api import fleet as api
from blklab.api.fleet_models import chosen_model
from blklab.errors import InputError
from blklab.experiment.pairs import together
from blklab.experiment.statistics import Interval
from blklab.fleet import collect, disks, hosts, rules
from blklab.fleet.disks import Machine
from blklab.fleet.groups import DiskLoad, Group, Member, groups
from blklab.host.udev.parse import parse
from blklab.settings import rule
from tests.fleet_machines import BFQ, ROOT, WD, FakeFleet

BLKLAB = Path(sys.executable).with_name("blklab")
EXAMPLE = ROOT / "examples/fleet.toml"
QUICK = "randread:runtime=1"


class World:
    """A fleet, collected into a directory, with the machines of its answers."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fleet = FakeFleet(top / "fleet")
        monkeypatch.setenv("PATH", self.fleet.path)
        self.top = top
        self.file = top / "hosts.toml"

    def collect(self, text: str) -> None:
        self.file.write_text(text)
        blklab.collect_fleet(self.file, self.top / "kept")

    def judge(self, text: str, *, keep: bool = False) -> JudgedFleet:
        self.collect(text)
        return blklab.judge_fleet(self.file, self.top / "kept", keep=keep)

    def machines(self, names: Sequence[str]) -> dict[str, Machine]:
        self.collect(f"[[host]]\nnames = {json.dumps(list(names))}\nworkloads = ['{QUICK}']\n")
        found = {}
        for name in names:
            read, when = collect.read_answer(self.top / "kept" / name)
            found[name] = disks.machine(name, read, when, self.top / "trees" / name)
        return found


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "results.db"))
    return World(tmp_path, monkeypatch)


def grouped(machines: dict[str, Machine], loads: dict[str, str]) -> list[Group]:
    """The groups of the disks that have a load, by ``host:disk``."""
    every = {disk.place: disk for one in machines.values() for disk in one.disks}
    return groups([Member(every[at], (DiskLoad(w, w, workload=w),)) for at, w in loads.items()])


def rule_text(group: Group, machines: dict[str, Machine]) -> str:
    made = rules.make(group, "bfq:slice_idle=0", rules.Everywhere(machines))
    return "" if made is None else rules.text([made], ())


def test_disks_are_grouped_by_model_transport_kind_and_load(world: World) -> None:
    for name in ("a", "b"):
        world.fleet.machine(name).sata("sda", WD, f"WD-{name}")
    world.fleet.machine("c").sata("sda", "  WDC  WD10EZRX-00A8LB0 ", "WD-c")
    world.fleet.machine("d").sata("sda", WD, "WD-d", rotational=False)
    world.fleet.machine("e").nvme("nvme0n1", WD, "0025385000000001")
    machines = world.machines("abcde")
    found = grouped(
        machines,
        {"a:sda": "x", "b:sda": "y", "c:sda": "x", "d:sda": "x", "e:nvme0n1": "x"},
    )
    told = [(one.transport, one.kind, [m.disk.host for m in one.members]) for one in found]
    assert sorted(told) == [
        ("nvme", "x", ["e"]),
        ("sata", "x", ["a", "c"]),
        ("sata", "x", ["d"]),
        ("sata", "y", ["b"]),
    ]
    assert [one.number for one in found] == [1, 2, 3, 4]


def test_a_rule_names_only_the_model_if_that_is_enough(world: World) -> None:
    world.fleet.machine("a").sata("sda", WD, "WD-a")
    world.fleet.machine("b").sata("sdb", WD, "WD-b")
    world.fleet.machine("b2").nvme("nvme0n1", "Samsung SSD 950 PRO 256GB", "0025385000000001")
    machines = world.machines(["a", "b", "b2"])
    [group, other] = sorted(
        grouped(machines, {"a:sda": "x", "b:sdb": "x", "b2:nvme0n1": "x"}),
        key=lambda one: one.rotational,
        reverse=True,
    )
    text = rule_text(group, machines)
    assert 'ATTRS{model}=="WDC WD10EZRX-00A", ATTR{queue/rotational}=="1"' in text
    assert 'ENV{ID_BUS}=="ata"' in text and "hostname" not in text
    assert 'ATTR{queue/scheduler}="bfq"\n' in text and 'ATTR{queue/iosched/slice_idle}="0"' in text
    assert 'SUBSYSTEMS=="nvme"' in rule_text(other, machines)


def test_one_model_under_two_loads_is_told_apart_by_the_machines_names(world: World) -> None:
    for name in ("a", "b", "c"):
        world.fleet.machine(name).sata("sda", WD, f"WD-{name}")
    machines = world.machines("abc")
    found = grouped(machines, {"a:sda": "x", "b:sda": "y", "c:sda": "x"})
    assert 'SYSCTL{kernel/hostname}=="a|c"' in rule_text(found[0], machines)
    assert 'SYSCTL{kernel/hostname}=="b"' in rule_text(found[1], machines)


def test_everything_that_sets_the_scheduler_after_the_rule_is_told_with_the_disks(
    world: World,
) -> None:
    sets = 'ACTION=="add|change", {}ATTR{{queue/scheduler}}="{}"'
    etc, lib = "etc/udev/rules.d", "usr/lib/udev/rules.d"
    for name in ("a", "b", "c", "d", "e"):
        world.fleet.machine(name).sata("sda", WD, f"WD-{name}")
    files = {
        # Later by name, on two machines; on one of them there is more.
        f"a/{etc}/99-zz.rules": "# ours\n" + sets.format('KERNEL=="sd*", ', "none"),
        f"b/{lib}/99-zz.rules": "# ours\n" + sets.format('KERNEL=="sd*", ', "none"),
        f"b/{etc}/99-zzz.rules": 'KERNEL=="sda", ATTR{queue/nr_requests}="64"',
        # Before it; for other disks; not in effect, since a file of that name masks it.
        f"c/{etc}/60-io.rules": sets.format("", "none"),
        f"c/{lib}/99-zz.rules": sets.format('KERNEL=="nvme*", ', "none"),
        # Whether it applies depends on a program.
        f"c/{etc}/99-zzz.rules": sets.format('PROGRAM=="/bin/x", ', "bfq"),
        f"d/{lib}/99-zz.rules": sets.format("", "none"),
        f"d/{etc}/99-zz.rules": "# nothing",
        f"d/{etc}/99-fleet.rules": sets.format("", "kyber"),
        # After all rules, by a program; and tuned.
        f"e/{etc}/10-run.rules": "RUN+=\"/bin/sh -c 'echo kyber > /sys/block/%k/queue/scheduler'\"",
        "e/etc/tuned/active_profile": "mine",
        "e/etc/tuned/profiles/mine/tuned.conf": "[main]\ninclude=base",
        "e/usr/lib/tuned/profiles/base/tuned.conf": "[disk]\nelevator=mq-deadline",
    }
    for path, text in files.items():
        host, _, place = path.partition("/")
        world.fleet.machine(host).write(place, text)
    machines = world.machines("abcde")
    [group] = grouped(machines, {f"{name}:sda": "x" for name in "abcde"})
    made = rules.make(group, "bfq:slice_idle=0", rules.Everywhere(machines))
    assert made is not None
    assert rules.overruled(made, group, machines) == [
        "/etc/udev/rules.d/99-zz.rules:2 sets scheduler to none after this rule: on a:sda",
        "/usr/lib/udev/rules.d/99-zz.rules:2 sets scheduler to none after this rule: on b:sda",
        "/etc/udev/rules.d/99-zzz.rules:1 may set scheduler to bfq after this rule: on c:sda",
        "/etc/udev/rules.d/10-run.rules:1 sets scheduler to kyber after this rule: on e:sda",
        "/usr/lib/tuned/profiles/base/tuned.conf:2 sets scheduler to mq-deadline after this rule "
        "where tuned runs: on e:sda",
    ]


def test_a_disk_without_a_load_is_never_matched(world: World) -> None:
    for name in ("a", "b"):
        world.fleet.machine(name).sata("sda", WD, f"WD-{name}")
    machines = world.machines("ab")
    [group] = grouped(machines, {"a:sda": "x"})
    assert 'SYSCTL{kernel/hostname}=="a"' in rule_text(group, machines)


def test_names_that_are_cut_off_alike_are_told_apart_by_udevs(world: World) -> None:
    world.fleet.machine("a").sata("sda", "WDC WD10EZRX-00A8LB0", "WD-a")
    world.fleet.machine("b").sata("sda", "WDC WD10EZRX-00AZZZZ", "WD-b")
    machines = world.machines("ab")
    found = grouped(machines, {"a:sda": "x", "b:sda": "x"})
    assert len(found) == 2
    assert 'ENV{ID_MODEL}=="WDC_WD10EZRX-00A8LB0"' in rule_text(found[0], machines)


def test_disks_of_one_machine_are_told_apart_by_their_ids(world: World) -> None:
    a = world.fleet.machine("a")
    a.sata("sda", WD, "WD-1111111")
    a.sata("sdb", WD, "WD-2222222")
    machines = world.machines("a")
    found = grouped(machines, {"a:sda": "x", "a:sdb": "y"})
    text = rule_text(found[0], machines)
    assert "WD-1111111" in text and "WD-2222222" not in text and "hostname" not in text


def test_machines_of_one_name_are_told_apart_by_their_disks_ids(world: World) -> None:
    for name in ("a", "b"):
        one = world.fleet.machine(name)
        one.sata("sda", WD, f"WD-000000{name}")
        one.write("proc/sys/kernel/hostname", "localhost")
    machines = world.machines("ab")
    text = rule_text(grouped(machines, {"a:sda": "x", "b:sda": "y"})[0], machines)
    assert "WD-000000a" in text and "localhost" not in text


def test_without_any_key_there_is_no_rule(world: World) -> None:
    one = world.fleet.machine("a")
    one.sata("sda", WD, "WD-1111111")
    one.sata("sdb", WD, "WD-2222222")
    for path in one.top.glob("sys/devices/**/wwid"):
        path.unlink()
    for path in one.top.glob("udev/*"):
        path.write_text("ID_BUS=ata\n")
    machines = world.machines("a")
    assert rule_text(grouped(machines, {"a:sda": "x", "a:sdb": "y"})[0], machines) == ""


def test_a_hostile_name_of_a_disk_or_a_machine_stays_a_pattern(world: World) -> None:
    evil = 'X", RUN+="/bin/sh'
    for name in ("a", "b"):
        one = world.fleet.machine(name)
        one.sata("sda", evil, f"WD-{name}", rotational=name == "a")
        one.write("proc/sys/kernel/hostname", f'{name}", RUN+="x')
    machines = world.machines("ab")
    assert [one.host_name for one in machines.values()] == ["", ""]
    text = rule_text(grouped(machines, {"a:sda": "x"})[0], machines)
    assert 'ATTRS{model}=="X?, RUN+=?/bin/s"' in text
    every = [token.key for line in parse(Path("x.rules"), text) for token in line.tokens]
    assert every.count("ATTR") == 4 and "RUN" not in every


def test_many_machines_fill_several_lines(world: World) -> None:
    names = [f"machine-{n:03}{'x' * 40}" for n in range(200)]
    joined = rules._joined(names)
    assert len(joined) == 2 and all(len(one) < 8192 for one in joined)
    assert "|".join(joined).split("|") == names


def test_the_head_of_rules_does_not_claim_to_be_of_apply() -> None:
    assert "blklab undo" not in rules.text([], ("x",)) and rule.text([]) == ""


def test_a_model_is_found_by_its_name_else_by_its_kind(world: World) -> None:
    one = world.fleet.machine("a")
    one.sata("sda", WD, "WD-1")
    one.sata("sdb", "Hitachi HUA723020ALA641", "YGK-1")
    one.sata("sdc", "Samsung SSD 870 EVO 1TB", "S62-1", rotational=False)
    one.nvme("nvme0n1", "Samsung SSD 950 PRO 256GB", "0025385000000001")
    one.nvme("nvme1n1", "KIOXIA-EXCERIA", "0025385000000002")
    machines = world.machines("a")
    file = hosts.read(world.file)
    told = {}
    for name in ("sda", "sdb", "sdc", "nvme0n1", "nvme1n1"):
        [group] = grouped(machines, {f"a:{name}": "x"})
        model, note = chosen_model(group, file)
        told[name] = (model.label, note.partition(";")[0])
    of_kind = "a model of their kind, not of these disks"
    assert told == {
        "sda": ("wd10ezrx", "the model of these disks"),
        "sdb": ("desktop-5900rpm", of_kind),
        "sdc": ("su800-128gb", of_kind),
        "nvme0n1": ("950pro-256gb", "the model of these disks"),
        "nvme1n1": ("950pro-256gb", of_kind),
    }


def test_several_ways_are_better_only_together_and_worse_if_one_is() -> None:
    up, even, down = Interval(2.0, 1.5, 2.5), Interval(1.0, 0.9, 1.1), Interval(0.5, 0.4, 0.6)
    assert together([("better", up), ("better", Interval(3.0, 1.2, 4.0))]) == (
        "better", Interval(3.0, 1.2, 4.0)
    )  # fmt: skip
    assert together([("better", up), ("no difference", even)]) == (
        "not known", Interval(1.0, 0.9, 2.5)
    )  # fmt: skip
    assert together([("worse", down), ("better", up)])[0] == "worse"
    assert together([("no difference", even)] * 2)[0] == "no difference"
    assert together([("better", up), ("not known", None)]) == ("not known", None)


STREAMS = "streams:runtime=5"
LOADS = """
objective = "throughput"
repeats = 4
schedulers = ["mq-deadline", "bfq"]
[models]
"WDC*" = "wd10ezrx"
"""


def test_a_group_gets_a_choice_and_each_disk_its_own_change(world: World) -> None:
    world.fleet.machine("a").sata("sda", WD, "WD-a")
    world.fleet.machine("b").sata("sda", WD, "WD-b", **BFQ)
    found = world.judge(
        f"{LOADS}[[host]]\nnames = ['a', 'b', 'gone']\nworkloads = ['{STREAMS}']\n", keep=True
    )
    [group] = found.groups
    assert (group.disks, group.load) == (("a:sda", "b:sda"), "streams")
    assert (group.kernel_default, group.choice) == ("mq-deadline", "bfq")
    assert group.gain is not None and group.gain.low > 1.5
    assert group.reason == "bfq instead of mq-deadline" and "bfq is" in group.ways["simulated"]
    first, second = sorted(found.changes, key=lambda one: one.host)
    assert (first.present, first.target, first.change) == ("mq-deadline", "bfq", "better")
    assert first.ratio == group.gain and first.by_rule
    assert (second.present, second.change, second.ratio) == ("bfq", "no difference", None)
    assert not second.by_rule and not found.losers and not found.beyond
    assert group.rule in found.rules and group.rule.startswith('ACTION=="add|change"')
    assert "# 1: WDC WD10EZRX-00A8LB0 (sata hdd) under streams, 2 disks" in found.rules
    [missing] = found.missing
    assert missing.startswith("gone: no answer of it in ")
    assert group.notes == ()
    [number] = group.comparisons
    assert blklab.stored(number).listed.objective == "throughput"


def test_a_disk_that_would_lose_comes_first_with_its_load(world: World) -> None:
    world.fleet.machine("a").sata("sda", WD, "WD-a")
    world.fleet.machine("b").nvme("nvme0n1", "Samsung SSD 950 PRO 256GB", "0025385000000001")
    found = world.judge(
        f"{LOADS}[[host]]\nname = 'a'\n"
        f"workloads = ['{STREAMS}', 'readers-vs-writer:runtime=10']\n"
        f"[[host]]\nname = 'b'\nworkloads = ['{QUICK}']\n"
    )
    first, second, *_ = found.changes
    assert found.losers == [first]
    assert (first.host, first.load.partition(":")[0]) == ("a", "readers-vs-writer")
    assert first.change == "worse" and first.ratio is not None and first.ratio.high < 1.0
    assert second.load.startswith("streams") and second.change == "better"
    [keeps] = [one for one in found.groups if one.kind == "nvme ssd"]
    assert keeps.choice is None and keeps.reason.startswith("keep the kernel's own choice, none")
    assert keeps.rule == "" and "nvme" not in found.rules.replace("# ", "").lower()


def test_a_scheduler_that_is_not_simulated_leaves_the_change_unknown(world: World) -> None:
    world.fleet.machine("a").sata("sda", WD, "WD-a", scheduler="none mq-deadline [adios]")
    found = world.judge(f"{LOADS}[[host]]\nname = 'a'\nworkloads = ['{STREAMS}']\n")
    [one] = found.changes
    assert (one.present, one.target, one.change, one.ratio) == ("adios", "bfq", "not known", None)
    [group] = found.groups
    assert group.notes == (
        "bfq is not loaded for a:sda: the rule loads it if the kernel has the module",
    )


def test_tunables_that_a_disk_has_now_count(world: World) -> None:
    world.fleet.machine("a").sata("sda", WD, "WD-a", tunables={"fifo_batch": "1"})
    found = world.judge(f"{LOADS}[[host]]\nname = 'a'\nworkloads = ['{STREAMS}']\n")
    [one] = found.changes
    assert one.present == "mq-deadline:fifo_batch=1" and one.ratio is not None


def _recorded(world: World, host: str, workload: str, name: str = "day.rec", seed: int = 1) -> None:
    place = world.fleet.top / host / "var/tmp" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    blklab.record_run(workload, place, disk="wd10ezrx", scheduler="mq-deadline", seed=seed)


def test_recordings_are_replayed_in_three_ways_and_grouped_by_kind(world: World) -> None:
    for name, workload in (("a", QUICK), ("b", QUICK), ("c", "seqwrite:runtime=1")):
        world.fleet.machine(name).sata("sda", WD, f"WD-{name}")
        _recorded(world, name, workload, seed=ord(name))
    found = world.judge(
        f"{LOADS}[[host]]\nnames = ['a', 'b', 'c']\n[[host.load]]\nrecording = '/var/tmp/day.rec'\n"
    )
    told = {one.load: one for one in found.groups}
    assert set(told) == {"small-reads", "large-writes"}
    reads = told["small-reads"]
    assert reads.loads == ("a/day.rec", "b/day.rec") and reads.disks == ("a:sda", "b:sda")
    assert set(reads.ways) == {"open", "closed", "inferred"}
    assert reads.choice is None and not found.rules


def test_an_idle_disk_keeps_what_it_has_without_a_simulation(world: World) -> None:
    world.fleet.machine("a").sata("sda", WD, "WD-a")
    _recorded(world, "a", "randread:rate_iops=1,runtime=20")
    found = world.judge(
        f"{LOADS}[[host]]\nname = 'a'\n[[host.load]]\nrecording = '/var/tmp/day.rec'\n"
    )
    [group] = found.groups
    assert (group.load, group.choice) == ("idle", None)
    assert group.reason == "its disks are idle: nothing to gain" and not group.comparisons


def test_a_recording_finds_its_disk_by_its_number(world: World, tmp_path: Path) -> None:
    one = world.fleet.machine("a")
    one.sata("sda", WD, "WD-a")
    one.sata("sdb", WD, "WD-b")
    lines = [
        f"8,{16 * disk} 0 {n + 1} {n * 0.01 + disk * 0.003 + step * 1e-4:.9f} 7 {act} R {n * 4096} "
        "+ 8 [fio]"
        for n in range(300)
        for disk in (1, 2)
        for step, act in enumerate("QGIDC")
    ]
    (tmp_path / "here.blkparse").write_text("\n".join(lines) + "\n")
    loads = "[[host]]\nname = 'a'\n[[host.load]]\nfile = 'here.blkparse'\n"
    found = world.judge(LOADS + loads)
    [group] = found.groups
    assert group.disks == ("a:sdb",) and group.loads == ("here.blkparse#8:16",)
    assert found.notes[0] == "a:sda: the file of hosts gives it no load"


def test_loads_without_a_disk_and_recordings_that_are_missing_are_named(world: World) -> None:
    one = world.fleet.machine("a")
    one.sata("sda", WD, "WD-a")
    one.sata("sdb", WD, "WD-b")
    found = world.judge(
        f"{LOADS}[[host]]\nname = 'a'\n[[host.load]]\ndisk = 'sda'\nworkload = '{QUICK}'\n"
        "[[host.load]]\ndisk = 'sdb'\nrecording = '/var/tmp/none.rec'\n"
        f"[[host.load]]\ndisk = 'sdz'\nworkload = '{QUICK}'\n"
    )
    assert [one.disks for one in found.groups] == [("a:sda",)]
    assert found.missing_recordings == ("a: /var/tmp/none.rec: was not collected",)
    assert found.notes == (f"a: {QUICK}: no disk 'sdz' for it",)
    done = run(world.file, "--from", "kept", "--no-keep", code=3, cwd=world.top)
    assert "blklab: a: /var/tmp/none.rec: was not collected" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[models]\n'x' = 'nonesuch'\n[[host]]\nname = 'a'\n", ":2: x: no disk 'nonesuch'"),
        ("schedulers = ['bfq', 'x']\n[[host]]\nname = 'a'\n", ":1: schedulers: "),
        ("[[host]]\nname = 'a'\nworkloads = ['randreed']\n", ":3: workloads: no workload"),
        ("[[host]]\nname = 'a'\nworkloads = ['pgbench']\n", ":3: workloads: pgbench: is a real"),
        ("[[host]]\nname = 'a'\n", ": no disk can be judged; a:sda: the file of hosts gives it no"),
        ("[[host]]\nname = 'b'\n", ": no disk can be judged; b: no answer of it in"),
    ],
)
def test_a_file_that_names_what_there_is_not_is_refused(text: str, said: str, world: World) -> None:
    world.fleet.machine("a").sata("sda", WD, "WD-a")
    with pytest.raises(InputError) as error:
        world.judge(text)
    assert str(error.value).startswith(f"{world.file}{said}"), str(error.value)
    assert "\n" not in str(error.value)


def run(*words: str | Path, code: int, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [BLKLAB, "fleet", *map(str, words)],
        cwd=cwd,
        env=os.environ | {"BLKLAB_STORE": str(cwd / "results.db"), "XDG_CACHE_HOME": str(cwd)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def test_the_command_collects_judges_and_says_what_is_missing(world: World) -> None:
    world.fleet.machine("a").sata("sda", WD, "WD-a")
    world.fleet.mode("b", "refuse ssh: connect to host b port 22: Connection refused")
    world.file.write_text(f"{LOADS}[[host]]\nnames = ['a', 'b']\nworkloads = ['{STREAMS}']\n")
    done = run(world.file, "--rules", "my.rules", code=3, cwd=world.top)
    assert "blklab: b: ssh: connect to host b port 22: Connection refused" in done.stderr
    assert re.match(
        r"1 of 2 hosts, 1 disk in 1 group\ncollected on 20\d\d-\d\d-\d\d\n", done.stdout
    )
    assert "No disk would lose by the rules." in done.stdout
    assert "The rules are in my.rules; nothing was installed." in done.stdout
    assert 'ATTR{queue/scheduler}="bfq"' in (world.top / "my.rules").read_text()
    assert list((world.top / "blklab/fleets").glob("*/a/answer.txt"))
    # Without b the same is complete.
    world.file.write_text(f"{LOADS}[[host]]\nnames = ['a']\nworkloads = ['{STREAMS}']\n")
    found = json.loads(run(world.file, "--json", "--no-keep", code=0, cwd=world.top).stdout)
    assert found["groups"][0]["choice"] == "bfq" and found["problems"] == []


def test_the_two_steps_need_no_network_in_the_second(world: World) -> None:
    world.fleet.machine("a").sata("sda", WD, "WD-a")
    loads = f"workloads = ['{STREAMS}', 'readers-vs-writer:runtime=10']\n"
    world.file.write_text(f"{LOADS}[[host]]\nname = 'a'\n{loads}")
    done = run(world.file, "--collect", "kept", code=0, cwd=world.top)
    assert done.stdout == "1 of 1 hosts have answered; recordings copied: 0, unchanged: 0\n"
    shutil.rmtree(world.fleet.top / "a")
    before = world.fleet.calls()
    done = run(world.file, "--from", "kept", "--no-keep", code=1, cwd=world.top)
    assert "1 disk would lose by the rules:" in done.stdout and "worse" in done.stdout
    assert world.fleet.calls() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--collect", "a", "--from", "b"], "--from: judges what --collect has collected"),
        (["--collect", "a", "--rules", "b"], "--rules: is written by judging"),
        (["--objective", "speed", "--from", "a"], "no 'speed'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: list[str], said: str, world: World
) -> None:
    world.file.write_text("[[host]]\nname = 'a'\n")
    assert said in run(world.file, *words, code=2, cwd=world.top).stderr


def test_the_example_is_what_its_machines_answer(tmp_path: Path) -> None:
    from tests import fleet_machines

    made = fleet_machines.example(tmp_path / "fleet")
    for name in ("mail1", "mail2"):
        place = made.top / name / "var/tmp/day.rec"
        place.parent.mkdir(parents=True)
        shutil.copy(next((ROOT / "examples/fleet" / name).glob("*.rec")), place)
    subprocess.run(
        [BLKLAB, "fleet", EXAMPLE, "--collect", tmp_path / "kept"],
        env=os.environ | {"PATH": made.path},
        capture_output=True,
        check=False,
    )
    for kept in sorted((ROOT / "examples/fleet").glob("*/answer.txt")):
        new = (tmp_path / "kept" / kept.parent.name / "answer.txt").read_text()
        # The first line and recordings have times.
        assert [x for x in new.splitlines()[1:] if x[:1] != "r"] == [
            x for x in kept.read_text().splitlines()[1:] if x[:1] != "r"
        ]


def test_nothing_about_a_group_is_lost_as_json(world: World) -> None:
    world.fleet.machine("a").sata("sda", WD, "WD-a")
    found = world.judge(f"{LOADS}[[host]]\nname = 'a'\nworkloads = ['{QUICK}']\n")
    document = json.loads(json.dumps(found.to_json()))
    assert set(document) == {
        "objective", "hosts", "groups", "changes", "rules", "beyond", "missing",
        "missing_recordings", "collected", "notes", "losers",
    }  # fmt: skip
    assert set(document["groups"][0]) == set(api.FleetGroup.__dataclass_fields__)
