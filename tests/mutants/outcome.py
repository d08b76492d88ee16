"""The outcome of named tests in a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TIME_MAX_S = 300
"""The time limit for all tests of one fault; later ones count as failed. A fault may make a loop
endless."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one call of a test program."""

    passed: frozenset[str]
    failed: frozenset[str]
    broken: str = ""
    """Why no test ran: the last printed line. Such a fault is found by any compiler."""

    def still_pass(self, tests: Sequence[str]) -> list[str]:
        """The named tests that passed."""
        return [test for test in tests if test in self.passed]


def last_line(printed: str) -> str:
    """The most informative error message."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("error", "E "))]
    return (errors or lines or ["nothing was printed"])[0]
