"""Parts of studies that say which tunables matter, and which never."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blklab
from blklab import study as studies
from blklab.cli import app
from blklab.domain import specs
from blklab.domain.space import ends_of
from blklab.errors import InputError
from blklab.study.effects import Effects, effects
from blklab.study.plan import Asked, plan
from blklab.study.words import effect_lines

JOB = """[global]
direct=1
size=256m
runtime=300ms
time_based
rw=randread
bs=4k
[deep]
ioengine=libaio
iodepth=64
"""
STUDY = """\
title = "t"
question = "q?"
rigs = ["sim", "kernel"]
repeats = 3
[[part]]
name = "which"
disks = ["950pro-256gb"]
workloads = ["deep.fio", "alone.fio"]
schedulers = ["mq-deadline:fifo_batch=8", "none"]
tune = ["mq-deadline:fifo_batch=8"]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "deep.fio").write_text(JOB)
    (folder / "alone.fio").write_text(JOB.replace("iodepth=64", "iodepth=1"))
    (folder / "mine.toml").write_text(STUDY)
    return folder


@pytest.fixture(scope="module")
def ran(place: Path) -> tuple[blklab.StudyRun, Effects]:
    found = blklab.run_study(place / "mine.toml", out=place / "out")
    [answer] = effects(found.study.parts[0], found.outcomes[0])
    return found, answer


def test_a_tuned_part_has_each_tunable_at_both_ends_beside_its_schedulers(place: Path) -> None:
    [planned] = plan(studies.find(place / "mine.toml"))
    assert planned.setup is not None
    base = specs.scheduler("mq-deadline:fifo_batch=8")
    ends = [spec for _, _, spec in ends_of(base)]
    assert planned.setup.schedulers == (base, specs.scheduler("none"), *ends)
    assert len(ends) > 10 and all(dict(spec.settings)["fifo_batch"] == "8" for spec in ends)
    values = {name: [] for name, _, _ in ends_of(base)}  # type: dict[str, list[int]]
    for name, value, _ in ends_of(base):
        values[name].append(value)
    # 0 is the kernel's own choice, and not the low end.
    assert values["nr_requests"] == [4, 4096]
    assert values["front_merges"] == [0]


def test_tunables_that_matter_are_named_with_their_loads_and_others_apart(
    ran: tuple[blklab.StudyRun, Effects],
) -> None:
    _, answer = ran
    assert (answer.scheduler, answer.places) == ("mq-deadline:fifo_batch=8", 2)
    assert set(answer.by_tunable) == {"nr_requests"}
    assert {(one.workload, one.value) for one in answer.matter} == {("deep", 4)}
    slow = next(one for one in answer.matter if one.figure == "throughput")
    # Four of 64 reads are under way, on a disk that gains from each.
    assert slow.gain.high < 0.6
    # Reads only, direct, of one priority.
    assert {"write_expire", "writes_starved", "prio_aging_expire", "read_ahead_kb"} <= set(
        answer.never
    )
    every = {name for name, _, _ in ends_of(specs.scheduler(answer.scheduler))}
    assert {*answer.never, *answer.not_shown, *answer.by_tunable} == every
    [first, *others] = effect_lines(answer)
    assert first.startswith("nr_requests, in 1 of 2 cases. Most: ")
    assert others[-1].startswith("Never, every figure is the same: ")


def test_terminal_json_and_page_have_the_answer_and_not_a_row_for_each_setting(
    place: Path, ran: tuple[blklab.StudyRun, Effects], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, answer = ran
    assert found.page is not None
    text = found.page.read_text()
    assert "Which tunables of mq-deadline:fifo_batch=8 matter" in text
    for line in effect_lines(answer):
        assert line.split(":")[0] in text
    document = json.loads((place / "out/study.json").read_text())
    [tunables] = document["parts"][0]["tunables"]
    assert tuple(tunables["never"]) == answer.never
    done = CliRunner().invoke(
        app, ["run", str(place / "mine.toml"), "--no-keep", "--out", str(place / "again")]
    )
    assert done.exit_code == 0, done.output
    assert "Each of 21 settings: in the report" in done.stdout
    assert "nr_requests, in 1 of 2 cases" in done.stdout
    assert "mq-deadline:fifo_batch=8,nr_requests=4 " not in done.stdout


def test_on_another_rig_the_tunables_are_left_out_with_the_reason(place: Path) -> None:
    [planned] = plan(studies.find(place / "mine.toml"), Asked(rig="kernel"))
    assert planned.setup is not None
    assert [spec.text for spec in planned.setup.schedulers] == ["mq-deadline:fifo_batch=8", "none"]
    [skip] = planned.skipped
    assert (skip.what, skip.why) == ("tunables of mq-deadline:fifo_batch=8", "needs --rig sim")


@pytest.mark.parametrize(
    ("tune", "said"),
    [
        ('["bfq"]', "10: tune: the part has no 'bfq'"),
        ('"none"', '10: tune: found "none", expected a list of texts'),
        (
            '["none", "none"]',
            "10: tune: found ['none', 'none'], expected a list of texts, none twi",
        ),
    ],
)
def test_a_wrong_tune_is_one_line(tune: str, said: str, place: Path) -> None:
    file = place / "wrong.toml"
    file.write_text(STUDY.replace('["mq-deadline:fifo_batch=8"]\n', f"{tune}\n"))
    with pytest.raises(InputError) as error:
        studies.find(file)
    assert f"wrong.toml:{said}" in str(error.value)
