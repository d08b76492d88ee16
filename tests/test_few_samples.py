"""Few samples name no winner: in a comparison, a study, a difference, a report or a rule."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from blklab import report
from blklab.cli import app, comparison, console
from blklab.domain import results_file
from blklab.domain.measurement import Measurement
from blklab.domain.result import Figure
from blklab.errors import InputError
from blklab.experiment.analyse import Analysis, analyse
from blklab.experiment.budget import _why_enough
from blklab.experiment.statistics import Unranked, Verdict, decide
from blklab.experiment.summary import summarise
from blklab.experiment.words import sentence, short
from blklab.report import payload
from blklab.settings.recommended import Source, scheduler
from tests import fake_core, plausible
from tests.test_comparison import described, measured
from tests.test_study_run import judged

FEW = "p99 of reads not ranked: 8 reads per run, at least 299 are needed; use a longer runtime"
FAST = "mq-deadline:fifo_batch=1"


def of(runs: Sequence[Measurement], ios: int, **latencies: int) -> list[Measurement]:
    """Runs with so many reads each; other operations by name."""
    return [
        replace(
            run,
            latencies={
                "read": replace(run.latencies["read"], ios=ios),
                **{
                    name: replace(run.latencies["read"], ios=count)
                    for name, count in latencies.items()
                },
            },
        )
        for run in runs
    ]


@pytest.fixture(scope="module")
def runs() -> list[Measurement]:
    return measured()


def hdd(analysis: Analysis) -> Any:
    return analysis.cells[0].verdicts


def test_a_percentile_of_few_reads_names_no_winner_and_says_why(runs: list[Measurement]) -> None:
    enough, few = hdd(analyse(of(runs, 299), "both")), hdd(analyse(of(runs, 8), "both"))
    assert [enough[name].winner for name in ("throughput", "latency", "both")] == [FAST] * 3
    assert [few[name].winner for name in ("throughput", "latency", "both")] == [FAST, None, None]
    for name in ("latency", "both"):
        assert sentence(few[name], name) == FEW
        assert short(few[name]) == "not known"


def test_one_run_of_few_reads_is_enough_for_that(runs: list[Measurement]) -> None:
    [one] = of(runs[:1], 298)
    analysis = analyse([one, *of(runs[1:], 4000)], "latency")
    assert "298 reads per run" in sentence(hdd(analysis)["latency"], "latency")
    assert analysis.cells[1].verdicts["latency"].winner == FAST


def test_the_recommendation_over_all_loads_says_under_which_there_are_few(
    runs: list[Measurement],
) -> None:
    some = [of([run], 8)[0] if run.workload == "writes" else of([run], 4000)[0] for run in runs]
    answers = analyse(some, "latency").recommendations["hdd"]
    assert answers["throughput"].winner == FAST
    assert sentence(answers["latency"], "latency") == f"under writes, {FEW}"


def test_operations_of_a_program_are_counted_likewise(runs: list[Measurement]) -> None:
    def program(ios: int) -> Any:
        made = [
            replace(
                run,
                figure=Figure(run.bytes_per_s, "rows/s", True),
                latencies={"operation": replace(run.latencies["read"], ios=ios)},
            )
            for run in runs
        ]
        return hdd(analyse(made, "both"))

    assert program(299)["latency"].winner == FAST
    assert "p99 of operations not ranked: 100 operations per run" in program(100)["both"].why
    # With one operation, a difference of a half is less than one operation.
    assert program(1)["throughput"].winner is None
    assert program(100)["throughput"].winner == FAST


def test_tables_mark_figures_of_few_samples(
    runs: list[Measurement], capsys: pytest.CaptureFixture[str]
) -> None:
    def lines(ios: int) -> tuple[list[str], str]:
        comparison.show_cells(analyse(of(runs, ios), "both"), console.console(), requests=False)
        text = capsys.readouterr().out
        return [line for line in text.splitlines() if line.strip().startswith("none")], text

    marks = {ios: lines(ios)[0][0].count("~") for ios in (5, 8, 299, 2995)}
    assert marks == {5: 3, 8: 2, 299: 1, 2995: 0}
    assert "~ too few samples per run (at least: p50 6, p99 299, p99.9 2995)" in lines(8)[1]
    assert "too few" not in lines(2995)[1]


def test_json_says_how_many_there_are_and_that_there_is_no_winner(runs: list[Measurement]) -> None:
    [cell, *_] = summarise(analyse(of(runs, 8), "both"))["cells"]
    assert [row["latency_samples"] for row in cell["ranking"]] == [8, 8]
    assert cell["verdicts"]["latency"] == {
        "winner": None, "leads": [], "behind": {}, "visible_ratio": None, "text": FEW,
    }  # fmt: skip


def test_the_report_names_no_winner_either(runs: list[Measurement]) -> None:
    few = of(runs, 8)
    analysis = analyse(few, "latency")
    page = report.render(results_file.Results(described(), tuple(few)), analysis)
    visible = page[: page.index("<script")]
    assert visible.count(FEW) >= 8
    assert "~ too few samples per run" in visible
    cell = payload.build(results_file.Results(described(), tuple(few)), analysis)["cells"][0]
    assert cell["titles"]["latency"] == f"P{FEW[1:]}"
    assert cell["verdict"] == FEW


def test_a_sweep_has_no_best_p99_of_few(runs: list[Measurement]) -> None:
    sizes = {"reads": "load:numjobs=4", "writes": "load:numjobs=8"}
    few = [replace(run, workload=sizes[run.workload]) for run in of(runs, 8)]
    setup = described()
    for load in setup["workloads"]:
        load["name"] = sizes[load["name"]]
    curves = payload.build(results_file.Results(setup, tuple(few)), analyse(few, "both"))["sweeps"]
    assert "Best p99: not known, at any number." in curves[0]["told"]


def test_nothing_is_applied_that_few_samples_recommend(runs: list[Measurement]) -> None:
    few = Source("comparison 1", results_file.Results(described(), tuple(of(runs, 8))), "latency")
    with pytest.raises(InputError, match="recommends nothing for hdd, latency: under reads, p99"):
        scheduler(few, "hdd", None)
    assert scheduler(few, "hdd", "throughput")[0] == FAST


def test_a_comparison_stops_where_repeats_cannot_decide(runs: list[Measurement]) -> None:
    assert _why_enough(of(runs, 8), "latency") == "more repeats would not change the answer"


# Throughput: one I/O more or less


def test_a_difference_of_one_io_is_none() -> None:
    eight = {"a": [9.0] * 5, "b": [8.0] * 5}
    assert decide(eight).winner == "a"
    coarse = decide(eight, resolution=1 + 1 / 8)
    assert coarse.winner is None and coarse.visible == 1.125 and coarse.is_settled
    assert sentence(coarse, "throughput") == (
        "not known (minimum detectable: 12.5 %, which is one I/O of a run; "
        "longer runs detect smaller differences)"
    )
    assert decide({"a": [10.0] * 5, "b": [8.0] * 5}, resolution=1 + 1 / 8).winner == "a"


@pytest.mark.parametrize("ios", [1, 8, 45, 51, 4000])
def test_no_smaller_difference_is_detectable_than_one_io(runs: list[Measurement], ios: int) -> None:
    same = [replace(run, bytes_per_s=1e6) for run in of(runs, ios)]
    verdict = hdd(analyse(same, "throughput"))["throughput"]
    assert isinstance(verdict, Verdict)
    assert verdict.visible >= 1 + 1 / ios
    text = sentence(verdict, "throughput")
    fine = ios > 10
    assert text.startswith("no significant difference" if fine else "not known")
    assert ("2.0 %" in text) == (ios > 50)


def test_reads_and_writes_count_together_and_fsyncs_do_not(runs: list[Measurement]) -> None:
    assert hdd(analyse(of(runs, 30, write=20), "throughput"))["throughput"].resolution == 1.02
    with_syncs = of(runs, 50, sync=1000)
    assert hdd(analyse(with_syncs, "throughput"))["throughput"].resolution == 1.02


# Studies


CLAIM = 'schedulers = ["none", "kyber"]\n'


@pytest.mark.parametrize(
    "kind",
    ["order", "no-difference", "single-run", "ratio\nvalue = 2\ntolerance_percent = 9",
     "difference\nvalue = 2\ntolerance_percent = 9", "bound\nmost = 9"],
)  # fmt: skip
@pytest.mark.parametrize(("metric", "least"), [("p50_us", 6), ("p99_us", 299), ("p999_us", 2995)])
def test_a_claim_about_a_percentile_of_few_is_not_known(
    tmp_path: Path, kind: str, metric: str, least: int
) -> None:
    name, _, keys = kind.partition("\n")
    claim = f'kind = "{name}"\n{CLAIM}metric = "{metric}"\n{keys}'
    for ios in (least, least - 1):
        rows = judged(tmp_path, claim, ios=ios, none=[200, 201, 202], kyber=[100, 101, 99])
        known = {row.outcome != "not known" for row in rows}
        assert known == {ios == least}
    assert f"not ranked: {least - 1} reads per run, at least {least} are needed" in rows[0].found
    assert rows[0].measured is None


@pytest.mark.parametrize(
    ("claim", "fast", "outcome", "found"),
    [
        ('kind = "order"', 112.5, "not known", "differ by no more than one I/O of a run, 12.5 %"),
        ('kind = "order"', 120, "reproduced", "none is ahead of kyber by 20.0 %"),
        ('kind = "no-difference"', 101, "not known", "12.5 % apart; a longer runtime decides"),
        ('kind = "no-difference"\ntolerance_percent = 13', 101, "reproduced", "at most 12.5 %"),
        ('kind = "ratio"\nvalue = 1\ntolerance_percent = 9', 101, "not known",
         "one I/O of a run is 12.5 % of the figure, more than the tolerance"),
        ('kind = "ratio"\nvalue = 1\ntolerance_percent = 13', 101, "reproduced", "+1.0 %"),
        ('kind = "difference"\nvalue = 20\ntolerance_percent = 50', 120, "not known",
         "one I/O of a run is 75 % of the figure"),
        ('kind = "difference"\nvalue = 20\ntolerance_percent = 80', 120, "reproduced", "+0.0 %"),
    ],
)  # fmt: skip
def test_a_claim_about_a_rate_is_no_finer_than_an_io(
    tmp_path: Path, claim: str, fast: float, outcome: str, found: str
) -> None:
    [row] = judged(tmp_path, CLAIM + claim, ios=8, none=[fast] * 3, kyber=[100, 100, 100])
    assert row.outcome == outcome and found in row.found, row.found


def test_a_published_figure_is_not_held_against_a_coarser_one(tmp_path: Path) -> None:
    claim = 'kind = "figures"\ntolerance_percent = 10\nvalues = { none = 100 }'
    for ios, outcome in ((8, "not known"), (10, "reproduced")):
        [row] = judged(tmp_path, claim, ios=ios, none=[100, 101])
        assert row.outcome == outcome


# The commands


def test_two_comparisons_of_few_are_not_compared_by_percentile(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def few(*asked: Any) -> plausible.MadeRun:
        return plausible.run(asked[4], jobs=1, read_ios=8, write_ios=0)

    monkeypatch.setattr(fake_core, "simulate", few)
    words = ["compare", "--disk", "950pro-256gb", "--workload", "randread", "--repeats", "2"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert f"both: {FEW}" in " ".join(done.stdout.split())
    shown = CliRunner().invoke(app, ["results", "diff", "1", "1"], catch_exceptions=False).stdout
    assert "~ too few samples per run" in shown
    row = next(line for line in shown.splitlines() if line.strip().startswith("none"))
    assert row.count("~") == 2 and row.rstrip().endswith("-")
    told = CliRunner().invoke(app, ["results", "diff", "1", "1", "--json"], catch_exceptions=False)
    pair = json.loads(told.stdout)["pairs"][0]
    assert (pair["p99_ns"]["ratio"], pair["p99_ns"]["why"]) == (None, FEW)
    assert pair["bytes_per_s"]["resolution"] == 1.125


def test_a_cell_that_is_not_ranked_is_settled() -> None:
    assert Unranked("why", "not known").is_settled
