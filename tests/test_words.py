"""Plain English: a request, a queue, a process or a device is a thing, not a person; names and
descriptions begin with their subject.

Words for persons are refused in code, comments, help, messages and pages, unless the line names the
person that it means, or the user `nobody` of Linux. Patches are left out: a change in one changes
the key of each built kernel.

A name such as `what_is_no_file_is_refused` hides its subject, and so does a description that begins
with "Of": both are refused in tests, benchmarks, validation and fuzzing as in the program.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUFFIXES = (
    ".c", ".css", ".fio", ".html", ".js", ".md", ".py", ".pyi", ".rs", ".sh", ".toml", ".yml"
)  # fmt: skip

PERSON = re.compile(
    r"(?<![A-Za-z])"
    r"(?:[Ww]ho(?:m|ever)?|[Nn]obodys?|[Ss]ome(?:body|one)s?|[Aa]ny(?:body|one)s?|[Ee]very(?:body|one)s?)"
    r"(?![A-Za-z])"
)
NAMED = re.compile(
    r"(?<![a-z])(?:users?|root|people|person|administrators?)(?![a-z])", re.IGNORECASE
)
ACCOUNT = re.compile(r"`nobody`|[\"']nobody[\"']|_nobody\b|\bnobody(?: =|,|\}|\)| if)")
"""The user `nobody`: in a page, as a string, as the name of a variable or of a function."""

SUBJECTLESS = re.compile(
    r"\b(?:def (?:test_)?|fn )(?:what|whatever|whoever|who)_\w+\("
    r"|(?:\"\"\"|^\s*///) ?Of (?!course\b)"
)
"""A function's name that begins with "what", and a description that begins with "Of"."""


def persons(text: str) -> list[int]:
    """The numbers of the lines with a word for a person that they do not name."""
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if PERSON.search(ACCOUNT.sub("", line)) and not NAMED.search(line)
    ]


def subjectless(text: str) -> list[int]:
    """The numbers of the lines with a name or a description that lacks its subject."""
    return [number for number, line in enumerate(text.splitlines(), 1) if SUBJECTLESS.search(line)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("raised weights for who waits before a screen", [1]),
        ("/// Nobody calls it when a job ends.", [1]),
        ("fn nobody_starves() {", [1]),
        ("fn a_weight_without_a_cgroup_is_nobodys() {", [1]),
        ("someone submits a command\nand somebody asks", [1, 2]),
        ("Asks the user who typed the command.", []),
        ("Guests of root run as nobody.", []),
        ("it belongs to `nobody`", []),
        ("whose length is known, wholly", []),
    ],
)
def test_a_word_for_a_person_is_found_unless_the_line_names_the_person(
    line: str, found: list[int]
) -> None:
    assert persons(line) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("def test_what_is_no_file_is_refused(", [1]),
        ("    fn what_fits_is_taken() {", [1]),
        ('    """Of a new queue."""', [1]),
        ("    /// Of these, the first.", [1]),
        ("def test_a_path_of_no_file_is_refused(", []),
        ("fn somewhat_late() {", []),
        ('    """The allowance of a new queue."""', []),
        ("//! Of two queues, the kernel takes the nearer.", []),
    ],
)
def test_a_name_or_a_description_without_its_subject_is_found(line: str, found: list[int]) -> None:
    assert subjectless(line) == found


@pytest.mark.parametrize("fault", [persons, subjectless])
def test_texts_are_in_plain_english(fault: Callable[[str], list[int]]) -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a checkout: it reads the files that git knows")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    files = listed.stdout.decode().split("\0")
    wrong = [
        f"{file}:{number}"
        for file in files
        if Path(file).suffix in SUFFIXES and file != Path(__file__).relative_to(ROOT).as_posix()
        if (ROOT / file).is_file()
        for number in fault((ROOT / file).read_text(encoding="utf-8"))
    ]
    assert not wrong, (
        "a thing is called a person, a person is not named, or a subject is missing "
        "(docs/glossary.md)"
    )
