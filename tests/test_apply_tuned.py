"""`blklab apply --from` the directory of a search."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blklab
from blklab.cli import app
from blklab.errors import InputError
from blklab.host import roots
from blklab.settings.recommended import find, scheduler
from tests.fake_sysfs import Machine
from tests.test_apply_plan import sata

LOAD = """[global]
direct=1
size=512m
runtime=2s
time_based
[reader]
rw=randread
bs=4k
[writer]
rw=randwrite
bs=64k
ioengine=libaio
iodepth=32
"""
"""A load whose reader is served twice as often under bfq as under none."""


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a search with an answer."""
    place = tmp_path_factory.mktemp("search")
    (place / "load.fio").write_text(LOAD)
    blklab.tune(
        disk="desktop-5900rpm",
        workloads=[place / "load.fio"],
        objective="throughput(reader)",
        schedulers=["bfq"],
        against="none",
        trials=8,
        repeats=8,
        out=place / "out",
        store=str(place / "store.db"),
    )
    return place / "out"


@pytest.fixture
def searched(once: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(once, tmp_path / "tune")


def test_the_answer_of_a_search_is_taken_by_its_own_objective(
    searched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = json.loads((searched / "tuned.json").read_text())
    assert kept["objective"] == "throughput(reader)"
    assert kept["best"].startswith("bfq") and kept["reference"] == "none"
    source = find(str(searched), None, None)
    spec, said = scheduler(source, None, None)
    assert spec == kept["best"]
    assert said.startswith(f"desktop-5900rpm: {spec}: ") and "for throughput(reader)" in said
    assert scheduler(source, "desktop-5900rpm", None) == (spec, said)
    # By an objective of comparisons its confirmation is one.
    with pytest.raises(InputError, match=r"recommends nothing for desktop-5900rpm, both: p99 of"):
        scheduler(source, None, "both")
    with pytest.raises(InputError, match=r"^--of-disk: no disk 'sda' in .*desktop-5900rpm"):
        scheduler(source, "sda", None)
    machine = Machine(tmp_path / "machine")
    sata(machine, "sda", 1, wwid="naa.5001")
    monkeypatch.setattr(roots, "HERE", machine.roots)
    words = ["apply", "sda", "--from", str(searched), "--dry-run"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "for throughput(reader)" in " ".join(done.stdout.split())
    assert 'ATTRS{wwid}=="naa.5001", ATTR{queue/scheduler}="bfq"' in done.stdout
    with pytest.raises(InputError, match=r"^apply: name a disk; .* was measured on a model$"):
        CliRunner().invoke(app, ["apply", "--from", str(searched)], catch_exceptions=False)


def test_a_search_that_keeps_what_is_set_changes_nothing(searched: Path) -> None:
    file = searched / "tuned.json"
    kept = json.loads(file.read_text())
    file.write_text(json.dumps(kept | {"best": "none", "said": "Keep none: no better ones."}))
    with pytest.raises(InputError, match=r"recommends no change: Keep none: no better ones\.$"):
        scheduler(find(str(searched), None, None), None, None)


def test_the_answer_of_another_search_and_a_damaged_one_are_not_taken(searched: Path) -> None:
    (searched.parent / "other.fio").write_text(LOAD)
    file = searched / "tuned.json"
    whole = file.read_bytes()
    for damaged in (b"", b"[]", b"\xff", whole[: len(whole) // 2], b'{"best": 1}'):
        file.write_bytes(damaged)
        with pytest.raises(InputError) as error:
            find(str(searched), None, None)
        assert "tuned.json: " in str(error.value) and str(error.value).isprintable()
    file.write_bytes(whole)
    # A comparison has been written there since.
    blklab.compare(
        disks=["desktop-5900rpm"],
        workloads=[searched.parent / "other.fio"],
        schedulers=["none", "mq-deadline"],
        repeats=3,
        out=searched,
    )
    source = find(str(searched), None, None)
    assert source.answer is None
    assert source.results.setup["workloads"][0]["name"] == "other"
