"""``blklab kernel build``: a kernel from a version, a tarball or one's own directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blklab.base.limits import JOBS_MAX
from blklab.cli import complete, console
from blklab.cli.kernel import listed, steps
from blklab.rigs.kernel import DEFAULT_VERSION


def build(
    source: Annotated[
        str | None,
        typer.Option(
            help="Version (7.3, 6.12.107), tarball, or your own directory. "
            f"[default: {DEFAULT_VERSION}]",
        ),
    ] = None,
    patch: Annotated[
        list[Path] | None,
        typer.Option(help="Patch to apply, as with patch -p1; repeatable, in this order."),
    ] = None,
    add: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.c",
            help="Your own C file, such as a new scheduler, for the kernel's block/; "
            "repeatable. It replaces a file of the same name.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(help="Option of the kernel's configuration: NAME=y; repeatable."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="The kernel's name. [default: from source and patches]",
            autocompletion=complete.kernel,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=JOBS_MAX, help="Maximum parallel compilers; default: one per CPU."),
    ] = None,
    refresh: Annotated[
        bool,
        typer.Option(help="Ask the mirror for a newer source, even if one is cached."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Build Linux as a program (user-mode Linux) and store it; needs no root."""
    from blklab.rigs.kernel.build import build as build_kernel

    with steps.shown() as told:
        built = build_kernel(
            source,
            patch or (),
            name,
            added_files=add or (),
            options=config or (),
            jobs=jobs,
            refresh=refresh,
            steps=told,
        )
    kernel = built.kernel
    if as_json:
        console.print_json(listed.row(kernel) | {"fresh": built.fresh})
        return
    called = name or kernel.names[0]
    if built.fresh:
        print(f"{called}: Linux {kernel.version}, built in {kernel.build_s:.0f} s "
              f"({kernel.compiled} files compiled)")  # fmt: skip
    else:
        print(f"{called}: Linux {kernel.version}, from the cache")
    print(f"source: {kernel.source}")
    if kernel.patches:
        print(f"patches: {', '.join(kernel.patches)}")
    if kernel.added:
        print(f"added: {', '.join(kernel.added)}")
    print(kernel.image)
