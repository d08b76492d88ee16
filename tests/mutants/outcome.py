"""What named tests said of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TIME_MAX_S = 300
"""Of all tests named for one fault: those that have not passed by then have failed. A fault may
make a loop endless."""


@dataclass(frozen=True)
class Outcome:
    """Of one call of a test program."""

    passed: frozenset[str]
    failed: frozenset[str]
    broken: str = ""
    """Why no test ran: the last line of what was printed. Such a fault is found by any compiler."""

    def still_pass(self, tests: Sequence[str]) -> list[str]:
        """Of the named tests, those that passed."""
        return [test for test in tests if test in self.passed]


def last_line(printed: str) -> str:
    """Of the error messages, the most telling one that is at hand."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("error", "E "))]
    return (errors or lines or ["nothing was printed"])[0]
