"""``blklab watch``: what disks do, whether another scheduler would pay, and the change."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import blklab
from blklab.api import watch as api
from blklab.base.files import check_files, why
from blklab.base.text import shown, utf8
from blklab.base.units import duration_text
from blklab.cli import complete, console
from blklab.cli.options import StoreName, is_told, seconds
from blklab.errors import InputError, RunError

if TYPE_CHECKING:
    from typing import TextIO

    from blklab import Watched, WatchEvent, WatchLimits

_QUIET = ("observed",)
"""Events that only ``--json`` prints."""
_NOT_INSTALLED = {"for_": "--for", "as_json": "--json"}


def watch(
    context: typer.Context,
    disk: Annotated[
        list[str] | None,
        typer.Option(
            help="A disk of this machine: sda, /dev/sda; repeatable. [default: all with a choice "
            "of schedulers]",
            autocompletion=complete.device,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The disk model for simulations: name or file.toml[:key=value,...]. [default: one "
            "of the disk's kind, with answers that hold for drawn disks of that kind]",
            autocompletion=complete.disk,
        ),
    ] = None,
    objective: Annotated[str, typer.Option(help="What ranks: latency or throughput.")] = "latency",
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Set the scheduler; at the end all settings are restored."),
    ] = False,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            help="May be set: name[:tunable=value,...]; repeatable. [default: those of none, "
            "mq-deadline, kyber, bfq that are loaded]",
            autocompletion=complete.scheduler,
        ),
    ] = None,
    at_most_every: Annotated[
        str, typer.Option(metavar="TIME", help="The least time between two changes of a disk.")
    ] = "10m",
    gain: Annotated[
        float, typer.Option(help="By how many percent another scheduler must be better.")
    ] = 100 * api.GAIN,
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="The time between two looks at the counters.")
    ] = "10s",
    steady: Annotated[
        int, typer.Option(help="For how many intervals a load must last before it counts.")
    ] = api.STEADY,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="30s, 10m, 2h. [default: until Ctrl-C]"),
    ] = None,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample/--no-sample",
            help="Record up to 30 s of a new load's requests, where the kernel allows it.",
        ),
    ] = True,
    store: StoreName = None,
    log: Annotated[Path | None, typer.Option(help="Also append all lines to this file.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="A line of JSON for each interval and event.")
    ] = False,
    install: Annotated[
        bool,
        typer.Option("--install", help="Install a systemd unit with these options, and start it."),
    ] = False,
    uninstall: Annotated[
        bool, typer.Option("--uninstall", help="Stop and remove that unit.")
    ] = False,
) -> None:
    """Watch what disks do, and say when another scheduler would pay; with --apply set it."""
    if uninstall:
        _uninstall(context)
        return
    limits = blklab.WatchLimits(
        objective=objective,
        schedulers=tuple(scheduler or ()),
        interval_s=seconds("--interval", interval),
        at_most_every_s=seconds("--at-most-every", at_most_every),
        gain=gain / 100,
        steady=steady,
        apply=apply,
        sample=sample,
    )
    if install:
        _install(context, disk or [], limits, model)
        return
    with ExitStack() as stack:
        file = None if log is None else stack.enter_context(_opened(log))
        found = blklab.watch(
            disk or (),
            model=model,
            limits=limits,
            for_s=None if for_ is None else seconds("--for", for_),
            store=store,
            on_event=_Printer(as_json, file, log),
        )
    console.print_note(_summary(found))


class _Printer:
    """Prints the events of a watch, and appends them to the log."""

    def __init__(self, as_json: bool, file: TextIO | None, path: Path | None) -> None:
        self._as_json, self._file, self._path = as_json, file, path

    def __call__(self, event: WatchEvent) -> None:
        if self._as_json:
            line = json.dumps(event.to_json(), allow_nan=False)
        elif event.what in _QUIET:
            return
        else:
            line = shown(f"{event.time} {event.disk}: {event.text}")
        print(line, flush=True)
        if self._file is not None:
            try:
                self._file.write(f"{utf8(line)}\n")
                self._file.flush()
            except OSError as error:
                raise RunError(f"{self._path}: {why(error)}") from error


def _opened(log: Path) -> TextIO:
    check_files(log)
    try:
        return log.open("a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{log}: {why(error)}") from error


def _summary(found: Watched) -> str:
    """The costs of the watch itself, for a person."""
    share = found.watching_cpu_s / max(found.span_s, 1e-9)
    text = (
        f"watched {', '.join(found.disks)} for {duration_text(found.span_s * 1e9)}: "
        f"{found.intervals} interval{'s' * (found.intervals != 1)}, "
        f"{found.changes} change{'s' * (found.changes != 1)}, {100 * share:.2g} % of a CPU"
    )
    if found.evidence_cpu_s >= 0.01:  # noqa: PLR2004
        text += f", and {duration_text(found.evidence_cpu_s * 1e9)} of CPU time for evidence"
    return text


def _install(
    context: typer.Context, disks: list[str], limits: WatchLimits, model: str | None
) -> None:
    for name, option in _NOT_INSTALLED.items():
        if is_told(context, name):
            raise InputError(f"{option}: not with --install; the unit runs until it is stopped")
    notes = blklab.install_watch(_options(context), disks, limits, model)
    print("installed: blklab-watch.service, which starts now and at each boot")
    for note in notes:
        print(f"note: {note}")
    print("see: blklab status, journalctl -u blklab-watch; to remove it: blklab watch --uninstall")


def _options(context: typer.Context) -> list[str]:
    """The given options, for the unit: paths are absolute."""
    words = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if name == "install" or not is_told(context, name):
            continue
        value = context.params[name]
        if isinstance(value, bool):
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            words += [parameter.opts[0], _absolute(name, one)]
    return words


def _absolute(name: str, value: object) -> str:
    text = str(value)
    is_path = name == "log" or (name == "store" and "://" not in text)
    # A model's file, behind which changes may stand.
    is_path = is_path or (name == "model" and "/" in text)
    return str(Path(text).absolute()) if is_path else text


def _uninstall(context: typer.Context) -> None:
    told = [name for name in context.params if name != "uninstall" and is_told(context, name)]
    if told:
        raise InputError("--uninstall: expected no other option")
    found, notes = blklab.uninstall_watch()
    print(f"removed: {shown(found.command)}, installed {found.time}")
    for note in notes:
        print(f"note: {note}")
