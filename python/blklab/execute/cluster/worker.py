"""What a worker does: it runs batches of tasks. These functions run in the worker's process.

A batch ends early after some seconds, whatever was expected of its runs, and when the machine
cannot do them. What it has not run goes back to the caller.
"""

from __future__ import annotations

import errno
import platform
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from distributed import get_worker

from blklab.domain.task import Task
from blklab.errors import BlklabError, MachineError
from blklab.execute.identity import Identity, identity
from blklab.execute.interface import Found
from blklab.execute.local import Rigs
from blklab.execute.one import carried_out
from blklab.rigs.kernel import carried

BATCH_S_MAX = 2.0
"""After this time a batch begins no further run."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE}
"""Errors of a machine, not of a run."""
_ENDED_MAX = 1000


@dataclass(frozen=True)
class Order:
    """A batch."""

    call: str
    """The id of the caller's call."""
    code: Identity
    """The caller's code."""
    tasks: tuple[tuple[int, bytes], ...]
    """Each with its number."""
    stops: bool
    """Whether the first failed run ends the batch."""
    kernels: tuple[tuple[str, str], ...] = ()
    """The keys of the kernels that it needs, each with the hash of its content."""


@dataclass(frozen=True)
class OneEnded:
    """A run of a batch."""

    number: int
    found: Found | BlklabError
    begun_s: float
    """Seconds since the epoch, as `ended_s`."""
    ended_s: float
    took_s: float
    """All of the worker's time for it."""


@dataclass
class Report:
    """What a batch has done; tasks that are not in it are to be run elsewhere."""

    machine: str
    """The worker's machine."""
    worker: str
    """Its address."""
    ended: list[OneEnded] = field(default_factory=list)
    refused: Identity | None = None
    """This worker's code, if it is another one: nothing was run."""
    lacks: tuple[str, ...] = ()
    """Keys of kernels that are not in the cache here: nothing was run."""
    unable: tuple[int, str] | None = None
    """The number of a task that this machine cannot do, and the reason."""


_LOCK = threading.Lock()
_RUNNING: dict[str, list[Rigs]] = {}
"""By call."""
_ENDED: OrderedDict[str, None] = OrderedDict()
"""Calls that have ended: their batches do nothing."""


def examined() -> Identity:
    """The worker's code."""
    return identity()


def run_batch(order: Order) -> Report:
    """Run tasks until all have run, or `BATCH_S_MAX` has passed."""
    report = Report(platform.node(), get_worker().address)
    if identity() != order.code:
        report.refused = identity()
        return report
    for key, content_hash in order.kernels:
        its = carried.content_hash(key)
        if not its:
            report.lacks += (key,)
        elif its != content_hash:
            # The same sources and options, compiled by another compiler.
            report.unable = order.tasks[0][0], f"has another build of kernel {key}"
    if report.lacks or report.unable:
        return report
    with _rigs_of(order.call) as rigs:
        start_s = time.monotonic()
        for number, content in order.tasks:
            if order.call in _ENDED or time.monotonic() - start_s > BATCH_S_MAX:
                break
            found = _ended(number, content, rigs)
            if isinstance(found, str):
                report.unable = number, found
                break
            report.ended.append(found)
            if order.stops and isinstance(found.found, BlklabError):
                break
    return report


def end(call: str) -> None:
    """The call has ended: its runs are cancelled."""
    with _LOCK:
        _ENDED[call] = None
        while len(_ENDED) > _ENDED_MAX:
            _ENDED.popitem(last=False)
        for rigs in _RUNNING.get(call, ()):
            rigs.cancel()


def receive(packed: carried.Packed) -> None:
    """A kernel for the cache here."""
    carried.unpack(packed)


def _ended(number: int, content: bytes, rigs: Rigs) -> OneEnded | str:
    """The end of a run; the reason if this machine cannot do it."""
    start_s, begun_s = time.monotonic(), time.time()
    found: Found | BlklabError
    try:
        task = Task.from_bytes(content)
        found = carried_out(task, rigs.of(task.rig), number).found
    except BlklabError as error:
        if reason := _reason_of_machine(error):
            return reason
        found = error
    except KeyboardInterrupt:
        # Cancelled by `end`: the caller takes nothing any more.
        return "cancelled"
    return OneEnded(number, found, begun_s, time.time(), time.monotonic() - start_s)


def _reason_of_machine(error: BlklabError) -> str:
    """Why another machine may do the run; empty if it fails everywhere."""
    causes = _causes(error)
    full = any(isinstance(one, OSError) and one.errno in _FULL for one in causes)
    spent = any(isinstance(one, MemoryError) for one in causes)
    return str(error) if full or spent or isinstance(error, MachineError) else ""


def _causes(error: BaseException) -> Sequence[BaseException]:
    found: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in found:
        found.append(one)
        one = one.__cause__ or one.__context__
    return found


@contextmanager
def _rigs_of(call: str) -> Iterator[Rigs]:
    rigs = Rigs()
    with _LOCK:
        _RUNNING.setdefault(call, []).append(rigs)
    try:
        yield rigs
    finally:
        with _LOCK:
            _RUNNING[call].remove(rigs)
            if not _RUNNING[call]:
                del _RUNNING[call]
