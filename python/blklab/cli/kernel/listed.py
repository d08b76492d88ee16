"""``blklab kernel list``: what is in the cache."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blklab.cli import console
from blklab.errors import RunError
from blklab.rigs.kernel import cache, wall

if TYPE_CHECKING:
    from blklab.rigs.kernel.cache import Kernel


def listed(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """List the built kernels, the latest first, the size of the cache, and what confines
    guests here."""
    kernels = cache.kernels()
    console.print_notes(cache.damaged())
    try:
        confined, refused = wall.told(), None
    except RunError as error:
        confined, refused = None, str(error)
    if as_json:
        console.print_json(
            {
                "cache": str(cache.root()),
                "used_bytes": cache.used_bytes(),
                "kernels": [row(kernel) for kernel in kernels],
                "confined_by": confined,
            }
        )
        return
    if not kernels:
        print("no kernels yet; build one: blklab kernel build")
    for kernel in kernels:
        print(", ".join(kernel.names) or kernel.key)
        print(f"    Linux {kernel.version} of {kernel.source}")
        if kernel.patches:
            print(f"    patched with {', '.join(kernel.patches)}")
        if kernel.added:
            print(f"    with {', '.join(kernel.added)} in block/")
        if kernel.config:
            print(f"    with {', '.join(kernel.config)}")
        print(f"    built {kernel.built_at} in {kernel.build_s:.0f} s, "
              f"{kernel.size_bytes / 1e6:.0f} MB, key {kernel.key}")  # fmt: skip
    used = ", ".join(f"{part} {count / 1e6:.0f} MB" for part, count in cache.used_bytes().items())
    print(f"\n{cache.root()}: {used}")
    print(refused or f"guests are confined by {confined}")


def row(kernel: Kernel) -> dict[str, Any]:
    """A kernel for a machine."""
    return asdict(kernel) | {"image": str(kernel.image), "size_bytes": kernel.size_bytes}
