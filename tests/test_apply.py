"""Apply, status and undo on real disks, as root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from typer.testing import CliRunner

from blklab.cli import app
from blklab.errors import InputError
from blklab.host.devices import queue
from blklab.host.devices.queue import Queue
from blklab.host.roots import Roots
from blklab.settings import change, choice, profile, record, rule
from blklab.settings import status as states
from blklab.settings.words import status_lines
from tests import loop_device
from tests.applying import Asked, apply, files

_SPEC = "bfq:low_latency=0,slice_idle_us=500"

_SET = (
    st.fixed_dictionaries(
        {},
        optional={
            "scheduler": st.sampled_from(["none", "mq-deadline", "kyber", "bfq"]),
            "nr_requests": st.sampled_from(["4", "77", "128"]),
            "read_ahead_kb": st.sampled_from(["0", "64", "4096"]),
            "max_sectors_kb": st.sampled_from(["64", "1280"]),
            "rq_affinity": st.sampled_from(["0", "1", "2"]),
            "nomerges": st.sampled_from(["0", "1", "2"]),
            "wbt_lat_usec": st.sampled_from(["0", "500", "75000"]),
            "add_random": st.sampled_from(["0", "1"]),
            "iostats": st.sampled_from(["0", "1"]),
            "rotational": st.sampled_from(["0", "1"]),
        },
    )
    .filter(bool)
    .map(lambda values: {name: values[name] for name in queue.in_order(values)})
)


@pytest.mark.parametrize("first", ["none", "mq-deadline:fifo_batch=1", "kyber:read_lat_nsec=5",
                                   "bfq:low_latency=1,strict_guarantees=1"])  # fmt: skip
def test_undo_restores_the_earlier_settings_exactly(
    loop: Queue, roots: Roots, programs: Asked, first: str
) -> None:
    loop.write_all(choice.parse(first, loop) | {"nr_requests": "100", "read_ahead_kb": "64"})
    before = loop.settings()
    notes = apply(loop, _SPEC, roots, programs, more="nr_requests=48")
    assert notes == [
        "udev is not running here: set directly; the rule takes effect where udev runs"
    ]
    assert loop.settings().items() >= {
        "scheduler": "bfq", "nr_requests": "48", "iosched/low_latency": "0",
        "iosched/slice_idle_us": "500",
    }.items()  # fmt: skip
    assert states.status(record.load(roots), roots).holds
    _, left = change.undo(roots, programs)
    assert left == []
    assert loop.settings() == before
    assert files(roots) == []


def test_two_applies_are_undone_one_after_the_other(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    pictures = [loop.settings()]
    for spec in ("mq-deadline:fifo_batch=4", "bfq:slice_idle=0", "mq-deadline:fifo_batch=9"):
        apply(loop, spec, roots, programs)
        pictures.append(loop.settings())
    assert states.status(record.load(roots), roots).holds
    while len(pictures) > 1:
        assert loop.settings() == pictures.pop()
        change.undo(roots, programs)
    assert loop.settings() == pictures[0]
    with pytest.raises(InputError, match="nothing is applied"):
        change.undo(roots, programs)


@pytest.mark.parametrize("form", ["nr_requests=77", "read_ahead_kb=64"])
def test_undo_restores_settings_that_a_change_of_the_scheduler_reset(
    loop: Queue, roots: Roots, programs: Asked, form: str
) -> None:
    loop.write_all({"scheduler": "none", "nr_requests": "77", "rq_affinity": "2"})
    before = loop.settings()
    apply(loop, "bfq", roots, programs, more=form)
    first = loop.settings()
    apply(loop, "kyber", roots, programs, more="nr_requests=77")
    assert change.undo(roots, programs)[1] == []
    assert loop.settings() == first
    assert change.undo(roots, programs)[1] == []
    assert loop.settings() == before


def test_any_applies_are_undone_to_the_state_before_each(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    @hypothesis.settings(
        max_examples=int(os.environ.get("BLKLAB_TEST_APPLIES", "25")),
        deadline=None,
        # A real disk takes some time for each.
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(_SET, st.lists(_SET, min_size=1, max_size=3))
    def all_undone(first: dict[str, str], applied: list[dict[str, str]]) -> None:
        loop.write_all(first)
        pictures = []
        for settings in applied:
            pictures.append(loop.settings())
            made = change.plan(loop, settings, "id", "auto", roots)
            change.carry_out(made, roots, programs)
        while pictures:
            assert change.undo(roots, programs)[1] == []
            assert loop.settings() == pictures.pop()
        assert files(roots) == []

    all_undone()


def test_undo_keeps_settings_that_the_administrator_changed_later(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    loop.write_all({"scheduler": "none", "nr_requests": "77", "read_ahead_kb": "128"})
    before = loop.settings()
    apply(loop, "bfq", roots, programs, more="nomerges=1")
    # The administrator's change; the undo covers the other settings.
    loop.write("read_ahead_kb", "512")
    loop.write("nr_requests", "33")
    loop.write("nomerges", "2")
    loop.write("scheduler", "kyber")
    assert change.undo(roots, programs)[1] == []
    assert loop.settings() == before | {"read_ahead_kb": "512"}


def test_undone_after_a_reboot_everything_of_it_is_as_before(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    loop.write_all({"scheduler": "kyber", "iosched/read_lat_nsec": "7", "nr_requests": "77"})
    before = loop.settings()
    apply(loop, "bfq:slice_idle=0", roots, programs, more="nr_requests=77")
    # A new boot: the kernel's own settings, then what the rule sets.
    loop.write("scheduler", "none")
    loop.write_all(rule.wanted(rule.place(roots).read_text(), loop, roots))
    assert change.undo(roots, programs)[1] == []
    assert loop.settings() == before


def test_earlier_applied_settings_stay_unless_applied_anew(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    apply(loop, "bfq:slice_idle=0,low_latency=0", roots, programs, more="read_ahead_kb=64")
    apply(loop, "bfq:low_latency=1", roots, programs)
    assert rule.wanted(rule.place(roots).read_text(), loop, roots) == {
        "scheduler": "bfq", "read_ahead_kb": "64", "iosched/low_latency": "1",
        "iosched/slice_idle": "0",
    }  # fmt: skip
    apply(loop, "mq-deadline", roots, programs)
    wanted = {"scheduler": "mq-deadline", "read_ahead_kb": "64"}
    assert rule.wanted(rule.place(roots).read_text(), loop, roots) == wanted


def test_status_names_settings_that_no_longer_hold_and_the_likely_cause(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    apply(loop, "bfq:slice_idle=0", roots, programs)
    loop.write("scheduler", "kyber")
    (roots.etc / "tmpfiles.d").mkdir()
    line = f"w /sys/block/{loop.name}/queue/scheduler - - - - kyber\n"
    (roots.etc / "tmpfiles.d/x.conf").write_text(line)
    now = states.status(record.load(roots), roots)
    assert not now.holds
    told = "\n".join(status_lines(now))
    conf = roots.etc / "tmpfiles.d/x.conf"
    assert f"scheduler is kyber, bfq was applied; tmpfiles.d line {conf}:1" in told
    assert "slice_idle cannot be read, 0 was applied" in told
    assert f"may be undone by tmpfiles.d line {conf}:1, which sets scheduler to kyber" in told


def test_status_misses_a_rules_file_that_is_gone(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    apply(loop, "bfq", roots, programs)
    rule.place(roots).unlink()
    now = states.status(record.load(roots), roots)
    assert not now.holds
    assert "99-blklab.rules is gone or was changed" in status_lines(now)[-1]


def test_a_changed_rules_file_is_left_alone(loop: Queue, roots: Roots, programs: Asked) -> None:
    apply(loop, "bfq", roots, programs)
    place = rule.place(roots)
    place.write_text(place.read_text() + "# mine\n")
    for what in (
        lambda: change.undo(roots, programs),
        lambda: apply(loop, "none", roots, programs),
    ):
        with pytest.raises(InputError, match="is not as blklab wrote it; move it away first"):
            what()
    assert place.read_text().endswith("# mine\n")
    assert loop.read("scheduler") == "bfq"


def test_a_removed_disk_is_reported_and_all_others_are_undone(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    apply(loop, "bfq", roots, programs)
    loop_device.losetup("--detach", f"/dev/{loop.name}")
    _, left = change.undo(roots, programs)
    loop_device.losetup(f"/dev/{loop.name}", str(roots.etc.parent.parent / "loop.img"))
    queue.named(loop.name).write("scheduler", "none")
    assert left == [f"{loop.name} is another disk now; none of its settings was restored"]
    assert files(roots) == []


def test_a_disk_that_came_back_under_another_name_is_found(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    file = roots.etc.parent.parent / "loop.img"
    apply(loop, "bfq", roots, programs)
    loop_device.losetup("--detach", f"/dev/{loop.name}")
    queue.named(loop.name).write("scheduler", "none")
    # Another disk takes its place.
    (file.parent / "other.img").write_bytes(bytes(1 << 20))
    loop_device.losetup(f"/dev/{loop.name}", str(file.parent / "other.img"))
    other = Path(loop_device.losetup("--find", "--show", str(file))).name
    try:
        assert other != loop.name
        queue.named(other).write("scheduler", "bfq")
        _, left = change.undo(roots, programs)
        assert left == []
        assert queue.named(other).read("scheduler") == "none"
    finally:
        queue.named(other).write("scheduler", "none")
        loop_device.losetup("--detach", f"/dev/{other}")


_WITH_UDEV = """\
mount -t tmpfs tmpfs /run && mkdir -p /run/udev && mount -t tmpfs tmpfs /dev &&
mknod /dev/null c 1 3 && mount --bind "$1/rules" /usr/lib/udev/rules.d &&
mkdir -p "$1/etc/udev/rules.d" && mount --bind "$1/etc/udev/rules.d" /etc/udev/rules.d || exit 1
/lib/systemd/systemd-udevd >/dev/null 2>&1 &
udev=$!
while [ ! -e /run/udev/control ] && kill -0 $udev; do sleep 0.05; done
"$2" -c "$3" "$1" "$4"
kill $udev; wait $udev 2>/dev/null
"""
_APPLIED_BY_UDEV = """\
import sys
from dataclasses import replace
from pathlib import Path
from blklab.settings import change, choice, programs
from blklab.host.devices import queue
from blklab.host.roots import HERE
own, name = Path(sys.argv[1]), sys.argv[2]
roots = replace(HERE, var=own / "var")
disk = queue.named(name)
settings = choice.together(choice.parse("bfq:low_latency=0,slice_idle=3", disk),
                           {"nr_requests": "40"})
