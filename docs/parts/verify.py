"""The simulator against the kernel, from ``docs/data/``."""

from __future__ import annotations

from typing import Any

from parts.text import code, data, table


def verify() -> str:
    """The last table of ``blklab verify``, from ``docs/data/verify.json``."""
    kept = _verified()
    places = {cell["place"]: cell["disk"] for cell in kept["cells"]}
    rows = table(
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
        f"order their mean. {share} cells are within the bar, and in {kept['equal']} all figures "
        f"are the same; the worst figure is {kept['worst']:.0%} off. Made with blklab "
        f"{kept['version']} against {kept['kernel']}, seed {kept['seed']}{_queue(kept)}. Each cell "
        f"is in `docs/data/verify.json`.\n"
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


def verify_files() -> str:
    """The cells whose files are in a file system: how many agree, by file system and disk, and the
    workloads that do not."""
    kept = _verified("verify-files")
    cells = kept["cells"]
    rows = []
    for key in dict.fromkeys((cell["file_system"], cell["place"]) for cell in cells):
        own = [cell for cell in cells if (cell["file_system"], cell["place"]) == key]
        met = [cell for cell in own if cell["meets_bar"]]
        worst = max(max(cell["off"].values()) for cell in own)
        counts = (str(len(own)), str(len(met)), str(sum(map(_is_equal, own))), f"{worst:.0%}")
        rows.append((code(key[0]), key[1].rpartition(", ")[0], *counts))
    heads = ("file system", "disk", "cells", "in the bar", "the same", "worst figure")
    mounted = {one["file_system"]: one["mounted"] for one in kept["layouts"]}
    mounts = ", ".join(f"{name}: {code(options)}" for name, options in mounted.items())
    return (
        table(heads, rows, right=(2, 3, 4, 5))
        + f"\n{kept['met']} of {len(cells)} cells are within the bar, and in "
        f"{kept['equal']} all figures are the same. Made by `make verify` with blklab "
        f"{kept['version']} against {kept['kernel']}, seed {kept['seed']}{_queue(kept)}; each cell "
        f"is in `docs/data/verify-files.json`. The mounts: {mounts}.\n\n{_missed_by_load(cells)}"
    )


def _missed_by_load(cells: list[dict[str, Any]]) -> str:
    """The cells outside the bar, a row for each file system and workload."""
    rows = []
    for key in dict.fromkeys((cell["file_system"], cell["load"]) for cell in cells):
        own = [cell for cell in cells if (cell["file_system"], cell["load"]) == key]
        missed = [cell for cell in own if not cell["meets_bar"]]
        if missed:
            worst = (
                f"{100 * max(cell['off'][what] for cell in missed):.1f} %"
                for what in ("bytes_per_s", "p50_ns", "p99_ns")
            )
            rows.append((code(key[0]), code(key[1]), f"{len(missed)} of {len(own)}", *worst))
    heads = ("file system", "workload", "outside the bar", "throughput", "p50", "p99")
    return table(heads, rows, right=(2, 3, 4, 5)) if rows else "No cell is outside the bar.\n"


def _is_equal(cell: dict[str, Any]) -> bool:
    return bool(cell["sim"] == cell["kernel"])


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
        table(heads, rows, right=tuple(range(2, 8)))
        + f"\nMade by `blklab verify --random {count} --seed {kept['seed']} --chance` with blklab "
        f"{kept['version']} against {kept['kernel']}{_queue(kept)}.\n"
    )


def _queue(kept: dict[str, Any]) -> str:
    """The settings of the queue with which a table was measured, if not the kernel's own."""
    told = " and ".join(code(f"{name}={value}") for name, value in kept.get("queue", {}).items())
    return f", with {told}" if told else ""


def _verified(name: str = "verify") -> dict[str, Any]:
    kept: dict[str, Any] = data(name)
    return kept


def _verify_row(
    place: str, disk: str, scheduler: str, cells: list[dict[str, Any]]
) -> tuple[str, ...]:
    orders = [cell["order"] for cell in cells if cell["order"] is not None]
    return (
        place,
        code(disk),
        code(scheduler),
        str(len(cells)),
        str(sum(cell["meets_bar"] for cell in cells)),
        *(
            f"{100 * max(cell['off'][what] for cell in cells):.1f} %"
            for what in ("bytes_per_s", "p50_ns", "p99_ns")
        ),
        f"{sum(orders) / len(orders):.0%}" if orders else "",
    )
