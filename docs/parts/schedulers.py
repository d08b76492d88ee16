"""Schedulers, their tunables and decisions, and the headers of the Rust sources."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from blklab import _core
from filled import ROOT
from parts.text import code, table, text_of

_CORE = ROOT / "crates" / "blklab-core" / "src"
_DISKS = ROOT / "crates" / "blklab-disk-model" / "src"


def _whole(value: int, unit: str) -> str:
    return "any" if value == 2**63 - 1 else f"{value:,} {unit}".rstrip()


def _word(row: _core.Tunable, value: int) -> str:
    return next((word for word, number in row.words if number == value), "")


def _tunables(rows: Sequence[_core.Tunable]) -> str:
    if not rows:
        return "It has no tunables.\n"
    return table(
        ("tunable", "default", "allowed", "meaning"),
        (
            (
                code(row.name),
                _word(row, row.default) or _whole(row.default, row.unit),
                " or ".join(word for word, _ in row.words)
                or f"{_whole(row.min, '')} to {_whole(row.max, row.unit)}",
                row.help,
            )
            for row in rows
        ),
    )


def scheduler_list() -> str:
    """One line for each scheduler."""
    return table(
        ("scheduler", "in a line", "follows"),
        ((f"[`{row.name}`](#{row.name})", row.summary, row.follows) for row in _core.schedulers()),
    )


def schedulers() -> str:
    """A section for each: its file's header, of half a page, and its tunables."""
    parts = []
    for row in _core.schedulers():
        name = row.name.replace("-", "_")
        path = _CORE / "scheduler" / f"{name}.rs"
        header = header_of(path if path.exists() else path.with_suffix("") / "mod.rs")
        parts += [f"## {row.name}\n", header, f"### Tunables of {row.name}\n"]
        parts.append(_tunables(row.tunables))
    return "\n".join(parts)


def surroundings(*name: str) -> str:
    """The tunables of ``queue``, ``page cache`` or ``host``."""
    return _tunables(_core.environment()[" ".join(name)])


def header(path: str) -> str:
    """A source file's header, of the core or of the disk models."""
    return header_of(next(root / path for root in (_CORE, _DISKS) if (root / path).exists()))


def left_out() -> str:
    """The omissions listed in the sources' headers, by file."""
    rows = [
        (code(path.relative_to(root)), found.strip())
        for root in (_CORE, _DISKS)
        for path in sorted(root.rglob("*.rs"))
        for paragraph in header_of(path).split("\n\n")
        for found in re.findall(r"Left out: (.*)", paragraph.replace("\n", " "))
    ]
    return table(("part", "left out"), rows)


def header_of(path: Path) -> str:
    """A Rust file's ``//!`` lines as Markdown: links into the code become names."""
    lines = [line[3:].removeprefix(" ") for line in text_of(path).splitlines() if line[:3] == "//!"]
    text = re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", "\n".join(lines))
    # Rustdoc lets a list follow a paragraph at once; Python's Markdown does not.
    return re.sub(r"(?m)^((?![*\d ]).+)\n(?=\* |\d\. )", r"\1\n\n", text) + "\n"


def decisions() -> str:
    """Every kind of decision, with the spans that begin and end with it."""
    from blklab.timelines.decisions import KINDS

    edges = {"begin": "begins: ", "end": "ends: ", "": ""}
    return table(
        ("kind", "meaning", "what lasts"),
        (
            (code(name), kind.short, f"{edges[kind.edge]}{kind.span}")
            for name, kind in KINDS.items()
        ),
    )
