"""The ``blklab`` command: one file per subcommand, listed in `blklab.cli.lazy`.

Nothing heavy is loaded until a subcommand runs: ``blklab --help`` is read often.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer
from typer.exceptions import TyperException

from blklab.cli import lazy, streams
from blklab.errors import INTERRUPTED, INTERRUPTED_TEXT, BlklabError

app = typer.Typer(
    name="blklab",
    cls=lazy.LazyGroup,
    help="Which Linux I/O scheduler, with which settings, for this disk and this workload.",
    # Typer would load rich for --help and for tracebacks, which doubles the start.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

_FAILED = 1


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Which Linux I/O scheduler, with which settings, for this disk and this workload."""
    if version:
        from blklab.domain import core

        print(f"blklab {core.version()}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run the command; every error is one line on stderr, never a traceback."""
    with streams.installed():
        _run()


def _run() -> NoReturn:
    try:
        try:
            # Named here: typer finds another name if Python was started with -m.
            code = app(standalone_mode=False, prog_name="blklab")
        finally:
            sys.stdout.flush()
    except BlklabError as error:
        from blklab.cli.listening import error_text

        _fail(error_text(error), error.exit_code, error.detail)
    except TyperException as error:
        _fail(f"{error.format_message()} (try '{_command(error)} --help')", error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail(INTERRUPTED_TEXT, INTERRUPTED)
    except MemoryError:
        _fail("out of memory; use fewer jobs (numjobs), smaller files or fewer --jobs", _FAILED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _drop_stdout()
        if isinstance(error, BrokenPipeError):
            # The reader of our output has ended, as `head` does: no error.
            sys.exit(0)
        _fail(f"{where}{error.strerror or error}", _FAILED)
    except SystemExit as left:
        if isinstance(left.__context__, BrokenPipeError):
            _drop_stdout()
            sys.exit(0)
        raise
    else:
        if code == INTERRUPTED:
            _fail(INTERRUPTED_TEXT, INTERRUPTED)
        sys.exit(code)


def _command(error: TyperException) -> str:
    """The command that was used wrongly."""
    context = getattr(error, "ctx", None)
    return context.command_path if context else "blklab"


def _drop_stdout() -> None:
    """Without this, Python would try to write the rest at exit and print a second error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int, detail: Sequence[str] = ()) -> NoReturn:
    lines = [f"    {line}" for line in detail]
    streams.tell("\n".join([*lines, f"blklab: {' '.join(message.split())}"]))
    sys.exit(code)
