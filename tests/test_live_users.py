"""The live rig for users without rights, and beside other users."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from blklab.errors import InputError
from blklab.rigs.live.rig import LiveRig
from tests import loop_device
from tests.live_runs import BLKLAB, BUFFERED, MIB, NEEDS_PROGRAMS, READS, WRITES, experiment

pytestmark = NEEDS_PROGRAMS


def test_a_user_without_rights_measures_the_current_settings_and_gets_the_command_for_root(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = os.access

    def access(path: object, mode: int) -> bool:
        outside = str(path).startswith(("/sys", "/proc"))
        return not outside and allowed(path, mode)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "access", access)
    monkeypatch.setattr(sys, "argv", ["/x/blklab", "fio", "a b"])
    place = LiveRig()
    one = experiment(place, mounted, READS, "bfq")
    with (
        pytest.raises(
            InputError, match=r"needs root; type: sudo /x/blklab fio 'a b' \(or .* none\)"
        ),
        place.prepared([one], print),
    ):
        pass
    one, lines = experiment(place, mounted, BUFFERED), list[str]()
    with place.prepared([one], lines.append):
        result = place.run(one)
    assert result.disk.read_sectors * 512 >= 4 * MIB, "cold without root"
    assert any("no permission to set anything" in line for line in lines)


@pytest.fixture
def public() -> Iterator[Path]:
    """A file system of 64 MiB at a place that every user can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        with loop_device.file_system(Path(name), 64 * MIB) as place:
            yield place


def test_an_ordinary_user_measures_the_current_settings(public: Path, tmp_path: Path) -> None:
    nobody, own, job = 65534, public / "own", tmp_path / "job.fio"
    own.mkdir()
    os.chown(own, nobody, nobody)
    job.write_text(READS)
    # The user nobody may read everything (this Python may be in root's home), but not write.
    only = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
    user = ["setpriv", f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups", *only]

    def run(scheduler: str, where: Path) -> subprocess.CompletedProcess[str]:
        words = ["fio", str(job), "--rig", "live", "--disk", str(where), "--scheduler", scheduler]
        return subprocess.run(
            [*user, "--bounding-set=-all,+dac_read_search", *BLKLAB, *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    environment = os.environ | {"BLKLAB_JOURNAL": str(own / "journal"), "HOME": str(own)}
    # The store must be the user's own, not root's.
    for name in ("BLKLAB_STORE", "XDG_DATA_HOME"):
        environment.pop(name, None)
    done = run("none", own)
    assert done.returncode == 0, done.stderr
    assert "read: IOPS=" in done.stdout
    assert "no permission to set anything" in done.stderr
    assert sorted(path.name for path in own.iterdir()) == [".local", "journal"]
    [kept] = (own / ".local/share/blklab/results.db-waiting").iterdir()
    assert kept.owner() == "nobody"
    refused = run("bfq", own)
    assert refused.returncode == 2
    assert "setting 'bfq' needs root; type: sudo " in refused.stderr
    refused = run("none", public)
    assert refused.stderr == f"blklab: {public}: no permission to write in it\n"


def test_fio_writes_nowhere_else_though_another_user_swaps_its_directory(
    mounted: Path, tmp_path: Path
) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "0").write_text("keep")
    place = LiveRig()
    one = experiment(place, mounted, WRITES)
    with place.prepared([one], print):
        (found,) = (path for path in mounted.iterdir() if path.name.startswith(".blklab-"))
        found.rename(mounted / "taken")
        found.symlink_to(treasure)
        assert place.run(one).jobs[0].write.bytes == MIB
    assert [path.name for path in treasure.iterdir()] == ["0"]
    assert (treasure / "0").read_text() == "keep"
    assert list((mounted / "taken").iterdir()) == []
