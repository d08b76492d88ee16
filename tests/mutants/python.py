"""Tests under ``tests/``, run in the copy with the copy's package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.mutants.outcome import TIME_MAX_S, Outcome, last_line

_PYTEST = (
    *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
    *("--hypothesis-seed=1", "--tb=line"),
)
_TESTS_RAN = (0, 1)
"""pytest's exit codes if all passed, or some failed."""


class PythonTests:
    """The tests of the tree at `place`."""

    def __init__(self, place: Path) -> None:
        self._place = place
        # Before the installed package, which is the checkout's.
        self._environment = os.environ | {
            "PYTHONPATH": str(place / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, tests: Sequence[str]) -> Outcome:
        """Runs the named tests; for a parametrized test, all cases."""
        return self._run(tests, tests)

    def run_matching(self, files: Sequence[str]) -> Outcome:
        """Runs all tests of these files."""
        return self._run(files, [])

    def _run(self, arguments: Sequence[str], expected: Sequence[str]) -> Outcome:
        report = self._place / "report.xml"
        report.unlink(missing_ok=True)
        # Inputs that failed with another fault.
        shutil.rmtree(self._place / ".hypothesis", ignore_errors=True)
        try:
            done = subprocess.run(
                [*_PYTEST, f"--junit-xml={report}", *arguments],
                cwd=self._place,
                env=self._environment,
                check=False,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIME_MAX_S if expected else None,
            )
        except subprocess.TimeoutExpired:
            return Outcome(frozenset(), frozenset(expected))
        if done.returncode not in _TESTS_RAN:
            return Outcome(frozenset(), frozenset(), last_line(done.stdout + done.stderr))
        return _outcome(report)

    def is_the_copys(self) -> bool:
        """Whether these tests import the copy's package."""
        told = subprocess.run(
            [sys.executable, "-c", "import blklab; print(blklab.__file__)"],
            cwd=self._place,
            env=self._environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return Path(told.strip()).is_relative_to(self._place)


def _outcome(report: Path) -> Outcome:
    passed, failed = set(), set()
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.attrib["classname"].replace(".", "/")
        test = f"{file}.py::{case.attrib['name'].partition('[')[0]}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(test)
        elif case.find("skipped") is None:
            passed.add(test)
    return Outcome(frozenset(passed - failed), frozenset(failed))
