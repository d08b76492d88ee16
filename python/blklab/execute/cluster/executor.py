"""An executor whose tasks run on the workers of Dask.

Dask gives the tasks of a worker that has ended to others. This executor adds what Dask leaves to
its caller:

* A lost scheduler, or a cut network: it connects again and sends all batches without a result.
* A run during which its worker ends each time: its batch is divided, so that only that run fails.
* Each result is counted once, whatever has been sent twice.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from distributed import Future, KilledWorker

from blklab.base import signals
from blklab.domain.task import Task
from blklab.errors import BlklabError, MachineError, RunError
from blklab.execute.cluster import worker
from blklab.execute.cluster.batches import Batches, Numbered
from blklab.execute.cluster.connection import Connection, patience_s
from blklab.execute.cluster.workers import Workers
from blklab.execute.identity import identity
from blklab.execute.interface import Ended, Failed
from blklab.execute.one import what
from blklab.rigs.kernel import carried

_LOOK_UP_S = 0.2
"""How often signals take effect."""
_WATCH_S = 1.0
"""How often workers are counted."""
_AHEAD = 2
"""Batches for each thread that are sent: one that runs, one that waits for it."""
_RESULT_S = 30.0
_UNABLE_MAX = 3
"""Machines that may be unable to do a run, before it fails."""


@dataclass
class Cluster:
    """Runs tasks on a cluster; see `blklab.execute.interface.Executor`."""

    connection: Connection
    tell: Callable[[str], None]
    patience_s: float = field(default_factory=patience_s)
    """How long the scheduler may be away."""

    def run(
        self,
        tasks: Sequence[Task],
        ended: Callable[[Sequence[Ended]], None],
        failed: Callable[[Failed], None] | None = None,
    ) -> None:
        """See `Executor`. Tasks are taken from `tasks` as they are sent, the longest first.
        RunError if no worker can run them, or the scheduler does not come back."""
        if len(tasks):
            call = _Call(self, enumerate(tasks), ended, failed)
            with signals.postponed() as take_effect:
                call.run(take_effect)


@dataclass
class _Sent:
    """A batch on its way."""

    tasks: list[Numbered]
    future: Future[worker.Report]
    workers: frozenset[str]
    """Those that may run it."""


@dataclass
class _Call:
    """One call of `Cluster.run`."""

    cluster: Cluster
    plan: Iterator[Numbered]
    ended: Callable[[Sequence[Ended]], None]
    failed: Callable[[Failed], None] | None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _sent: dict[str, _Sent] = field(default_factory=dict)
    """By key."""
    _arrived: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    """Keys of batches that have ended."""
    _unable: dict[int, int] = field(default_factory=dict)
    """For a task the number of machines that could not do it."""
    _alone: list[list[Numbered]] = field(default_factory=list)
    """Runs of a batch whose workers have ended: they are sent one by one."""
    _batches_sent: int = 0
    _watched_s: float = 0.0

    def run(self, take_effect: Callable[[], None]) -> None:
        self._workers = Workers(self.cluster.tell)
        self._batches = Batches(self.plan)
        self._take_effect = take_effect
        try:
            while self._sent or self._batches or self._alone:
                self._watch()
                self._send()
                self._receive()
                take_effect()
        except BaseException:
            self._cancel()
            raise

    @property
    def _client(self) -> Any:
        return self.cluster.connection.client

    def _watch(self) -> None:
        """Workers that have come or gone, and a lost scheduler."""
        if self.cluster.connection.is_lost:
            self._again()
        elif time.monotonic() - self._watched_s < _WATCH_S:
            return
        try:
            self._workers.look(self._client)
        except OSError:
            self._again()
            return
        self._watched_s = time.monotonic()
        self._workers.check(self.cluster.connection.name)
        there = set(self._workers.threads)
        for key, sent in list(self._sent.items()):
            if there and not sent.workers & there:
                # Dask would wait for these very workers.
                self._take_back(key)

    def _send(self) -> None:
        count = sum(self._workers.threads.values())
        while (self._alone or self._batches) and len(self._sent) < count * _AHEAD:
            tasks = self._alone.pop() if self._alone else self._batches.next(count)
            order = worker.Order(
                self.id,
                identity(),
                tuple((number, task.to_bytes()) for number, task in tasks),
                self.failed is None,
                _kernels(tasks),
            )
            self._batches_sent += 1
            key = f"blklab-{self.id}-{self._batches_sent}"
            workers = self._workers.allowed
            future = self._client.submit(
                worker.run_batch,
                order,
                key=key,
                workers=workers,
                pure=False,
                priority=self._batches.longest_s(tasks),
            )
            self._sent[key] = _Sent(tasks, future, frozenset(workers))
            future.add_done_callback(lambda done: self._arrived.put(done.key))

    def _receive(self) -> None:
        """Wait a moment for the next batch, and take all that have come."""
        with suppress(queue.Empty):
            self._take(self._arrived.get(timeout=_LOOK_UP_S))
            while True:
                self._take(self._arrived.get_nowait())

    def _take(self, key: str) -> None:
        sent = self._sent.get(key)
        if sent is None:
            return
        status = sent.future.status
        if status == "finished":
            try:
                report = sent.future.result(timeout=_RESULT_S)
            except (TimeoutError, OSError):
                # Its worker has ended meanwhile, or the scheduler.
                if not self.cluster.connection.is_lost:
                    sent.future.add_done_callback(lambda done: self._arrived.put(done.key))
                return
            except Exception:
                if not self.cluster.connection.is_lost:
                    self._take_back(key)
                return
            del self._sent[key]
            self._take_report(sent, report)
        elif status == "error":
            del self._sent[key]
            self._take_error(sent)
        elif not self.cluster.connection.is_lost:
            # Cancelled: by the scheduler, or since a lost one has come back.
            self._take_back(key)

    def _take_report(self, sent: _Sent, report: worker.Report) -> None:
        tasks = dict(sent.tasks)
        good: list[Ended] = []
        bad: list[Failed] = []
        for one in report.ended:
            self._batches.ended(tasks.pop(one.number), one.took_s)
            if isinstance(one.found, BlklabError):
                bad.append(Failed(one.number, one.found))
            else:
                good.append(Ended(one.number, one.found, _utc(one.begun_s), _utc(one.ended_s)))
        if good:
            self.ended(good)
        for failed in bad:
            self._fail(failed.number, failed.error)
        if report.refused is not None:
            # It has come after the last look, which refuses it.
            self._watched_s = 0.0
        for key in report.lacks:
            self._give(report, key)
        if report.unable is not None:
            number, reason = report.unable
            self._cannot(report.worker, f"{report.machine}: {reason}")
            self._unable[number] = self._unable.get(number, 0) + 1
            if self._unable[number] >= _UNABLE_MAX:
                del tasks[number]
                self._fail(number, MachineError(reason))
        self._batches.back(list(tasks.items()))

    def _take_error(self, sent: _Sent) -> None:
        error = sent.future.exception()
        if isinstance(error, KilledWorker):
            if len(sent.tasks) > 1:
                self._alone += [[one] for one in sent.tasks]
                return
            [(number, task)] = sent.tasks
            reason = f"{what(task.experiment)}: its worker ended each time while it ran"
            self._fail(number, RunError(reason))
            return
        if isinstance(error, ImportError):
            # A worker without blklab, which has come after the last look.
            self._watched_s = 0.0
            self._batches.back(sent.tasks)
            return
        raise RunError(f"--on: {self.cluster.connection.name}: {error or type(error).__name__}")

    def _give(self, report: worker.Report, key: str) -> None:
        """Send a kernel to a worker."""
        packed = carried.pack(key)
        try:
            answers = self._client.run(
                worker.receive, packed, workers=[report.worker], on_error="return"
            )
        except (OSError, ValueError):
            # It has gone, or the scheduler.
            return
        error = answers.get(report.worker)
        if error is not None:
            self._cannot(report.worker, f"{report.machine}: cannot keep kernel {key}: {error}")

    def _cannot(self, address: str, reason: str) -> None:
        self._workers.refuse(address, f"worker {address} on {reason}")
        self._workers.check(self.cluster.connection.name)

    def _fail(self, number: int, error: BlklabError) -> None:
        if self.failed is None:
            raise error
        self.failed(Failed(number, error))

    def _take_back(self, key: str) -> None:
        """It is to be sent again."""
        sent = self._sent.pop(key)
        with suppress(Exception):
            sent.future.cancel(force=True)
        self._batches.back(sent.tasks)

    def _again(self) -> None:
        """Connect again, and send again what has no result. RunError if that fails."""
        connection = self.cluster.connection
        self.cluster.tell(f"{connection.name}: the scheduler is lost; connecting again")
        for key in list(self._sent):
            self._batches.back(self._sent.pop(key).tasks)
        if not connection.again(self.cluster.patience_s, self._take_effect):
            raise RunError(
                f"--on: {connection.name}: the scheduler does not answer any more, for "
                f"{self.cluster.patience_s:.0f} s"
            )
        self._workers = Workers(self.cluster.tell, refused=self._workers.refused)
        self._watched_s = 0.0

    def _cancel(self) -> None:
        """End what runs; the error of the call is more important than one of this."""
        with suppress(Exception):
            if not self.cluster.connection.is_lost:
                self._client.cancel([sent.future for sent in self._sent.values()], force=True)
                self._client.run(worker.end, self.id, workers=self._workers.allowed)


def _kernels(tasks: Sequence[Numbered]) -> tuple[tuple[str, str], ...]:
    """The kernels that they need; tasks name kernels by their keys."""
    keys = {
        key
        for _, task in tasks
        if task.rig.name == "kernel"
        for key in (task.rig.kernel, task.experiment.scheduler.kernel)
        if key is not None
    }
    return tuple((key, carried.content_hash(key)) for key in sorted(keys))


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
