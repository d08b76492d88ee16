"""The table of planted bugs matches the source, and its runner reports undetected ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.mutants import __main__ as runner
from tests.mutants import faults as table
from tests.mutants.faults import Fault, TableError
from tests.mutants.outcome import Outcome
from tests.mutants.python import PythonTests
from tests.mutants.rust import RustTests
from tests.mutants.tree import Tree

ROOT = Path(__file__).parents[1]

FAULT = """
[[fault]]
name = "an-end-too-early"
file = "python/ends.py"
text = "low + 1"
becomes = "low"
seen = "the end is the beginning"
tests = ["tests/test_ends.py::test_an_end_is_one_behind"]
"""
SOURCE = "def end(low: int) -> int:\n    return low + 1\n"
TESTS = (
    "import pytest\nfrom ends import end\n\n"
    "@pytest.mark.parametrize('low', [0, 7])\n"
    "def test_an_end_is_one_behind(low):\n    assert end(low) == low + 1\n\n"
    "def test_that_is_blind():\n    assert end(1)\n"
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small one, with one fault in its table."""
    root = tmp_path / "checkout"
    for name, text in (
        ("python/ends.py", SOURCE),
        ("tests/test_ends.py", TESTS),
        ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '-q'\n"),
        ("faults/small.toml", FAULT),
        (".gitignore", "/built/\n"),
        ("built/large", "not copied"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root


def the_fault(checkout: Path) -> Fault:
    [fault] = table.read(checkout / "faults")
    return fault


def test_each_text_is_found_once_and_each_test_exists() -> None:
    assert table.problems(table.read(), ROOT) == []


def test_a_text_that_is_not_found_once_is_refused_in_one_line(checkout: Path) -> None:
    fault = the_fault(checkout)
    for source, found in ((SOURCE * 2, "found 2 times"), ("", "not found")):
        (checkout / fault.file).write_text(source, encoding="utf-8")
        expected = f"small.toml: an-end-too-early: text {found} in python/ends.py, expected once"
        assert table.problems([fault], checkout) == [expected]


def test_a_test_or_a_file_that_is_gone_is_named(checkout: Path) -> None:
    fault = the_fault(checkout)
    assert table.problems([fault], checkout) == []
    (checkout / "tests/test_ends.py").write_text("def test_an_end_is_one() -> None: ...\n")
    assert table.problems([fault], checkout) == [
        "small.toml: an-end-too-early: no test tests/test_ends.py::test_an_end_is_one_behind"
    ]
    (checkout / fault.file).unlink()
    assert "small.toml: an-end-too-early: no file python/ends.py" in table.problems(
        [fault], checkout
    )


@pytest.mark.parametrize(
    ("test", "there"),
    [
        ("scheduler::kyber::latency::tests::one_slow_request_in_ten_is_no_congestion", True),
        ("scheduler::kyber::tests::one_slow_request_in_ten_is_no_congestion", False),
        ("scheduler::testing::deadline_rules::discards_go_with_the_writes", True),
        ("scheduler::testing::discards_go_with_the_writes", False),
        ("scheduler::testing::deadline_rules::discards_go_with_the_write", False),
        ("nothing::discards_go_with_the_writes", False),
    ],
)
def test_rust_tests_are_looked_for_in_their_modules(test: str, there: bool, checkout: Path) -> None:
    fault = the_fault(checkout)
    rust = Fault("g", "n", Path("crates/blklab-core/no.rs"), fault.text, "", "", (test,))
    assert (f"g.toml: n: no test {test}" not in table.problems([rust], ROOT)) == there


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (FAULT + FAULT, "small.toml: an-end-too-early: another fault has this name"),
        (FAULT.replace("seen =", "sees ="), "an-end-too-early: keys name, .* expected name, file"),
        (FAULT.replace('"low"', '"low + 1"'), "becomes: the same as the text"),
        (FAULT.split("tests =", maxsplit=1)[0] + "tests = []", "the names of one test or more"),
        ("[[fault]", "small.toml: Expected"),
    ],
)
def test_an_entry_that_cannot_be_meant_is_refused(document: str, said: str, checkout: Path) -> None:
    (checkout / "faults/small.toml").write_text(document, encoding="utf-8")
    with pytest.raises(TableError, match=said):
        table.read(checkout / "faults")


