"""`blklab results`: list, show, compare, export, import, remove, from kept runs."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from blklab.cli import app, main
from blklab.errors import BlklabError
from blklab.store import exchange, place, read, schema
from blklab.store.opening import open_store
from tests.test_cli import failing, run

JOB = "# A little\n[a]\nrw=randrw\ndirect=1\nsize=4M\nio_size=256k\n"
_ESCAPE = "\x1b"
SEED, COUNT = 5, 60


def compared(*more: str, disk: str = "su800-128gb", repeats: int = 3) -> int:
    """The number of a comparison that has just run."""
    done = run("compare", "--disk", disk, "--workload", "tiny.fio", "--scheduler", "none",
               "--scheduler", "kyber", "--repeats", str(repeats), "--json", *more)  # fmt: skip
    number: int = json.loads(done.stdout)["kept"]
    return number


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tiny.fio").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(*arguments: str) -> list[str]:
    done = run(*arguments)
    assert done.exit_code == 0
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


@pytest.mark.usefixtures("on_both")
def test_a_list_has_each_comparisons_contents_and_is_filtered(here: Path) -> None:
    assert lines("results")[0].startswith("no results yet in ")
    first, second = compared(), compared(disk="950pro-256gb")
    listed = lines("results")
    # Disks, loads and schedulers have a line each.
    assert [line.split()[0] for line in listed[2::3]] == [str(second), str(first)]
    assert listed[5].endswith("su800-128gb") and " 6 " in listed[5]
    assert listed[6:] == ["tiny", "none, kyber"]
    assert max(map(len, listed)) <= 80
    for option, value, found in (
        ("--disk", "950", [second]),
        ("--scheduler", "kyber", [second, first]),
        ("--workload", "seqread", []),
        ("--rig", "sim", [second, first]),
        ("--since", "1h", [second, first]),
        ("--since", "2999-01-01", []),
    ):
        document = json.loads(run("results", option, value, "--json").stdout)
        assert [row["id"] for row in document["comparisons"]] == found, option
    assert lines("results", "--disk", "zzz") == ["no match"]


def test_a_comparison_is_shown_with_machine_time_and_versions(here: Path) -> None:
    number = compared()
    shown = run("results", "show", str(number)).stdout
    assert f"{number}: complete, 6 of 6 runs\n" in shown
    assert "\ndisks: su800-128gb\nworkloads: tiny\nschedulers: none, kyber\n" in shown
    assert re.search(r"\nblklab \S+, kernel Linux \S+, python 3", shown)
    assert "su800-128gb, tiny (latency of reads)" in shown and "Recommendations" in shown
    document = json.loads(run("results", "show", str(number), "--json").stdout)
    assert document["state"] == "complete"
    assert document["facts"]["machine"]["cpus"] >= 1
    assert len(document["cells"][0]["ranking"]) == 2


def test_a_report_is_made_again_from_the_store(here: Path) -> None:
    number = compared("--objective", "latency")
    before = (here / "reports/compare/report.html").read_bytes()
    assert lines("report", str(number)) == [f"Report: reports/{number}/report.html"]
    assert (here / f"reports/{number}/report.html").read_bytes() == before
    run("report", str(number), "--objective", "throughput", "--out", "other.html")
    assert (here / "other.html").read_bytes() != before


def partial(number: int, keep_runs: int) -> None:
    with open_store(place.find()).writing() as connection:
        connection.execute(schema.RUN.delete().where(schema.RUN.c.number >= keep_runs))
        connection.execute(schema.COMPARISON.update().values(ended_at=None, owner=None))


@pytest.mark.usefixtures("on_both")
def test_of_a_partial_one_the_whole_repeats_are_judged(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = compared()
    partial(number, 5)
    assert "5 of 6" in lines("results")[2] and lines("results")[3].startswith("partial ")
    document = json.loads(run("results", "show", str(number), "--json").stdout)
    assert (document["kept"], document["planned"]) == (5, 6)
    assert run("report", str(number)).exit_code == 0
    found = read.comparison(open_store(place.find()), number).results()
    assert (found.setup["repeats"], len(found.runs)) == (2, 4)
    partial(number, 1)
    assert "no repeat is complete yet" in run("results", "show", str(number)).stdout
    code, text = failing(capfd, monkeypatch, "report", str(number))
    assert (code, text.count("\n")) == (2, 1)


def test_the_same_seeds_are_compared_one_by_one_and_others_as_two_samples(here: Path) -> None:
    first, same = compared(), compared()
    other = compared("--seed", "100", repeats=4)
    changed = compared(disk="su800-128gb:read_us=200")
    document = json.loads(run("results", "diff", str(first), str(same), "--json").stdout)
    assert [pair["scheduler"] for pair in document["pairs"]] == ["none", "kyber"]
    for pair in document["pairs"]:
        assert pair["paired"] and pair["runs"] == [3, 3]
        assert pair["bytes_per_s"]["ratio"] == {"estimate": 1.0, "low": 1.0, "high": 1.0}
    # A simulation that ran twice is no larger sample.
    both = json.loads(run("results", "diff", f"{first},{same}", str(first), "--json").stdout)
    assert both["pairs"][0]["runs"] == [3, 3]
    pooled = json.loads(run("results", "diff", f"{first},{other}", str(first), "--json").stdout)
    assert pooled["pairs"][0]["runs"] == [7, 3] and not pooled["pairs"][0]["paired"]
    text = run("results", "diff", str(first), str(other)).stdout
    assert "Runs have different seeds" in text
    assert max(map(len, text.splitlines())) <= 80
    # Another disk, although of the same model: its changed parameters count.
    code = run_failing("results", "diff", str(first), str(changed))
    assert "have no scheduler on the same disk under the same workload" in code


def run_failing(*arguments: str) -> str:
    with pytest.raises(BlklabError) as error:
        CliRunner().invoke(app, arguments, catch_exceptions=False)
    return str(error.value)


def test_differences_between_two_comparisons_are_stated(here: Path) -> None:
    first = compared()
    (here / "tiny.fio").write_text(JOB + "bs=8k\n")
    second = compared("--scheduler", "bfq")
    partial(second, 8)
    text = " ".join(run("results", "diff", str(first), str(second)).stdout.split())
    assert "Only in B: bfq on su800-128gb under tiny." in text
    assert "Note: the job files of tiny are not the same." in text
    assert f"Note: {second} has 8 of 9 runs." in text


@pytest.mark.usefixtures("on_both")
def test_the_same_model_of_two_machines_meets_itself(here: Path) -> None:
    first = compared()
    document = exported(first)
    theirs = document["comparisons"][0]
    theirs["uid"], theirs["machine"] = "0" * 32, "other"
    theirs["setup"]["disks"][0]["label"] = "sdb"
    for one in theirs["runs"]:
        one["measurement"]["disk"] = "sdb"
        one["measurement"]["bytes_per_s"] *= 2
    (here / "theirs.json").write_text(json.dumps(document))
    assert lines("results", "import", "theirs.json") == [f"imported as {first + 1}"]
    assert lines("results")[5] == "of other"
    found = json.loads(run("results", "diff", str(first), str(first + 1), "--json").stdout)
    assert [pair["disk"] for pair in found["pairs"]] == ["su800-128gb"] * 2
    assert found["pairs"][0]["bytes_per_s"]["ratio"]["low"] == pytest.approx(2.0)
    [note] = found["notes"]
    assert note == "su800-128gb of the first and sdb of the second are of the same model"
    assert run("report", str(first + 1)).exit_code == 0
    message = run_failing("compare", "--resume", str(first + 1))
    assert message == f"{first + 1} was imported: only the machine that began it can resume it"


def exported(*numbers: int) -> dict[str, Any]:
    run("results", "export", *map(str, numbers), "--out", "export.json")
    document: dict[str, Any] = json.loads(Path("export.json").read_bytes())
    return document


@pytest.mark.usefixtures("on_both")
def test_an_imported_export_has_the_same_results(here: Path) -> None:
    numbers = (compared(), compared(disk="950pro-256gb"))
    run("results", "export", *map(str, numbers), "--out", "export.json")
    assert lines("results", "import", "export.json") == ["already there: 1, 2"]
    assert lines("results", "import", "export.json", "--store", "other.db") == ["imported as 1, 2"]
    run("results", "export", "1", "2", "--store", "other.db", "--out", "again.json")
    assert (here / "again.json").read_bytes() == (here / "export.json").read_bytes()
    for number in numbers:
        run("report", str(number), "--out", "ours.html")
        run("report", str(number), "--store", "other.db", "--out", "theirs.html")
        assert (here / "ours.html").read_bytes() == (here / "theirs.html").read_bytes()


def test_tables_have_a_row_for_each_run_and_no_formula(here: Path) -> None:
    (here / "=cmd.fio").write_text(JOB)
    number = compared("--workload", "=cmd.fio")
    rows = list(
        csv.DictReader(io.StringIO(run("results", "export", "1", "--format", "csv").stdout))
    )
    assert len(rows) == 12
    assert {row["workload"] for row in rows} == {"tiny", "'=cmd"}
    kept = read.comparison(open_store(place.find()), number).runs
    for row, one in zip(rows, kept, strict=True):
        assert float(row["bytes_per_s"]) == one.measurement.bytes_per_s
        latency = one.measurement.latencies["read"]
        assert int(row["read_p99_ns"]) == latency.percentiles_ns[1]
        assert row["trim_p99_ns"] == ""
        at_disk = one.measurement.stages["read"].disk
        assert float(row["read_in_disk_mean_ns"]) == at_disk.mean_ns
        assert row["trim_in_disk_mean_ns"] == ""
    run("results", "export", "1", "--out", "runs.parquet")
    table = pyarrow.parquet.read_table(here / "runs.parquet").to_pylist()
    for line, one in zip(table, kept, strict=True):
        latency = one.measurement.latencies["read"]
        assert tuple(line["read_value_ns"]) == latency.value_ns
        assert sum(line["read_count"]) == latency.ios
        assert line["trim_mean_ns"] is None
        read_stages = one.measurement.stages["read"]
        assert line["read_in_queue_p99_ns"] == read_stages.queue.percentiles_ns[1]
        assert line["read_requests_kept"] == read_stages.requests
        assert line["flush_in_queue_stddev_ns"] is None


@pytest.mark.usefixtures("on_both")
def test_comparisons_are_removed_all_or_none(here: Path) -> None:
    first, second = compared(), compared()
    assert run_failing("results", "remove", str(first), "99") == (
        "no comparison 99; see: blklab results"
    )
    assert len(json.loads(run("results", "--json").stdout)["comparisons"]) == 2
    assert lines("results", "remove", f"{first},{second}") == ["removed: 1, 2"]
    assert lines("results")[0].startswith("no results yet")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["results", "show", "7"], "no comparison 7; see: blklab results"),
        (["results", "show", "x"], "'x': not the number of a comparison"),
        (["results", "diff", "1", "7"], "no comparison 7"),
        (["results", "diff", "1"], "Missing argument 'B'"),
        (["results", "remove"], "Missing argument 'ID...'"),
        (["results", "remove", "7"], "no comparison 7"),
        (["results", "export", "7"], "no comparison 7"),
        (["results", "export", "1", "--format", "xml"], "--format: no 'xml'"),
        (["results", "export", "1", "--format", "parquet"], "name a file with --out"),
        (["results", "import", "absent.json"], "absent.json: No such file or directory"),
        (["results", "import", "tiny.fio"], "tiny.fio: not what 'blklab results export' writes"),
        (["results", "--since", "soon"], "--since: 'soon' is not a time"),
        (["results", "--rig", "simm"], "no rig 'simm'"),
        (["results", "shwo"], "No such command 'shwo'"),
        (["results", "show", "1", "--objective", "x"], "--objective: no 'x'"),
        (["results", "--store", "mysql://x"], "no store on 'mysql'"),
        (["report", "7"], "no comparison 7"),
        (
            ["report", "reports", "--store", "x.db"],
            "--store: only works with a number; reports is",
        ),
        (["report", "reports"], "reports/results.json: No such file or directory"),
    ],
)
def test_bad_input_is_one_line(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    compared()
    capfd.readouterr()
    code, text = failing(capfd, monkeypatch, *arguments)
    assert (code, text.count("\n")) == (2, 1)
    assert message in text


def test_without_a_store_there_is_nothing_to_show(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = failing(capfd, monkeypatch, "results", "show", "1", "--store", "absent.db")
    assert (code, text) == (1, "blklab: absent.db: no store there yet\n")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("blklab results show ", ["2", "1"]),
        ("blklab report 1", ["1"]),
        ("blklab results diff 1 2", ["2"]),
        ("blklab results export 1 --format p", ["parquet"]),
        ("blklab compare --resume 2", ["2"]),
        ("blklab results imp", ["import"]),
    ],
)
def test_the_shell_completes_numbers(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    offered: list[str],
) -> None:
    compared(), compared()
    capfd.readouterr()
    monkeypatch.setenv("_BLKLAB_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    monkeypatch.setattr(sys, "argv", ["/usr/bin/blklab"])
    with pytest.raises(SystemExit):
        main()
    assert capfd.readouterr().out.split() == offered


# Imported documents are untrusted


def test_names_from_elsewhere_do_not_reach_the_terminal_or_the_page_as_they_are(
    here: Path,
) -> None:
    document = exported(compared())
    theirs = document["comparisons"][0]
    theirs["uid"] = "1" * 32
    evil = "<script>alert(1)</script>"
    theirs["machine"] = evil
    theirs["setup"]["workloads"][0]["name"] = evil
    theirs["setup"]["workloads"][0]["summary"] = f"{_ESCAPE}[2J{evil}"
    theirs["setup"]["rig_setup"]["text"] = f"{_ESCAPE}]0;owned\x07"
    theirs["facts"]["machine"]["cpu"] = f"{_ESCAPE}[31m"
    for one in theirs["runs"]:
        one["measurement"]["workload"] = evil
        one["measurement"]["notes"] = [f"{_ESCAPE}[2J"]
    (here / "evil.json").write_text(json.dumps(document))
    assert lines("results", "import", "evil.json") == ["imported as 2"]
    for command in (("results",), ("results", "show", "2"), ("results", "diff", "2", "2")):
        assert _ESCAPE not in run(*command).stdout, command
    run("report", "2")
    assert evil not in (here / "reports/2/report.html").read_text(encoding="utf-8")


def test_text_quoted_by_an_error_is_escaped(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "evil.json").write_text(json.dumps({"format": f"{_ESCAPE}[2J" * 50, "version": 1}))
    code, text = failing(capfd, monkeypatch, "results", "import", "evil.json")
    assert code == 2 and _ESCAPE not in text and len(text) < 300
    for content in (
        b"",
        bytes([255, 254]),
        b"[" * 100_000,
        b'{"format":"blklab results","version":1}',
    ):
        (here / "evil.json").write_bytes(content)
        code, text = failing(capfd, monkeypatch, "results", "import", "evil.json")
        assert (code, text.count("\n")) == (2, 1)
        assert text.startswith("blklab: evil.json: not what 'blklab results export' writes")


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("setup", {"deep": None}, "$.comparisons[0].setup: nested too deeply"),
        ("runs.0", {"device_before": None}, "[0].runs[0]: a device's state is nested too deeply"),
        ("", {"planned": 7}, "$.comparisons[0].planned: not the number of runs of the set-up"),
        ("", {"machine": "a\x9bb"}, "$.comparisons[0].machine: its name has a control character"),
        ("", {"machine": "a\u202eb"}, "$.comparisons[0].machine: its name has a control"),
        ("", {"begun_at": "2026-11-22"}, "$.comparisons[0].begun_at: not a time with its zone"),
        ("", {"begun_at": "0001-01-01T00:00:00+14:00"}, "[0].begun_at: not a time with its zone"),
        ("", {"ended_at": "9999-12-31T23:59:59-14:00"}, "[0].ended_at: not a time with its zone"),
        ("runs.0", {"ended_at": "9999-12-31T23:59:59Z"}, "runs[0]: its start or end is not a time"),
        ("runs.0.measurement", {"bytes_per_s": 5e-324}, "bytes_per_s: above 0 and below 1e-18"),
        ("runs.0.measurement.latencies.read", {"mean_ns": 5e-324}, "read.mean_ns: above 0 and"),
        ("setup", {"rig": "kernel"}, "$.comparisons[0].rig: not that of the set-up"),
        ("setup", {"seed": -1}, "Expected `int` >= 0 - at `$.comparisons[0].setup.seed`"),
        (
            "runs.1.measurement",
            {"repeat": 9},
            "runs[1].measurement.repeat: repeat 9 is duplicated or",
        ),
        (
            "runs.1.measurement",
            {"disk": "x"},
            "runs[1]: of a disk, workload or scheduler that is not",
        ),
        ("runs.1", {"number": 0}, "runs[1].number: run 0 is duplicated"),
        ("runs.0.measurement.latencies.read", {"count": [1]}, "read: columns of different lengths"),
        (
            "runs.0.measurement",
            {"ios_per_s": -1.0},
            "Expected `float` >= 0.0 - at `$.comparisons[0].runs[0].measurement.ios_per_s`",
        ),
        ("runs.0.measurement", {"seed": 2**64}, "measurement.seed"),
        (
            "runs.0.measurement.stages.read",
            {"one_in": 0},
            "Expected `int` >= 1 - at `$.comparisons[0].runs[0].measurement.stages[...].one_in`",
        ),
        (
            "runs.0.measurement.stages.read.disk",
            {"mean_ns": -1.0},
            "measurement.stages[...].disk.mean_ns`",
        ),
        (
            "runs.0.measurement.stages.read.queue",
            {"percentiles_ns": [1]},
            "measurement.stages[...].queue",
        ),
    ],
)
def test_a_wrong_value_in_an_import_is_refused_with_its_place(
    here: Path, where: str, value: dict[str, Any], message: str
) -> None:
    document = exported(compared(repeats=2))
    place_of = document["comparisons"][0]
    for step in filter(None, where.split(".")):
        place_of = place_of[int(step) if step.isdigit() else step]
    deep: Any = {}
    for _ in range(200):
        deep = {"a": deep}
    place_of |= {key: deep if inner is None else inner for key, inner in value.items()}
    (here / "wrong.json").write_text(json.dumps(document))
    told = run_failing("results", "import", "wrong.json", "--store", "new.db")
    assert told.startswith("wrong.json: ") and message in told and "\n" not in told
    assert not (here / "new.db").exists()


def change(document: Any, chance: random.Random) -> None:
    """Changes or removes one value in it."""
    values: tuple[Any, ...] = (
        None, True, -1, 0, 1, 2**53, 2**63, 2**64, 10**30, 1e308, -0.5, "", "x", "\x1b[2J",
        "\ud800", "9999-99-99", [], [0], [2**62] * 3, {}, {"a": 1}, [[]], "=1+1", "a" * 2000,
    )  # fmt: skip
    here = document
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return
        deeper = [key for key in keys if isinstance(here[key], (dict, list)) and here[key]]
        if deeper and chance.random() < 0.9:
            here = here[chance.choice(deeper)]
            continue
        key = chance.choice(keys)
        inner = here[key]
        break
    how = chance.choice([0, 1, 2, 2, 2, 2, 3, 3])
    if how == 0:
        del here[key]
    elif how == 1 and isinstance(here, list):
        here.insert(key, inner)
    elif how == 2 and isinstance(inner, (int, float)):
        here[key] = inner + chance.choice([-1, 1, 10**6])
    else:
        here[key] = chance.choice(values)


def survives(document: Any, check: Callable[[], None]) -> bool:
    """Whether it was imported; if so, runs every command on it."""
    Path("fuzzed.json").write_text(json.dumps(document))
    Path("fuzzed.db").unlink(missing_ok=True)
    try:
        several = exchange.read(Path("fuzzed.json"))
    except BlklabError as error:
        assert "\n" not in str(error) and str(error).startswith("fuzzed.json: ")
        return False
    for old in Path.cwd().glob("fuzzed.db*"):
        old.unlink()
    from blklab.store import importing

    importing.put(open_store(place.find("fuzzed.db")), several)
    check()
    return True


def test_a_fuzzed_export_is_refused_in_one_line_or_is_harmless(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A comparison with everything: several jobs, a trace, the turns of processes.
    (here / "tiny.fio").write_text(JOB + "[b]\nrw=randwrite\nsize=4M\nio_size=64k\nfsync=4\n")
    whole = json.dumps(exported(compared(disk="st3320620as", repeats=2)))
    assert '"service":null' not in whole.replace(" ", "")
    monkeypatch.setenv("BLKLAB_STORE", "fuzzed.db")

    def everything() -> None:
        for command in (
            ("results",),
            ("results", "show", "1"),
            ("results", "show", "1", "--json", "--objective", "latency"),
            ("results", "diff", "1", "1"),
            ("results", "export", "1", "--format", "csv"),
            ("results", "export", "1", "--out", "fuzzed.parquet"),
            ("results", "export", "1", "--out", "again.json"),
            ("report", "1"),
        ):
            try:
                done = CliRunner().invoke(app, command, catch_exceptions=False)
            except BlklabError as error:
                assert "\n" not in str(error)
            else:
                assert _ESCAPE not in done.stdout

    chance = random.Random(SEED)
    imported = 0
    for _ in range(COUNT):
        document = json.loads(whole)
        for _ in range(chance.choice([1, 1, 1, 3])):
            change(document, chance)
        imported += survives(document, everything)
    assert COUNT / 5 < imported < COUNT * 4 / 5, "it is neither all refused nor all taken"
