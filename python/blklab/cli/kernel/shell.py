"""``blklab kernel shell``: look around inside."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from blklab.base import limits
from blklab.cli import complete
from blklab.cli.models import ShareOption
from blklab.errors import InputError


def shell(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Kernel by name. [default: the last without changes]",
            autocompletion=complete.kernel,
        ),
    ] = None,
    disk: Annotated[
        str | None,
        typer.Option(
            help="A disk model for the guest: name or file.toml[:key=value,...].",
            autocompletion=complete.disk,
        ),
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(
            help="With --disk: name[:tunable=value,...].", autocompletion=complete.scheduler
        ),
    ] = "none",
    memory: Annotated[int, typer.Option(min=64, max=65536, help="In MiB.")] = 512,
    time_travel: Annotated[
        str, typer.Option(help="The guest's clock: off (the host's), on or inf-cpu.")
    ] = "off",
    share: ShareOption = None,
    timeout: Annotated[
        float, typer.Option(min=1, max=limits.TIMEOUT_S_MAX, help="End it after this many seconds.")
    ] = 86400.0,
) -> None:
    """Start a kernel with a shell, which sees this machine's programs and this directory."""
    import termios

    from blklab.domain import specs
    from blklab.rigs.kernel import cache, shell_disk, shell_init, view
    from blklab.rigs.kernel.boot import boot, checked_time_travel

    kernel = cache.chosen(name)
    travel = checked_time_travel(time_travel)
    order = shell_disk.order(specs.disk(disk), scheduler, kernel.version) if disk else {}
    if not sys.stdin.isatty():
        raise InputError("a shell needs a terminal as its standard input")
    terminal = termios.tcgetattr(sys.stdin)
    print(f"{kernel.text}; leave with: exit", file=sys.stderr)
    init = view.HERE / "shell_init.py"
    program = Path(sys.executable).resolve()
    shared = view.shared([], share or ())
    # Python may lie anywhere; with it goes its library.
    python = [path for path in (program, Path(sys.base_prefix)) if not view.is_seen(path)]
    try:
        with boot(
            kernel.image,
            [str(program), "-I", "-S", str(init), "/bin/sh", "-i"],
            order,
            view.View({init.name: Path(shell_init.__file__)}, (*shared.paths, *python)),
            memory_mib=memory,
            time_travel=travel,
            timeout_s=timeout,
            interactive=True,
        ) as guest:
            guest.wait()
            shell_disk.check(guest.run)
    finally:
        # A guest that is killed leaves the terminal as it had set it.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, terminal)
