"""Disks drawn from the ranges of estimates: the winner over all of them, and the parameters that it
depends on."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import blklab
from blklab.base.catalogue import Entry
from blklab.cli import comparison, console
from blklab.domain import core, results_file, specs
from blklab.domain.comparison import Setup, plan
from blklab.domain.experiment import SchedulerSpec
from blklab.errors import InputError
from blklab.experiment.analyse import analyse
from blklab.experiment.hinges import Hinge, hinges
from blklab.experiment.statistics import decide
from blklab.experiment.summary import summarise
from blklab.experiment.words import hinge_text, interval_text, sentence
from blklab.study import parse
from blklab.study.plan import plan as study_plan

JOB = "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=8\nsize=4g\nruntime=2\ntime_based\n"


def setup(vary: bool, repeats: int = 3) -> Setup:
    disks = (specs.disk("wd10ezrx:rpm=7200"), specs.disk("su800-128gb"))
    workloads = specs.workloads(["randread", "seqread"])
    schedulers = (SchedulerSpec("none"), SchedulerSpec("bfq"))
    return Setup(disks, workloads, schedulers, repeats, 5, vary_disk=vary)


def test_a_repeat_has_one_drawn_disk_for_all_schedulers_and_the_next_another() -> None:
    runs = plan(setup(vary=True))
    for number in range(2):
        mine = [run for run in runs if run.place[0] == number]
        texts = {run.repeat: run.experiment.disk.file.text for run in mine}
        assert len(set(texts.values())) == 3
        assert all(run.experiment.disk.file.text == texts[run.repeat] for run in mine)
        # The name and the user's settings stay.
        assert {run.experiment.disk.label for run in mine} == {mine[0].disk.label}
        drawn = [dict(run.experiment.disk.drawn) for run in mine]
        assert all("rpm" not in values and len(values) > 10 for values in drawn)
        described = {row.key: row.range for row in core.disk_model(mine[0].disk).parameters}
        for values in drawn:
            for name, value in values.items():
                ends = described[name]
                assert ends and ends[0] <= value <= ends[1], name


def test_where_no_drawn_disk_meets_the_figures_the_file_is_used_and_a_note_says_so(
    tmp_path: Path,
) -> None:
    shipped = specs.disk("wd10ezrx").file.text
    wide = "outer_sectors_per_track = [1800, 18000]\nread_hit_us = [0.5, 5000]"
    (tmp_path / "wide.toml").write_text(f"{shipped}\n[ranges]\n{wide}\n", encoding="utf-8")
    notes: list[str] = []

    class Noting(blklab.Listener):
        def note(self, line: str) -> None:
            notes.append(line)

    def compared(disk: str) -> list[dict[str, float]]:
        found = blklab.compare(
            disks=[disk],
            workloads=["randread:runtime=1"],
            schedulers=["none"],
            repeats=2,
            seed=3,
            vary_disk=True,
            listener=Noting(),
        )
        return [run.drawn for run in found.results.runs]

    first, second = compared(str(tmp_path / "wide.toml"))
    assert first == second and first["read_hit_us"] == 88
    [note] = [note for note in notes if "drawn" in note]
    assert re.fullmatch(
        r"wide: no disk drawn from its ranges meets the calibrated seq_read_\w+(, seq_\w+)?; "
        r"the file's own values in repeats 1, 2",
        note,
    )
    notes.clear()
    assert len({tuple(drawn.items()) for drawn in compared("wd10ezrx")}) == 2
    assert not [note for note in notes if "drawn" in note]


def test_without_vary_disk_every_run_has_the_disk_of_the_file() -> None:
    for run in plan(setup(vary=False)):
        assert run.experiment.disk is run.disk
        assert run.disk.drawn == ()
    exact, drawn = (plan(setup(vary=vary)) for vary in (False, True))
    assert [run.place for run in exact] == [run.place for run in drawn]


def test_drawing_needs_a_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--vary-disk: only modelled disks have ranges"):
        blklab.compare(disks=[str(tmp_path)], rig="live", vary_disk=True)


def test_the_runs_of_exact_disks_are_those_of_a_single_simulation() -> None:
    job = specs.workload("randread")
    found = blklab.compare(
        disks=["wd10ezrx"],
        workloads=["randread:runtime=2"],
        schedulers=["none"],
        repeats=2,
        vary_disk=False,
    )
    for run in found.results.runs:
        alone = blklab.simulate(
            job.text + "\nruntime=2\n", disk="wd10ezrx", scheduler="none", seed=run.seed
        )
        assert run.duration_ns == alone.duration_ns
        assert run.drawn == {}


def test_drawn_disks_are_stored_printed_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.fio").write_text(JOB, encoding="utf-8")
    asked = {
        "disks": ["wd10ezrx"],
        "workloads": [str(tmp_path / "a.fio")],
        "schedulers": ["none", "kyber"],
        "repeats": 3,
    }
    found = blklab.compare(**asked, out=tmp_path / "out")  # type: ignore[arg-type]
    again = results_file.load(tmp_path / "out")
    assert again.runs == found.results.runs
    assert again.setup["drawn_disks"] is True
    by_repeat = {run.repeat: run.drawn for run in again.runs}
    assert len({tuple(drawn.items()) for drawn in by_repeat.values()}) == 3
    assert all(run.drawn == by_repeat[run.repeat] for run in again.runs)
    [cell] = summarise(found.analysis)["cells"]
    assert cell["drawn_disks"] == 3
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert "Each repeat has a disk drawn from the ranges" in page
    assert "Not validated: wd10ezrx (0 of 5 independent figures)." in page
    comparison.show(found.analysis, found.results.setup, None, verbose=True)
    told = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert (
        "Each repeat has a disk drawn from the ranges of its estimates (--exact-disk: the file's "
        "values); with 8 or more, each answer names the parameter it depends on." in told
    )
    assert "Not validated: wd10ezrx (0 of 5 independent figures)." in told
    assert blklab.compare(**asked).rows() == found.rows()  # type: ignore[arg-type]


def test_a_part_of_a_study_draws_disks_only_with_vary_disk() -> None:
    part = """
