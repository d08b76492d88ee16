"""The table of faults: one TOML file for each group, a table ``[[fault]]`` for each fault.

name: short, unique, of words joined by hyphens.
file: the source file, from the checkout's root.
text: lines of that file, found there exactly once.
becomes: the lines in their place.
seen: what a person would see, one line.
tests: all of them fail with the fault: `scheduler::noop::tests::NAME` as libtest prints it, of the
file's crate, for a file in Rust, and `tests/test_store.py::NAME` for one in Python.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "faults"
_KEYS = ("name", "file", "text", "becomes", "seen", "tests")


class TableError(Exception):
    """The table is wrong: one line, with the file and the fault."""


@dataclass(frozen=True)
class Fault:
    """One planted bug."""

    group: str
    """The name of its file in ``faults/``, without the ending."""
    name: str
    file: Path
    text: str
    becomes: str
    seen: str
    tests: tuple[str, ...]

    @property
    def label(self) -> str:
        """For messages."""
        return f"{self.group}.toml: {self.name}"

    @property
    def is_rust(self) -> bool:
        """Whether Rust's tests find it, or Python's."""
        return self.file.suffix == ".rs"

    @property
    def crate(self) -> Path:
        """The folder of a Rust file's crate, from the checkout's root: ``crates/NAME``."""
        return Path(*self.file.parts[:2])

    def planted(self, source: str) -> str:
        """`source` with the fault. TableError unless the text is there exactly once."""
        count = source.count(self.text)
        if count != 1:
            found = "not found" if count == 0 else f"found {count} times"
            raise TableError(f"{self.label}: text {found} in {self.file}, expected once")
        return source.replace(self.text, self.becomes)


def read(folder: Path = FOLDER) -> list[Fault]:
    """All faults, by group. TableError if one is incomplete, or has the name of another."""
    faults = [fault for path in sorted(folder.glob("*.toml")) for fault in _group(path)]
    names = [fault.name for fault in faults]
    for fault in faults:
        if names.count(fault.name) > 1:
            raise TableError(f"{fault.label}: another fault has this name")
    return faults


def _group(path: Path) -> list[Fault]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{path.name}: {error}") from None
    rows = document.get("fault", [])
    return [_fault(path.stem, number, row) for number, row in enumerate(rows, 1)]


def _fault(group: str, number: int, row: dict[str, object]) -> Fault:
    label = f"{group}.toml: {row.get('name', f'fault {number}')}"
    if sorted(row) != sorted(_KEYS):
        raise TableError(f"{label}: keys {', '.join(row)}, expected {', '.join(_KEYS)}")
    tests = row["tests"]
    if not isinstance(tests, list) or not tests:
        raise TableError(f"{label}: tests: expected the names of one test or more")
    name, file, text, becomes, seen = (str(row[key]) for key in _KEYS[:-1])
    if text == becomes:
        raise TableError(f"{label}: becomes: the same as the text")
    if "\n" in seen:
        raise TableError(f"{label}: seen: more than one line")
    return Fault(group, name, Path(file), text, becomes, seen, tuple(str(test) for test in tests))


def problems(faults: Sequence[Fault], root: Path, *, tests: bool = True) -> list[str]:
    """Outdated entries, a line each: a text that is not in its file exactly once and, with `tests`,
    a missing test."""
    found = []
    for fault in faults:
        path = root / fault.file
        try:
            fault.planted(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            found.append(f"{fault.label}: no file {fault.file}")
        except TableError as error:
            found.append(str(error))
        gone = (test for test in fault.tests if not _exists(test, root, fault))
        found += [f"{fault.label}: no test {test}" for test in gone if tests]
    return found


def _exists(test: str, root: Path, fault: Fault) -> bool:
    if not fault.is_rust:
        file, _, name = test.partition("::")
        return _defines(root / file, rf"^def {name}\(")
    *modules, name = test.split("::")
    # A module is a file, a folder, or within the file of the module above it.
    for depth in range(len(modules), 0, -1):
        place = root / fault.crate / "src" / Path(*modules[:depth])
        for path in (place.with_suffix(".rs"), place / "mod.rs"):
            if path.exists():
                return depth >= len(modules) - 1 and _defines(path, rf"\bfn {name}\(")
    return False


def _defines(path: Path, pattern: str) -> bool:
    return path.is_file() and re.search(pattern, path.read_text(encoding="utf-8"), re.M) is not None
