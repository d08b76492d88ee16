"""The start of the ``blklab`` command: loading takes a tenth of a second, and Ctrl-C may come
before it is complete."""

from __future__ import annotations

import sys

from blklab.base.signals import ending_within
from blklab.errors import INTERRUPTED, INTERRUPTED_TEXT


def main() -> None:
    """Load the command and run it."""
    try:
        try:
            from blklab.cli import main as command
            from blklab.cli import rights

            rights.Program.is_blklab = True
            command()
        except RuntimeError as error:
            if ending := ending_within(error):
                raise ending from None
            raise
    except KeyboardInterrupt:
        print(f"blklab: {INTERRUPTED_TEXT}", file=sys.stderr)
        sys.exit(INTERRUPTED)
