"""The command: what it prints, where it writes, how it fails."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from blklab.cli import app, lazy, main
from blklab.domain import defaults
from blklab.rigs.modelled import ModelledDisks

_ESCAPE = "\x1b"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def failing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[int, str]:
    """Exit code and the text on stderr."""
    monkeypatch.setattr(sys, "argv", ["blklab", *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    code = left.value.code
    assert isinstance(code, int)
    return code, capfd.readouterr().err


FOUR = [f"--workload={name}" for name in ("seqread", "seqwrite", "randread", "randwrite")]


def test_compare_prints_the_answer_on_one_screen(fake: Path) -> None:
    done = run("compare", "--repeats", "3", *FOUR)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert len(lines) <= 24
    [head] = [line for line in lines if "ahead under" in line]
    assert head.split() == ["ahead", "under", "desktop-5900rpm", "950pro-256gb"]
    for load in ("seqread", "seqwrite", "randread", "randwrite", "all of them"):
        assert sum(line.strip().startswith(load) for line in lines) == 1, load
    text = " ".join(done.stdout.split())
    for disk in ("desktop-5900rpm", "950pro-256gb"):
        assert f"{disk}, all workloads: " in text
    assert "Largest difference in throughput: " in text
    assert "All figures: --verbose." in text
    assert "Report: reports/compare/report.html" in text


def test_the_answer_with_all_defaults_fits_on_a_terminal_of_24_lines(fake: Path) -> None:
    lines = run("compare", "--repeats", "3").stdout.splitlines()
    assert "all workloads: " in lines[0]
    # The prompt takes the last line.
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    rows = [line.split()[0] for line in lines if line]
    assert all(rows.count(load) == 1 for load in defaults.WORKLOADS)


def test_the_answer_and_the_tables_agree(fake: Path) -> None:
    words = ("compare", "--repeats", "3", "--disk", "desktop-5900rpm", *FOUR[:2])
    answer, tables = run(*words).stdout, run(*words, "--verbose").stdout
    short = {line.strip().removesuffix(" All figures: --verbose.") for line in answer.splitlines()}
    assert not short - {line.strip() for line in tables.splitlines()}


def test_one_disk_under_one_load_is_its_table(fake: Path) -> None:
    words = ("compare", "--repeats", "2", "--disk", "950pro-256gb", "--workload", "randread")
    done = run(*words)
    assert done.stdout.count("scheduler ") == 1
    assert done.stdout == run(*words, "--verbose").stdout


def test_compare_prints_tables_winners_advice_and_where_the_report_lies(fake: Path) -> None:
    done = run("compare", "--repeats", "3", "--verbose", *FOUR)
    assert done.exit_code == 0
    assert done.stdout.count("scheduler ") == 8
    assert "Recommendations" in done.stdout
    for objective in ("throughput", "latency", "both"):
        assert f"desktop-5900rpm, {objective}: " in done.stdout
        assert f"950pro-256gb, {objective}: " in done.stdout
    assert re.search(r"desktop-5900rpm, throughput: mq-deadline is .* faster", done.stdout)
    assert "no significant difference" in " ".join(done.stdout.split())
    assert "cfq was not run on 950pro-256gb: Linux had" in done.stdout
    assert "Report: reports/compare/report.html" in done.stdout
    assert (fake / "reports/compare/report.html").stat().st_size < 12e6


def test_without_a_terminal_the_output_is_plain_and_80_columns_wide(fake: Path) -> None:
    done = run("compare", "--repeats", "2", "--disk", "desktop-5900rpm")
    assert _ESCAPE not in done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_same_command_gives_the_same_bytes_on_one_core_or_two(fake: Path) -> None:
    texts = []
    for jobs in ("1", "2"):
        run("compare", "--repeats", "2", "--jobs", jobs, "--out", f"out{jobs}")
        texts.append((fake / f"out{jobs}/results.json").read_bytes())
    assert texts[0] == texts[1]


def test_json_is_all_that_stands_on_stdout(fake: Path) -> None:
    done = run("compare", "--json", "--repeats", "2", "--workload", "randread")
    document = json.loads(done.stdout)
    assert document["setup"]["seed"] == 1
    assert [cell["disk"] for cell in document["cells"]] == ["desktop-5900rpm", "950pro-256gb"]
    cell = document["cells"][0]
    assert cell["ranking"][0]["scheduler"] == "mq-deadline"
    assert cell["ranking"][0]["bytes_per_s"]["estimate"] > 0
    assert cell["verdicts"]["latency"]["winner"] == "mq-deadline"
    assert cell["verdicts"]["latency"]["behind"]["none"]["low"] > 1.0
    advice = document["recommendations"]["950pro-256gb"]["both"]
    assert advice["winner"] is None
    assert advice["text"].startswith("not known (minimum detectable: ")


def test_a_report_is_made_again_from_kept_results(fake: Path) -> None:
    run("compare", "--repeats", "2", "--workload", "randread")
    page = fake / "reports/compare/report.html"
    before = page.read_bytes()
    page.unlink()
    assert run("report", "reports/compare").exit_code == 0
    assert page.read_bytes() == before


def test_tunables_and_disk_overrides_reach_the_report(fake: Path) -> None:
    run(
        *("compare", "--repeats", "2", "--workload", "randread"),
        *("--scheduler", "none", "--scheduler", "mq-deadline:fifo_batch=1"),
        *("--disk", "desktop-5900rpm:rpm=7200"),
    )
    document = json.loads((fake / "reports/compare/results.json").read_text())
    assert document["setup"]["disks"][0]["overrides"] == [["rpm", "7200"]]
    tunable = document["setup"]["schedulers"][1]["tunables"][0]
    assert (tunable["value"], tunable["changed"]) == ("1", True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "--disk", "desktop-5900rmp"], "did you mean 'desktop-5900rpm'?"),
        (["compare", "--workload", "randraed"], "did you mean 'randread'?"),
        (["compare", "--workload", "absent.fio"], "absent.fio: No such file or directory"),
        (["compare", "--scheduler", "deadlin"], "no scheduler 'deadlin'"),
        (["compare", "--scheduler", "kyber@mine"], "the kernel 'mine' needs --rig kernel"),
        (["compare", "--objective", "troughput"], "did you mean 'throughput'?"),
        (["compare", "--rig", "real"], "no rig 'real'; there is: kernel, live, sim"),
        (["compare", "--disk", "950pro-256gb:dies"], "expected key=value behind ':'"),
        (["fio", "randread", "--disk", "950pro-256gb", "--output-format", "xml"], "no format"),
        (["report", "."], "results.json: No such file or directory"),
        (["compare", "--repeat", "3"], "No such option: --repeat"),
        (["compare", "--repeats", "0"], "Invalid value for '--repeats'"),
        (["compair"], "No such command 'compair'"),
        (["disks", "nothing"], "no disk 'nothing'"),
        (["disks", "--file"], "--file: expected the name of a disk"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    fake: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    code, text = failing(capfd, monkeypatch, *arguments)
    assert code == 2
    assert text.startswith("blklab: ")
    assert message in text
    assert text.count("\n") == 1
    assert not (fake / "reports").exists()


def test_a_bad_job_file_is_refused_before_anything_runs(
    fake: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake / "bad.fio").write_text("[x]\ntypo=1\n")
    code, text = failing(capfd, monkeypatch, "compare", "--workload", "bad.fio")
    assert (code, text) == (2, "blklab: bad.fio:3: no option 'typo'\n")
    done = run("compare", "--workload", "bad.fio", "--ignore-unsupported")
    assert done.exit_code == 0
    assert "blklab: ignored: bad.fio:2: typo=1: no such option" in done.stderr


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("blklab sched", ["schedulers"]),
        ("blklab compare --disk desk", ["desktop-5900rpm"]),
        ("blklab fio seqw", ["seqwrite"]),
        ("blklab run itmo", ["itmo-2024"]),
        ("blklab studies itmo", ["itmo-2024"]),
        ("blklab run itmo-2024 --rig s", ["sim"]),
        ("blklab compare --scheduler mq-deadline:fifo", ["mq-deadline:fifo_batch="]),
        ("blklab compare --objective t", ["throughput"]),
    ],
)
def test_the_shell_completes_commands_and_names(
    fake: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    offered: list[str],
) -> None:
    monkeypatch.setenv("_BLKLAB_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    monkeypatch.setattr(sys, "argv", ["/usr/bin/blklab"])
    with pytest.raises(SystemExit):
        main()
    assert capfd.readouterr().out.split() == offered


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "out of memory"),
        (OSError(28, "No space left on device"), 1, "results.json: not written: No space left"),
    ],
)
def test_failures_are_one_line_and_leave_nothing_behind(
    fake: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    message: str,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("blklab.base.files._unnamed", fail)
    found, text = failing(capfd, monkeypatch, "compare", "--repeats", "1")
    assert found == code
    assert message in text
    assert "Traceback" not in text
    assert not list(fake.glob("reports/compare/*"))


def test_blklab_fio_prints_and_writes_the_formats_of_fio(fake: Path) -> None:
    done = run("fio", "randread", "--disk", "950pro-256gb", "--output-format", "json+")
    document = json.loads(done.stdout)
    assert document["fio version"] == "fio-3.33"
    assert "bins" in document["jobs"][0]["read"]["clat_ns"]
    run("fio", "randread", "--disk", "950pro-256gb", "--output", "out.txt")
    assert "Run status group 0" in (fake / "out.txt").read_text()


def test_lists_have_a_line_each_and_names_tell_everything(fake: Path) -> None:
    assert "mq-deadline" in run("schedulers").stdout
    told = run("schedulers", "mq-deadline").stdout
    assert "fifo_batch" in told
    assert "requests per batch" in told
    assert "950pro-256gb" in run("disks").stdout
    assert "[sheet]" in run("disks", "desktop-5900rpm").stdout
    assert "randread: one process" in run("workloads").stdout
    assert "[randread]" in run("workloads", "randread").stdout
    for command in ("schedulers", "disks", "workloads"):
        assert json.loads(run(command, "--json").stdout)


def test_no_command_at_all_prints_the_help() -> None:
    done = run()
    assert done.exit_code == 0
    assert "compare " in done.stdout


def test_the_list_of_commands_is_whole_and_each_line_fits() -> None:
    shown = CliRunner().invoke(app, ["--help"], terminal_width=80)
    assert shown.exit_code == 0
    for name, listed in lazy.COMMANDS.items():
        assert f"{listed.help}\n" in shown.output
        alone = CliRunner().invoke(app, [name, "--help"])
        assert alone.exit_code == 0
        assert alone.output.startswith(f"Usage: blklab {name} [OPTIONS]")
        # Typer's own options for completion are hidden.
        assert "--install-completion" not in alone.output


def test_help_comes_fast_and_needs_no_core() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "blklab", "--help"],
        check=True,
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    heavy = {"numpy", "rich", "plotly", "jinja2", "blklab._core", "pandas", "sqlalchemy", "msgspec"}
    assert not loaded & heavy
    assert not loaded & {f"blklab.cli.{name}" for name in lazy.COMMANDS}
    # Of the CPU, on an idle machine 150 ms: how long it takes is up to what runs beside it.
    assert took_s < 1.0


def test_a_reader_that_goes_away_is_no_error() -> None:
    # 141 is the shell's exit code for SIGPIPE; a traceback would be on stderr.
    script = f"set -o pipefail; {sys.executable} -m blklab compare --help | head -1"
    done = subprocess.run(["bash", "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""


def test_a_full_disk_under_stdout_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "blklab", "compare", "--help"]
        done = subprocess.run(command, check=False, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "blklab: No space left on device\n"


_SLOW = """
import sys
from pathlib import Path
from tests import fake_core
import blklab
sys.modules["blklab._core"] = blklab._core = fake_core
quick, calls = fake_core.simulate, []

