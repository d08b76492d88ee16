"""The command to type where root is needed."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from blklab.base.text import shown


def as_root(more: Sequence[str] = ()) -> str:
    """This command under sudo, followed by `more` words, for typing in a shell.

    The program has its path, because sudo searches only its own directories.
    """
    program = Path(sys.argv[0]).absolute()
    module = program.name == "__main__.py"
    words = [sys.executable, "-m", "blklab"] if module else [str(program)]
    return shown(shlex.join(["sudo", *words, *sys.argv[1:], *more]))


def or_as_root() -> str:
    """The command to type, for the end of an error about a permission; empty for root, because sudo
    would not help."""
    return "" if os.geteuid() == 0 else f"; type: {as_root()}"
