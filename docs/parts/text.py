"""Tables and files, for all parts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from filled import ROOT


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """A table in Markdown; the columns `right` are aligned to the right."""
    figures = set(right)
    rule = ("--:" if number in figures else "---" for number in range(len(heads)))
    lines = [heads, [*rule], *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def keys_table(rows: Iterable[Any]) -> str:
    """The keys of a table of TOML."""
    return table(
        ("key", "value", "default", "meaning"),
        (
            (
                code(key.name),
                key.shape.expected + (f": {of.expected}" if (of := key.shape.of_each) else ""),
                "**required**" if key.default is None else key.default,
                key.help,
            )
            for key in rows
        ),
    )


def code(value: object) -> str:
    """As code."""
    return f"`{value}`"


def text_of(path: Path) -> str:
    """A file's text."""
    return path.read_text(encoding="utf-8")


def data(name: str) -> Any:
    """What a command has measured: ``docs/data/NAME.json``."""
    return json.loads(text_of(ROOT / "docs" / "data" / f"{name}.json"))
