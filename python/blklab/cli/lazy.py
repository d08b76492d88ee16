"""The list of commands, each loaded at its first use.

``blklab --help`` runs often, and loading all commands for it takes longer than Python's own start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperGroup

from blklab.cli.rights import fewer


@dataclass(frozen=True)
class Listed:
    """A command, or a group of them, that is not loaded yet."""

    place: str
    """Module below ``blklab.cli`` and the name in it: a function, or a group's ``typer.Typer``."""
    help: str
    """Its purpose, one line of the list of commands on a terminal of 80 columns."""
    computes: bool = True
    """The command changes nothing on this machine, unless it uses another rig than the
    simulator."""

    def load(self) -> typer.Typer:
        """Its module's own, or an application of this one command."""
        module, name = self.place.split(":")
        found = getattr(import_module(f"blklab.cli.{module}"), name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(rich_markup_mode=None, add_completion=False)
            alone.command(name)(found)
            found = alone
        if self.computes:
            for one in found.registered_commands:
                assert one.callback is not None
                one.callback = fewer(one.callback)
        return found


COMMANDS: Mapping[str, Listed] = {
    "compare": Listed(
        "compare:compare", "Compare schedulers on disks and workloads, and rank them."
    ),
    "run": Listed("run:run", "Run a published comparison again, and check its statements."),
    "fio": Listed("fio:fio", "Run one fio job file once and print what fio prints."),
    "explain": Listed("explain:explain", "Show what happened to each request of a run, and why."),
    "trace": Listed("trace:app", "Check, show, import and change traces of I/O."),
    "record": Listed("record:record", "Record the I/O of a simulated run, for whatif and trace."),
    "whatif": Listed(
        "whatif:whatif", "Say which scheduler would have served a recorded load best."
    ),
    "devices": Listed(
        "devices:devices",
        "Show this machine's disks, and what sets their scheduler.",
        computes=False,
    ),
    "disks": Listed("disks:app", "List the disk models, or all details of one."),
    "schedulers": Listed("catalogue:schedulers", "List the I/O schedulers, or one's tunables."),
    "workloads": Listed("catalogue:workloads", "List the workloads: job files and real programs."),
    "studies": Listed("catalogue:studies", "List the published comparisons that can be run again."),
    "host": Listed(
        "host:app",
        "Show the modelled host; measure its costs on this machine.",
        computes=False,
    ),
    "report": Listed("results:report", "Write a report again, without running anything."),
    "restore": Listed(
        "devices:restore", "Undo what a killed run left on real disks.", computes=False
    ),
    "apply": Listed(
        "apply:apply", "Set a disk's scheduler, now and after every boot.", computes=False
    ),
    "status": Listed("apply:status", "Check that applied settings still hold.", computes=False),
    "undo": Listed("apply:undo", "Undo the latest apply.", computes=False),
    "verify": Listed("verify:verify", "Compare the simulator with a real kernel.", computes=False),
    "results": Listed("results:app", "List, show, compare, export and remove stored results."),
    "kernel": Listed(
        "kernel:app", "Build Linux as a program, patched or not, and start it.", computes=False
    ),
    "disk": Listed(
        "disk:app", "Make a modelled disk a block device of this machine.", computes=False
    ),
}
"""By name, in the order in which they are listed."""


class LazyGroup(TyperGroup):
    """The command ``blklab``, with the commands in `COMMANDS`."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # For suggestions after a wrong name.
        self.commands = cast(Any, dict.fromkeys(COMMANDS))

    def list_commands(self, ctx: object) -> list[str]:
        """All names."""
        return list(COMMANDS)

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        """Load it; None if there is no such command."""
        listed = COMMANDS.get(cmd_name)
        return None if listed is None else typer.main.get_command(listed.load())

    def format_commands(self, ctx: object, formatter: Any) -> None:
        """The list of commands, without loading one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.help) for name, listed in COMMANDS.items()])
