"""Studies on a real disk: replaced disks, omissions, and restored settings."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blklab import study as studies
from blklab.cli import app
from blklab.errors import InputError
from blklab.host.devices import queue
from blklab.rigs.live import program, target
from blklab.study.plan import Asked, plan
from tests import loop_device

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in program.PACKAGES),
    reason=f"needs {', '.join(program.PACKAGES)}",
)
JOB = "# short\n[a]\nrw=randread\nbs=4k\nsize=1m\n"
TEXT = """\
title = "t"
question = "q?"
rigs = ["sim", "live"]
repeats = 3
[[kernel]]
name = "slow"
[[part]]
name = "both"
disks = ["su800-128gb", "desktop-5900rpm"]
workloads = ["short.fio"]
schedulers = ["none", "mq-deadline", "cfq", "kyber@slow"]
host = { cpus = 1 }
[[part.claim]]
kind = "figures"
text = "so fast"
tolerance_percent = 5
values = { none = 0.001, cfq = 1 }
not_reproduced = "made up"
[[part]]
name = "modelled"
rigs = ["sim"]
disks = ["su800-128gb"]
workloads = ["short.fio"]
schedulers = ["none"]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "results.db"))
    (tmp_path / "short.fio").write_text(JOB)
    (tmp_path / "mine.toml").write_text(TEXT)
    return tmp_path


@pytest.fixture
def mounted(here: Path) -> Iterator[Path]:
    with loop_device.file_system(here, 64 << 20) as place:
        yield place


def disk_of(directory: Path) -> queue.Queue:
    return queue.named(target.find(str(directory)).disks[0])


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["run", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_real_disk_takes_the_place_of_all_and_is_left_as_it_was(
    here: Path, mounted: Path
) -> None:
    before, there = disk_of(mounted).settings(), sorted(mounted.iterdir())
    words = ["--rig", "live", "--disk", str(mounted), "--cache", "warm", "--repeats", "1"]
    document = json.loads(run("mine.toml", *words, "--json"))
    assert (disk_of(mounted).settings(), sorted(mounted.iterdir())) == (before, there)
    both, modelled = document["parts"]
    assert (both["rig"], both["ran"], modelled["ran"]) == ("live", True, False)
    assert modelled["skipped"] == [{"what": "modelled", "why": "needs --rig sim"}]
    reasons = {skip["what"]: skip["why"] for skip in both["skipped"]}
    assert reasons.pop("kyber@slow").startswith("needs --rig kernel")
    assert reasons.pop("cfq").startswith(f"{mounted} has no 'cfq'; it has bfq, kyber, mq-")
    assert reasons == {"host cpus=1": "with --rig live the host is this machine"}
    # Two modelled disks, but one that was measured.
    none, cfq = document["judgements"]
    assert none["disk"] == str(mounted)
    assert none["measured"]["estimate"] > 0
    assert none["why"].startswith(f"Another disk and machine than the published one: {mounted}.")
    assert cfq["outcome"] == "not known"
    file = here / "reports/mine/both/results.json"
    kept = file.read_bytes()
    assert json.loads(kept)["setup"]["rig_setup"]["cache"] == "warm"
    # The options are stored too: with a cold cache it could not be resumed.
    shutil.rmtree(here / "reports")
    run("--resume", str(document["kept"]["both"]))
    assert file.read_bytes() == kept


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rig", "live"], "--rig live: expected --disk DIRECTORY"),
        (["--disk", "/"], "--disk: only with --rig live; elsewhere a study has disks of its own"),
        (["--rig", "sim", "--write-device"], "--write-device: only with --rig live"),
        (["--rig", "sim", "--cache", "warm"], "--cache: only with --rig live"),
        (["--rig", "live", "--disk", "absent"], "no block device 'absent'"),
        (["--rig", "live", "--disk", "short.fio"], "short.fio: expected a directory"),
        (["--rig", "live", "--disk", "/", "--cache", "hot"], "hot"),
    ],
)
def test_wrong_arguments_of_a_study_are_refused_in_one_line(
    here: Path, words: list[str], message: str
) -> None:
    with pytest.raises(InputError) as refused:
        run("mine.toml", *words)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_device_is_not_written_to_unless_that_is_said(here: Path) -> None:
    loop_device.require()
    (here / "short.fio").write_text(JOB.replace("randread", "randwrite"))
    with loop_device.attached(here) as name:
        words = ["mine.toml", "--rig", "live", "--disk", f"/dev/{name}", "--repeats", "1"]
        with pytest.raises(InputError, match="--write-device"):
            run(*words)
        assert not any(Path(f"/dev/{name}").read_bytes())
        run(*words, "--write-device")
        assert any(Path(f"/dev/{name}").read_bytes())


def test_a_user_without_rights_gets_the_command_for_root(
    here: Path, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(InputError, match=r"setting schedulers needs root; type: sudo "):
        plan(studies.find("mine.toml"), Asked("live", disk=str(mounted)))


def test_a_study_may_be_for_real_disks_first(here: Path, mounted: Path) -> None:
    (here / "mine.toml").write_text(TEXT.replace('["sim", "live"]', '["live", "sim"]'))
    with pytest.raises(InputError, match="expected --disk DIRECTORY"):
        plan(studies.find("mine.toml"))
    both, modelled = plan(studies.find("mine.toml"), Asked(disk=str(mounted)))
    assert both.setup is not None
    assert modelled.setup is not None
    assert [disk.label for disk in both.setup.disks] == [str(mounted)]
    assert [disk.label for disk in modelled.setup.disks] == ["su800-128gb"]
    assert [one.label for one in both.setup.schedulers] == ["none", "mq-deadline"]
