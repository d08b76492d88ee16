"""The cgroups of threads whose I/O is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from blklab.host.roots import Roots
from blklab.rigs.live.members import Member, Members

KTHREAD = 0x0020_8040


def machine(top: Path, mounts: str) -> Roots:
    """A machine with these mounts; ``TOP`` there is its directory of cgroups."""
    roots = Roots.under(top)
    (roots.proc / "self").mkdir(parents=True)
    (roots.proc / "self/mountinfo").write_text(mounts.replace("TOP", str(roots.sys / "cg")))
    for place in ("cg", "cg/cpu,blkio"):
        (roots.sys / place / "user.slice/a b").mkdir(parents=True)
    return roots


def thread(roots: Roots, number: int, cgroup: str, name: str = "cp", flags: int = 0x400000) -> None:
    place = roots.proc / str(number)
    place.mkdir(exist_ok=True)
    (place / "stat").write_text(f"{number} ({name}) S 1 1 1 0 -1 {flags} 0 0 0 0\n")
    (place / "cgroup").write_text(cgroup)


TWO = "30 23 0:26 / TOP rw - cgroup2 cgroup2 rw\n"
ONE = "31 23 0:27 / TOP/cpu,blkio rw - cgroup cgroup rw,cpu,blkio\n" + TWO


@pytest.mark.parametrize(
    ("mounts", "top", "key"),
    [(TWO, "cg", "0::"), (ONE, "cg/cpu,blkio", "0::/x\n5:cpu,blkio:")],
)
def test_a_thread_has_the_number_and_the_path_of_its_cgroup(
    tmp_path: Path, mounts: str, top: str, key: str
) -> None:
    roots = machine(tmp_path, mounts)
    thread(roots, 12, f"{key}/user.slice/a b\n", name="x) S (y")
    inode = (roots.sys / top / "user.slice/a b").stat().st_ino
    assert list(Members(roots).look_up([12])) == [Member(12, inode, "/user.slice/a b")]


def test_the_kernels_threads_and_cgroups_that_are_gone_are_not_known(tmp_path: Path) -> None:
    roots = machine(tmp_path, TWO)
    thread(roots, 2, "0::/\n", name="kworker/u8:1", flags=KTHREAD)
    thread(roots, 3, "0::/gone\n")
    thread(roots, 4, "0::/../outside\n")
    thread(roots, 5, "nothing\n")
    found = list(Members(roots).look_up([2, 3, 4, 5, 99]))
    assert found == [Member(number, 0, "") for number in (2, 3, 4, 5)]


def test_a_thread_is_looked_up_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = machine(tmp_path, TWO)
    thread(roots, 12, "0::/user.slice\n")
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    members = Members(roots)
    assert [one.path for one in members.look_up([12])] == ["/user.slice"]
    thread(roots, 12, "0::/\n")
    now_s[0] += 0.5
    assert list(members.look_up([12])) == []
    now_s[0] += 0.6
    assert [one.path for one in members.look_up([12])] == ["/"]


def test_a_machine_without_cgroups_has_none(tmp_path: Path) -> None:
    roots = machine(tmp_path, "")
    thread(roots, 12, "0::/\n")
    assert list(Members(roots).look_up([12])) == []
