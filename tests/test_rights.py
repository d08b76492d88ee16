"""Root's commands that only compute give up unneeded rights before they read any document."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from blklab.cli import lazy, rights

# The actions of a command that a document has deceived. CAP_CHOWN, CAP_DAC_OVERRIDE,
# CAP_DAC_READ_SEARCH and CAP_FOWNER are 0 to 3.
DECEIVED = """
import json, os, pathlib, subprocess, sys
from blklab.cli import rights

def tried(place):
    try:
        pathlib.Path(place).write_text("x")
    except OSError:
        return False
    return True

def command(**options):
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status"))
    child = subprocess.run(["sh", "-c", f"echo x >{sys.argv[2]}/child"], stderr=-3)
    print(json.dumps({
        "inside": tried(options["out"] / "page.html"),
        "outside": tried(pathlib.Path(sys.argv[2]) / "file"),
        "child": child.returncode == 0,
        "effective": int(status["CapEff"], 16),
        "bounding": int(status["CapBnd"], 16) & 0xFFFFFFFF,
        "no_new_privs": int(status["NoNewPrivs"]),
    }))

rights.Program.is_blklab = sys.argv[3] == "1"
out = pathlib.Path(sys.argv[1])
resume = sys.argv[5:] == ["resume"]
rights.fewer(command)(rig=sys.argv[4], out=out, store=str(out / "results.db"), resume=resume)
"""


def deceived(tmp_path: Path, *, program: bool, rig: str, more: str = "") -> dict[str, Any]:
    # Every command may write temporary files: protected files are elsewhere.
    inside, outside = tmp_path / "out", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (tmp_path / "tmp").mkdir()
    told = [str(inside), str(outside), str(int(program)), rig, *more.split()]
    done = subprocess.run(
        [sys.executable, "-c", DECEIVED, *told],
        capture_output=True,
        check=True,
        env=os.environ | {"TMPDIR": str(tmp_path / "tmp")},
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture
def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: another user has nothing to give up")


@pytest.mark.usefixtures("as_root")
def test_root_keeps_rights_about_files_and_changes_only_where_it_was_told(tmp_path: Path) -> None:
    found = deceived(tmp_path, program=True, rig="sim")
    assert found == {
        "inside": True,
        "outside": False,
        "child": False,
        "effective": 0b1111,
        "bounding": 0b1111,
        "no_new_privs": 1,
    }


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize(
    ("program", "rig", "more"),
    [(True, "live", ""), (True, "kernel", ""), (False, "sim", ""), (True, "sim", "resume")],
)
def test_commands_that_need_rights_keep_them(
    program: bool, rig: str, more: str, tmp_path: Path
) -> None:
    found = deceived(tmp_path, program=program, rig=rig, more=more)
    assert found["inside"] and found["outside"] and found["child"]
    assert found["effective"] > 0b1111


def test_every_command_says_whether_it_only_computes() -> None:
    on_this_machine = {name for name, listed in lazy.COMMANDS.items() if not listed.gives_up_rights}
    assert on_this_machine == {
        "devices", "host", "record", "restore", "apply", "status", "undo", "verify", "bisect",
        "kernel", "disk", "watch", "fleet",
    }  # fmt: skip


def test_a_library_keeps_its_rights() -> None:
    assert not rights.Program.is_blklab
