"""Files are complete or missing, however the process ends: `blklab.base.files`."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from blklab.base.files import write_together, write_whole
from blklab.errors import RunError

_KILLED = """
import os, signal, sys
from pathlib import Path
from blklab.base.files import write_whole

os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
write_whole(Path(sys.argv[1]), "new")
"""


def test_a_kill_leaves_the_earlier_files_and_no_others(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("old")
    done = subprocess.run([sys.executable, "-c", _KILLED, str(file)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert file.read_text() == "old"


@pytest.mark.parametrize("named", [False, True])
def test_a_file_has_the_mode_that_the_umask_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """Also on a file system that has no files without a name."""
    opened = os.open

    def refusing(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return opened(path, flags, mode)

    if named:
        monkeypatch.setattr(os, "open", refusing)
    file = tmp_path / "report.html"
    before = os.umask(0o027)
    try:
        write_whole(file, "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert file.read_text() == "text"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_of_files_that_belong_together_none_is_written_if_one_cannot_be(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "no-directory" / "second"
    first.write_text("old")
    (tmp_path / "no-directory").write_text("a file")
    with pytest.raises(RunError, match="second: not written"):
        write_together({first: "new", second: "new"})
    assert first.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2
