"""Every run tries the fuzzer's stored inputs again, Rust's part by `cargo test`; see docs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.disks import DISKS
from blklab.domain import core, specs
from blklab.errors import InputError
from blklab.host import reading
from blklab.host.devices import cgroups, mounts
from blklab.host.devices.deciders import tuned
from blklab.host.devices.queue import named
from blklab.host.roots import Roots
from blklab.host.udev import judge, node
from blklab.rigs.kernel import cache, changes
from blklab_fuzz import packed, seeds
from blklab_fuzz.targets import TARGETS
from tests.fake_sysfs import Machine

FUZZ = Path(__file__).parents[1] / "fuzz"
_BYTES_MAX = 2 << 20


def test_every_kept_input_is_taken_or_refused_as_it_has_to_be() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "blklab_fuzz"],
        env=os.environ | {"PYTHONPATH": str(FUZZ / "python")},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    asked = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert asked == list(TARGETS)


def test_every_target_has_kept_inputs_and_all_together_are_small() -> None:
    kept = {path.name for path in FUZZ.glob("corpus/*/*") if path.parent.name != "failed"}
    assert kept == {*TARGETS, *seeds.RUST}
    assert sum(path.stat().st_size for path in FUZZ.glob("corpus/*/*")) < _BYTES_MAX


@given(st.lists(st.binary(max_size=40)))
def test_packed_inputs_are_lines_and_come_back_to_the_byte(inputs: list[bytes]) -> None:
    text = packed.packed(inputs)
    assert text.isascii() and text.count("\n") == len(set(inputs))
    assert packed.read(text) == sorted(set(inputs))


@pytest.mark.parametrize("line", ["a\\", "\\x1", "\\q", "\x1b", "ü"])
def test_a_line_that_was_not_packed_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="escape"):
        packed.read(f"{line}\n")


@pytest.mark.parametrize("target", sorted({*TARGETS, *seeds.RUST}))
def test_a_dictionary_is_what_the_fuzzer_reads(target: str) -> None:
    lines = seeds.dictionary(target).splitlines()
    assert seeds.seeds(target)
    assert all(line.isascii() and line[0] == line[-1] == '"' and len(line) > 2 for line in lines)


# Inputs that the fuzzer has found, each with similar ones.


def test_a_name_that_no_file_can_have_is_refused_in_one_line() -> None:
    for read in (
        lambda: DISKS.find("a\0b/c.toml"),
        lambda: DISKS.find("~\0/c.toml"),
        lambda: changes.read([Path("a\0.patch")]),
        lambda: changes.read_added([Path("a\0/b.c")]),
    ):
        with pytest.raises(InputError, match=r"NUL|embedded null byte"):
            read()


def test_a_name_that_is_longer_than_a_files_is_refused_in_one_line() -> None:
    for read, end in ((specs.disk, ".toml"), (specs.workload, ".fio")):
        with pytest.raises(InputError, match="File name too long"):
            read(f"./{'x' * 300}{end}")
        with pytest.raises(InputError, match=r"no (disk|workload) 'xxx"):
            read("x" * 300)
        # The whole name is looked up before it is split.
        with pytest.raises(InputError, match="unknown key"):
            core.disk_model(specs.disk(f"su800-128gb:{'x' * 300}=1"))


@pytest.mark.parametrize(
    "record", ["{}", "0", '{"version": 7}', '{"patches": 1}', "\x00", "[" * 100_000]
)
def test_a_kernel_without_a_valid_record_is_not_a_kernel(
    record: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path))
    place = tmp_path / "kernels/built/0123456789ab/kernel.json"
    place.parent.mkdir(parents=True)
    place.with_name("linux").touch()
    place.write_text(record)
    assert cache.kernels() == []
    whole = json.loads(seeds.seeds("kernel_record")[0])
    place.write_text(json.dumps(whole))
    assert [kernel.version for kernel in cache.kernels()] == [whole["version"]]
    place.write_text(json.dumps(whole | {"version": "mine"}))
    assert cache.kernels() == []


def test_a_file_with_an_impossible_name_does_not_exist() -> None:
    place = Path("/sys/a\0b")
    assert (reading.value(place), reading.lines(place), reading.script(place)) == ("", [], [])
    assert (reading.names(place), reading.link_name(place), reading.end_name(place)) == ([], "", "")
    assert not any(map(reading.exists, (place, Path("/sys", "x" * 300))))
    assert node.Node(Path("/sys/devices"), Path("/sys")).attribute("a\0b") is None


def test_a_profile_or_a_rule_that_names_too_long_a_file_names_none(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.disk("sda")
    machine.write("etc/tuned/active_profile", "mine")
    machine.write("etc/tuned/mine/tuned.conf", f"[main]\ninclude={'x' * 300}\n[disk]\nelevator=bfq")
    disk = named("sda", machine.roots)
    assert [found.value for found in tuned.influences(disk, machine.roots)] == ["bfq"]
    for name in ("x" * 300, "/sys/*/a**b", "/sys/*/" + "x" * 300):
        rule = f'TEST=="{name}", ATTR{{queue/scheduler}}="bfq"'
        machine.write("etc/udev/rules.d/50-a.rules", rule)
        assert judge.effects(disk.disk, "add", machine.roots) == []


def test_a_device_with_a_dangling_name_is_mounted_from_none(tmp_path: Path) -> None:
    roots = Roots.under(tmp_path)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/round").symlink_to("round")
    (tmp_path / "sys/class/block").mkdir(parents=True)
    for name in ("round", "a\0b", "x" * 300, "x/" * 3000):
        mount = mounts.Mount("0:42", "/", "/mnt", "btrfs", f"/dev/{name}", "rw")
        assert mounts.sources(mount, roots) == []
    assert reading.end_name(tmp_path / "dev/round") == ""
    for name in ("a\0b", "x" * 300):
        mount = mounts.Mount("0:26", "/", f"/sys/{name}", "cgroup2", "cgroup2", "rw")
        assert cgroups.settings([mount], roots) == []
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/swaps").write_text("Filename Type\n/dev/round partition 1 0 -2\n")
    assert mounts.swaps(roots) == set()
