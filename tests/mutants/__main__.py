"""Plant each fault of the table and run the tests that are to find it: ``python -m tests.mutants``.

First the named tests run without a fault and must pass. Then each fault is planted in a copy of
the checkout in a temporary directory, and every test named for it must fail. Exit code 1 if one
does not.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants import faults as table
from tests.mutants.faults import Fault
from tests.mutants.outcome import Outcome
from tests.mutants.python import PythonTests
from tests.mutants.rust import RustTests
from tests.mutants.tree import Tree

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Finding:
    """What became of one fault."""

    fault: Fault
    survives: str = ""
    """Why it counts as not found."""


class Bench:
    """The copy and its test programs: Python's, and one for each crate."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._tree = Tree(ROOT, work / "tree")
        self._rust: dict[Path, RustTests] = {}
        self._python = PythonTests(work / "tree")

    def fails_already(self, faults: Sequence[Fault]) -> list[str]:
        """A line for each of these faults' tests that fails without a fault."""
        said = []
        for runner, mine in self._by_runner(faults):
            if isinstance(runner, PythonTests) and not runner.is_the_copys():
                return ["the tests would import another blklab than the copy's: make setup"]
            named = sorted({test for fault in mine for test in fault.tests})
            outcome = runner.run(named)
            if outcome.broken:
                said.append(outcome.broken)
            else:
                missing = [test for test in named if test not in outcome.passed]
                said += [f"{test} does not pass without a fault" for test in missing]
        return said

    def judge(self, fault: Fault) -> Finding:
        """Whether all its tests find it."""
        outcome = self._with(fault, None)
        if outcome.broken:
            return Finding(fault, f"no test ran: {outcome.broken}")
        blind = outcome.still_pass(fault.tests)
        return Finding(fault, f"passed: {', '.join(blind)}" if blind else "")

    def search(self, fault: Fault, where: Sequence[str]) -> list[str]:
        """The tests that find the fault, among those with a given name (for Python: in a given
        file)."""
        outcome = self._with(fault, where)
        return [outcome.broken] if outcome.broken else sorted(outcome.failed)

    def _with(self, fault: Fault, where: Sequence[str] | None) -> Outcome:
        runner = self._runner(fault)
        with self._tree.planted(fault):
            return runner.run(fault.tests) if where is None else runner.run_matching(where)

    def _runner(self, fault: Fault) -> RustTests | PythonTests:
        if not fault.is_rust:
            return self._python
        new = RustTests(self._work / "tree" / fault.crate, self._work / "target")
        return self._rust.setdefault(fault.crate, new)

    def _by_runner(
        self, faults: Sequence[Fault]
    ) -> list[tuple[RustTests | PythonTests, list[Fault]]]:
        runners = dict.fromkeys(self._runner(fault) for fault in faults)
        return [
            (runner, [fault for fault in faults if self._runner(fault) is runner])
            for runner in runners
        ]


def main() -> int:
    """See the head of the file."""
    asked = _asked()
    try:
        faults = _chosen(table.read(), asked.only)
        if asked.out:
            _check_whole(faults, asked.only)
        # A new fault may have no tests yet.
        wrong = table.problems(faults, ROOT, tests=not asked.search)
    except table.TableError as error:
        wrong = [str(error)]
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="blklab-mutants-") as temporary:
        bench = Bench((asked.work or Path(temporary)).resolve())
        if asked.search:
            for fault in faults:
                print(f"{fault.label}:", *bench.search(fault, asked.search), sep="\n  ", flush=True)
            return 0
        wrong = bench.fails_already(faults)
        if wrong:
            print(*wrong, sep="\n", file=sys.stderr)
            return 1
        findings = [_told(bench.judge(fault)) for fault in faults]
    figures = _figures(findings)
    _print(figures)
    if asked.out:
        _write(asked.out, figures, asked.only)
    return int(any(finding.survives for finding in findings))


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="GROUP or FAULT", help="only these; else all")
    parser.add_argument(
        "--out",
        type=Path,
        help="write the figures there, as JSON; of single groups into those of all",
    )
    parser.add_argument("--work", type=Path, metavar="DIRECTORY",
                        help="copy and build there, and keep both for the next call")  # fmt: skip
    parser.add_argument("--search", action="append", metavar="TESTS",
                        help="list the tests that find each fault instead: part of the names of "
                        "Rust tests, a file of Python tests; may be repeated")  # fmt: skip
    return parser.parse_args()


def _chosen(faults: Sequence[Fault], only: Sequence[str]) -> list[Fault]:
    known = {name for fault in faults for name in (fault.group, fault.name)}
    for name in only:
        if name not in known:
            raise table.TableError(f"no group or fault '{name}' in {table.FOLDER}")
    return [fault for fault in faults if not only or {fault.group, fault.name} & {*only}]


def _check_whole(faults: Sequence[Fault], only: Sequence[str]) -> None:
    """Figures are of groups. TableError if single faults are asked for."""
    groups = {fault.group for fault in faults}
    for name in only:
        if name not in groups:
            raise table.TableError(f"--out: '{name}' is a single fault; expected whole groups")


def _told(finding: Finding) -> Finding:
    fault = finding.fault
    print(f"{'SURVIVES' if finding.survives else 'found':8}  {fault.name:45}  {fault.seen}")
    if finding.survives:
        print(f"{'':10}{finding.survives}")
    sys.stdout.flush()
    return finding


def _figures(findings: Sequence[Finding]) -> dict[str, dict[str, int]]:
    groups = {finding.fault.group: {"planted": 0, "found": 0} for finding in findings}
    for finding in findings:
        groups[finding.fault.group]["planted"] += 1
        groups[finding.fault.group]["found"] += not finding.survives
    return groups


def _write(out: Path, figures: dict[str, dict[str, int]], only: Sequence[str]) -> None:
    """Figures of single groups replace those of the same groups in the file."""
    kept = json.loads(out.read_text(encoding="utf-8")) if only and out.exists() else {}
    document = json.dumps(dict(sorted((kept | figures).items())), indent=1)
    out.write_text(document + "\n", encoding="utf-8")


def _print(figures: dict[str, dict[str, int]]) -> None:
    rows = [(group, row["planted"], row["found"]) for group, row in figures.items()]
    total = ("all", sum(row[1] for row in rows), sum(row[2] for row in rows))
    print(f"\n{'group':14} {'planted':>7} {'found':>7} {'survive':>7}")
    for group, planted, found in [*rows, total]:
        print(f"{group:14} {planted:7} {found:7} {planted - found:7}")


if __name__ == "__main__":
    sys.exit(main())
