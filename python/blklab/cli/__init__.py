"""The ``blklab`` command: one file per subcommand, registered below.

Nothing heavy is loaded until a subcommand runs: ``blklab --help`` is read often.
"""

from __future__ import annotations

import os
import sys

import typer

from blklab.cli import compare, disks, fio, report, schedulers, workloads
from blklab.errors import BlklabError

app = typer.Typer(
    name="blklab",
    help="Which Linux I/O scheduler, with which settings, for this disk and this load.",
    no_args_is_help=True,
    # Typer would load rich for --help and for tracebacks, which doubles the start.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

for command in (
    compare.compare,
    fio.fio,
    disks.disks,
    schedulers.schedulers,
    workloads.workloads,
    report.report,
):
    app.command()(command)

_FAILED = 1
_INTERRUPTED = 130
_STDERR = 2


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Print the version and end."),
) -> None:
    """Which Linux I/O scheduler, with which settings, for this disk and this load."""
    if version:
        from blklab.rigs import sim

        print(f"blklab {sim.version()}")
        raise typer.Exit


def main() -> None:
    """Run the command; every error is one line on stderr, never a traceback."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BlklabError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted; nothing was written", _INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does: no error. Python would complain
        # when it flushes stdout at exit, so that has to go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _fail("out of memory; try fewer --jobs", _FAILED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        if sys.stdout.fileno() >= 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _fail(f"{where}{error.strerror or error}", _FAILED)


def _fail(message: str, code: int) -> None:
    os.write(_STDERR, f"blklab: {' '.join(message.split())}\n".encode(errors="replace"))
    sys.exit(code)
