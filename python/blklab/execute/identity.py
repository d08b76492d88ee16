"""The identity of the code that makes a run: equal code gives equal bytes."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from hashlib import sha256
from pathlib import Path

import numpy as np

import blklab
from blklab.domain import core
from blklab.domain.task import Task

_PARTS = ("base", "bin", "domain", "execute", "programs", "rigs", "workloads")
"""The parts of the package that make a run and its figures; files beside them are included."""
_DIGITS = 12


@dataclass(frozen=True)
class Identity:
    """Versions that affect the bytes of a result."""

    blklab: str
    code: str
    """A hash of the compiled core, of the programs beside it and of the code that runs."""
    numpy: str
    architecture: str

    def difference(self, other: Identity) -> str:
        """What differs, both values for a person: ``code 1f (here 2e)``; empty if they are
        equal."""
        pairs = ((one.name, getattr(self, one.name), getattr(other, one.name))
                 for one in fields(self))  # fmt: skip
        return ", ".join(f"{name} {mine} (here {its})" for name, mine, its in pairs if mine != its)


def identity() -> Identity:
    """That of this process."""
    return Identity(core.version(), _code(), np.__version__, platform.machine())


def key_of(task: Task) -> str:
    """The hash of a run: of the code and of all inputs. Empty if the run may differ each time, on
    other rigs than the simulator. InputError if the job file is wrong."""
    if task.rig.name != "sim":
        return ""
    code = "\0".join(astuple(identity()))
    return sha256(f"{code}\0{task.content_hash}".encode()).hexdigest()


@functools.cache
def _code() -> str:
    digest = sha256()
    root = Path(blklab.__file__).parent
    for path in sorted(_files(root)):
        digest.update(f"{path.relative_to(root)}\0".encode())
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:_DIGITS]


def _files(root: Path) -> Iterator[Path]:
    yield root / "errors.py"
    yield from root.glob("_core*.so")
    for part in _PARTS:
        for path in (root / part).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
                yield path
