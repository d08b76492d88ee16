"""`blklab tune --confirm`: the search's answer measured again in Linux itself and on real disks."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blklab
from blklab.api import confirm
from blklab.cli import app
from blklab.errors import InputError, RunError
from blklab.host.devices import queue
from blklab.rigs.live import program, target
from blklab.study.live import real_disk
from tests import loop_device
from tests.test_tune import JOB

SMALL = ["--objective", "p99(reader)", "--trials", "16", "--repeats", "4"]
WORSE = blklab.Interval(0.5, 0.4, 0.6)


@pytest.fixture
def load(tmp_path: Path) -> Path:
    file = tmp_path / "load.fio"
    file.write_text(JOB)
    return file


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    if missing := [name for name in program.PACKAGES if shutil.which(name) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    with loop_device.file_system(tmp_path, 512 << 20) as place:
        yield place


def tuned(load: Path, *words: str | Path) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    every = ["tune", "--disk", "su800-128gb", "--workload", load, *SMALL, *words]
    every += ["--store", load.with_name("store.db"), "--out", load.with_name("out")]
    done = CliRunner().invoke(app, [str(word) for word in every])
    if isinstance(done.exception, InputError):
        return 2, done.stdout, str(done.exception)
    return done.exit_code, done.stdout, done.stderr


def state(place: Path) -> dict[str, dict[str, str]]:
    return {name: queue.named(name).settings() for name in target.find(str(place)).disks}


def test_the_finalists_are_measured_on_the_real_disk_which_is_left_as_it_was(
    load: Path, mounted: Path
) -> None:
    before, files = state(mounted), sorted(mounted.iterdir())
    code, out, err = tuned(load, "--confirm", f"live:{mounted}", "--json")
    assert code == 0, err
    found = json.loads(out)
    first, real = found["confirmed"]
    assert (first["rig"], first["disk"], first["agreement"]) == ("sim", "su800-128gb", None)
    assert (real["rig"], real["disk"], real["repeats"]) == ("live", str(mounted), 3)
    # The reference and three finalists; other defaults take their time and are not the question.
    assert set(real["gains"]) <= set(first["gains"]) and 1 <= len(real["gains"]) <= 3
    assert found["searched"] in real["gains"]
    assert found["unconfirmed"] == []
    assert real["kept"] == first["kept"] + 1
    assert (state(mounted), sorted(mounted.iterdir())) == (before, files)


def test_a_scheduler_that_the_real_disk_lacks_is_left_out_with_a_line(
    load: Path, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "blklab.api.confirm.real_disk",
        lambda *given: replace(real_disk(*given), schedulers=frozenset({"mq-deadline", "none"})),
    )
    words = ("--scheduler", "bfq", "--scheduler", "mq-deadline", "--confirm", f"live:{mounted}")
    code, out, err = tuned(load, *words)
    assert code == 0, err
    flat = " ".join(err.split())
    lacks = re.escape(f"is not confirmed: {mounted} has no 'bfq'; it has mq-deadline, none")
    assert re.search(rf"bfq\S* {lacks}", flat)
    assert f"Measured with 3 fresh seeds on {mounted}" in out.replace("\n", " ")
    code, _, err = tuned(load, "--against", "bfq", "--confirm", f"live:{mounted}")
    assert code == 2
    assert err.startswith(f"--against: {mounted} has no 'bfq'")


def test_without_rights_it_is_refused_before_the_search(
    load: Path, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access
    monkeypatch.setattr(
        os,
        "access",
        lambda path, mode: not str(path).endswith("queue/scheduler") and access(path, mode),
    )
    code, out, err = tuned(load, "--confirm", f"live:{mounted}")
    assert (code, out) == (2, "") and "setting schedulers needs root" in err


def test_a_page_that_cannot_be_written_is_refused_before_the_search(load: Path) -> None:
    (load.with_name("out") / "tune.html").mkdir(parents=True)
    code, out, err = tuned(load)
    assert (code, out) == (2, "") and err.endswith(
        "tune.html: is a directory; expected a file to write"
    )


def test_an_answer_that_is_worse_elsewhere_is_not_recommended(
    load: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worse(
        self: confirm.Confirmation, place: confirm.Place, first: blklab.Confirmed
    ) -> blklab.Confirmed:
        gains = dict.fromkeys(first.gains, WORSE)
        return replace(first, rig="kernel", gains=gains, agreement=-1.0)

    code, out, _ = tuned(load)
    assert code == 0 and "better than mq-deadline" in out
    monkeypatch.setattr(confirm.Confirmation, "elsewhere", worse)
    code, out, _ = tuned(load, "--confirm", "kernel")
    flat = " ".join(out.split())
    assert code == 0 and flat.startswith("Keep mq-deadline: for p99(reader) ")
    assert "on the simulator; 0.50 times (0.40 to 0.60) in Linux itself." in flat
    assert "Kendall's tau with the simulator's order: -1.00" in flat
    assert "blklab apply" not in flat


def test_an_answer_that_could_not_be_confirmed_is_told_all_the_same(
    load: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> blklab.Confirmed:
        raise RunError("the disk is gone")

    monkeypatch.setattr(confirm.Confirmation, "elsewhere", failing)
    code, out, err = tuned(load, "--confirm", "kernel")
    assert code == 1
    assert "mq-deadline" in out and "Measured with 4 fresh seeds on the simulator" in out
    assert "blklab: not confirmed in Linux itself: the disk is gone" in err
    # Its search is kept, so that the same command only confirms.
    monkeypatch.undo()
    monkeypatch.setattr(confirm.Confirmation, "elsewhere", lambda _, place, first: first)
    _, _, err = tuned(load, "--confirm", "kernel")
    assert "runs of a search that was interrupted are taken over" in " ".join(err.split())
