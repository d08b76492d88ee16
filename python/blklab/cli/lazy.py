"""The list of commands, each loaded at its first use.

``blklab --help`` runs often, and loading all commands for it takes longer than Python's own start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    gives_up_rights: bool = field(kw_only=True)
    """Whether root gives up its rights before the command, which changes nothing on this machine
    unless it uses another rig than the simulator. No default: each command decides."""

    def load(self) -> typer.Typer:
        """Its module's own, or an application of this one command."""
        module, name = self.place.split(":")
        found = getattr(import_module(f"blklab.cli.{module}"), name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(rich_markup_mode=None, add_completion=False)
            alone.command(name)(found)
            found = alone
        if self.gives_up_rights:
            for one in found.registered_commands:
                assert one.callback is not None
                one.callback = fewer(one.callback)
        return found


COMMANDS: Mapping[str, Listed] = {
    "compare": Listed(
        "compare:compare",
        "Compare schedulers on disks and workloads, and rank them.",
        gives_up_rights=True,
    ),
    "run": Listed(
        "run:run",
        "Run a published comparison again, and check its statements.",
        gives_up_rights=True,
    ),
    "fio": Listed(
        "fio:fio", "Run one fio job file once and print what fio prints.", gives_up_rights=True
    ),
    "explain": Listed(
        "explain:explain",
        "Show what happened to each request of a run, and why.",
        gives_up_rights=True,
    ),
    "trace": Listed(
        "trace:app", "Check, show, import and change traces of I/O.", gives_up_rights=True
    ),
    "record": Listed(
        "record:record",
        "Record the I/O of this machine, or of a simulated run.",
        # Before a simulated run it does that itself.
        gives_up_rights=False,
    ),
    "whatif": Listed(
        "whatif:whatif",
        "Say which scheduler would have served a recorded load best.",
        gives_up_rights=True,
    ),
    "tune": Listed(
        "tune:tune",
        "Search the scheduler and settings that serve a load best.",
        gives_up_rights=True,
    ),
    "check-rule": Listed(
        "check_rule:check_rule",
        "Say what a udev rule for schedulers changes, for better or worse.",
        gives_up_rights=True,
    ),
    "fleet": Listed(
        "fleet:fleet",
        "Say which scheduler suits many machines' disks, group by group.",
        # With --from it does that itself; else it is about to run ssh.
        gives_up_rights=False,
    ),
    "devices": Listed(
        "devices:devices",
        "Show this machine's disks, and what sets their scheduler.",
        gives_up_rights=False,
    ),
    "disks": Listed(
        "disks:app", "List the disk models, or all details of one.", gives_up_rights=True
    ),
    "schedulers": Listed(
        "catalogue:schedulers", "List the I/O schedulers, or one's tunables.", gives_up_rights=True
    ),
    "workloads": Listed(
        "catalogue:workloads",
        "List the workloads: job files and real programs.",
        gives_up_rights=True,
    ),
    "studies": Listed(
        "catalogue:studies",
        "List the published comparisons that can be run again.",
        gives_up_rights=True,
    ),
    "host": Listed(
        "host:app",
        "Show the modelled host; measure its costs on this machine.",
        gives_up_rights=False,
    ),
    "report": Listed(
        "results:report", "Write a report again, without running anything.", gives_up_rights=True
    ),
    "restore": Listed(
        "devices:restore", "Undo what a killed run left on real disks.", gives_up_rights=False
    ),
    "apply": Listed(
        "apply:apply", "Set a disk's scheduler, now and after every boot.", gives_up_rights=False
    ),
    "status": Listed(
        "apply:status", "Check that applied settings still hold.", gives_up_rights=False
    ),
    "watch": Listed(
        "watch:watch",
        "Watch disks; say, or set, the scheduler that suits their load.",
        gives_up_rights=False,
    ),
    "undo": Listed("apply:undo", "Undo the latest apply.", gives_up_rights=False),
    "bisect": Listed(
        "bisect:bisect",
        "Find the kernel or patch that changed the order of requests.",
        gives_up_rights=False,
    ),
    "verify": Listed(
        "verify:verify", "Compare the simulator with a real kernel.", gives_up_rights=False
    ),
    "results": Listed(
        "results:app",
        "List, show, compare, export and remove stored results.",
        gives_up_rights=True,
    ),
    "kernel": Listed(
        "kernel:app",
        "Build Linux as a program, patched or not, and start it.",
        gives_up_rights=False,
    ),
    "disk": Listed(
        "disk:app", "Make a modelled disk a block device of this machine.", gives_up_rights=False
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
