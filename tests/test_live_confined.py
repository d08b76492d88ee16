"""An accepted job file changes only its own test files on a real disk: real fio runs hostile ones,
under a tracer."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from blklab.rigs.live import program
from blklab.rigs.live.files import PREFIX
from tests import confined_helper, file_calls, hostile_jobs, loop_device
from tests.hostile_jobs import Case, Victims

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in (*program.PACKAGES, file_calls.PACKAGE)),
    reason=f"needs {', '.join((*program.PACKAGES, file_calls.PACKAGE))}",
)

_MIB = 1 << 20
VARIABLE = "BLKLAB_HOSTILE_JOBS"
"""The number of drawn job files, besides the known ones: `make soak` has more."""
_DRAWN = int(os.environ.get(VARIABLE, "25"))
_SEED = int(os.environ.get("BLKLAB_HOSTILE_SEED", "1"))
_SECONDS_EACH = 30
# blklab's programs may set the disk, drop caches, trace events and confine their children.
_OURS = ("/sys/devices/", "/sys/block/", "/sys/kernel/", "/proc/", "/dev/null", "/dev/loop")
_FIOS = ("/dev/null",)
_SHARED = "/dev/shm/"
# Made for the run, and the lists into which fio puts its processes back.
_CGROUPS = re.compile(r"/sys/fs/cgroup(/\w+)?/(blklab-[0-9a-f]{6}(/|$)|(tasks|cgroup\.procs)$)")


@dataclasses.dataclass(frozen=True)
class Place:
    """The directories of the test."""

    own: Path
    """Home, cache, journal and temporary files."""
    disk: Path
    victims: Victims

    def environment(self) -> dict[str, str]:
        kinds = ("HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
        return os.environ | dict.fromkeys(kinds, str(self.own)) | {
            "BLKLAB_JOURNAL": str(self.own / "journal"),
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    own = tmp_path / "own"
    own.mkdir()
    victims = Victims(tmp_path / "victims")
    victims.lay_out()
    with loop_device.file_system(tmp_path, 64 * _MIB) as disk:
        yield Place(own, disk, victims)


def test_the_tracer_sees_a_programs_changes_of_files(place: Place) -> None:
    """Tests the tracer: it sees each kind of forbidden change."""
    victim = place.victims.directory / "victim"
    script = (
        f"import os, socket\nos.chdir({str(place.victims.directory)!r})\n"
        "open('victim', 'r+').close()\nos.rename('victim', 'v2')\nos.symlink('a', 'b')\n"
        "os.makedirs('kept/../new')\nos.truncate('v2', 1)\nos.unlink('v2')\n"
        f"open({str(victim)!r}, 'w').close()\nos.rmdir('new')\nopen('victim').close()\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.connect(('127.0.0.1', 9))\n"
        "os.execv('/bin/true', ['true'])\n"
    )
    output = place.own / "trace"
    subprocess.run(file_calls.command(output, [sys.executable, "-c", script]), check=True)
    found = {(call.what, call.target) for call in file_calls.calls(output)}
    inside = place.victims.directory
    assert found >= {
        ("write", str(victim)),
        ("write", str(inside / "v2")),
        ("write", str(inside / "b")),
        ("write", str(inside / "new")),
        ("read", str(victim)),
        ("start", os.path.realpath("/bin/true")),
    }
    assert any(call.what == "connect" and "127.0.0.1" in call.target
               for call in file_calls.calls(output))  # fmt: skip


def test_no_way_out_that_is_known_leads_out(place: Place) -> None:
    outcomes = check(place, hostile_jobs.known(place.victims))
    assert any(outcome == "ran" for outcome in outcomes), outcomes


def test_no_options_of_fios_lead_out(place: Place) -> None:
    drawn = hostile_jobs.drawn(place.victims, _SEED)
    outcomes = check(place, list(itertools.islice(drawn, _DRAWN)))
    assert any(outcome == "ran" for outcome in outcomes), outcomes
    if out := os.environ.get("BLKLAB_HOSTILE_OUT"):
        ran = outcomes.count("ran")
        figures = {"jobs": len(outcomes), "ran to the end": ran,
                   "refused, or ended with an error": len(outcomes) - ran, "lost": 0}  # fmt: skip
        Path(out).write_text(json.dumps(figures, indent=1) + "\n")


def check(place: Place, cases: list[Case]) -> list[str]:
    """Run them all; a change outside fails, with its job file."""
    plan, output = place.own / "cases.json", place.own / "trace"
    plan.write_text(json.dumps([dataclasses.asdict(case) for case in cases]))
    before = place.victims.state()
    beside = {path for path in place.own.parent.iterdir() if path != place.own}
    traced = [sys.executable, "-m", confined_helper.__name__, str(plan), str(place.disk)]
    done = subprocess.run(
        file_calls.command(output, traced),
        cwd=place.own,
        env=place.environment(),
        check=False,
        capture_output=True,
        text=True,
        timeout=60 + _SECONDS_EACH * len(cases),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = [row["outcome"] for row in json.loads(plan.read_text())]
    wrong = [
        f"{cases[number].text}{outcomes[number]}\n{call.program or 'blklab'}: {call.text}"
        for number, call in _outside(output, place)
    ]
    changed = sorted(before.items() ^ place.victims.state().items())
    assert not wrong, f"{len(wrong)} calls reach outside:\n" + "\n\n".join(_of_each(wrong))
    assert not changed, f"changed: {[name for name, _ in changed]}"
    assert {path for path in place.own.parent.iterdir() if path != place.own} == beside
    left = [path.name for path in place.disk.iterdir() if path.name != "lost+found"]
    assert left == [], f"left behind: {left}"
    return outcomes


def _outside(output: Path, place: Place) -> Iterator[tuple[int, file_calls.Call]]:
    """Each forbidden call, with the number of the case."""
    number = -1
    for call in file_calls.calls(output):
        if call.what == "mark" and call.target.startswith(confined_helper.MARK):
            number = int(call.target.removeprefix(confined_helper.MARK))
        elif number >= 0 and not _is_allowed(call, place):
            yield number, call


def _is_allowed(call: file_calls.Call, place: Place) -> bool:
    of_fio = call.program == "fio"
    victims = str(place.victims.directory)
    match call.what:
        case "write":
            own = call.target.startswith((f"{place.own}/", f"{place.disk}/{PREFIX}"))
            own |= bool(_CGROUPS.match(call.target))
            return own or call.target.startswith(_FIOS if of_fio else (*_OURS, _SHARED))
        case "read":
            # blklab reads the includes of a job file.
            return not (of_fio and call.target.startswith(victims))
        case "start":
            return not of_fio and not call.target.startswith(victims)
        case "connect":
            return not of_fio
    return True


def _of_each(wrong: list[str]) -> list[str]:
    """The first of each job file."""
    return list({text.rpartition("\n")[0]: text for text in reversed(wrong)}.values())[::-1]
