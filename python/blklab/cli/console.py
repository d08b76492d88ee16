"""Where the commands print: a terminal with colours, or a file or pipe with plain text."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from blklab.base.text import harmless, shown
from blklab.cli import streams

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

    from blklab import Tunable

_PLAIN_WIDTH = 80


def console(*, stderr: bool = False) -> Console:
    """Plain text, 80 columns wide, if the output is not a terminal."""
    from rich.console import Console
    from rich.segment import Segment

    class Harmless(Console):
        """Text from documents cannot move the cursor; rich's own control codes can."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                if segment.control:
                    yield segment
                else:
                    yield Segment(harmless(segment.text), segment.style)

    stream = sys.stderr if stderr else sys.stdout
    terminal = stream.isatty()
    return Harmless(
        file=streams.styled(stream),
        stderr=stderr,
        force_terminal=terminal,
        no_color=None if terminal else True,
        width=None if terminal else _PLAIN_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


def table(*heads: str, right: Iterable[int] = ()) -> Table:
    """An unboxed table; columns in `right` are figures."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    figures = set(right)
    for number, head in enumerate(heads):
        if number in figures:
            made.add_column(head, justify="right", no_wrap=True)
        else:
            made.add_column(head, overflow="fold")
    return made


def print_json(value: Any) -> None:
    """Machine-readable output: JSON on stdout, nothing else."""
    # The only control character that JSON does not escape.
    print(json.dumps(value, indent=2, allow_nan=False).replace("\x7f", "\\u007f"))


def print_notes(notes: Iterable[str]) -> None:
    """Prints the differences from the requested settings, on stderr."""
    for note in notes:
        print_note(note)


def print_note(note: str) -> None:
    """One line on stderr."""
    print(f"blklab: {shown(note)}", file=sys.stderr)


def print_names(rows: Sequence[tuple[str, str]]) -> None:
    """Names with a line of explanation each, folded to 80 columns."""
    width = max((len(name) for name, _ in rows), default=0) + 2
    for name, text in rows:
        print(folded(text or "-", f"{name:{width}}", " " * width))


def print_terms(rows: Iterable[tuple[str, str]]) -> None:
    """A line for each value with its meaning below, folded to 80 columns."""
    for value, meaning in rows:
        print(f"{value}\n{folded(meaning, '    ', '    ')}")


def print_tunables(rows: Iterable[Tunable]) -> None:
    """Each tunable with its value, unit, default, bounds and meaning."""
    print_terms(
        (f"{row.name} = {_told(row, row.value)} {row.unit}".rstrip() + _allowed(row), row.help)
        for row in rows
    )


def _told(row: Tunable, value: int) -> str:
    return next((word for word, number in row.words if number == value), str(value))


def _allowed(row: Tunable) -> str:
    allowed = " or ".join(word for word, _ in row.words) or f"{row.least} to {row.most}"
    return f"  (default {_told(row, row.default)}, {allowed})"


def folded(text: str, first: str, others: str) -> str:
    """`text` in lines of 80 columns, the first and the others with these words before them."""
    return textwrap.fill(text, _PLAIN_WIDTH, initial_indent=first, subsequent_indent=others)
