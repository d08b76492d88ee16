"""``blklab kernel source``: a file of the kernel's source, to be read or changed."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.cli import streams
from blklab.cli.kernel import steps
from blklab.rigs.kernel import DEFAULT_VERSION


def source(
    file: Annotated[
        str, typer.Argument(help="Path in the kernel's source: block/kyber-iosched.c.")
    ],
    of: Annotated[
        str | None,
        typer.Option(
            "--source",
            help=f"Version, tarball or directory, as for build. [default: {DEFAULT_VERSION}]",
        ),
    ] = None,
) -> None:
    """Print a file of the kernel's source; downloads the source if needed."""
    from blklab.rigs.kernel import source as sources

    with steps.shown() as told:
        found = sources.find(of, told)
    streams.write_bytes(sources.file(found, file))
