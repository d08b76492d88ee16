"""Generates parts of pages from the program's own tables: a hook of mkdocs.

A page's line ``<!-- generate: NAME WORDS -->`` is replaced by the result of the function of that
name below. Afterwards the examples of the page are run (see ``filled.py``). The results are not in
the repository, so they cannot be out of date.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.utils import meta

from blklab import _core
from blklab.base.units import number_text
from blklab.domain import recordings
from blklab.rigs.kernel.view import PRIVATE
from filled import ROOT, ExampleError, filled

_MARK = re.compile(r"^<!-- generate: (.+?) -->$", re.MULTILINE)
_CORE = ROOT / "crates" / "blklab-core" / "src"
_DISKS = ROOT / "crates" / "blklab-disk-model" / "src"


_FILLED: dict[str, Future[str]] = {}
"""Each page by its text: all are filled at the same time, in processes of their own."""


def on_files(files: Any, **_: Any) -> None:
    """mkdocs calls it with all that it has found."""
    pool = ProcessPoolExecutor(os.cpu_count(), get_context("fork"))
    for file in files.documentation_pages():
        markdown, _ = meta.get_data(file.content_string)
        with _errors_of(file):
            text = _MARK.sub(_generated, markdown)
        _FILLED[markdown] = pool.submit(filled, text, keep_words=False)
    pool.shutdown(wait=False)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """mkdocs calls it with every page's text."""
    with _errors_of(page.file):
        return _FILLED[markdown].result()


@contextlib.contextmanager
def _errors_of(file: Any) -> Iterator[None]:
    try:
        yield
    except (ExampleError, KeyError, ValueError, OSError) as error:
        raise PluginError(f"{file.src_uri}: {error}") from error


