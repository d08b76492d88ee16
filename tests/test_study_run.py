"""Studies run: omissions with reasons, judgements, output files and texts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from blklab import study as studies
from blklab.base.catalogue import Entry
from blklab.domain.measurement import Latency, Measurement
from blklab.domain.over_time import OverTime, PileUp, PileUps
from blklab.domain.results_file import Results
from blklab.domain.setup import SetupData
from blklab.errors import InputError
from blklab.execute.places import Here
from blklab.study.judge import Judgement, judge
from blklab.study.model import Outcome, Skipped, Study
from blklab.study.plan import Asked, plan
from blklab.study.run import ready
from blklab.study.run import run as execute

HEAD = """\
title = "t <i>"
question = "q?"
source = "s"
rigs = ["sim", "kernel"]
repeats = 3
[[kernel]]
name = "slow"
[[part]]
name = "p"
disks = ["su800-128gb"]
workloads = ["short.fio"]
schedulers = ["none", "mq-deadline", "kyber", "kyber@slow"]
"""
JOB = "# short\n[a]\nrw=randread\nbs=4k\nsize=64M\ndirect=1\nruntime=1\ntime_based\n"


def study(tmp_path: Path, claims: str = "", head: str = HEAD) -> Study:
    (tmp_path / "short.fio").write_text(JOB)
    (tmp_path / "mine.toml").write_text(head + claims)
    return studies.find(tmp_path / "mine.toml")


# Judging


def run(scheduler: str, repeat: int, mb_s: float, p99_ns: int, *, ios: int = 4000) -> Measurement:
    latency = Latency(ios, p99_ns / 2, (p99_ns // 2, p99_ns, p99_ns), (p99_ns,), (ios,))
    return Measurement(
        "su800-128gb", "short", scheduler, repeat, 1 + repeat, 10**9, mb_s * 1e6, 100.0,
        {"read": latency}, {}, None,
    )  # fmt: skip


def judged(tmp_path: Path, claim: str, *, ios: int = 4000, **mb_s: list[float]) -> list[Judgement]:
    """The claim about runs with these throughputs; twice as fast is half the latency."""
    runs = [
        run(
            name.replace("_at_", "@").replace("mq_", "mq-"),
            repeat,
            value,
            round(1e9 / value),
            ios=ios,
        )
        for name, values in mb_s.items()
        for repeat, value in enumerate(values)
    ]
    setup = {"disks": [{"label": "su800-128gb"}], "workloads": [{"name": "short"}]}
    skipped = (Skipped("kyber@slow", "needs it"),)
    outcome = Outcome("p", "sim", Results(cast(SetupData, setup), tuple(runs)), skipped)
    made = study(tmp_path, f'[[part.claim]]\ntext = "x"\n{claim}\n')
    return judge(made, [outcome])


FIGURES = 'kind = "figures"\ntolerance_percent = 10\nvalues = { none = [90, 110], kyber = 50 }'


def test_a_figure_is_reproduced_within_its_tolerance_of_the_published_mean(tmp_path: Path) -> None:
    none, kyber = judged(tmp_path, FIGURES, none=[100, 101, 126], kyber=[55.1, 55.1, 55.1])
    assert (none.outcome, kyber.outcome) == ("reproduced", "not reproduced")
    assert none.published is not None
    assert none.measured is not None
    assert (none.published.estimate, none.published.low, none.published.high) == (100, 90, 110)
    assert (none.measured.estimate, none.measured.low, none.measured.high) == (109, 100, 126)
    assert kyber.found == "+10.2 %"
    assert kyber.why == "No reason is known."
    assert (none.why, none.source) == ("", "s")


def test_operations_of_programs_are_judged_beside_replays_that_have_none(tmp_path: Path) -> None:
    def of_program(scheduler: str, p99_ns: int) -> Measurement:
        found = run(scheduler, 0, 1, p99_ns)
        return replace(found, latencies={"operation": found.latencies["read"]})

    runs = (of_program("none", 2000), of_program("mq-deadline", 1000))
    replayed = (run("none", 0, 1, 7), run("kyber", 0, 1, 7))
    setup = {"disks": [{"label": "su800-128gb"}], "workloads": [{"name": "short"}]}
    results, beside = (Results(cast(SetupData, setup), some) for some in (runs, replayed))
    claim = 'kind = "ratio"\nmetric = "p99_us"\nvalue = 2\ntolerance_percent = 1\ntext = "x"\n'
    claims = "".join(
        f"[[part.claim]]\n{claim}schedulers = {names}\n"
        for names in ('["none", "mq-deadline"]', '["none", "kyber"]')
    )
    outcome = Outcome("p", "kernel", results, (), beside)
    linux, both = judge(study(tmp_path, claims), [outcome])
    assert (linux.outcome, linux.found) == ("reproduced", "+0.0 %")
    # An operation is not compared with a read.
    assert both.outcome == "not known"


def test_a_statement_about_an_omitted_run_is_not_known_with_the_reason(tmp_path: Path) -> None:
    claim = FIGURES.replace("kyber", '"kyber@slow"')
    _, slow = judged(tmp_path, claim, none=[100, 100, 100])
    assert slow.outcome == "not known"
    assert slow.found == "kyber@slow was left out: needs it"
    claim = 'kind = "order"\nschedulers = ["none", "kyber@slow"]'
    [order] = judged(tmp_path, claim, none=[100, 100, 100])
    assert (order.outcome, order.found) == ("not known", "kyber@slow was left out: needs it")


@pytest.mark.parametrize(
    ("claim", "none", "kyber", "outcome", "found"),
    [
        ('kind = "ratio"\nvalue = 2.0\ntolerance_percent = 5', [200, 210, 190], [100, 105, 96],
         "reproduced", r"-0\.3 %"),
        ('kind = "ratio"\nvalue = 2.0\ntolerance_percent = 5', [150, 150, 150], [100, 100, 100],
         "not reproduced", r"-25\.0 %"),
        ('kind = "ratio"\nmetric = "p99_us"\nvalue = 0.5\ntolerance_percent = 5',
         [200, 200, 200], [100, 100, 100], "reproduced", r"\+0\.0 %"),
        ('kind = "order"', [110, 111, 109], [100, 101, 100],
         "reproduced", r"none is ahead of kyber by 9.6 % \(8\.\d % to 1\d\.\d %\)$"),
        ('kind = "order"', [110, 110, 110], [100, 100, 100],
         "reproduced", r"none is ahead of kyber by 10.0 %$"),
        ('kind = "order"\nmetric = "p99_us"', [110, 111, 109], [100, 101, 100],
         "reproduced", "none is ahead of kyber by 9.6 %"),
        ('kind = "order"', [100, 101, 100], [110, 111, 109],
         "not reproduced", "kyber is ahead of none by 9.6 %"),
        ('kind = "order"', [101, 101, 101], [100, 100, 100],
         "not reproduced", "no significant difference between none and kyber"),
        ('kind = "order"', [110, 90, 130], [100, 100, 100],
         "not reproduced", "no significant difference between none and kyber"),
        ('kind = "order"', [110], [100], "not known", "one run cannot show"),
        ('kind = "difference"\nvalue = 10\ntolerance_percent = 50', [110, 105, 109], [100] * 3,
         "reproduced", r"-20\.0 %"),
        ('kind = "difference"\nvalue = 10\ntolerance_percent = 50', [100], [104],
         "not reproduced", r"-140\.0 %"),
        ('kind = "single-run"', [101, 102], [100, 101], "reproduced",
         r"of 2 single runs the best: none in 2; the first run: none 101.0, kyber 100.0$"),
        ('kind = "single-run"', [101, 99, 90], [100, 100, 90], "not reproduced",
         "of 3 single runs the best: none in 1, kyber in 1, none of them in 1; the first"),
        ('kind = "single-run"\nmetric = "p99_us"', [101], [100], "reproduced", "of 1 single runs"),
        ('kind = "no-difference"', [101, 101, 101], [100, 100, 100], "reproduced", r"at most 1\.0"),
        ('kind = "no-difference"', [110, 111, 109], [100, 101, 100],
         "not reproduced", r"none and kyber are 9\.6 % apart"),
        ('kind = "no-difference"\ntolerance_percent = 20', [110, 111, 109], [100, 101, 100],
         "reproduced", r"at most 11\.0 % apart"),
        ('kind = "no-difference"', [101, 90, 110], [100, 100, 100],
         "not known", "none and kyber may be"),
        ('kind = "no-difference"', [101], [100], "not known", "none and kyber may be any number"),
    ],
)  # fmt: skip
def test_statements_about_two_schedulers(
    tmp_path: Path, claim: str, none: list[float], kyber: list[float], outcome: str, found: str
) -> None:
    [row] = judged(tmp_path, f'schedulers = ["none", "kyber"]\n{claim}', none=none, kyber=kyber)
    assert row.outcome == outcome
    assert re.match(found, row.found), row.found


def test_an_order_of_three_holds_only_if_both_steps_do(tmp_path: Path) -> None:
    claim = 'kind = "order"\nschedulers = ["none", "kyber", "mq-deadline"]'
    good = {"none": [120.0, 121, 122], "kyber": [110.0, 111, 112], "mq_deadline": [100.0, 101, 102]}
    [row] = judged(tmp_path, claim, ios=4000, **good)
    assert row.outcome == "reproduced"
    [row] = judged(tmp_path, claim, ios=4000, **good | {"kyber": [101.0, 102, 103]})
    assert row.outcome == "not reproduced"


@pytest.mark.parametrize(
    ("keys", "outcome", "found"),
    [
        ("least = 100", "reproduced", "101 MB/s, said to be at least 100"),
        ("most = 100", "not reproduced", "101 MB/s, said to be at most 100"),
        (
            "least = 90\nmost = 101",
            "reproduced",
            "101 MB/s, said to be at least 90 and at most 101",
        ),
    ],
)
def test_a_bound_holds_for_the_mean_of_the_runs(
    tmp_path: Path, keys: str, outcome: str, found: str
) -> None:
    claim = f'kind = "bound"\nschedulers = ["none"]\n{keys}'
    [row] = judged(tmp_path, claim, none=[99.0, 101.0, 103.0])
    assert (row.outcome, row.found, row.tolerance) == (outcome, found, None)


@pytest.mark.parametrize(
    ("first", "second", "outcome", "found"),
    [
        ([110, 111, 109], [100, 101, 100], "reproduced", "short is ahead of long by 9.6 %"),
        ([100, 101, 100], [110, 111, 109], "not reproduced", "long is ahead of short by 9.6 %"),
        ([101, 101, 101], [100, 100, 100], "not reproduced", "no significant difference"),
        ([110, 111, 109], None, "not known", "none: nothing was measured"),
    ],
)
def test_workloads_are_ordered_under_each_scheduler(
    tmp_path: Path, first: list[float], second: list[float] | None, outcome: str, found: str
) -> None:
    (tmp_path / "long.fio").write_text(JOB)
    head = HEAD.replace('"short.fio"', '"short.fio", "long.fio"')
    text = '[[part.claim]]\ntext = "x"\nkind = "workload-order"\nschedulers = ["none"]\n'
    made = study(tmp_path, f'{text}workloads = ["short.fio", "long.fio"]\n', head)
    runs = [
        replace(run("none", repeat, value, 10**7), workload=load)
        for load, values in (("short", first), ("long", second))
        for repeat, value in enumerate(values or [])
    ]
    loads = [{"name": "short"}, {"name": "long"}]
    setup = {"disks": [{"label": "su800-128gb"}], "workloads": loads}
    [row] = judge(made, [Outcome("p", "sim", Results(cast(SetupData, setup), tuple(runs)), ())])
    assert (row.subject, row.workload) == ("none", "short before long")
    assert (row.outcome, row.found[: len(found)]) == (outcome, found)


def lasting(p99_ns: np.ndarray[Any, np.dtype[np.float64]], pile_ups: int = 0) -> OverTime:
    """Two hours in 200 intervals, with these percentiles in each."""
    column = tuple(p99_ns.astype(int).tolist())
    one = PileUp(3600 * 10**9, 5 * 10**9, 40.0, 9e6)
    made = PileUps(10**9, 8.0, 2e6, (one,) * pile_ups, pile_ups, 5 * 10**9 * bool(pile_ups))
    return OverTime(36 * 10**9, 200, "read", (10**6,) * 200, (400,) * 200, (), column, column,
                    column, (), made)  # fmt: skip


def judged_over_time(tmp_path: Path, claim: str, *courses: OverTime | None) -> Judgement:
    runs = [
        replace(run("none", repeat, 100, 10**7), over_time=course)
        for repeat, course in enumerate(courses)
    ]
    setup = {"disks": [{"label": "su800-128gb"}], "workloads": [{"name": "short"}]}
    outcome = Outcome("p", "sim", Results(cast(SetupData, setup), tuple(runs)), ())
    text = f'[[part.claim]]\ntext = "x"\nschedulers = ["none"]\n{claim}\n'
    [found] = judge(study(tmp_path, text), [outcome])
    return found


@pytest.mark.parametrize(
    ("rise", "spread", "outcome", "found"),
    [
        (0.0, 0.01, "reproduced", r"over the run -\d\.\d\d to \+\d\.\d\d %$"),
        (0.2, 0.01, "not reproduced", r"over the run \+1\d\.\d\d to \+2\d\.\d\d %$"),
        (0.0, 0.5, "not known", "over the run -.*; longer or more runs decide"),
    ],
)
def test_a_steady_figure_changes_by_no_more_than_the_tolerance(
    tmp_path: Path, rise: float, spread: float, outcome: str, found: str
) -> None:
    random = np.random.default_rng(4)
    trend = np.linspace(1 - rise / 2, 1 + rise / 2, 200)
    courses = [lasting(1e7 * trend * (1 + random.normal(0, spread, 200))) for _ in range(3)]
    row = judged_over_time(tmp_path, 'kind = "steady"\nmetric = "p99_us"', *courses)
    assert (row.outcome, row.unit) == (outcome, "% over the run")
    assert row.tolerance == pytest.approx(0.02)
    assert re.match(found, row.found), row.found


def test_a_steady_figure_of_a_short_run_is_not_known(tmp_path: Path) -> None:
    row = judged_over_time(tmp_path, 'kind = "steady"\nmetric = "p99_us"', None)
    assert (row.outcome, row.found.split(":")[0]) == ("not known", "none")
    assert "shorter than a minute" in row.found


@pytest.mark.parametrize(
    ("keys", "pile_ups", "outcome"),
    [
        ('metric = "pile_ups"\nmost = 0', (0, 0), "reproduced"),
        ('metric = "pile_ups"\nmost = 0', (0, 1), "not reproduced"),
        ('metric = "pile_ups"\nleast = 1', (2, 1), "reproduced"),
        ('metric = "pile_up_longest_s"\nmost = 5', (1, 1), "reproduced"),
        ('metric = "p99_uneven_percent"\nmost = 1.5', (0, 0), "reproduced"),
    ],
)
def test_bounds_hold_for_pile_ups_of_which_there_may_be_none(
    tmp_path: Path, keys: str, pile_ups: tuple[int, int], outcome: str
) -> None:
    random = np.random.default_rng(4)
    courses = [lasting(1e7 * (1 + random.normal(0, 0.01, 200)), count) for count in pile_ups]
    row = judged_over_time(tmp_path, f'kind = "bound"\n{keys}', *courses)
    assert row.outcome == outcome, row.found


def test_figures_of_all_loads_may_be_added_up_repeat_by_repeat(tmp_path: Path) -> None:
    claim = '[[part.claim]]\ntext = "x"\nsummed = true\nschedulers = ["none", "kyber"]\n'
    claims = claim + 'kind = "single-run"\n' + claim + 'kind = "order"\n'
    made = study(tmp_path, claims, HEAD.replace('"short.fio"', '"short.fio", "long.fio"'))

    def load(name: str, **mb_s: list[float]) -> list[Measurement]:
        return [
            replace(run(scheduler, repeat, value, 1), workload=name)
            for scheduler, values in mb_s.items()
            for repeat, value in enumerate(values)
        ]

    setup = {
        "disks": [{"label": "su800-128gb"}],
        "workloads": [{"name": "short"}, {"name": "long"}],
    }
    runs = load("short", none=[100, 100], kyber=[90, 130])
    runs += load("long", none=[11, 11], kyber=[20, 20])
    [single, order] = judge(
        made, [Outcome("p", "sim", Results(cast(SetupData, setup), tuple(runs)), ())]
    )
    assert (single.workload, order.workload) == ("short + long", "short + long")
    assert single.found == (
        "of 2 single runs the best: none in 1, kyber in 1; the first run: none 111.0, kyber 110.0"
    )
    assert order.outcome == "not reproduced"
    lacking = Results(cast(SetupData, setup), tuple(runs[:-2]))
    [single, _] = judge(made, [Outcome("p", "sim", lacking, ())])
    assert (single.outcome, single.found) == ("not known", "kyber: nothing was measured")


SHARES = """
[global]
rw=read
bs=64k
direct=1
filename=/dev/disk
[near]
size=2m
[far]
size=4m
offset=100g
"""


def test_figures_may_be_of_one_job_and_of_shares(tmp_path: Path) -> None:
    (tmp_path / "shares.fio").write_text(SHARES)
    claims = [
        'kind = "bound"\nmetric = "jain"\nleast = 0.89\nmost = 0.91',
        'kind = "bound"\nmetric = "ends_apart"\nleast = 1.01',
        'kind = "bound"\nmetric = "duration_s"\njob = "near"\nmost = 1',
        'kind = "bound"\nmetric = "start_peak"\njob = "far"\nleast = 0.1',
        'kind = "bound"\nmetric = "iops"\njob = "absent"\nleast = 1',
    ]
    text = "".join(f'[[part.claim]]\ntext = "x"\n{claim}\n' for claim in claims)
    head = HEAD.replace("short.fio", "shares.fio").replace("su800-128gb", "st3320620as")
    head = head.replace('["none", "mq-deadline", "kyber", "kyber@slow"]', '["none"]')
    # Both get the same, so that one has half of its share.
    made = study(tmp_path, "weights = { far = 2 }\n" + text, head)
    planned = plan(made)
    [outcome] = execute(ready(planned, []), Here(1), lambda _: None, dict, print)
    jain, apart, near, peak, absent = judge(made, [outcome])
    assert (jain.outcome, apart.outcome, near.outcome) == ("reproduced",) * 3, jain.found
    assert (jain.unit, near.unit) == ("of 1", "s, job near")
    assert peak.outcome == "not known", "it is over within its first second"
    assert (absent.outcome, absent.found) == ("not known", "none: nothing was measured")


# Planning


def test_parts_that_a_rig_lacks_are_omitted_with_the_reason(tmp_path: Path) -> None:
    head = HEAD + HEAD[HEAD.index("[[part]]") :].replace('"p"', '"k"\nrigs = ["kernel"]')
    simulated, kernel = plan(study(tmp_path, head=head))
    assert simulated.setup is not None
    assert [one.label for one in simulated.setup.schedulers] == ["none", "mq-deadline", "kyber"]
    assert [(skip.what, skip.why) for skip in simulated.skipped] == [
        ("kyber@slow", "needs --rig kernel: it runs on a kernel that is built for it")
    ]
    assert kernel.rig == "kernel"
    _, kernel = plan(study(tmp_path, head=head), Asked("sim"))
    assert kernel.setup is None
    assert kernel.skipped == (Skipped("k", "needs --rig kernel"),)


def test_repeats_seed_and_files_are_taken_from_where_they_are_said(tmp_path: Path) -> None:
    [part] = plan(study(tmp_path))
    assert part.setup is not None
    assert (part.setup.repeats, part.setup.seed) == (3, 1)
    assert part.setup.workloads[0].path == tmp_path / "short.fio"
    [part] = plan(study(tmp_path), Asked(repeats=7, seed=0))
    assert part.setup is not None
    assert (part.setup.repeats, part.setup.seed) == (7, 0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("su800-128gb", "su800", "mine.toml:10: disks: no disk 'su800'"),
        ("su800-128gb", "su800-128gb:dies", "mine.toml:10: disks: disk 'su800-128gb:dies'"),
        ("short.fio", "shrt.fio", "mine.toml:11: workloads: .*/shrt.fio: No such file"),
        ("short.fio", "readers", "mine.toml:11: workloads: no workload 'readers'"),
        ('"kyber",', '"kybre",', "mine.toml:12: schedulers: .*did you mean 'kyber'?"),
        ('"kyber",', '"kyber:x=1",', "mine.toml:12: schedulers: kyber has no tunable 'x'"),
        (
            '"kyber@slow"]',
            '"kyber@slow"]\nhost = { cpu = 1 }',
            "mine.toml:13: host: .*did you mean 'cpus'?",
        ),
        ('["sim", "kernel"]', '["kernel"]', "mine.toml: nothing to run: needs --rig kernel"),
    ],
)
def test_an_unknown_name_in_a_study_is_refused_with_its_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert HEAD.count(old) == 1
    with pytest.raises(InputError, match=message):
        plan(study(tmp_path, head=HEAD.replace(old, new)), Asked("sim"))


# The commands

CLAIM = """
[[part.claim]]
kind = "figures"
text = "so fast"
metric = "iops"
tolerance_percent = 5
values = { none = 1, "kyber@slow" = 3 }
not_reproduced = "made up </script>"
[[part.claim]]
kind = "no-difference"
text = "all alike"
metric = "iops"
schedulers = ["none", "kyber"]
tolerance_percent = 20
"""


def blklab(where: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "blklab", *arguments],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"BLKLAB_STUDIES": str(where)},
    )
    assert done.returncode == code, done.stderr
    return done


def test_a_users_own_study_runs_by_name_and_prints_its_outcome(tmp_path: Path) -> None:
    study(tmp_path, 'objective = "throughput"\n' + CLAIM)
    assert re.search(r"^mine +t <i>$", blklab(tmp_path, "studies").stdout, re.MULTILINE)
    told = blklab(tmp_path, "studies", "mine").stdout
    assert "part p, 3 repeats, rig sim or kernel" in told
    assert "published (figures)\n    so fast" in told
    done = blklab(tmp_path, "run", "mine", "--repeats", "2")
    assert "Left out: kyber@slow: needs --rig kernel: it runs on a kernel that" in done.stdout
    assert re.search(r"none +1 +[\d,]+ +[\d,.]+ .*times +not reproduced", done.stdout)
    assert re.search(r"kyber@slow +3 +- +- +- +not known", done.stdout)
    told = " ".join(done.stdout.split())
    assert re.search(r"Measured under none: \d+ requests of 4 KiB on average, after 0 merges", told)
    assert "Why not: made up </script>" in done.stdout
    assert "none, kyber: reproduced: at most" in done.stdout
    assert (
        "Of 3 published figures and statements 1 reproduced, 1 not reproduced, 1 not known."
        in " ".join(done.stdout.split())
    )
    assert max(map(len, done.stdout.splitlines())) <= 80
    page = (tmp_path / "reports/mine/report.html").read_text()
    assert "made up &lt;/script&gt;" in page
    assert '<td class="not-reproduced">not reproduced</td>' in page
    assert 'href="p/report.html"' in page
    part = (tmp_path / "reports/mine/p/report.html").read_text()
    assert "Published and measured" in part
    assert "best first by throughput" in part
    assert "throughput: no significant difference" in done.stdout


def test_a_statement_stands_once_above_all_places_that_it_is_about(tmp_path: Path) -> None:
    (tmp_path / "other.fio").write_text(JOB)
    study(tmp_path, CLAIM, HEAD.replace('"short.fio"', '"short.fio", "other.fio"'))
    told = blklab(tmp_path, "run", "mine", "--repeats", "1").stdout
    page = (tmp_path / "reports/mine/report.html").read_text()
    page = page[: page.index("<details>")]
    assert told.count("Published: so fast") == page.count("<h3>so fast</h3>") == 1
    for text in (told, page):
        assert text.count("made up") == 1
        assert text.index("so fast") < text.index("short, IOPS") < text.index("other, IOPS")
        assert text.index("other, IOPS") < text.index("made up") < text.index("all alike")


def test_kept_results_give_the_same_report_again_without_the_study(tmp_path: Path) -> None:
    study(tmp_path, CLAIM)
    blklab(tmp_path, "run", "mine", "--repeats", "1", "--out", "out")
    files = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert {str(path.relative_to(tmp_path / "out")) for path in files} == {
        "study.json", "report.html", "p/results.json", "p/report.html",
    }  # fmt: skip
    (tmp_path / "mine.toml").unlink()
    (tmp_path / "out/report.html").unlink()
    blklab(tmp_path, "report", "out")
    assert {path: path.read_bytes() for path in files} == files
    done = blklab(tmp_path, "report", "out", "--objective", "latency", code=2)
    assert done.stderr == "blklab: --objective: each part of a study has its own\n"
    kept = json.loads((tmp_path / "out/study.json").read_text())
    more = kept["text"].replace(
        'workloads = ["short.fio"]', 'workloads = ["short.fio", "randread"]'
    )
    assert more != kept["text"]
    (tmp_path / "out/study.json").write_text(json.dumps(kept | {"text": more}))
    done = blklab(tmp_path, "report", "out", code=2)
    assert (
        "out/p: not the results of this part: 1 disks and 1 loads, expected 1 and 2" in done.stderr
    )
    (tmp_path / "out/study.json").write_text('{"format": 1}')
    done = blklab(tmp_path, "report", "out", code=2)
    assert "not a study that 'blklab run' wrote" in done.stderr


def test_json_is_all_that_stands_on_stdout(tmp_path: Path) -> None:
    study(tmp_path, CLAIM)
    document = json.loads(blklab(tmp_path, "run", "mine.toml", "--repeats", "2", "--json").stdout)
    assert document["study"] == "mine"
    assert document["parts"] == [
        {"part": "p", "rig": "sim", "ran": True,
         "skipped": [{"what": "kyber@slow",
                      "why": "needs --rig kernel: it runs on a kernel that is built for it"}]}
    ]  # fmt: skip
    rows = document["judgements"]
    outcomes = ["not reproduced", "not known", "reproduced"]
    assert [row["outcome"] for row in rows] == outcomes
    assert rows[0]["published"]["estimate"] == 1
    assert rows[0]["measured"]["estimate"] > 1
    assert json.loads(blklab(tmp_path, "studies", "--json").stdout)
    assert json.loads(blklab(tmp_path, "studies", "mine", "--json").stdout)["parts"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "itmo-2023"), "no study 'itmo-2023'; did you mean 'itmo-2024'?"),
        (("run", "absent.toml"), "absent.toml: No such file or directory"),
        (("run", "broken.toml"), "broken.toml:1: titel: there is no such key"),
        (("studies", "broken"), "broken.toml:1: titel: there is no such key"),
        (("run", "itmo-2024", "--rig", "real"), "no rig 'real'"),
        (("run", "itmo-2024", "--out", "broken.toml"), "broken.toml is not a directory"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "broken.toml").write_text('titel = "a"\n')
    done = blklab(tmp_path, *arguments, code=2)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "reports").exists()


def test_a_broken_study_of_ones_own_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text('titel = "a"\n')
    told = blklab(tmp_path, "studies").stdout
    assert "cannot run" in told
    assert "itmo-2024" in told


def test_a_study_file_of_no_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a study: more than"):
        studies.parse(Entry("s", tmp_path / "s.toml", "# " + "x" * (1 << 20)))
