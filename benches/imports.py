"""The cost of loading a module: the imports inside functions, and libraries.

``python benches/imports.py [--rounds N] [FILE ...]``: for every import inside a function of these
files (by default of the package), the saving of a process that loads the file and does not call the
function. ``--library STATEMENT`` instead measures a statement (``import scipy.special``) beside
``import blklab``, and beside ``--after STATEMENT`` if that is given.

Both are the median CPU time of a process with the import, minus that of one without it, started in
turns. CPU time, because the machine may be busy with other things; the number of modules, beside
it, is exact.
"""

from __future__ import annotations

import argparse
import ast
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "python/blklab"
_ROUNDS = 9


@dataclass
class Case:
    """One statement, and the statements that a process has executed before it."""

    where: str
    before: str
    statement: str
    ms: list[float] = field(default_factory=list)

    def modules(self) -> int:
        """The number of modules that it loads."""
        count = "import sys; print(len(sys.modules))"
        without, having = (
            int(subprocess.check_output([sys.executable, "-c", f"{code}\n{count}"]))
            for code in (self.before, f"{self.before}\n{self.statement}")
        )
        return having - without


def late(file: Path) -> Iterator[Case]:
    """The imports inside functions of a file, each once."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    seen = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                statement = ast.unparse(node)
                if statement not in seen:
                    seen.add(statement)
                    where = f"{file.relative_to(PACKAGE)}:{node.lineno}"
                    yield Case(where, f"import {module}", statement)


def cpu_ms(code: str) -> float:
    """CPU time of a process that runs it and ends."""
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
    _, status, used = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{sys.executable} -c {code!r} ended with {status}")
    return (used.ru_utime + used.ru_stime) * 1000


def measure(cases: Sequence[Case], rounds: int) -> None:
    """Round by round, each case once, together with its reference."""
    for number in range(rounds):
        before = {code: cpu_ms(code) for code in {case.before for case in cases}}
        for case in cases:
            having = cpu_ms(f"{case.before}\n{case.statement}")
            case.ms.append(having - before[case.before])
        print(f"round {number + 1} of {rounds}", file=sys.stderr)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--library", action="append", default=[])
    parser.add_argument("--after", default="import blklab")
    given = parser.parse_args()
    if given.library:
        cases = [Case("", given.after, statement) for statement in given.library]
    else:
        files = [file.resolve() for file in given.files] or sorted(PACKAGE.rglob("*.py"))
        cases = [case for file in files for case in late(file)]
    measure(cases, given.rounds)
    print(f"{'ms':>6} {'modules':>7}")
    for case in cases:
        ms = statistics.median(case.ms)
        print(f"{ms:6.1f} {case.modules():7} {case.where:32} {case.statement}".rstrip())


if __name__ == "__main__":
    main()
