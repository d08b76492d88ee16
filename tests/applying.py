"""Shared parts of the tests of apply, status and undo."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from blklab.domain import specs
from blklab.host.devices import queue
from blklab.host.devices.queue import Queue
from blklab.host.roots import HERE, Roots
from blklab.settings import change, choice
from blklab.settings.programs import Programs
from tests import loop_device


@dataclass
class Asked(Programs):
    """Fake programs that only record their arguments."""

    wrong: str = ""
    words: list[str] = field(default_factory=list)

    def has(self, name: str) -> bool:
        return True

    def run(self, words: Sequence[str]) -> str:
        self.words.append(" ".join(words))
        return self.wrong


def own_roots(directory: Path) -> Roots:
    """The machine's devices, and configuration and state of the test's own."""
    own = directory / "own"
    own.mkdir()
    return replace(HERE, etc=own / "etc", run=own / "run", usr=own / "usr", lib=own / "lib",
                   var=own / "var")  # fmt: skip


@contextlib.contextmanager
def loop_disk(directory: Path) -> Iterator[Queue]:
    """A real disk; its settings are restored at the end."""
    loop_device.require()
    with loop_device.attached(directory) as name:
        found = queue.named(name)
        before = found.settings()
        yield found
        if found.is_there():
            found.write_all(before)


def files(roots: Roots) -> list[Path]:
    """Every file of configuration and state; locks stay."""
    every = (path for path in roots.etc.parent.rglob("*") if path.is_file())
    return sorted(path for path in every if path.suffix != ".lock")


def apply(
    loop: Queue, spec: str, roots: Roots, programs: Asked, *, of: str = "id", more: str = ""
) -> list[str]:
    of_queue = choice.of_queue(specs.settings([more] if more else []))
    settings = choice.together(choice.parse(spec, loop), of_queue)
    made = change.plan(loop, settings, of, "auto", roots)
    return change.carry_out(made, roots, programs)