def _generated(mark: re.Match[str]) -> str:
    name, *words = mark.group(1).split()
    if name not in _MAKERS:
        raise ExampleError(f"there is nothing to generate as '{name}'")
    return _MAKERS[name](*words)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    figures = set(right)
    rule = ("--:" if number in figures else "---" for number in range(len(heads)))
    lines = [heads, [*rule], *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _code(value: object) -> str:
    return f"`{value}`"


def _whole(value: int, unit: str) -> str:
    return "any" if value == 2**63 - 1 else f"{value:,} {unit}".rstrip()


# Schedulers and surroundings


def _tunables(rows: Sequence[_core.Tunable]) -> str:
    if not rows:
        return "It has no tunables.\n"
    return _table(
        ("tunable", "default", "allowed", "meaning"),
        (
            (
                _code(row.name),
                _whole(row.default, row.unit),
                f"{_whole(row.min, '')} to {_whole(row.max, row.unit)}",
                row.help,
            )
            for row in rows
        ),
    )


def scheduler_list() -> str:
    """One line for each scheduler."""
    return _table(
        ("scheduler", "in a line", "follows"),
        ((f"[`{row.name}`](#{row.name})", row.summary, row.follows) for row in _core.schedulers()),
    )


def schedulers() -> str:
    """A section for each: its file's header, of half a page, and its tunables."""
    parts = []
    for row in _core.schedulers():
        name = row.name.replace("-", "_")
        path = _CORE / "scheduler" / f"{name}.rs"
        header = _header(path if path.exists() else path.with_suffix("") / "mod.rs")
        parts += [f"## {row.name}\n", header, f"### Tunables of {row.name}\n"]
        parts.append(_tunables(row.tunables))
    return "\n".join(parts)


def surroundings(*name: str) -> str:
    """The tunables of ``queue``, ``page cache`` or ``host``."""
    return _tunables(_core.environment()[" ".join(name)])


# Job files


def job_options(*status: str) -> str:
    """The options of job files that are ``simulated``, have ``no effect``, or are ``not
    simulated``."""
    wanted = " ".join(status)
    rows = [row for row in _core.workload_options() if row.status == wanted]
    if wanted == "simulated":
        return _table(
            ("option", "also", "value", "default", "meaning"),
            (
                (
                    _code(row.name),
                    ", ".join(map(_code, row.aliases)),
                    row.takes,
                    _code(row.default) if row.default else "",
                    row.help,
                )
                for row in rows
            ),
        )
    return _table(
        ("option", "what it does in fio", "why not here"),
        ((_code(row.name), row.help, row.why) for row in rows),
    )


def job_options_real(*kind: str) -> str:
    """Options that are ``handed to fio``, ``rewritten``, ``left out`` or ``refused`` on a real
    disk, by reason."""
    wanted, by_reason = " ".join(kind), dict[str, list[str]]()
    for row in _core.workload_options():
        if row.real == wanted and row.status != "not simulated":
            by_reason.setdefault(row.real_why, []).append(_code(row.name))
    rows = ((why, ", ".join(names)) for why, names in by_reason.items())
    return _table(("why", "options"), rows)


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


# Disks


def _disks() -> list[tuple[str, _core.Disk]]:
    return [(name, _core.Disk(text, f"{name}.toml")) for name, text in _core.disk_files().items()]


def disk_list() -> str:
    """One line for each disk."""
    rows = []
    for name, model in _disks():
        rows.append((f"[`{name}`](#{name})", model.name, model.summary))
    return _table(("name", "disk", "what it is"), rows)


def disk_figures() -> str:
    """For each disk, its model beside the published figures, with sources."""
    parts = []
    for name, model in _disks():
        verdict = model.validation.text
        parts += [f"### {name}\n", f"{model.name}: {model.summary}.\n"]
        parts.append(f"**{verdict[0].upper()}{verdict[1:]}.**\n")
        parts.append(
            _table(
                ("figure", "model", "calibrated", "checked", "deviation", "source"),
                (
                    (
                        _code(row.figure),
                        f"{number_text(row.model)} {row.unit}",
                        *(_published(row, role) for role in ("calibrated", "checked")),
                        _deviation(row),
                        row.source,
                    )
                    for row in model.validate()
                ),
                right=(1, 2, 3),
            )
        )
    return "\n".join(parts)


def _published(row: _core.Check, role: str) -> str:
    if row.role != role:
        return ""
    return f"{number_text(row.published)} ± {row.tolerance_percent:g} %"


def _deviation(row: _core.Check) -> str:
    """The model's deviation, with the reason if it exceeds the tolerance."""
    text = f"{(row.model / row.published - 1) * 100:+.1f} %"
    return text if row.met else f"**{text}**: {row.not_met}"


def disk_validation() -> str:
    """A line for each disk: how many independent figures it has and meets."""
    rows = []
    for name, model in _disks():
        found = model.validation
        counts = (str(found.independent), str(found.met))
        rows.append((f"[`{name}`](#{name})", *counts, "yes" if found.validated else "no"))
    return _table(("disk", "independent figures", "met", "validated"), rows, right=(1, 2))


def not_validated() -> str:
    """The disks that are not validated, with the count of independent figures that they meet."""
    lines = [
        f"* [`{name}`](disks.md#{name}): {found.met} of 5 independent figures"
        for name, model in _disks()
        if not (found := model.validation).validated
    ]
    return "\n".join(lines) + "\n"


def disk_ranges() -> str:
    """The range of an estimate, by key or unit."""

    def what(row: _core.DiskRange) -> str:
        if row.keys:
            return ", ".join(map(_code, row.keys))
        return f"other keys in {row.unit}" if row.unit else "other keys without a unit"

    rows = ((what(row), row.range, row.why) for row in _core.disk_ranges())
    return _table(("keys", "range", "why"), rows)


def disk_waits() -> str:
    """For each hard disk, the longest time of a 4 KiB command in it."""
    rows = []
    for name, model in _disks():
        if wait := model.longest_wait_ms:
            seconds = (f"{load_ms / 1000:.1f} s" for load_ms in (wait.reads, wait.any))
            rows.append((f"[`{name}`](#{name})", *seconds))
    head = ("disk", "reads only", "with flushes and cached writes")
    return _table(head, rows, right=(1, 2))


def disk_keys(kind: str) -> str:
    """The table of keys of ``hdd``, ``ssd`` or ``constant``."""

    def absent(row: _core.DiskKey) -> str:
        if row.required:
            return "**required**"
        return _code(row.default) if row.default is not None else "without"

    return _table(
        ("key", "unit", "value", "default", "meaning"),
        (
            (_code(row.key), row.unit, row.allowed, absent(row), row.help)
            for row in _core.disk_keys()[kind]
        ),
    )


# Commands


def commands() -> str:
    """The help of each command, as examples to run."""
    from blklab.cli.lazy import COMMANDS

    names = ["blklab"]
    for name, listed in COMMANDS.items():
        names.append(f"blklab {name}")
        # The commands of a group.
        for part in listed.load().registered_commands:
            assert part.callback is not None
            if (own := part.name or part.callback.__name__) != name:
                names.append(f"blklab {name} {own}")
    parts = [f"```console\n$ {name} --help\n```\n" for name in names]
    for number, name in enumerate(names[1:], 1):
        parts[number] = f"## {name}\n\n{parts[number]}"
    return "\n".join(parts)


# The Rust sources' headers


def _header(path: Path) -> str:
    """A Rust file's ``//!`` lines as Markdown: links into the code become names."""
    lines = [line[3:].removeprefix(" ") for line in _text(path).splitlines() if line[:3] == "//!"]
    text = re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", "\n".join(lines))
    # Rustdoc lets a list follow a paragraph at once; Python's Markdown does not.
    return re.sub(r"(?m)^((?![*\d ]).+)\n(?=\* |\d\. )", r"\1\n\n", text) + "\n"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def header(path: str) -> str:
    """A source file's header, of the core or of the disk models."""
    return _header(next(root / path for root in (_CORE, _DISKS) if (root / path).exists()))


def left_out() -> str:
    """The omissions listed in the sources' headers, by file."""
    rows = [
        (_code(path.relative_to(root)), found.strip())
        for root in (_CORE, _DISKS)
        for path in sorted(root.rglob("*.rs"))
        for paragraph in _header(path).split("\n\n")
        for found in re.findall(r"Left out: (.*)", paragraph.replace("\n", " "))
    ]
    return _table(("part", "left out"), rows)


# Measured


def bench() -> str:
    """The last figures of ``benches/whole_process.py``, from ``docs/data/bench.json``."""
    return _figures(json.loads(_text(ROOT / "docs" / "data" / "bench.json")))


def host_measured() -> str:
    """The last table of ``blklab host measure --check``, from ``docs/data/host.json``."""
    kept: dict[str, Any] = json.loads(_text(ROOT / "docs" / "data" / "host.json"))
    rows = kept["predictions"]
    measured = kept["measured"]
    within = sum(abs(row["error"]) <= kept["bar"] for row in rows)
    table = _table(
        ("load", "scheduler", "measured", "simulated", "off"),
        (
            (
                row["load"],
                row["scheduler"],
                f"{max(row['measured_iops']) / 1000:,.0f}k",
                f"{row['simulated_iops'] / 1000:,.0f}k",
                f"{100 * row['error']:+.1f} %",
            )
            for row in rows
        ),
        right=range(2, 5),
    )
    swaps = "".join(f"\n* {line}" for line in kept["swaps"])
    order = (
        f"In another order than measured:\n{swaps}" if swaps else "All are in the measured order."
    )
    share = f"{within} of {len(rows)} rates are within {100 * kept['bar']:.0f} %"
    return (
        f"{table}\n{share}. {order}\n\n"
        f"{measured['cpu']}, {kept['host']['cpus']} CPUs, Linux {measured['kernel']}, "
        f"{measured['fio']}, a {measured['device']} device, the fastest of "
        f"{measured['rounds']} runs; other programs used {measured['others_percent']:.0f} % of "
        "the CPUs."
    )


def kernel_rig() -> str:
    """The last figures of ``benches/kernel_rig.py``."""
    return _figures(_kernel_rig())


def live_rig() -> str:
    """The last figures of ``benches/live_rig.py``."""
    return _with_load_after("live-rig.json")


def recording_cost() -> str:
    """The last figures of ``benches/recording.py``."""
    return _with_load_after("recording.json")


def _with_load_after(name: str) -> str:
    kept = json.loads(_text(ROOT / "docs" / "data" / name))
    after = f"; when it ended: {kept['machine']['load_after']}.\n"
    return _figures(kept).removesuffix(".\n") + after


def soak() -> str:
    """The last figures of ``make soak``."""
    data = ROOT / "docs" / "data"
    figures: dict[str, int] = json.loads(_text(data / "soak.json"))
    virtual: dict[str, int] = json.loads(_text(data / "soak-virtual.json"))
    hostile: dict[str, int] = json.loads(_text(data / "hostile.json"))
    by_name = [name for name in figures if name.startswith("signal ")]
    rows = [
        (name, f"{value:,}", f"{virtual.get(name, 0):,}")
        for name, value in figures.items()
        if name not in by_name
    ]
    signals = ", ".join(f"{name.removeprefix('signal ')} {figures[name]:,}" for name in by_name)
    table = _table(("what", "here", "in the virtual machine"), rows, (1, 2))
    jobs = ", ".join(f"{value:,} {name}" for name, value in hostile.items())
    return f"{table}\nSignals: {signals}.\n\nJobs of hostile options, under a tracer: {jobs}.\n"


def fuzzed() -> str:
    """The last figures of ``make fuzz-long``."""
    figures = json.loads(_text(ROOT / "docs" / "data" / "fuzz.json"))
    sums = {key: sum(row[key] for row in figures.values()) for key in ("inputs", "failed")}
    rows = [
        (_code(name), f"{row['inputs']:,}", f"{row['edges']:,}", str(row["failed"]))
        for name, row in figures.items()
    ]
    rows.append(("all", f"{sums['inputs']:,}", "", str(sums["failed"])))
    return _table(("target", "inputs", "edges reached", "failed"), rows, (1, 2, 3))


def mutants() -> str:
    """The last figures of ``make mutants``."""
    figures = json.loads(_text(ROOT / "docs" / "data" / "mutants.json"))
    groups = [(name, row["planted"], row["found"]) for name, row in figures.items()]
    groups.append(("all", sum(row[1] for row in groups), sum(row[2] for row in groups)))
    rows = [
        (name, str(planted), str(found), str(planted - found)) for name, planted, found in groups
    ]
    return _table(("group", "planted", "found", "survive"), rows, (1, 2, 3))


def kernel_rig_example(name: str) -> str:
    """An example of ``benches/kernel_rig.py`` with its output."""
    lines = []
    for step in _kernel_rig()["examples"][name]:
        lines += [f"$ {step['command']}", *([step["output"]] if step["output"] else [])]
    return "\n".join(["```text", *lines, "```", ""])


def kernel_rig_file(name: str) -> str:
    """A file that the examples use."""
    return f"```ini\n{_kernel_rig()['files'][name]}```\n"


def kernel_rig_private() -> str:
    """Names that are empty in a directory shared with a guest."""
    return _table(("name", "what is in it"), ((_code(name), why) for name, why in PRIVATE.items()))


def _kernel_rig() -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(_text(ROOT / "docs" / "data" / "kernel-rig.json"))
    return kept


def _figures(kept: Mapping[str, Any]) -> str:
    figures = _table(
        ("measured", "goal", "met", "what"),
        (
            (
                f"{number_text(row['median'])}{_range(kept, row)} {row['unit']}",
                "none"
                if row["goal"] is None
                else f"{'at least' if row['more_is_better'] else 'at most'} "
                f"{number_text(row['goal'])} {row['unit']}",
                _met(kept, row),
                row["what"],
            )
            for row in kept["figures"]
        ),
        right=(0, 1),
    )
    machine = kept["machine"]
    kernel = f"Linux {kept['kernel']}, " if "kernel" in kept else ""
    build = "with" if machine.get("profile_guided") else "without"
    return (
        f"{figures}\nMeasured on {machine['cpus']} cores of {machine['cpu']}, {kernel}Python "
        f"{machine['python']}, blklab {kept['version']} built {build} a profile, with "
        f"{kept['rounds']} rounds; "
        f"load of the machine before it began: {machine['load']}.\n"
    )


def _range(kept: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """The interval of the median, if known."""
    found = kept.get("intervals", {}).get(row["what"])
    return f" ({number_text(found['low'])} to {number_text(found['high'])})" if found else ""


def _met(kept: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    found = kept.get("intervals", {}).get(row["what"])
    if found and row["goal"] is not None and found["low"] <= row["goal"] <= found["high"]:
        return "not known"
    if row["goal"] is None:
        return ""
    better = row["median"] >= row["goal"] if row["more_is_better"] else row["median"] <= row["goal"]
    return "yes" if better else "**no**"


def verify() -> str:
    """The last table of ``blklab verify``, from ``docs/data/verify.json``."""
    kept = _verified()
    places = {cell["place"]: cell["disk"] for cell in kept["cells"]}
    rows = _table(
        (
            *("disk", "model", "scheduler", "cells", "in the bar"),
            *("throughput off", "p50 off", "p99 off", "the same order"),
        ),
        (
            _verify_row(place, disk, scheduler, cells)
            for place, disk in places.items()
            for scheduler in dict.fromkeys(cell["scheduler"] for cell in kept["cells"])
            if (cells := _cells_of(kept, place, scheduler))
        ),
        right=tuple(range(3, 9)),
    )
    share = f"{kept['met']} of {len(kept['cells'])}"
    return (
        f"{rows}\nA deviation is the largest of all loads on that disk under that scheduler, the "
        f"order their mean. {share} cells are within the bar; the worst figure is "
        f"{kept['worst']:.0%} off. Made with blklab {kept['version']} against {kept['kernel']}, "
        f"seed {kept['seed']}. Each cell is in `docs/data/verify.json`.\n"
    )


def _cells_of(kept: dict[str, Any], place: str, scheduler: str) -> list[dict[str, Any]]:
    return [
        cell for cell in kept["cells"] if (cell["place"], cell["scheduler"]) == (place, scheduler)
    ]


def verify_shares() -> str:
    """How many cells and drawn jobs agree, in a sentence."""
    kept, drawn = _verified(), _verified("verify-random")
    met = [
        f"{row['met']:.0%} of the figures under `{row['scheduler']}` on `{row['place']}`"
        for row in sorted(drawn["shares"], key=lambda row: row["met"])
    ]
    return (
        f"Of {len(kept['cells'])} cells of the matrix {kept['met']} are within the bar, and the "
        f"worst figure is {kept['worst']:.0%} off. Of jobs drawn at random, the bar is met by "
        f"{met[0]} (the least) to {met[-1]} (the most).\n"
    )


def verify_missed() -> str:
    """The cells outside the bar."""
    missed = [cell for cell in _verified()["cells"] if not cell["meets_bar"]]
    lines = [
        f"* {cell['place']}, {cell['load']} under {cell['scheduler']}: "
        + ", ".join(
            f"{word} {100 * cell['off'][what]:.1f} %"
            for what, word in (("bytes_per_s", "throughput"), ("p50_ns", "p50"), ("p99_ns", "p99"))
        )
        for cell in missed
    ]
    return "\n".join(["Outside the bar:", "", *lines, ""]) if missed else "Nowhere in this table.\n"


def verify_random() -> str:
    """The last shares of ``blklab verify --random``, from ``docs/data/verify-random.json``."""
    kept = _verified("verify-random")
    rows = (
        (
            row["place"],
            row["scheduler"],
            str(row["cells"]),
            *(
                "/".join(f"{100 * share:.0f}" for share in those)
                for those in row["within"].values()
            ),
            f"{row['met']:.0%}",
            f"{row['chance']:.0%}",
        )
        for row in kept["shares"]
    )
    heads = ("disk", "scheduler", "jobs", "throughput", "p50", "p99", "in the bar", "chance")
    count = len(kept["jobs"]) // len({row["place"] for row in kept["shares"]})
    return (
        _table(heads, rows, right=tuple(range(2, 8)))
        + f"\nMade by `blklab verify --random {count} --seed {kept['seed']} --chance` with blklab "
        f"{kept['version']} against {kept['kernel']}.\n"
    )


def _verified(name: str = "verify") -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(_text(ROOT / "docs" / "data" / f"{name}.json"))
    return kept


def _verify_row(
    place: str, disk: str, scheduler: str, cells: list[dict[str, Any]]
) -> tuple[str, ...]:
    orders = [cell["order"] for cell in cells if cell["order"] is not None]
    return (
        place,
        _code(disk),
        _code(scheduler),
        str(len(cells)),
        str(sum(cell["meets_bar"] for cell in cells)),
        *(
            f"{100 * max(cell['off'][what] for cell in cells):.1f} %"
            for what in ("bytes_per_s", "p50_ns", "p99_ns")
        ),
        f"{sum(orders) / len(orders):.0%}" if orders else "",
    )


# Studies


def study_judging() -> str:
    """The rules by which each kind of claim is reproduced."""
    from blklab.study import judge

    assert judge.__doc__ is not None
    return judge.__doc__.partition("\n\n")[2].strip() + "\n"


def study_keys() -> str:
    """The keys of a study file, table by table."""
    from blklab.study import keys

    tables = {
        "At the top": keys.STUDY,
        "`[[part]]`: a comparison": keys.PART,
        "`[[kernel]]`: a kernel to build": keys.KERNEL,
        **{f"`[[part.claim]]` of kind `{kind}`": rows for kind, rows in keys.CLAIMS.items()},
    }
    return "\n".join(
        f"**{title}**\n\n"
        + _table(
            ("key", "value", "default", "meaning"),
            (
                (
                    _code(key.name),
                    key.shape.expected + (f": {of.expected}" if (of := key.shape.of_each) else ""),
                    "**required**" if key.default is None else key.default,
                    key.help,
                )
                for key in rows
            ),
        )
        for title, rows in tables.items()
    )


def study_metrics() -> str:
    """The metrics of claims."""
    from blklab.study.metrics import METRICS

    return _table(
        ("metric", "unit", "meaning", "better is"),
        (
            (_code(m.name), m.unit, m.help, "more" if m.more_is_better else "less")
            for m in METRICS.values()
        ),
    )


# Decisions


def decisions() -> str:
    """Every kind of decision, with the spans that begin and end with it."""
    from blklab.timelines.decisions import KINDS

    edges = {"begin": "begins: ", "end": "ends: ", "": ""}
    return _table(
        ("kind", "meaning", "what lasts"),
        (
            (_code(name), kind.short, f"{edges[kind.edge]}{kind.span}")
            for name, kind in KINDS.items()
        ),
    )


# Files of the repository that are pages too


def trace_formats() -> str:
    """The formats of traces."""
    rows = ((_code(row.name), row.about) for row in _core.trace_formats())
    return _table(["format", "contents"], rows)


def recording_parameters() -> str:
    """How a recording is replayed."""
    rows = ((_code(name), about) for name, about in recordings.PARAMETERS.items())
    return _table(["parameter", "meaning"], rows)


def trace_findings() -> str:
    """The kinds of findings about a trace."""
    rows = ((_code(row.name), row.weight, row.text) for row in _core.trace_finding_kinds())
    return _table(["finding", "weight", "meaning"], rows)


def recording_columns() -> str:
    """The columns of a recording."""
    return _table(
        ["column", "type", "meaning"],
        (
            (_code(row.name), f"{row.kind}, optional" if row.nullable else row.kind, row.help)
            for row in _core.recording_columns()
        ),
    )


def repository_file(name: str) -> str:
    """README.md and its like, with links as the site has them."""
    text = _text(ROOT / name)
    text = text.replace("](docs/", "](").replace('"docs/images/', '"images/')
    pages = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
    pages["CHANGELOG.md"] = "changelog.md"
    for file, page in pages.items():
        text = text.replace(f"]({file}", f"]({page}")
    return text


_MAKERS: dict[str, Callable[..., str]] = {
    maker.__name__: maker
    for maker in (
        scheduler_list,
        schedulers,
        surroundings,
        job_options,
        job_option_count,
        job_options_real,
        disk_list,
        disk_figures,
        disk_ranges,
        disk_validation,
        disk_waits,
        disk_keys,
        commands,
        header,
        left_out,
        study_judging,
        study_keys,
        study_metrics,
        decisions,
        bench,
        host_measured,
        kernel_rig,
        kernel_rig_example,
        kernel_rig_file,
        kernel_rig_private,
        live_rig,
        recording_cost,
        soak,
        fuzzed,
        mutants,
        verify,
        verify_missed,
        verify_random,
        verify_shares,
        not_validated,
        repository_file,
        trace_formats,
        recording_parameters,
        trace_findings,
        recording_columns,
    )
}
