"""Fixtures for tests of what Python does on top of the core."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import blklab
from blklab import rigs
from tests import fake_core


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A stand-in core, two disks and four workloads; the directory they lie in is current."""
    for name in list(sys.modules):
        if name.startswith(("blklab.rigs.sim", "blklab.compare.describe", "blklab._core")):
            monkeypatch.delitem(sys.modules, name)
    # `from blklab.rigs import sim` takes the attribute, if there is one.
    monkeypatch.delattr(rigs, "sim", raising=False)
    monkeypatch.setitem(sys.modules, "blklab._core", fake_core)
    monkeypatch.setattr(blklab, "_core", fake_core, raising=False)
    disks, workloads = tmp_path / "disks", tmp_path / "workloads"
    disks.mkdir()
    workloads.mkdir()
    (disks / "desktop-5900rpm.toml").write_text("# a disk\nrpm = 5900\n")
    (disks / "950pro-256gb.toml").write_text("# an SSD\n")
    for name in ("seqread", "seqwrite", "randread", "randwrite"):
        text = f"# {name}: one process <i>&amp;</i>\n[{name}]\nrw={name}\n"
        (workloads / f"{name}.fio").write_text(text)
    monkeypatch.setenv("BLKLAB_DISKS", str(disks))
    monkeypatch.setenv("BLKLAB_WORKLOADS", str(workloads))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in list(sys.modules):
        if name.startswith(("blklab.rigs.sim", "blklab.compare.describe")):
            del sys.modules[name]
