"""`blklab fleet` collects from machines: it only reads, and names the hosts that do not answer."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import blklab
from blklab.errors import MachineError
from blklab.fleet import answer, collect
from blklab.fleet.collect import CollectedHost
from blklab.fleet.ssh import Sessions
from tests.fleet_machines import WD, FakeFleet

BLKLAB = Path(sys.executable).with_name("blklab")
RECORDING = "/var/tmp/day of mail's.rec"
HOSTS = f"""
timeout_s = 20
parallel = 4
[[host]]
names = ["a", "b", "c"]
[[host.load]]
disk = "sda"
recording = "{RECORDING}"
"""


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeFleet:
    """Three machines, each with a disk and a recording."""
    made = FakeFleet(tmp_path / "fleet")
    monkeypatch.setenv("PATH", made.path)
    for name in ("a", "b", "c"):
        made.machine(name).sata("sda", WD, f"WD-0000000{name}")
    first = made.top / f"a{RECORDING}"
    first.parent.mkdir(parents=True)
    blklab.record_run("randread:runtime=1", first, disk="wd10ezrx")
    for name in ("b", "c"):
        (made.top / name / "var/tmp").mkdir(parents=True)
        shutil.copy(first, made.top / f"{name}{RECORDING}")
    for name in ("a", "b"):
        one = made.machine(name)
        one.write("etc/udev/rules.d/60-io.rules", 'A="b",\tATTR{queue/scheduler}="bfq"\n# x\\n')
        one.write("usr/lib/udev/rules.d/60-io.rules", 'ATTR{queue/scheduler}="masked"')
        one.write("lib/udev/rules.d/61 odd.rules", 'ATTR{queue/scheduler}="not sent"')
        one.write("lib/udev/rules.d/62-other.rules", 'ATTR{power/control}="not sent"')
        one.write("lib/udev/rules.d/63-io.rules", 'ATTR{queue/scheduler}="kyber"')
        one.write("usr/lib/tuned/base/tuned.conf", "[disk]\nelevator=none")
    made.machine("a").write("etc/tuned/active_profile", "base")
    (tmp_path / "hosts.toml").write_text(HOSTS)
    return made


def collected(tmp_path: Path, hosts: str = HOSTS) -> dict[str, CollectedHost]:
    (tmp_path / "hosts.toml").write_text(hosts)
    every = blklab.collect_fleet(tmp_path / "hosts.toml", tmp_path / "kept")
    return {one.host: one for one in every}


def kept(tmp_path: Path) -> list[str]:
    """All files that were collected, with the names of recordings shortened."""
    every = (path for path in (tmp_path / "kept").rglob("*") if path.is_file())
    return sorted(
        re.sub(r"[0-9a-f]{12}-", "-", str(path.relative_to(tmp_path / "kept"))) for path in every
    )


def of_host(name: str) -> list[str]:
    return [f"{name}/-day_of_mail_s.rec", f"{name}/answer.txt", f"{name}/recordings.json"]


def test_disks_and_recordings_of_all_hosts_are_collected(fleet: FakeFleet, tmp_path: Path) -> None:
    found = collected(tmp_path)
    for one in found.values():
        assert one.reached and one.copied == (RECORDING,) and not one.problems
    assert kept(tmp_path) == [*of_host("a"), *of_host("b"), *of_host("c")]
    copy = next((tmp_path / "kept/b").glob("*.rec"))
    assert copy.read_bytes() == (fleet.top / f"a{RECORDING}").read_bytes()
    read, when = collect.read_answer(tmp_path / "kept/b")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", when)
    assert read.host_name == "b" and list(read.disks) == ["sda"]
    assert b"ID_SERIAL=" in read.udev["sda"] and b"secret" not in read.udev["sda"]


def test_a_recording_is_copied_again_only_if_it_has_changed(
    fleet: FakeFleet, tmp_path: Path
) -> None:
    collected(tmp_path)
    before = fleet.calls()
    place = fleet.top / f"b{RECORDING}"
    place.unlink()
    blklab.record_run("randread:runtime=1", place, disk="wd10ezrx", seed=2)
    found = collected(tmp_path)
    assert [one.copied for one in found.values()] == [(), (RECORDING,), ()]
    assert [one.unchanged for one in found.values()] == [(RECORDING,), (), (RECORDING,)]
    assert sorted(fleet.calls()[len(before) :]) == ["a answer", "b answer", "b cat", "c answer"]
    assert next((tmp_path / "kept/b").glob("*.rec")).read_bytes() == place.read_bytes()


def test_a_list_of_recordings_names_no_file_elsewhere(tmp_path: Path) -> None:
    good = '{"/a": {"file": "0123456789ab-day.rec", "state": "1"}'
    for name in ("../0123456789ab-x", "/etc/passwd", "0123456789ab-a/b", "0123456789ab-", ".."):
        (tmp_path / "recordings.json").write_text(
            f'{good}, "/b": {{"file": "{name}", "state": "1"}}}}'
        )
        assert list(collect.records(tmp_path)) == ["/a"]


def test_a_list_of_recordings_that_is_damaged_only_makes_them_come_again(
    fleet: FakeFleet, tmp_path: Path
) -> None:
    collected(tmp_path)
    for text in ("", "[" * 100_000, '{"/x": {"file": "../../y", "state": ""}}', "\xff"):
        (tmp_path / "kept/a/recordings.json").write_text(text, encoding="latin-1")
        assert collected(tmp_path)["a"].copied == (RECORDING,)


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("refuse ssh: connect to host b port 22: Connection refused", "ssh: connect to host b"),
        ("refuse root@b: Permission denied (publickey).", "root@b: Permission denied"),
        ("refuse \x1b[31mHost key verification failed.", r"ssh: \x1b[31mHost key verification"),
        ("hang", "no answer within 1 s"),
        ("say Welcome", "no answer of a machine: there is no line"),
        ("say", "no answer of a machine"),
        ("flood", f"it sends more than {answer.BYTES_MAX} bytes"),
        ("cut", "the answer is cut off: its last line is missing"),
    ],
)
def test_a_host_that_does_not_answer_is_named_and_the_others_go_on(
    mode: str, said: str, fleet: FakeFleet, tmp_path: Path
) -> None:
    fleet.mode("b", mode)
    timeout = HOSTS.replace("timeout_s = 20", "timeout_s = 1") if mode == "hang" else HOSTS
    found = collected(tmp_path, timeout)
    assert found["a"].reached and found["c"].reached and not found["b"].reached
    [line] = found["b"].problems
    assert said in line and "\n" not in line and line.isprintable()
    assert kept(tmp_path) == [*of_host("a"), *of_host("c")]


def test_an_answer_from_before_stays_if_a_host_is_down(fleet: FakeFleet, tmp_path: Path) -> None:
    collected(tmp_path)
    fleet.mode("b", "refuse no route")
    assert not collected(tmp_path)["b"].reached
    assert kept(tmp_path) == [*of_host("a"), *of_host("b"), *of_host("c")]


def test_greetings_around_the_answer_do_not_count(fleet: FakeFleet, tmp_path: Path) -> None:
    fleet.mode("b", "greet")
    assert collected(tmp_path)["b"].reached
    kept = (tmp_path / "kept/b/answer.txt").read_text()
    assert "Welcome" not in kept
    assert kept.endswith("\nend\n")


def _cut(place: Path) -> None:
    place.write_bytes(place.read_bytes()[:-700])


def _no_recording(place: Path) -> None:
    place.write_text("GIF89a\n" * 400)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_cut, "the trace has no I/O"),
        (_no_recording, "not a recording: "),
        (Path.unlink, "there is no such file"),
    ],
)
def test_a_recording_that_cannot_be_used_is_named_and_not_kept(
    damage: Callable[[Path], None], said: str, fleet: FakeFleet, tmp_path: Path
) -> None:
    damage(fleet.top / f"b{RECORDING}")
    found = collected(tmp_path)
    assert found["b"].reached
    [line] = found["b"].problems
    assert line.startswith(f"{RECORDING}: {said}") and "\n" not in line
    assert kept(tmp_path) == [*of_host("a"), *of_host("b")[1:], *of_host("c")]
    assert json.loads((tmp_path / "kept/b/recordings.json").read_text()) == {}


def test_a_recording_that_is_cut_off_on_its_way_is_not_kept(
    fleet: FakeFleet, tmp_path: Path
) -> None:
    size = (fleet.top / f"b{RECORDING}").stat().st_size
    fleet.mode("b", "cut-copy")
    [line] = collected(tmp_path)["b"].problems
    assert line == f"{RECORDING}: 1000 of {size} bytes came"
    assert kept(tmp_path) == [*of_host("a"), *of_host("b")[1:], *of_host("c")]
    fleet.mode("b", "")
    assert collected(tmp_path)["b"].copied == (RECORDING,)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_copy_leaves_no_part_of_a_file(
    number: signal.Signals, fleet: FakeFleet, tmp_path: Path
) -> None:
    fleet.mode("b", "hang-copy")
    running = subprocess.Popen(
        [BLKLAB, "fleet", tmp_path / "hosts.toml", "--collect", tmp_path / "kept"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until_s = time.monotonic() + 60
    parts: list[Path] = []
    while not ((fleet.top / "hangs").exists() and parts) and time.monotonic() < until_s:
        parts = [path for path in (tmp_path / "kept").glob("b/.*.rec") if path.stat().st_size >= 0]
        time.sleep(0.02)
    assert parts, "the copy has begun"
    running.send_signal(number)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 128 + number, said
    assert not list((tmp_path / "kept/b").iterdir())
    alive = subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout
    assert str(fleet.top / "bin/ssh") not in alive


def test_hosts_are_asked_side_by_side_up_to_the_limit(
    fleet: FakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once: list[int] = []
    running = 0
    lock = threading.Lock()
    whole = Sessions.run

    def counted(*args: object, **options: object) -> None:
        nonlocal running
        with lock:
            running += 1
            at_once.append(running)
        try:
            whole(*args, **options)  # type: ignore[arg-type]
        finally:
            with lock:
                running -= 1

    monkeypatch.setattr(Sessions, "run", counted)
    collected(tmp_path, HOSTS.replace("parallel = 4", "parallel = 1"))
    assert set(at_once) == {1} and len(at_once) == 6
    at_once.clear()
    collected(tmp_path, HOSTS.replace("parallel = 4", "parallel = 2"))
    assert max(at_once) == 2


def test_ssh_never_asks_and_gets_the_options_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin/ssh"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\n'
        f"ps -o sid= -p $$ > {tmp_path}/session\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    hosts = (
        "timeout_s = 7\n[[host]]\nname = 'me@db1'\nport = 2222\noptions = ['ProxyJump=bastion']\n"
    )
    assert collected(tmp_path, hosts)["db1"].problems == (
        "its shell ends with 1, without a message",
    )
    words = (tmp_path / "words").read_text().splitlines()
    assert words[-3:] == ["--", "me@db1", "/bin/sh -s"]
    # Not the terminal's: no program can ask there, and Ctrl-C reaches only blklab.
    assert int((tmp_path / "session").read_text()) != os.getsid(0)
    pairs = set(itertools.pairwise(words))
    for option in ("BatchMode=yes", "ConnectTimeout=7", "ProxyJump=bastion", "Port=2222"):
        assert ("-o", option) in pairs


def test_without_ssh_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="ssh is missing; install it: apt-get install"):
        collected(tmp_path)


def test_rules_of_queues_that_are_in_effect_are_sent_and_profiles_where_one_is_active(
    fleet: FakeFleet, tmp_path: Path
) -> None:
    assert collected(tmp_path)["a"].reached
    found = {name: collect.read_answer(tmp_path / "kept" / name)[0].settings for name in "abc"}
    rule = b'A="b", ATTR{queue/scheduler}="bfq"\n# x\\n\n'
    of_udev = {
        "etc/udev/rules.d/60-io.rules": rule,
        "lib/udev/rules.d/63-io.rules": b'ATTR{queue/scheduler}="kyber"\n',
    }
    of_tuned = {
        "etc/tuned/active_profile": b"base\n",
        "usr/lib/tuned/base/tuned.conf": b"[disk]\nelevator=none\n",
    }
    assert found == {"a": of_udev | of_tuned, "b": of_udev, "c": {}}


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_the_sent_script_only_reads(fleet: FakeFleet, tmp_path: Path) -> None:
    fleet.mode("b", "trace")
    assert collected(tmp_path)["b"].reached
    calls = (fleet.top / "calls").read_text().splitlines()
    made = [re.match(r"\d+\s+(\w+)\((.*)", line) for line in calls]
    names = {found[1] for found in made if found is not None}
    # What looks at files, or starts a program; nothing that makes, changes or removes one.
    assert names <= {
        "access", "chdir", "execve", "faccessat", "faccessat2", "getcwd", "lstat", "newfstatat",
        "open", "openat", "readlink", "readlinkat", "stat", "statfs", "statx",
    }  # fmt: skip
    opened = [found[2] for found in made if found is not None and found[1] in ("open", "openat")]
    below = [line for line in opened if "/sys/" in line]
    assert len(below) > 20, "it has read the disk"
    assert not [line for line in opened if not re.search(r"O_RDONLY|O_PATH", line)]


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_every_shell_gives_the_same_answer(shell: str, fleet: FakeFleet, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    top = fleet.top / "a"
    text = answer.script([RECORDING]).replace("sys=/sys\n", f"sys={top}/sys\n")
    text = text.replace("proc=/proc\n", f"proc={top}/proc\n").replace(" '/", f" '{top}/")
    text = text.replace("root=\n", f"root={top}\n")
    command = [shell, "sh", "-s"] if shell == "busybox" else [shell, "-s"]
    done = subprocess.run(
        command,
        input=text,
        env=os.environ | {"PATH": f"{top}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    found = collected(tmp_path)["a"]
    assert found.reached
    assert (tmp_path / "kept/a/answer.txt").read_text().partition("\n")[2] == done.stdout
