"""Job files: the options of fio and their treatment."""

from __future__ import annotations

from blklab import _core
from blklab.watching.kinds import KINDS
from parts.text import code, table


def watch_kinds() -> str:
    """The kinds of load of ``blklab watch``, with the workloads that stand for them."""
    return table(
        ("kind", "what the counters show", "stands for it"),
        (
            (code(kind.name), kind.text, code(kind.workload))
            for kind in KINDS.values()
            if kind.workload is not None
        ),
    )


def job_options(*status: str) -> str:
    """The options of job files that are ``simulated``, have ``no effect``, or are ``not
    simulated``."""
    wanted = " ".join(status)
    rows = [row for row in _core.workload_options() if row.status == wanted]
    if wanted == "simulated":
        return table(
            ("option", "also", "value", "default", "meaning"),
            (
                (
                    code(row.name),
                    ", ".join(map(code, row.aliases)),
                    row.takes,
                    code(row.default) if row.default else "",
                    row.help,
                )
                for row in rows
            ),
        )
    return table(
        ("option", "what it does in fio", "why not here"),
        ((code(row.name), row.help, row.why) for row in rows),
    )


def job_options_real(*kind: str) -> str:
    """Options that are ``handed to fio``, ``rewritten``, ``left out`` or ``refused`` on a real
    disk, by reason."""
    wanted, by_reason = " ".join(kind), dict[str, list[str]]()
    for row in _core.workload_options():
        if row.real == wanted and row.status != "not simulated":
            by_reason.setdefault(row.real_why, []).append(code(row.name))
    rows = ((why, ", ".join(names)) for why, names in by_reason.items())
    return table(("why", "options"), rows)


def job_option_count(*status: str) -> str:
    """A sentence with the number of options of each kind."""
    kinds = [row.status for row in _core.workload_options()]
    count = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return (
        f"Of {len(kinds)} options that blklab knows from fio 3.33, {count['simulated']} are "
        f"simulated, {count['no effect']} are accepted because they have no effect here, "
        f"{count['real disks only']} are for [real disks](live.md) only, "
        f"and {count['not simulated']} are refused.\n"
    )
