"""The commands that an ordinary user is told to type."""

from __future__ import annotations

import os
import shlex
import sys

import pytest

from blklab.base.as_root import as_root, or_as_root


def test_the_same_command_is_typed_wherever_sudo_looks_for_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["/home/me/bin/blklab", "fio", "a b"])
    assert as_root() == "sudo /home/me/bin/blklab fio 'a b'"
    assert as_root(["--store", "x y"]) == "sudo /home/me/bin/blklab fio 'a b' --store 'x y'"


def test_a_module_is_run_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/blklab/__main__.py", "status"])
    assert as_root() == f"sudo {shlex.quote(sys.executable)} -m blklab status"


def test_it_is_one_line_and_moves_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/blklab", "apply", "a\nb\x1b[2J"])
    assert as_root() == r"sudo /x/blklab apply 'a\nb\x1b[2J'"


def test_root_is_not_told_to_be_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/blklab", "fio"])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert or_as_root() == ""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert or_as_root() == "; type: sudo /x/blklab fio"
