"""Tasks in threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from blklab.base import pool
from blklab.domain.experiment import RigSpec
from blklab.domain.task import Task
from blklab.errors import BlklabError
from blklab.execute.interface import Ended, Failed
from blklab.execute.one import carried_out
from blklab.rigs import Rig
from blklab.rigs import rig as rig_of


@dataclass(frozen=True)
class Local:
    """Runs them in threads of this process: no rig holds the interpreter's lock while it runs."""

    threads: int
    rig: Rig | None = None
    """A prepared rig, such as the live rig with its borrowed disks and test files; it runs the
    tasks with its own spec. Other tasks get a rig made from their spec."""

    def run(
        self,
        tasks: Sequence[Task],
        ended: Callable[[Sequence[Ended]], None],
        failed: Callable[[Failed], None] | None = None,
    ) -> None:
        """See `Executor`. They begin in the order of `tasks`."""
        rigs = Rigs(self.rig)
        every = [rigs.of(task.rig) for task in tasks]
        threads = min([self.threads, *(rig.at_once for rig in every)])

        def one(number: int) -> Ended | Failed:
            try:
                return carried_out(tasks[number], every[number], number)
            except BlklabError as error:
                if failed is None:
                    raise
                return Failed(number, error)

        def done(events: Sequence[Ended | Failed]) -> None:
            if good := [event for event in events if isinstance(event, Ended)]:
                ended(good)
            for event in events:
                if isinstance(event, Failed) and failed is not None:
                    failed(event)

        pool.run_all(one, range(len(tasks)), threads, done, rigs.cancel)


@dataclass
class Rigs:
    """A rig for each spec."""

    given: Rig | None = None
    made: dict[RigSpec, Rig] = field(default_factory=dict)

    def of(self, spec: RigSpec) -> Rig:
        """The given rig if it has this spec; else a new one, made once."""
        if spec not in self.made:
            is_given = self.given is not None and self.given.spec == spec
            self.made[spec] = self.given if is_given and self.given else rig_of(spec)
        return self.made[spec]

    def cancel(self) -> None:
        """Make all current runs end soon."""
        for rig in list(self.made.values()):
            rig.cancel()
