"""Runs job files one after the other on a directory, under a tracer. Before each job file it marks
the trace by a failing change of a missing directory.

    python -m tests.confined_helper CASES DIRECTORY

CASES is JSON: a list of objects with ``text``, ``ignore_unsupported`` and ``environment``; the
program adds each one's ``outcome``."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import threading
from pathlib import Path

from blklab.cli import app
from blklab.errors import BlklabError

MARK = "/blklab-case-"
_SECONDS_MAX = 20


def main(cases: Path, directory: str) -> None:
    """Run them all."""
    rows = json.loads(cases.read_text())
    for number, row in enumerate(rows):
        _mark(number)
        before = dict(os.environ)
        os.environ.update(row["environment"])
        row["outcome"] = _run(row["text"], directory, row["ignore_unsupported"])
        os.environ.clear()
        os.environ.update(before)
    _mark(len(rows))
    cases.write_text(json.dumps(rows))


def _mark(number: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.chdir(f"{MARK}{number}")


def _run(text: str, directory: str, ignore_unsupported: bool) -> str:
    job = Path("job.fio")
    job.write_text(text, encoding="utf-8", errors="surrogateescape")
    arguments = ["fio", str(job), "--rig", "live", "--disk", directory, "--no-keep"]
    arguments += ["--output", os.devnull]
    arguments += ["--ignore-unsupported"] if ignore_unsupported else []
    # As if the user had pressed Ctrl-C.
    impatient = threading.Timer(_SECONDS_MAX, os.kill, (os.getpid(), signal.SIGINT))
    impatient.start()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            app(arguments, standalone_mode=False, prog_name="blklab")
    except BlklabError as error:
        return f"refused: {error}"
    except KeyboardInterrupt:
        return "too long"
    finally:
        impatient.cancel()
    return "ran"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
