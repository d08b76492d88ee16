"""Checks of a model against measurements, printed one by one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Report:
    """Prints each check, and records whether all were met."""

    every: bool = True
    rows: int = 0

    def title(self, text: str) -> None:
        """Prints the title of the next checks."""
        print(f"\n{text}")

    def check(self, what: str, found: float, low: float, high: float) -> None:
        """Whether it is within these bounds."""
        met = low <= found <= high
        self.every &= met
        self.rows += 1
        print(f"  {what:46} {found:9.2f}   {low:8.2f} to {high:8.2f}   {'yes' if met else 'NO'}")

    def near(self, what: str, found: float, real: float, less: float, more: float) -> None:
        """Whether it deviates by at most these parts of the real figure, downwards and upwards."""
        self.check(what, found, real * (1 - less), real * (1 + more))