[[part]]
name = "{}"
disks = ["wd10ezrx"]
workloads = ["randread"]
schedulers = ["none"]
"""
    text = f"title = 'a'\nquestion = 'b'\n{part.format('exact')}{part.format('drawn')}"
    study = parse(Entry("s", Path("s.toml"), f"{text}vary_disk = true\n"))
    setups = [planned.setup for planned in study_plan(study)]
    assert [setup.vary_disk for setup in setups if setup] == [False, True]


def _disks(count: int, parameters: int, seed: int) -> list[dict[str, float]]:
    values = np.random.default_rng(seed).uniform(1.0, 2.0, (count, parameters))
    return [{f"p{j}": float(v) for j, v in enumerate(row)} for row in values]


def _found(logs: np.ndarray, drawn: list[dict[str, float]]) -> tuple[Hinge, ...]:
    better = np.exp(logs)
    return hinges(("a", better.tolist()), ("b", np.ones(len(drawn)).tolist()), drawn, 1)


def test_only_the_planted_parameter_is_named_with_its_threshold() -> None:
    drawn = _disks(30, 25, seed=3)
    noise = np.random.default_rng(4).normal(0.0, 0.02, 30)
    logs = np.array([0.5 * (disk["p7"] - 1.2) for disk in drawn]) + noise
    [hinge] = _found(logs, drawn)
    assert hinge.parameter == "p7"
    assert hinge.threshold == pytest.approx(1.2, abs=0.1)
    assert not hinge.best_is_ahead_below
    assert re.fullmatch(r"a is ahead of b unless p7 is below 1\.[12]\d*", hinge_text(hinge))
    [always] = _found(logs + 1.0, drawn)
    assert always.threshold is None
    assert "depends on p7" in hinge_text(always)


def test_two_planted_parameters_are_both_named() -> None:
    drawn = _disks(40, 25, seed=8)
    logs = np.array([0.6 * disk["p1"] - 0.4 * disk["p2"] for disk in drawn])
    assert {hinge.parameter for hinge in _found(logs, drawn)} == {"p1", "p2"}


def test_a_parameter_with_a_negligible_effect_is_not_named() -> None:
    drawn = _disks(30, 25, seed=5)
    assert _found(np.array([0.01 * disk["p7"] for disk in drawn]), drawn) == ()
    assert _found(np.full(30, 0.3), drawn) == ()


def test_noise_is_named_in_at_most_one_report_of_twenty() -> None:
    named = 0
    for seed in range(200):
        drawn = _disks(20, 25, seed=1000 + seed)
        noise = np.random.default_rng(5000 + seed).normal(0.0, 0.2, 20)
        named += bool(_found(noise, drawn))
    # Three standard errors above 5 %.
    assert named <= 19


def test_too_few_disks_name_nothing() -> None:
    drawn = _disks(7, 3, seed=1)
    assert _found(np.array([disk["p0"] for disk in drawn]), drawn) == ()


def test_a_winner_is_ahead_on_nearly_all_drawn_disks_not_only_on_average() -> None:
    often = [1.5] * 16 + [0.9] * 4
    figures = {"a": often, "b": [1.0] * 20}
    assert decide(figures).winner == "a"
    verdict = decide(figures, drawn=True)
    assert verdict.winner is None
    assert verdict.elsewhere == {"b": 4}
    said = sentence(verdict, "throughput")
    assert said.startswith("it depends on the disk: a is ")
    assert said.endswith("but b is ahead on 4 of 20 drawn disks")
    once = {"a": [1.5] * 19 + [0.9], "b": [1.0] * 20}
    assert decide(once, drawn=True).winner == "a"
    slightly = {"a": [1.5] * 16 + [0.99] * 4, "b": [1.0] * 20}
    assert decide(slightly, drawn=True).winner == "a", "1 % does not matter"


def test_a_dependence_on_the_disk_is_settled_once_enough_disks_show_it() -> None:
    few = decide({"a": [1.5] * 16 + [0.9] * 4, "b": [1.0] * 20}, drawn=True)
    assert not few.is_settled
    many = decide({"a": [1.5] * 32 + [0.9] * 8, "b": [1.0] * 40}, drawn=True)
    assert many.winner is None and many.is_settled


def test_an_answer_that_depends_on_the_disk_names_its_parameter(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = blklab.compare(
        disks=["wd10ezrx"], workloads=["randread:runtime=1"], schedulers=["none", "bfq"], repeats=2
    )
    drawn = _disks(20, 10, seed=6)
    runs = [
        replace(
            next(run for run in found.results.runs if run.scheduler == scheduler),
            repeat=repeat,
            drawn=disk,
            bytes_per_s=1e6 * (1.0 if scheduler == "none" else disk["p3"] - 0.3),
        )
        for repeat, disk in enumerate(drawn)
        for scheduler in ("none", "bfq")
    ]
    analysis = analyse(runs, "throughput")
    [cell] = analysis.cells
    assert [hinge.parameter for hinge in cell.hinges] == ["p3"]
    comparison.show_cells(analysis, console.console(), requests=False)
    told = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert re.search(r"is ahead of \w+ unless p3 is (below|above) 1\.[23]", told), told
    [row] = summarise(analysis)["cells"][0]["depends_on"]
    assert row["parameter"] == "p3"


@pytest.mark.parametrize(
    ("ratios", "text"),
    [
        ((1.034, 1.012, 1.056), "1.2 % to 5.6 %"),
        ((1.8, 1.149, 2.1), "14.9 % to 110.0 %"),
        ((2.9, 1.98, 4.3), "2.0 times to 4.3 times"),
        ((2.9, 2.0, math.inf), "2.0 times to any number of times"),
        ((1.5, 1.1, 1e9), "10.0 % to more than 1000 times"),
    ],
)
def test_an_interval_has_the_unit_of_its_estimate(
    ratios: tuple[float, float, float], text: str
) -> None:
    assert interval_text(*ratios) == text
