"""A directory for tests that start guests."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def current(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory, with the temporary one below it; nothing is left in that."""
    with tempfile.TemporaryDirectory(prefix="blklab-test-") as name:
        temporary = Path(name) / "tmp"
        temporary.mkdir()
        # Root's guests run as the user `nobody`, which must be able to read it.
        Path(name).chmod(0o755)
        monkeypatch.setenv("TMPDIR", str(temporary))
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        monkeypatch.chdir(name)
        yield Path(name)
        assert list(temporary.iterdir()) == []
