"""The small languages of the command line, and of the lists in a study that are the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

from blklab import _core, programs
from blklab.domain import core, scheduler, specs, stored, sweep
from blklab.experiment import budget
from blklab.host.devices import queue as queues
from blklab.host.devices.queue import Queue
from blklab.host.roots import Roots
from blklab.rigs.kernel import cache as kernels
from blklab.rigs.kernel import config
from blklab.settings import choice
from blklab_fuzz.checks import refusing, scratch, text

_SWEEP_MAX = 100


def kernel_scheduler(data: bytes) -> None:
    """``name:tunable=value,...`` for a guest, with ``@kernel`` after it."""
    with refusing(data):
        asked = specs.scheduler(text(data))
        assert specs.scheduler(asked.label) == asked
        spec = asked.text
        found = scheduler.parse(spec)
        told = found.for_guest({"nr_requests": 64}, "7.3.4")
        for name in (told["scheduler"], *told["queue"], *told["iosched"]):
            # They become files of sysfs.
            assert "/" not in name and "." not in name and name, name
        assert scheduler.parse(spec) == found


def disk(data: bytes) -> None:
    """``name:key=value,...``"""
    _inside()
    with refusing(data):
        found = specs.disk(text(data))
        core.disk_model(found)


def workload(data: bytes) -> None:
    """``name:option=value,numjobs=4..256`` or ``program:parameter=value``."""
    _inside()
    with refusing(data):
        several = sweep.expanded(text(data))
        assert 0 < len(several) <= _SWEEP_MAX
        sweep.sweeps(several)
        for found in specs.workloads([text(data)]):
            if programs.is_program(found):
                chosen = programs.chosen(found)
                # Some programs have no parameters.
                assert list(chosen.values) == [one.name for one in chosen.program.parameters]
            else:
                assert core.describe_job(found, ignore_unsupported=True).jobs


def option(data: bytes) -> None:
    """The name of a kind, a line's end, and a value of it."""
    kind, _, rest = data.partition(b"\n")
    read = OPTIONS.get(kind.decode(errors="replace"))
    if read is not None:
        _inside()
        with refusing(data):
            read(text(rest))


def _host(spec: str) -> None:
    for name, value in specs.host([spec]).items():
        row = _host_rows()[name]
        assert row.min <= value <= row.max, (name, value)


def _choice(spec: str) -> None:
    settings = choice.parse(spec, _queue())
    choice.check(settings)
    assert choice.together(settings) == settings


def _set(spec: str) -> None:
    choice.check(choice.of_queue(specs.settings([spec])))


def _name(spec: str) -> None:
    name = kernels.checked_name(spec)
    assert Path(name).name == name and not name.startswith("."), name


def _config(spec: str) -> None:
    made = config.fragment([spec])
    assert made.text().count("\n") == len(config.parse(made.text())), "a line too many"
    assert config.parse(made.text()).items() >= made.own.items()


def _device(spec: str) -> None:
    assert queues.find(spec, Roots.under(scratch()))


OPTIONS: dict[str, Callable[[str], object]] = {
    "host": _host,
    "apply": _choice,
    "set": _set,
    "budget": budget.seconds,
    "since": stored.since,
    "name": _name,
    "config": _config,
    "device": _device,
}
"""The parser of each option's value."""


@cache
def _queue() -> Queue:
    directory = scratch() / "sda"
    (directory / "queue").mkdir(parents=True)
    return Queue("sda", directory, "1")


@cache
def _host_rows() -> dict[str, _core.Tunable]:
    tables = core.environment()
    return {row.name: row for name in tables if name != "queue" for row in tables[name]}


@cache
def _inside() -> None:
    """File names are looked up in an empty directory."""
    place = scratch() / "nothing"
    place.mkdir()
    os.chdir(place)
    os.environ["XDG_DATA_HOME"] = str(place)
