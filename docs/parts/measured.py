"""Figures that commands have measured, from ``docs/data/``."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from blklab.base.units import number_text, size_text
from parts.text import code, data, table


def bench() -> str:
    """The last figures of ``benches/whole_process.py``, from ``docs/data/bench.json``."""
    return _figures(data("bench"))


def processes() -> str:
    """The last figures of ``benches/processes.py``."""
    return _figures(data("processes"))


def host_measured() -> str:
    """The last table of ``blklab host measure --check``, from ``docs/data/host.json``."""
    kept: dict[str, Any] = data("host")
    rows = kept["predictions"]
    measured = kept["measured"]
    within = sum(abs(row["error"]) <= kept["bar"] for row in rows)
    rows_text = table(
        ("load", "scheduler", "measured", "simulated", "off", ""),
        (
            (
                row["load"],
                row["scheduler"],
                f"{max(row['measured_iops']) / 1000:,.0f}k",
                f"{row['simulated_iops'] / 1000:,.0f}k",
                f"{100 * row['error']:+.1f} %",
                "" if row["modelled"] else "not modelled",
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
        f"{rows_text}\n{share}. {order}\n\n"
        f"{measured['cpu']}, {kept['host']['cpus']} CPUs, Linux {measured['kernel']}, "
        f"{measured['fio']}, a {measured['device']} device, the fastest of "
        f"{measured['rounds']} runs; other programs used {measured['others_percent']:.0f} % of "
        "the CPUs."
    )


def kernel_rig() -> str:
    """The last figures of ``benches/kernel_rig.py``."""
    return _figures(data("kernel-rig"))


def live_rig() -> str:
    """The last figures of ``benches/live_rig.py``."""
    return _with_load_after("live-rig")


def recording_cost() -> str:
    """The last figures of ``benches/recording.py``."""
    return _with_load_after("recording")


def plugin_cost() -> str:
    """The last figures of ``benches/plugins.py``."""
    return _figures(data("plugins"))


def watch_cost() -> str:
    """The last figures of ``benches/watch.py``."""
    return _with_load_after("watch")


def watch_example() -> str:
    """The last output of ``benches/watch.py``, folded."""
    kept = data("watch")
    lines = [
        textwrap.fill(line, 100, subsequent_indent="    ", break_on_hyphens=False)
        for line in kept["lines"]
    ]
    return "\n".join(["```text", f"$ {kept['command']}", *lines, "```"])


def anonymous_cost() -> str:
    """The last figures of ``python -m validation.anonymous``."""
    kept = data("anonymous")

    def off(row: Mapping[str, Any], name: str) -> str:
        median, most = row[f"{name}_median"], row[f"{name}_most"]
        return "-" if median is None else f"{100 * median:.1f} % ({100 * most:.1f} %)"

    rows = [
        (
            code(row["trace"]),
            row["disk"],
            f"{row['ios']:,}",
            off(row, "rate"),
            off(row, "p99"),
            f"{size_text(row['seek_before_bytes'])}, {size_text(row['seek_after_bytes'])}",
        )
        for row in kept["rows"]
    ]
    heads = ("trace", "replayed on", "I/Os", "rate", "p99", "median seek, before and after")
    return table(heads, rows, right=range(2, 6))


def _with_load_after(name: str) -> str:
    kept = data(name)
    after = f"; when it ended: {kept['machine']['load_after']}.\n"
    return _figures(kept).removesuffix(".\n") + after


def tuning() -> str:
    """The last figures of ``python -m validation.tuning``, from ``docs/data/tuning.json``."""
    rows = data("tuning")["rows"]
    return table(
        ("disk", "load", "settings", "tried", "the best", "found", "behind"),
        (
            (
                row["disk"],
                row["load"],
                number_text(row["points"]),
                number_text(row["tried"]),
                code(row["best"]),
                code(row["found"]),
                f"{100 * row['regret']:.2f} %",
            )
            for row in rows
        ),
        right=(2, 3, 6),
    )


def whatif_programs() -> str:
    """The last tables of ``python -m validation.programs``, of each set: median errors, and
    shares in the bar."""
    kept = (
        data("whatif-programs"),
        data("whatif-programs-second"),
        data("whatif-programs-held-out"),
        data("whatif-programs-fourth"),
    )
    heads = (
        "The programs and disks with which the rules were made:",
        "Others, with which they were corrected:",
        "Other programs, on other disks, which show what rules made with those above are worth:",
        "Others again, which were run when all rules were made:",
    )
    texts = (f"{head}\n\n{_of_set(one)}" for head, one in zip(heads, kept, strict=True))
    return "\n".join(texts)


def _of_set(kept: Mapping[str, Any]) -> str:
    ways = list(kept["shares"])

    def median(name: str, way: str, figure: str) -> str:
        off = sorted(
            abs(row[figure]) for row in kept["rows"] if (row["program"], row["way"]) == (name, way)
        )
        return f"{100 * off[len(off) // 2]:.0f} %"

    rows = [
        (name, *(median(name, way, key) for way in ways for key in ("span_off", "p99_off")))
        for name in dict.fromkeys(row["program"] for row in kept["rows"])
    ]
    shares = [
        (
            "the program again" if way == "again" else way,
            *(f"{kept['shares'][way][figure]:.0%}" for figure in ("span", "p99")),
            "{} of {}".format(*kept["winners"][way]) if way in kept["winners"] else "",
        )
        for way in ways
    ]
    time, p99 = (kept["bar"][figure][0] for figure in ("span", "p99"))
    bar = ("", f"time within {time:.0%}", f"p99 within {p99:.0%}", "right winners")
    heads = ("program", *(f"{way}: {what}" for way in ways for what in ("time", "p99")))
    medians = table(heads, rows, right=range(1, len(heads)))
    return f"{medians}\n{table(bar, shares, right=range(1, 4))}"


def soak() -> str:
    """The last figures of ``make soak``."""
    figures: dict[str, int] = data("soak")
    virtual: dict[str, int] = data("soak-virtual")
    hostile: dict[str, int] = data("hostile")
    by_name = [name for name in figures if name.startswith("signal ")]
    rows = [
        (name, f"{value:,}", f"{virtual.get(name, 0):,}")
        for name, value in figures.items()
        if name not in by_name
    ]
    signals = ", ".join(f"{name.removeprefix('signal ')} {figures[name]:,}" for name in by_name)
    rows_text = table(("what", "here", "in the virtual machine"), rows, (1, 2))
    jobs = ", ".join(f"{value:,} {name}" for name, value in hostile.items())
    return f"{rows_text}\nSignals: {signals}.\n\nJobs of hostile options, under a tracer: {jobs}.\n"


def fuzzed() -> str:
    """The last figures of ``make fuzz-long``."""
    figures = data("fuzz")
    sums = {key: sum(row[key] for row in figures.values()) for key in ("inputs", "failed")}
    rows = [
        (code(name), f"{row['inputs']:,}", f"{row['edges']:,}", str(row["failed"]))
        for name, row in figures.items()
    ]
    rows.append(("all", f"{sums['inputs']:,}", "", str(sums["failed"])))
    return table(("target", "inputs", "edges reached", "failed"), rows, (1, 2, 3))


def mutants() -> str:
    """The last figures of ``make mutants``."""
    figures = data("mutants")
    groups = [(name, row["planted"], row["found"]) for name, row in figures.items()]
    groups.append(("all", sum(row[1] for row in groups), sum(row[2] for row in groups)))
    rows = [
        (name, str(planted), str(found), str(planted - found)) for name, planted, found in groups
    ]
    return table(("group", "planted", "found", "survive"), rows, (1, 2, 3))


def _figures(kept: Mapping[str, Any]) -> str:
    figures = table(
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