made = change.plan(disk, settings, "id", "auto", roots)
print(change.carry_out(made, roots, programs.HERE))
disk.write("scheduler", "none")
programs.HERE.run(["udevadm", "trigger", "--action=change", f"/sys/block/{name}"])
programs.HERE.run(["udevadm", "settle"])
print({key: value for key, value in disk.settings().items() if key in settings})
print(change.undo(roots, programs.HERE)[1])
print(disk.settings() == made.entry.disks[0].before)
"""


def test_the_commands_from_apply_to_undo(
    loop: Queue, roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blklab.host.roots.HERE", roots)
    loop.write("read_ahead_kb", "128")

    def run(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, arguments, catch_exceptions=False)
        return done.exit_code, done.stdout

    assert run("status") == (0, "nothing is applied\n")
    code, text = run("apply", f"/dev/{loop.name}", "bfq:slice_idle=0", "--set", "read_ahead_kb=64")
    assert code == 0
    assert f"{loop.name}: scheduler none -> bfq, read_ahead_kb 128 -> 64" in text
    assert "note: udev is not running here" in text
    assert text.endswith("applied and verified; see: blklab status, blklab undo\n")
    assert run("apply", loop.name, "--nr-requests", "40")[0] == 0
    code, text = run("status")
    assert code == 0
    assert f"{loop.name}: holds" in text
    loop.write("nr_requests", "50")
    code, text = run("status", "--json")
    assert code == 1
    told = json.loads(text)
    assert told["holds"] is False
    (disk,) = told["disks"]
    assert {row["attribute"]: row["found"] for row in disk["settings"]} == {
        "scheduler": "bfq", "nr_requests": "50", "read_ahead_kb": "64", "iosched/slice_idle": "0",
    }  # fmt: skip
    code, text = run("undo", "--all")
    assert code == 0
    assert text.count("undone: ") == 2
    assert loop.read("scheduler") == "none"
    assert loop.read("read_ahead_kb") == "128"
    for words in (("undo",), ("undo", "--all")):
        refused = CliRunner().invoke(app, words)
        assert str(refused.exception) == "nothing is applied; there is nothing to undo"
    rule.place(roots).write_text("# left\n")
    code, text = run("status")
    assert code == 1
    assert "exists, but the previous values are not known; remove it" in text


def test_udev_itself_sets_it_whenever_the_disk_changes(loop: Queue, tmp_path: Path) -> None:
    for program in ("/usr/bin/udevadm", "/lib/systemd/systemd-udevd"):
        if not Path(program).exists():
            pytest.skip(f"needs {program}: apt-get install udev")
    if subprocess.run(["unshare", "-mn", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs namespaces, which this container refuses")
    (tmp_path / "rules").mkdir()
    command = ["unshare", "-mn", "sh", "-c", _WITH_UDEV, "sh", str(tmp_path), sys.executable]
    done = subprocess.run(
        [*command, _APPLIED_BY_UDEV, loop.name], check=False, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    # No note: udev has set all of them before blklab did.
    assert done.stdout.splitlines() == [
        "[]",
        "{'scheduler': 'bfq', 'nr_requests': '40', 'iosched/low_latency': '0',"
        " 'iosched/slice_idle': '3'}",
        "[]",
        "True",
    ], done.stderr


def test_all_of_a_kind_are_meant(loop: Queue, roots: Roots) -> None:
    made = change.plan(loop, choice.parse("bfq", loop), "kind", "auto", roots)
    assert loop.name in [disk.name for disk in made.disks]
    assert all(disk.name.startswith("loop") for disk in made.disks)
    assert made.entry.key.matches[0] == 'KERNEL=="loop*"'


def test_as_an_ordinary_user_dry_run_works_and_the_rest_says_what_to_type(
    loop: Queue,
) -> None:
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable,
               "-m", "blklab", "apply", loop.name, "bfq:low_latency=0"]  # fmt: skip

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *more], check=False, capture_output=True, text=True,
                              cwd="/")  # fmt: skip

    shown = run("--dry-run")
    assert shown.stderr == ""
    assert f"{loop.name}: scheduler none -> bfq" in shown.stdout
    assert 'ATTR{queue/iosched/low_latency}="0"' in shown.stdout
    done = run()
    assert done.returncode == 2
    typed = f"sudo {sys.executable} -m blklab apply {loop.name} bfq:low_latency=0"
    assert f"99-blklab.rules: needs root; type: {typed}\n" in done.stderr
    assert loop.read("scheduler") == "none"


def test_tuned_switches_to_blklabs_profile_and_back(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    _tuned(roots, "[disk]\nelevator=kyber\n")
    notes = apply(loop, "bfq:slice_idle=0", roots, programs)
    assert len(notes) == 1
    assert programs.words == ["tuned-adm profile blklab"]
    text = profile.place(roots).read_text()
    assert "include=mine\n" in text
    assert f"type=disk\npriority=-11\ndevices={loop.name}\nelevator=bfq\n" in text
    (roots.etc / "tuned/active_profile").write_text("blklab\n")
    assert states.status(record.load(roots), roots).disks[0].rivals == ()
    change.undo(roots, programs)
    assert programs.words[1:] == ["tuned-adm profile mine"]
    assert not profile.place(roots).exists()


def test_a_module_is_loaded_first_and_its_failure_is_a_note(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    made = change.plan(loop, choice.parse("kyber", loop), "id", "auto", roots)
    programs.wrong = "modprobe: no such module"
    notes = change.carry_out(replace(made, module="kyber-iosched"), roots, programs)
    assert programs.words == ["modprobe kyber-iosched"]
    # The kernel may have loaded it by itself: the value read back counts.
    assert notes[0] == "modprobe: no such module"
    assert loop.read("scheduler") == "kyber"


def test_a_rule_is_enough_where_tuned_sets_nothing_of_it(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    _tuned(roots, "[disk]\nreadahead=4096\n")
    apply(loop, "bfq", roots, programs)
    assert programs.words == []
    assert not profile.place(roots).exists()


def _tuned(roots: Roots, text: str) -> None:
    (roots.etc / "tuned/mine").mkdir(parents=True)
    (roots.etc / "tuned/active_profile").write_text("mine\n")
    (roots.etc / "tuned/mine/tuned.conf").write_text(text)
