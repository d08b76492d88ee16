r"""Nothing that a document says reaches a terminal as a control character, and no encoding, no name
that is not UTF-8 and no closed stream ends in a traceback."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from blklab.cli.comparison import costs_table
from blklab.domain.costs import OperationCosts
from blklab.experiment.words import COSTS
from blklab.host.machine import fio_version

BLKLAB = str(Path(sys.executable).with_name("blklab"))
# Colour, title, C1's CSI, direction reversed and isolated, a zero-width joiner, DEL, rich's markup.
EVIL = "w\x1b[45m\x1b]0\x07\x9b35m\u202e\u2066\u200d\x7f[red]z[/red][link=file:///etc]"
# What rich itself uses: colours, erasing its line, hiding and showing the cursor.
_RICH = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)|\r")
_INJECTED = re.compile(r"\x1b\[45m")


def on_terminal(
    directory: Path, *arguments: str, blklab: Sequence[str] = (BLKLAB,), **environment: str
) -> tuple[int, str]:
    """The exit code, and all that a terminal saw."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [*blklab, *arguments],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"} | environment,
    )
    os.close(theirs)
    seen = b""
    # Reading fails when the last writer has closed its end.
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 65536):
            seen += piece
    os.close(ours)
    return running.wait(timeout=60), seen.decode()


