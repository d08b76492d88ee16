"""``blklab disks``, ``schedulers``, ``workloads``, ``studies`` and ``host``: lists of the choices
and their parameters."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

import blklab
from blklab.base.units import number_text
from blklab.cli import complete, console
from blklab.cli.options import PluginFiles, use_plugins
from blklab.domain import core
from blklab.errors import InputError

if TYPE_CHECKING:
    from blklab import ProgramDocument

_WIDTH = 80

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable.")]


def _one(completion: Any) -> Any:
    return typer.Argument(help="Show all details of this one.", autocompletion=completion)


def disks(
    name: Annotated[str | None, _one(complete.disk)] = None,
    as_json: AsJson = False,
    as_file: Annotated[
        bool, typer.Option("--file", help="Print its file, to write one of your own.")
    ] = False,
) -> None:
    """List the disk models; with a name, all parameters with their sources. (default)"""
    if name is None:
        if as_file:
            raise InputError("--file: expected the name of a disk")
        known = blklab.list_disks()
        if as_json:
            console.print_json({key: one.described for key, one in known.items()})
        else:
            console.print_names([(key, _line(disk)) for key, disk in known.items()])
        return
    disk = blklab.find_disk(name)
    if as_file:
        print(disk.disk.file.text, end="")
        return
    if as_json:
        console.print_json(disk.described)
        return
    print(f"{disk.disk.label}: {disk.name}\n{disk.summary}\n{_place(disk.disk.file)}")
    print(f"{disk.validation}\n")
    console.print_terms(
        (f"{row.key} = {row.value} {row.unit}".rstrip(), _about(row)) for row in disk.parameters
    )
    if disk.published:
        print(
            "\nPublished figures: calibrated (parameters were chosen from the figure) or checked\n"
        )
        console.print_terms(
            (
                f"{row.figure} = {row.value:g} +-{row.tolerance_percent:g} %",
                f"{row.role}{f'; not met: {row.not_met}' if row.not_met else ''} [{row.source}]",
            )
            for row in disk.published
        )


def _line(disk: blklab.DiskModel) -> str:
    told = f"{disk.name}: {disk.summary}"
    return told if disk.validated else f"{told}; {disk.validation}"


def _about(row: blklab.DiskParameter) -> str:
    """Meaning, range and source of a parameter."""
    ends = row.range
    told = row.help if ends is None else f"{row.help}; {' to '.join(map(number_text, ends))}"
    return f"{told} [{row.source}]" if row.source else told


def _place(file: blklab.Entry) -> str:
    if file.in_core:
        return f"Ships with blklab. Its file: blklab disks {file.name} --file"
    return str(file.path)


def schedulers(
    name: Annotated[str | None, _one(complete.scheduler)] = None,
    as_json: AsJson = False,
    plugin: PluginFiles = None,
) -> None:
    """List the I/O schedulers; with a name, its tunables."""
    use_plugins(plugin)
    if name is None:
        known = blklab.list_schedulers()
        if as_json:
            console.print_json(
                [{k: v for k, v in s.described.items() if k != "settings"} for s in known]
            )
        else:
            console.print_names([(one.name, one.summary) for one in known])
        return
    one = blklab.find_scheduler(name)
    if as_json:
        console.print_json(one.described)
        return
    print(f"{one.name}: {one.summary}\nFollows {one.follows}.")
    first = (one.tunables or one.of_queue)[0]
    print(f"\nSet with --scheduler {one.name}:{first.name}=VALUE,...\n")
    console.print_tunables(one.tunables)
    print("\nOf the queue, under every scheduler:\n")
    console.print_tunables(one.of_queue)


def workloads(
    name: Annotated[str | None, _one(complete.workload)] = None, as_json: AsJson = False
) -> None:
    """List the workloads; with a name or a .fio file, the job file or program, explained."""
    if name is None:
        _list_workloads(as_json)
        return
    found = blklab.find_workload(name)
    if as_json:
        console.print_json(found.described)
    elif found.program is not None:
        _print_program(found, found.program)
    else:
        print(f"# {found.entry.path}\n{found.entry.text.rstrip()}")
        for ignored in found.ignored:
            print(f"# not simulated: {ignored}")


def _list_workloads(as_json: bool) -> None:
    found = blklab.list_workloads()
    if as_json:
        shown = ("name", "summary", "kind", "missing")
        console.print_json(
            [{k: v for k, v in one.described.items() if k in shown} for one in found]
        )
        return
    console.print_names([(one.entry.name, one.summary) for one in found if one.kind == "fio"])
    print("\nReal programs, for --rig kernel and --rig live:\n")
    real = [one for one in found if one.kind == "program"]
    console.print_names(
        [
            *((one.entry.name, _of_program(one)) for one in real),
            ("command:...", "any command, timed; with --rig kernel"),
        ]
    )


def _of_program(found: blklab.Workload) -> str:
    """Its summary, with the only rig that runs it, and what is missing here."""
    rigs = found.program["rigs"] if found.program else []
    only = f"; only with --rig {rigs[0]}" if len(rigs) == 1 else ""
    missing = f" ({found.missing})" if found.missing else ""
    return f"{found.summary}{only}{missing}"


def _print_program(found: blklab.Workload, told: ProgramDocument) -> None:
    print(f"{told['name']}: {found.summary}\n")
    for paragraph in found.about.split("\n\n"):
        print(textwrap.fill(" ".join(paragraph.split()), _WIDTH) + "\n")
    print(f"Figure: {told['unit']}, {'more' if told['higher_is_better'] else 'less'} is better")
    print(f"Latency: {'of ' + told['operation'] if told['operation'] else 'not told'}")
    rigs = " and ".join(f"--rig {name}" for name in told["rigs"])
    print(f"Runs on: {told['target']}, with {rigs}")
    print(f"Needs: {', '.join(told['needs']) or 'nothing more'}")
    if found.missing:
        print(f"Cannot run here: {found.missing}")
    if found.parameters:
        print(f"\nSet with {told['name']}:NAME=VALUE,...\n")
        console.print_tunables(found.parameters)


def studies(
    name: Annotated[str | None, _one(complete.study)] = None, as_json: AsJson = False
) -> None:
    """List the studies; with a name or a .toml file, its parts and published statements."""
    if name is not None:
        from blklab.cli import judgements

        chosen = blklab.find_study(name)
        if as_json:
            console.print_json(asdict(chosen) | {"file": str(chosen.file.path)})
        else:
            judgements.describe(chosen)
        return
    rows = [
        (one.name, f"cannot run: {one.error}" if one.error else one.title)
        for one in blklab.list_studies()
    ]
    if as_json:
        console.print_json([{"name": label, "title": title} for label, title in rows])
    else:
        console.print_names(rows)


def host(as_json: AsJson = False) -> None:
    """Show the modelled host: CPUs, the CPU cost of I/O, memory and writeback."""
    found = blklab.modelled_host()
    if as_json:
        console.print_json(found.described)
        return
    guest = ",".join(f"{name}={core.host_text(name, value)}" for name, value in found.guest.items())
    print("Set with --host NAME=VALUE,...")
    print(f"--host guest is what a guest of --rig kernel has: {guest}")
    for name, rows in (("host", found.host), ("page cache", found.page_cache)):
        print(f"\n{name}\n")
        console.print_tunables(rows)
