"""The separate programs are found, and report errors."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from blklab.base import binaries
from blklab.errors import RunError


@pytest.mark.parametrize("name", binaries.NAMES)
def test_every_program_is_built_and_runs(name: str) -> None:
    done = subprocess.run(
        [binaries.find(name), "--help"], capture_output=True, text=True, check=False
    )
    assert name in done.stdout + done.stderr


def test_a_missing_or_unusable_program_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "DIRECTORY", tmp_path)
    with pytest.raises(RunError, match=r"^blklab-disk is missing from .*`make setup` builds it"):
        binaries.find("blklab-disk")
    (tmp_path / "blklab-disk").write_text("")
    with pytest.raises(RunError, match=r"blklab-disk is not executable: chmod \+x it"):
        binaries.find("blklab-disk")


def test_the_guest_refuses_to_be_an_ordinary_process() -> None:
    done = subprocess.run(
        [binaries.find("blklab-guest")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "is not the first one" in done.stderr
    assert done.stderr.count("\n") == 1
