"""``blklab workloads``: job files and real programs that ship with blklab, and the user's own."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blklab import programs
from blklab.cli import complete, console
from blklab.workloads import WORKLOADS, summary

_WIDTH = 80

if TYPE_CHECKING:
    from blklab.base.catalogue import Entry
    from blklab.programs import Chosen
    from blklab.programs.program import Program


def workloads(
    name: Annotated[
        str | None,
        typer.Argument(help="Show all details of this one.", autocompletion=complete.workload),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """List the workloads; with a name or a .fio file, the job file or program, explained."""
    from blklab.domain import core, specs

    if name is None:
        _list(as_json)
        return
    entry = specs.workload(name)
    if programs.is_program(entry):
        _program(entry, as_json)
        return
    if as_json:
        console.print_json(core.job_document(core.describe_job(entry, ignore_unsupported=True)))
        return
    print(f"# {entry.path}\n{entry.text.rstrip()}")
    for ignored in core.ignored_options(entry, ignore_unsupported=True):
        print(f"# not simulated: {ignored}")


def _list(as_json: bool) -> None:
    entries = [WORKLOADS.read(path) for path in WORKLOADS.paths().values()]
    jobs = [(entry.name, summary(entry.text)) for entry in entries]
    real = [programs.known(name) for name in programs.NAMES]
    if as_json:
        rows = [{"name": name, "summary": text, "kind": "fio"} for name, text in jobs]
        rows += [
            {"name": one.name, "summary": one.summary, "kind": "program", "missing": one.missing()}
            for one in real
        ]
        console.print_json(rows)
        return
    console.print_names(jobs)
    print("\nReal programs, for --rig live:\n")
    console.print_names([(one.name, _in_list(one)) for one in real])


def _in_list(program: Program) -> str:
    missing = program.missing()
    return f"{program.summary} ({missing})" if missing else program.summary


def _program(entry: Entry, as_json: bool) -> None:
    chosen = programs.chosen(entry)
    told = describe(chosen)
    if as_json:
        console.print_json(told)
        return
    about = sys.modules[chosen.program.begin.__module__].__doc__ or ""
    print(f"{chosen.program.name}: {chosen.program.summary}\n")
    for paragraph in about.strip().split("\n\n"):
        print(textwrap.fill(" ".join(paragraph.split()), _WIDTH) + "\n")
    print(f"Figure: {told['unit']}, {'more' if told['higher_is_better'] else 'less'} is better")
    print(f"Latency: {'of ' + told['operation'] if told['operation'] else 'not told'}")
    print(f"Runs on: {told['target']}, with --rig live")
    print(f"Needs: {', '.join(told['needs']) or 'nothing more'}")
    if told["missing"]:
        print(f"Cannot run here: {told['missing']}")
    print(f"\nSet with {chosen.program.name}:NAME=VALUE,...\n")
    console.print_tunables(chosen.program.parameters, chosen.values)


def describe(chosen: Chosen) -> dict[str, Any]:
    """What `blklab.programs.chosen` has found, as plain data."""
    program = chosen.program
    return {
        "name": program.name,
        "summary": program.summary,
        "kind": "program",
        "unit": program.unit,
        "higher_is_better": program.higher_is_better,
        "operation": program.operation,
        "target": "a device, read-only" if program.on_device else "a directory",
        "needs": dict(program.needs),
        "missing": program.missing(),
        "parameters": [
            {
                "name": parameter.name,
                "value": chosen.values[parameter.name],
                "default": parameter.default,
                "min": parameter.min,
                "max": parameter.max,
                "unit": parameter.unit,
                "help": parameter.help,
            }
            for parameter in program.parameters
        ],
    }
