"""Settings from measurements: those of a comparison, of a study, or in the store."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blklab.cli import app
from blklab.errors import BlklabError, InputError
from blklab.host import roots
from blklab.settings.recommended import find, scheduler
from blklab.store import place, schema
from blklab.store.opening import open_store
from tests.fake_sysfs import Machine
from tests.test_apply_plan import sata

COMPARE = ("compare", "--repeats", "3", "--workload", "randread")
STUDY = """\
title = "t"
question = "q?"
source = "s"
rigs = ["sim"]
repeats = 3
[[kernel]]
name = "slow"
[[part]]
name = "disk"
disks = ["desktop-5900rpm"]
workloads = ["randread"]
schedulers = ["none", "mq-deadline"]
objective = "throughput"
[[part]]
name = "flash"
disks = ["950pro-256gb"]
workloads = ["randread"]
schedulers = ["none", "mq-deadline"]
[[part]]
name = "beyond"
disks = ["950pro-256gb"]
workloads = ["randread"]
schedulers = ["none@slow"]
"""


@pytest.fixture
def kept(fake: Path) -> Path:
    """A comparison that has run, number 1 of the store, and its directory."""
    assert CliRunner().invoke(app, COMPARE).exit_code == 0
    return fake / "reports/compare"


@pytest.fixture
def studied(fake: Path) -> Path:
    """A study with two finished parts, numbers 1 and 2 of the store, and its directory."""
    (fake / "mine.toml").write_text(STUDY)
    done = CliRunner().invoke(app, ["run", "mine.toml"])
    assert done.exit_code == 0, done.stderr
    return fake / "reports/mine"


def test_the_recommendation_of_a_comparison_is_taken_and_none_is_refused(kept: Path) -> None:
    source = find(str(kept), None, None)
    spec, said = scheduler(source, "desktop-5900rpm", "throughput")
    assert spec == "mq-deadline"
    assert said.startswith("desktop-5900rpm, throughput: mq-deadline is ")
    with pytest.raises(InputError, match="--of-disk: name the disk of the comparison; there is: "):
        scheduler(source, None, "both")
    with pytest.raises(InputError, match="--of-disk: no disk 'x'"):
        scheduler(source, "x", "both")
    with pytest.raises(InputError, match="recommends nothing for 950pro-256gb, both: no"):
        scheduler(source, "950pro-256gb", "both")
    with pytest.raises(InputError, match="--objective: no 'speed'"):
        scheduler(source, None, "speed")


def test_that_of_a_number_in_the_store_is_the_same(kept: Path) -> None:
    here, there = find(str(kept), None, None), find("1", None, None)
    assert there.name == "comparison 1"
    assert there.results == here.results
    for objective in ("throughput", None):
        assert scheduler(here, "desktop-5900rpm", objective) == scheduler(
            there, "desktop-5900rpm", objective
        )


def test_without_a_word_it_is_ranked_as_it_was_asked_then(fake: Path) -> None:
    told = [*COMPARE, "--disk", "desktop-5900rpm", "--objective", "throughput"]
    assert CliRunner().invoke(app, told).exit_code == 0
    assert scheduler(find("1", None, None), None, None)[1].startswith("desktop-5900rpm, throughput")
    # Its file lacks the objective.
    assert find("reports/compare", None, None).objective == "both"


def test_a_single_run_recommends_nothing(fake: Path) -> None:
    told = ["fio", "randread", "--disk", "desktop-5900rpm", "--scheduler", "mq-deadline"]
    assert CliRunner().invoke(app, told).exit_code == 0
    message = "^comparison 1 recommends nothing for .*: mq-deadline: nothing to compare it with$"
    with pytest.raises(InputError, match=message):
        scheduler(find("1", None, None), None, None)


def test_of_a_study_the_part_is_said(studied: Path) -> None:
    source = find(str(studied), "disk", None)
    assert source.name == f"{studied}, disk"
    spec, said = scheduler(source, None, None)
    assert (spec, said.split(":")[0]) == ("mq-deadline", "desktop-5900rpm, throughput")
    assert find("1", None, None).results == source.results
    # A part's own directory is a comparison's.
    assert find(str(studied / "disk"), None, None).results == source.results


def test_each_wrong_path_is_reported(studied: Path, fake: Path) -> None:
    with open_store(place.find()).writing() as connection:
        connection.execute(schema.RUN.delete().where(schema.RUN.c.comparison_id == 2))
    (fake / "other.json").write_text("{}")
    (fake / "broken").mkdir()
    (fake / "broken/study.json").write_text("[]")
    for text, part, store, message in (
        (str(studied), None, None, "--of-part: name the part of the study; there is: disk, f"),
        (str(studied), "flsh", None, "--of-part: no part 'flsh' in .*; did you mean 'flash'?"),
        (str(studied), "beyond", None, "--of-part: part 'beyond' was left out in .*; there is: di"),
        (str(studied / "disk"), "disk", None, "--of-part: .*/disk is not the directory of a study"),
        ("1", "disk", None, "--of-part: 1 is not the directory of a study"),
        ("2", None, None, "comparison 2: no repeat is complete yet, there is no recommendation"),
        ("77", None, None, "no comparison 77; see: blklab results"),
        ("0", None, None, "no comparison has that number"),
        ("1", None, "none.db", "none.db: no store there yet"),
        (str(studied), "disk", "x.db", "--store: only works with a number; .*/mine is a path"),
        ("other.json", None, "x.db", "--store: only works with a number; other.json is a path"),
        ("nothing", None, None, "nothing: No such file"),
        ("other.json", None, None, "other.json: not the results of 'blklab compare'"),
        ("broken", None, None, "broken/study.json: not a study that 'blklab run' wrote"),
    ):
        with pytest.raises(BlklabError, match=message):
            find(text, part, store)


def test_options_of_stored_results_are_refused_without_one() -> None:
    for name in ("--of-part", "--of-disk", "--objective", "--store"):
        command = ["apply", "sda", "bfq", name, "x", "--dry-run"]
        with pytest.raises(InputError, match=f"^{name}: only works with --from$"):
            CliRunner().invoke(app, command, catch_exceptions=False)


def test_a_number_is_applied(
    kept: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    sata(machine, "sdb", 1, wwid="naa.5001")
    monkeypatch.setattr(roots, "HERE", machine.roots)
    command = ["apply", "sdb", "--from", "1", "--of-disk", "desktop-5900rpm", "--dry-run"]
    done = CliRunner().invoke(app, [*command, "--objective", "throughput"], catch_exceptions=False)
    assert done.stdout.startswith("comparison 1: desktop-5900rpm, throughput: mq-deadline is ")
    assert 'ATTRS{wwid}=="naa.5001", ATTR{queue/scheduler}="mq-deadline"' in done.stdout


def test_root_is_told_the_store_that_the_number_is_of(
    kept: Path,
    own_store: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    sata(machine, "sdb", 1, wwid="naa.5001")
    monkeypatch.setattr(roots, "HERE", machine.roots)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    asked = ["apply", "sdb", "kyber"]
    number = ["apply", "sdb", "--from", "1", "--of-disk", "desktop-5900rpm"]
    number += ["--objective", "throughput"]
    named = [*number, "--store", str(own_store)]
    for given, typed in (
        (asked, asked),
        (number, [*number, "--store", str(own_store.absolute())]),
        (named, named),
    ):
        monkeypatch.setattr(sys, "argv", ["/x/blklab", *given])
        with pytest.raises(InputError) as refused:
            CliRunner().invoke(app, given, catch_exceptions=False)
        assert str(refused.value).endswith(f"needs root; type: sudo /x/blklab {shlex.join(typed)}")


def test_a_live_result_is_for_the_disks_that_it_was_measured_on(
    fake: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["compare", "--repeats", "3", "--workload", "randread", "--disk", "desktop-5900rpm"]
    assert CliRunner().invoke(app, command).exit_code == 0
    machine = Machine(tmp_path_factory.mktemp("machine"))
    sata(machine, "sdb", 1, wwid="naa.5001")
    monkeypatch.setattr(roots, "HERE", machine.roots)
    given = ["apply", "--from", "reports/compare", "--dry-run", "--objective", "throughput"]

    with pytest.raises(InputError, match=r"apply: name a disk; .* was measured on a model"):
        CliRunner().invoke(app, given, catch_exceptions=False)
    named = CliRunner().invoke(app, [given[0], "sdb", *given[1:]], catch_exceptions=False)
    assert "sdb: already set so" in named.stdout

    place = fake / "reports/compare/results.json"
    document = json.loads(place.read_text())
    document["setup"]["rig"] = "live"
    # Its name was sda at that time.
    row = {"key": "sda: id", "value": "sdb-naa.5001", "unit": "", "help": "", "source": None}
    document["setup"]["disks"][0]["parameters"] = [row]
    place.write_text(json.dumps(document))
    done = CliRunner().invoke(app, given, catch_exceptions=False)
    assert 'ATTRS{wwid}=="naa.5001", ATTR{queue/scheduler}="mq-deadline"' in done.stdout
    row["value"] = "ata-Another\x1b"
    place.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"measured on ata-Another\\x1b, which is missing here"):
        CliRunner().invoke(app, given, catch_exceptions=False)
    document["setup"]["disks"] = [1]
    place.write_text(json.dumps(document))
    with pytest.raises(InputError, match="not the results of 'blklab compare'"):
        CliRunner().invoke(app, given, catch_exceptions=False)