def simulate(*arguments):
    calls.append(1)
    if len(calls) == 3:
        print("running", file=sys.stderr, flush=True)
    while len(calls) >= 3:
        if arguments[5].cancelled:
            raise KeyboardInterrupt
    return quick(*arguments)

fake_core.simulate = simulate
sys.argv = ["blklab", "compare"]
from blklab.cli import main
main()
"""


def test_ctrl_c_ends_at_once_and_says_how_to_go_on(fake: Path) -> None:
    root = Path(__file__).parent.parent
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{root}:{root / 'python'}"},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line == "running\n":
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    how = "to continue: blklab compare --resume 1"
    assert errors == f"blklab: interrupted; finished runs are stored; {how}\n"
    assert not (fake / "reports").exists()


def test_ctrl_c_while_the_command_is_loaded_is_one_line_too(tmp_path: Path) -> None:
    # In place of the first library that is loaded.
    (tmp_path / "typer.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(20)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "blklab", "disks"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "blklab: interrupted; nothing was written\n"


@pytest.mark.skipif(os.getuid() == 0 and shutil.which("setpriv") is None, reason="needs setpriv")
def test_a_home_that_may_not_be_read_hides_nothing_that_ships(tmp_path: Path) -> None:
    """Root can write to every directory, so root becomes the user nobody for the command."""
    home = tmp_path / "home"
    (home / ".local/share/blklab/disks").mkdir(parents=True)
    (home / ".local").chmod(0)
    tmp_path.chmod(0o755)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    script = "from blklab.disks import DISKS; print(*DISKS.names())"
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [*(nobody if os.getuid() == 0 else []), sys.executable, "-c", script],
        env=os.environ | {"HOME": str(home), "PYTHONPATH": str(root / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    (home / ".local").chmod(0o755)
    if "Permission denied" in done.stderr and "blklab" not in done.stderr:
        pytest.skip("the user nobody may not read this checkout")
    assert "wd10ezrx" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("results", "show"), "(try 'blklab results show --help')"),
        (("results", "shw"), "(try 'blklab results --help')"),
        (("compare", "--repeats", "0"), "(try 'blklab compare --help')"),
        (("comprae",), "(try 'blklab --help')"),
    ],
)
def test_wrong_use_points_to_the_help_of_that_command(
    arguments: tuple[str, ...],
    hint: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, text = failing(capfd, monkeypatch, *arguments)
    assert (code, text.count("\n")) == (2, 1)
    assert text.endswith(f"{hint}\n")


def test_a_real_place_without_the_rig_for_it_says_which_rig(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (("compare",), ("fio", "randread")):
        code, text = failing(capfd, monkeypatch, *command, "--disk", str(tmp_path))
        assert code == 2
        assert text == f"blklab: --disk: {tmp_path} is not a model; to measure it: --rig live\n"
    # A model's name wins over a directory of the same name.
    (tmp_path / "950pro-256gb").mkdir()
    assert ModelledDisks().find_disk("950pro-256gb").file.name == "950pro-256gb"
