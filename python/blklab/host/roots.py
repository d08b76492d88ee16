"""The directories of the machine's own files. Tests, and users with a copy of another machine's
files, name other directories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Roots:
    """The directories that are read; by default those of this machine."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")
    etc: Path = Path("/etc")
    run: Path = Path("/run")
    usr: Path = Path("/usr")
    lib: Path = Path("/lib")
    var: Path = Path("/var")
    boot: Path = Path("/boot")

    @classmethod
    def under(cls, top: Path) -> Roots:
        """The same directories below `top`."""
        return cls(**{name: top / name for name in cls.__dataclass_fields__})


HERE = Roots()
"""This machine."""