def is_harmless(seen: str) -> bool:
    """Nothing but printable characters, lines, and what rich itself uses."""
    rest = _RICH.sub("", seen)
    return not _INJECTED.search(seen) and all(sign.isprintable() or sign in "\n\t" for sign in rest)


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A directory with documents that all hold such characters."""
    # fio ends a section's name at the first bracket.
    name = EVIL.replace("]", ")")
    (tmp_path / "job.fio").write_text(f"# {EVIL}\n[{name}]\nsize=64k\n[b]\nsize=64k\n")
    (tmp_path / f"{EVIL.replace('/', '|')}.fio").write_text(f"[{name}]\nsize=64k\n")
    disk = Path(str(DISKS)) / "su800-128gb.toml"
    label = json.dumps(EVIL).replace("\x7f", "\\u007f")
    text = re.sub(r"(?m)^(name|summary) = .*$", lambda found: f"{found[1]} = {label}",
                  disk.read_text())  # fmt: skip
    assert text.count(label) == 2
    (tmp_path / f"d{EVIL.replace('/', '|')}.toml").write_text(text)
    return tmp_path


_QUICK = ("--repeats=1", "--exact-disk", "--scheduler=none", "--scheduler=kyber")
DISKS = Path(__file__).parent.parent / "crates/blklab-disk-model/catalogue"


def test_no_document_moves_the_cursor_or_colours_the_terminal(
    evil: Path, forking: list[str]
) -> None:
    job, disk = f"./{EVIL.replace('/', '|')}.fio", f"./d{EVIL.replace('/', '|')}.toml"
    (evil / "study.toml").write_text(
        f"title = {json.dumps(EVIL)}\nquestion = {json.dumps(EVIL)}\n".replace("\x7f", "\\u007f")
        + '[[part]]\nname = "p"\ndisks = ["su800-128gb"]\nworkloads = ["job.fio"]\n'
        'schedulers = ["none", "kyber"]\nrepeats = 1\n'
    )
    for words, code in (
        (("fio", "job.fio", "--disk", disk), 0),
        (("fio", "job.fio", "--disk", disk, "--output-format", "terse,json"), 0),
        (("explain", "job.fio", "--disk", disk), 0),
        (("explain", "job.fio", "--disk", disk, "--process", EVIL), 2),
        (("compare", "--disk", disk, "--workload", job, *_QUICK, "--out", EVIL), 0),
        (("run", "study.toml", "--jobs", "1"), 0),
        (("results",), 0),
        (("results", "show", "2"), 0),
        (("results", "show", "2", "--json"), 0),
        (("results", "diff", "2", "2"), 0),
        (("results", "export", "2"), 0),
        (("results", "export", "2", "--format", "csv"), 0),
        (("results", "export", "2", "--out", f"{EVIL.replace('/', '|')}.json"), 0),
        (("report", "2", "--out", f"{EVIL.replace('/', '|')}.html"), 0),
        (("disks", disk), 0),
        (("workloads", job), 0),
        (("workloads", "job.fio"), 0),
        (("studies", "study.toml"), 0),
        (("disks", EVIL), 2),
        (("fio", EVIL, "--disk", "su800-128gb"), 2),
        (("compare", "--scheduler", EVIL), 2),
        (("compare", "--host", EVIL), 2),
        # The directory that compare has made.
        (("devices", EVIL), 0),
        (("results", "--store", EVIL), 2),
        (("results", "import", EVIL), 2),
        ((EVIL,), 2),
        (("fio", f"--{EVIL}"), 2),
        (("kernel", "build", "--source", EVIL), 2),
        (("kernel", "build", "--patch", EVIL), 2),
    ):
        ended, seen = on_terminal(evil, *words, blklab=forking, BLKLAB_CACHE=str(evil / "cache"))
        assert "Traceback" not in seen, (words, seen)
        assert is_harmless(seen), (words, seen)
        assert ended == code, (words, seen)


def test_markup_of_rich_in_a_name_is_text(evil: Path) -> None:
    (evil / "[red]x[bold].fio").write_text("[j]\nsize=64k\n")
    _, seen = on_terminal(
        evil, "compare", "--workload", "./[red]x[bold].fio", "--disk", "su800-128gb",
        "--repeats", "1",
    )  # fmt: skip
    assert "[red]x[bold]" in seen


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "no_SUCH.locale", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1:strict"},
    ],
)
def test_letters_that_an_encoding_has_not_are_written_out(
    environment: dict[str, str], tmp_path: Path
) -> None:
    job = tmp_path / "prüf.fio"
    job.write_text("# ωμέγα\n[ünï→]\nsize=64k\n", encoding="utf-8")
    for words in (
        ["fio", str(job), "--disk=su800-128gb"],
        ["explain", str(job), "--disk=su800-128gb"],
        ["compare", f"--workload={job}", "--disk=su800-128gb", *_QUICK],
        ["workloads", str(job)],
        ["results"],
        ["results", "show", "1"],
        ["fio", "ünï→", "--disk=su800-128gb"],
    ):
        done = subprocess.run(
            [BLKLAB, *words],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            env=os.environ | environment,
            timeout=60,
        )
        assert done.returncode == (2 if words[1:2] == ["ünï→"] else 0), done.stderr
        assert b"Traceback" not in done.stderr


def test_names_that_are_not_utf8_are_names_like_others(tmp_path: Path) -> None:
    odd = os.fsdecode(b"n\xff")
    (tmp_path / f"{odd}.fio").write_text("[j]\nsize=64k\n")
    (tmp_path / f"{odd}.toml").write_bytes((DISKS / "su800-128gb.toml").read_bytes())
    (tmp_path / odd).mkdir()
    job, disk = f"./{odd}.fio", f"./{odd}.toml"
    for words, said in (
        (["fio", job, f"--disk={disk}"], r"n\xff: ios="),
        (["explain", job, f"--disk={disk}", f"--out={odd}/x.html"], r"Timeline: n\xff/x.html"),
        (
            ["compare", f"--workload={job}", f"--disk={disk}", *_QUICK, f"--out={odd}"],
            r"Report: n\xff/report.html",
        ),
        (["results"], r"n\xff"),
        (["results", "show", "2"], r"n\xff"),
        (["results", "export", "2", f"--out={odd}/x.json"], ""),
        (["results", "import", f"{odd}/x.json", f"--store={odd}/s.db"], "imported as 1"),
        (["results", f"--store={odd}/s.db"], r"n\xff"),
        (["report", odd, f"--out={odd}/y.html"], r"Report: n\xff/y.html"),
        (["disks", disk], r"n\xff.toml"),
        (["workloads", job], r"n\xff.fio"),
    ):
        done = subprocess.run(
            [os.fsencode(word) for word in (BLKLAB, *words)],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, (words, done.stderr)
        assert said in done.stdout, (words, done.stdout)


@pytest.mark.parametrize(
    "words",
    [
        ("fio", "job.fio", "--disk=\udcff"),
        ("fio", "\udcff", "--disk=su800-128gb"),
        ("fio", "job.fio", "--disk=su800-128gb:\udcff=1"),
        ("fio", "job.fio", "--disk=su800-128gb", "--scheduler=\udcff"),
        ("fio", "job.fio", "--disk=su800-128gb", "--host=\udcff=1"),
        ("fio", "job.fio:bs=\udcff", "--disk=su800-128gb"),
        ("compare", "--objective=\udcff"),
        ("results", "--since=\udcff"),
        ("kernel", "build", "--name=\udcff"),
        ("kernel", "remove", "\udcff"),
        ("devices", "\udcff"),
        ("apply", "\udcff", "none"),
        ("run", "\udcff"),
        ("explain", "job.fio", "--disk=su800-128gb", "--process=\udcff"),
    ],
)
def test_an_argument_that_is_not_utf8_is_one_line(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[j]\nsize=64k\n")
    done = subprocess.run(
        [os.fsencode(word) for word in (BLKLAB, *words)],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"BLKLAB_CACHE": str(tmp_path / "cache")},
        timeout=60,
    )
    assert done.returncode == 2
    assert re.fullmatch(r"blklab: .*\\xff.*\n", done.stderr)
    assert "codec" not in done.stderr


def test_a_variable_that_is_not_utf8_keeps_nothing_from_running(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[j]\nsize=64k\n")
    done = subprocess.run(
        [BLKLAB, "fio", "job.fio", "--disk=optane-900p"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()}
        | {b"ODD\xff": b"\xff"},
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_descriptor_is_not_given_to_a_file(tmp_path: Path) -> None:
    """What is printed would be written into that file."""
    (tmp_path / "job.fio").write_text("[j]\nsize=64k\n")
    code = (
        "import os, sys; from blklab.cli import streams\n"
        "with streams.installed():\n "
        "file = os.open('kept', os.O_RDWR | os.O_CREAT); print('out');"
        "print('error', file=sys.stderr); streams.tell('told'); sys.exit(file)"
    )
    command = f"exec {sys.executable} -c {shlex.quote(code)} <&- >&- 2>&-"
    done = subprocess.run(["sh", "-c", command], check=False, cwd=tmp_path, timeout=60)
    assert done.returncode == 3
    assert (tmp_path / "kept").read_bytes() == b""


def test_output_of_another_program_need_not_be_utf8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fio = tmp_path / "fio"
    fio.write_bytes(b"#!/bin/sh\nprintf 'fio-\\377\\n'\n")
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert fio_version() == "fio-\ufffd"


def test_costs_of_many_schedulers_fit_into_a_terminal_with_all_their_figures() -> None:
    costs = OperationCosts(
        False, 24.1 * 1024, 32.3 * 1024, 1023.0, 16.4, 5.87, 4.01, 0, 1.01, 3.39, 234e3
    )
    names = [
        "none",
        "mq-deadline:fifo_batch=128,read_expire=2000",
        "kyber",
        "bfq",
        "cfq",
        "deadline",
    ]
    with (screen := Console(width=80)).capture() as shown:
        screen.print(costs_table(dict.fromkeys(names, costs)))
    lines = shown.get().splitlines()
    assert max(map(len, lines)) <= 80 and "…" not in shown.get()
    [data] = [line for line in lines if line.startswith(" data")]
    assert data.split() == ["data", *["24.1", "KiB"] * len(names)]
    assert {line.split()[0] for line in lines[-11:] if line.strip()} == set(COSTS)