def test_a_fault_is_planted_in_a_copy_and_gone_whatever_happens(
    checkout: Path, tmp_path: Path
) -> None:
    fault = the_fault(checkout)
    tree = Tree(checkout, tmp_path / "copy")
    assert not (tmp_path / "copy/built").exists()
    with pytest.raises(KeyboardInterrupt), tree.planted(fault):
        assert "return low\n" in (tmp_path / "copy" / fault.file).read_text()
        assert (checkout / fault.file).read_text() == SOURCE
        raise KeyboardInterrupt
    assert (tmp_path / "copy" / fault.file).read_text() == SOURCE
    (tmp_path / "copy/old.py").touch()
    Tree(checkout, tmp_path / "copy")
    assert not (tmp_path / "copy/old.py").exists()


def test_named_tests_of_python_run_with_the_copys_source(checkout: Path, tmp_path: Path) -> None:
    fault, blind = the_fault(checkout), "tests/test_ends.py::test_that_is_blind"
    tree, tests = Tree(checkout, tmp_path / "copy"), PythonTests(tmp_path / "copy")
    named = [*fault.tests, blind]
    assert tests.run(named) == Outcome(frozenset(named), frozenset())
    with tree.planted(fault):
        found = tests.run(named)
        assert (found.failed, found.still_pass(named)) == (frozenset(fault.tests), [blind])
    assert tests.run(["tests/test_ends.py::test_none"]).broken
    (tmp_path / "copy" / fault.file).write_text("def end(:\n")
    assert tests.run(named).broken, "no test finds what is no Python"


def test_tests_without_an_outcome_in_a_crashed_program_have_failed(tmp_path: Path) -> None:
    program = tmp_path / "tests"
    program.write_text(
        "#!/bin/sh\necho 'test a::b ... ok'\necho 'test a::c ... FAILED'\nkill -9 $$\n"
    )
    program.chmod(0o755)
    tests = RustTests(tmp_path, tmp_path / "target")
    tests._build = lambda: str(program)  # type: ignore[method-assign]
    assert tests.run(["a::b", "a::d"]) == Outcome(frozenset({"a::b"}), frozenset({"a::c", "a::d"}))


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (lambda test: Outcome(frozenset(), frozenset({test})), 0),
        (lambda test: Outcome(frozenset({test}), frozenset()), 1),
        (lambda _: Outcome(frozenset(), frozenset(), "error: expected `;`"), 1),
    ],
)
def test_surviving_faults_are_counted_and_are_an_error(
    said: object,
    code: int,
    checkout: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fault = the_fault(checkout)
    [test] = fault.tests
    monkeypatch.setattr(runner, "ROOT", checkout)
    monkeypatch.setattr(table, "read", lambda: [fault])
    monkeypatch.setattr("sys.argv", ["mutants", "--out", str(tmp_path / "out.json")])
    monkeypatch.setattr(PythonTests, "is_the_copys", lambda _: True)
    passes = Outcome(frozenset({test}), frozenset())
    answers = iter([passes, said(test)])  # type: ignore[operator]
    monkeypatch.setattr(PythonTests, "run", lambda *_: next(answers))
    assert runner.main() == code
    figures = json.loads((tmp_path / "out.json").read_text())
    assert figures == {"small": {"planted": 1, "found": 1 - code}}
    assert ("SURVIVES" in capsys.readouterr().out) == bool(code)
    # Figures are of whole groups.
    (tmp_path / "out.json").write_text('{"large": {"planted": 2, "found": 2}}')
    for asked, wrong in (("small", False), (fault.name, True), ("smal", True)):
        answers = iter([passes, passes])
        monkeypatch.setattr("sys.argv", ["mutants", asked, "--out", str(tmp_path / "out.json")])
        assert runner.main() == 1
        assert bool(capsys.readouterr().err) == wrong
    assert json.loads((tmp_path / "out.json").read_text()) == {
        "large": {"planted": 2, "found": 2},
        "small": {"planted": 1, "found": 0},
    }
    # A test that fails anyway finds nothing.
    monkeypatch.setattr("sys.argv", ["mutants"])
    monkeypatch.setattr(PythonTests, "run", lambda *_: Outcome(frozenset(), frozenset({test})))
    assert runner.main() == 1
    assert capsys.readouterr().err == f"{test} does not pass without a fault\n"
