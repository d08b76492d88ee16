"""``blklab kernel remove``: make room."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.cli import complete
from blklab.errors import InputError
from blklab.rigs.kernel import cache


def remove(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Kernels by name or key.", autocompletion=complete.kernel
        ),
    ] = None,
    sources: Annotated[
        bool,
        typer.Option(
            "--sources", help="Also downloads, sources and objects: nearly all of the space."
        ),
    ] = False,
) -> None:
    """Remove kernels from the cache; sources and objects stay for the next build."""
    if not names and not sources:
        raise InputError("nothing to remove: name kernels, or use --sources")
    # All are looked up before the first goes.
    for name, kernel in [(name, cache.find(name)) for name in names or ()]:
        gone = cache.remove(kernel, name)
        print(f"{name}: removed" if gone else f"{name}: only the name; the kernel has others")
    if sources:
        print(f"downloads, sources and objects: {cache.remove_sources() / 1e6:.0f} MB removed")
