"""However an apply ends - refused, interrupted, killed - everything is restored, or can be."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from blklab.base.journal import Journal
from blklab.errors import InputError, RunError
from blklab.host.devices.queue import Queue
from blklab.host.roots import Roots
from blklab.rigs.live.borrowed import KIND
from blklab.settings import change, choice, record
from blklab.settings import status as states
from tests.applying import Asked, apply, files

_SPEC = "bfq:low_latency=0,slice_idle_us=500"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bfq:low_latncy=0", "iosched/low_latncy: the scheduler bfq has no such tunable; did you"),
        ("mq-deadline:fifo_batch=many", "the kernel refuses many"),
        ("mq-deadline:fifo_batch=-5", "set to -5 and read back as 0"),
    ],
)
def test_a_setting_that_the_kernel_refuses_changes_nothing(
    loop: Queue, roots: Roots, programs: Asked, spec: str, message: str
) -> None:
    loop.write_all({"scheduler": "kyber", "iosched/read_lat_nsec": "7"})
    before = loop.settings()
    with pytest.raises(RunError, match=message):
        apply(loop, spec, roots, programs)
    assert loop.settings() == before
    assert files(roots) == []


def test_ctrl_c_in_the_middle_leaves_everything_as_it_was(
    loop: Queue, roots: Roots, programs: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = loop.settings()
    check = change._check_all
    monkeypatch.setattr(change, "_check_all", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        apply(loop, _SPEC, roots, programs)
    monkeypatch.setattr(change, "_check_all", check)
    assert loop.settings() == before
    assert files(roots) == []


_KILLED = """\
import sys
from dataclasses import replace
from pathlib import Path
from blklab.settings import change, choice, programs
from blklab.host.devices import queue
from blklab.host.roots import HERE
own, name = Path(sys.argv[1]), sys.argv[2]
roots = replace(HERE, etc=own / "etc", run=own / "run", usr=own / "usr", lib=own / "lib",
                var=own / "var")
disk = queue.named(name)
if sys.argv[3] == "undo":
    print("begun", flush=True)
    change.undo(roots, programs.HERE)
else:
    given = choice.parse("bfq:slice_idle=0,low_latency=0", disk)
    made = change.plan(disk, given, "id", "auto", roots)
    print("begun", flush=True)
    change.carry_out(made, roots, programs.HERE)
"""


@pytest.mark.parametrize("what", ["apply", "undo"])
def test_killed_at_any_moment_it_can_be_undone(
    loop: Queue, roots: Roots, programs: Asked, what: str
) -> None:
    loop.write_all({"scheduler": "mq-deadline", "iosched/fifo_batch": "3"})
    # An entry that stays: no undo of a later one may change it.
    apply(loop, "kyber:read_lat_nsec=9", roots, programs)
    before, kept = loop.settings(), [path.read_text() for path in files(roots)]
    draw, interrupted = random.Random(1), 0
    for _ in range(25):
        if what == "undo":
            apply(loop, "bfq:slice_idle=0", roots, programs)
        command = [sys.executable, "-c", _KILLED, str(roots.etc.parent), loop.name, what]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        time.sleep(draw.random() * 0.08)
        running.send_signal(signal.SIGKILL)
        running.communicate()
        entries = record.load(roots)
        if len(entries) > 1:
            interrupted += not entries[-1].done
            assert states.status(entries, roots).holds == entries[-1].done
            change.undo(roots, programs)
        assert loop.settings() == before
        # An incomplete file has another name, which udev does not read.
        left = [path for path in files(roots) if not path.name.startswith(".")]
        assert [path.read_text() for path in left] == kept
    assert interrupted > 0


def test_two_at_once_do_not_mix(loop: Queue, roots: Roots, programs: Asked) -> None:
    given = choice.parse("bfq", loop)
    made = change.plan(loop, given, "id", "auto", roots)
    with (
        record.alone(roots),
        pytest.raises(RunError, match="another blklab is running apply or undo"),
    ):
        change.carry_out(made, roots, programs)
    apply(loop, "kyber", roots, programs)
    with pytest.raises(RunError, match="another blklab applied or undid something meanwhile"):
        change.carry_out(made, roots, programs)
    assert loop.read("scheduler") == "kyber"


def test_a_disk_that_a_live_run_has_is_left_alone(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    journal = Journal(roots.var / "lib/blklab/journal")
    key = f"{KIND}-{loop.name}"
    before = loop.settings()
    with journal.locked(key, loop.name):
        with pytest.raises(RunError, match=f"{loop.name}: in use by another blklab"):
            apply(loop, "bfq", roots, programs)
        journal.write(key, KIND, {"disk": loop.name, "settings": before})
    with pytest.raises(InputError, match="has left it changed; first: blklab restore"):
        apply(loop, "bfq", roots, programs)
    assert loop.settings() == before
    with journal.locked(key, loop.name):
        journal.remove(key)
    apply(loop, "bfq", roots, programs)


def test_sigterm_in_the_middle_leaves_everything_as_it_was(
    loop: Queue, roots: Roots, programs: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = loop.settings()

    def ended(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(change, "_check_all", ended)
    with pytest.raises(SystemExit) as left:
        apply(loop, _SPEC, roots, programs)
    assert left.value.code == 128 + signal.SIGTERM
    assert loop.settings() == before
    assert files(roots) == []


def test_an_interrupted_apply_is_to_be_undone_first(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    apply(loop, _SPEC, roots, programs)
    entries = record.load(roots)
    entries[-1].done = False
    record.save(entries, roots)
    with pytest.raises(InputError, match="the last apply was interrupted; first: blklab undo"):
        apply(loop, "none", roots, programs)


def test_a_record_of_another_user_reaches_no_rule(
    loop: Queue, roots: Roots, programs: Asked
) -> None:
    apply(loop, "bfq", roots, programs)
    place = record.path(roots)
    good = place.read_text()
    document = json.loads(good)
    entry = document["entries"][0]
    for path, value in (
        (("settings",), {"scheduler": 'bfq", RUN+="/bin/evil'}),
        (("settings",), {'x}="1", RUN{program': "1"}),
        (("key", "matches"), ['KERNEL=="x", RUN+="/bin/evil"']),
        (("key", "kind"), "all"),
    ):
        changed = json.loads(json.dumps(entry))
        inner = changed
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = value
        place.write_text(json.dumps(document | {"entries": [changed]}))
        with pytest.raises(InputError, match="of blklab's"):
            change.undo(roots, programs)
    for broken in ("", "[]", "{}", '{"format": 2, "entries": []}', '{"format": 1, "entries": [1]}'):
        place.write_text(broken)
        with pytest.raises(InputError, match=r"applied\.json: "):
            record.load(roots)
    place.write_text(good)
    assert record.load(roots)[0].settings == {"scheduler": "bfq"}
