"""``blklab.disk_from_io_cost``: a solid-state disk's file from the six figures of io.cost.

Each figure has one part of the model that bounds it:

* `rrandiops`: the dies. Their number follows from the read time of this kind of flash; then the
  read time is set so that 2,048 reads in flight, some of which wait for a busy die, give the
  measured rate.
* `rbps`: the link, or the stream rate where other figures need a faster link.
* `rseqiops`, `wseqiops`, `wrandiops`: the firmware's time for such a command.
* `wbps`: the program time of flash, or the stream rate where 4 KiB writes are faster, as on drives
  with an SLC cache that takes random writes and not streams.

All other keys are estimates, and their comments say so.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn, TypeAlias

from blklab.api.iocost import DEPTH, JOBS, Bench, IoCostRun, io_cost
from blklab.api.listener import SILENT, Listener
from blklab.base.catalogue import Entry
from blklab.base.files import text_content
from blklab.base.text import shown
from blklab.domain import core
from blklab.domain.experiment import Disk
from blklab.domain.iocost import BLOCK_BYTES, NAMES, IoCost, Measured, parse
from blklab.errors import InputError

TOLERANCE = 0.05
"""The largest deviation of the made disk in each figure."""
TRANSPORTS = ("sata", "nvme")
BYTES_MAX = 1 << 20
"""The largest size of a file with figures."""
_RANDOM_READS_MIN = 1_000
"""A hard disk has fewer: the kernel's figure for one is 370."""
_REQUEST_BYTES = 1280 << 10
"""The largest request that Linux makes from a larger one, with which the other figures are
compared."""
_SMALL_OVER_LARGE_MAX = 8
"""4 KiB operations may move this many times the bytes of large ones, for example in an SLC
cache."""
_SATA_BYTES_PER_S = 600e6
_SATA_READS_PER_S = 110_000
_READ_US = 60.0
_DIES_MAX = 4096
_CHANNEL_MB_S = 400.0
_PROGRAM_US_MAX = 20_000.0
_SPARE_PERCENT = 7
_SPARE_SUPERBLOCKS = 16
_CAPACITY_BYTES = 256_060_514_304
_SLACK = 1.5
"""The speed factor of parts that must not bound a figure."""
_TRIAL_SECONDS = 2.0
_UNTOLD = "estimate: not determined by the figures"


@dataclass(frozen=True)
class DiskFromIoCost:
    """A disk file that was made from figures."""

    text: str
    """The file, in TOML."""
    figures: IoCost
    """The figures it was made from."""
    found: IoCost
    """The figures that `blklab.io_cost` measures on it."""

    @property
    def errors(self) -> dict[str, float]:
        """The relative deviation of the model in each figure."""
        pairs = zip(NAMES, asdict(self.figures).values(), asdict(self.found).values(), strict=True)
        return {name: ours / theirs - 1 for name, theirs, ours in pairs}

    @property
    def off(self) -> dict[str, float]:
        """The deviations above `TOLERANCE`."""
        return {name: error for name, error in self.errors.items() if abs(error) > TOLERANCE}


def disk_from_io_cost(
    text: str | os.PathLike[str],
    *,
    model: str | None = None,
    name: str | None = None,
    capacity_bytes: int | None = None,
    transport: str | None = None,
    listener: Listener = SILENT,
) -> DiskFromIoCost:
    """A first guess of a solid-state disk from its figures of io.cost.

    Args:
        text: a line of `io.cost.model`, a line ``IOCOST_MODEL_...=`` of systemd's hwdb, or a
            table in CSV with a column for each figure; or the path of a file with one of these.
        model: the row of a table, by its column ``model``.
        name: name of the disk; by default the table's.
        capacity_bytes: by default the table's, or 256 GB.
        transport: ``sata`` or ``nvme``; by default what the figures allow.
        listener: receives a note for each figure that the model misses.

    Raises:
        blklab.errors.InputError: the figures are missing or impossible; one line names the error.
    """
    measured = parse(_content(text), model=model)
    if transport is not None and transport not in TRANSPORTS:
        raise InputError(f"transport: found '{shown(transport)}'; expected sata or nvme")
    _check(measured.figures)
    label = name or measured.model or "Disk from io.cost"
    guess = _guess(measured, label, capacity_bytes, transport)
    guess = _tuned(guess, measured.figures.rrandiops)
    found = io_cost(_disk(guess.text()), seconds=_TRIAL_SECONDS)
    heads = (f"figures: {_words(measured.figures)}", f"this model: {_words(found)}")
    made = DiskFromIoCost(guess.text(*heads), measured.figures, found)
    for figure, error in made.off.items():
        listener.note(f"{figure}: the model is off by {100 * error:+.0f} %")
    return made


_Keys: TypeAlias = dict[str, tuple[object, str]]
"""Keys of a disk file: the value of each, and its comment."""


@dataclass(frozen=True)
class _Guess:
    """A disk file under construction."""

    summary: tuple[str, ...]
    keys: _Keys

    def quicker(self, times: float) -> _Guess:
        """The same with die reads faster by this factor."""
        listed, _ = self.keys["read_us"]
        assert isinstance(listed, list)
        read_us = [_digits(each / times) for each in listed]
        source = "dies over rrandiops, less the waits for busy ones with 2,048 in flight"
        return _Guess(self.summary, {**self.keys, "read_us": (read_us, source)})

    def text(self, *heads: str) -> str:
        """The file's text, with these lines at the top."""
        given = [(f"{key} = {json.dumps(value)}", why) for key, (value, why) in self.keys.items()]
        width = max(len(line) for line, why in given if why)
        rows = [f"{line:{width}}  # {why}" if why else line for line, why in given]
        return "\n".join([*(f"# {head}" for head in (*self.summary, *heads)), "", *rows]) + "\n"


def _guess(measured: Measured, label: str, size: int | None, transport: str | None) -> _Guess:
    figures = measured.figures
    link = max(figures.rbps, figures.wbps, _small(figures) * BLOCK_BYTES)
    reads = max(figures.rseqiops, figures.rrandiops)
    is_sata = link <= _SATA_BYTES_PER_S and reads <= _SATA_READS_PER_S
    sata = (transport or ("sata" if is_sata else "nvme")) == "sata"
    capacity = size or measured.size_bytes or _CAPACITY_BYTES
    told = "as asked for" if size else "the table's" if measured.size_bytes else _UNTOLD
    keys: _Keys = {
        "kind": ("ssd", ""),
        "name": (label, ""),
        "summary": ("solid-state disk made from six figures of io.cost", ""),
        "transport": ("sata" if sata else "nvme", ""),
        "capacity_sectors": (capacity // 512, told),
        "link_mb_s": (_digits(link / 1e6), "the largest of rbps, wbps and 4 KiB times each rate"),
        **(_SATA if sata else _NVME),
        **_flash(figures, link, capacity),
        **_firmware(figures, link),
    }
    summary = (
        f"{label}, from its figures of io.cost.",
        "A first guess: six rates of a short file do not determine a drive's parts;",
        "caches, collection and latencies are estimates.",
    )
    return _Guess(summary, keys)


_SATA: _Keys = {
    "queue_depth": (32, "SATA NCQ"),
    "fua": (False, "SATA drives seldom report FUA"),
    "read_latency_us": (30, "estimate: as SATA drives"),
    "write_latency_us": (10, "estimate: as SATA drives"),
}
_NVME: _Keys = {
    "queue_depth": (1023, "Linux's nvme driver: queues of 1,024, one place unused"),
    "hw_queues": (8, _UNTOLD),
    "fua": (True, "NVMe: FUA is a bit of every write"),
    "read_latency_us": (10, "estimate: as NVMe drives"),
    "write_latency_us": (5, "estimate: as NVMe drives"),
}


def _flash(figures: IoCost, link: int, capacity: int) -> _Keys:
    """Dies, channels, and the buffer in front of them."""
    channels, per_channel = _dies(figures.rrandiops)
    dies = channels * per_channel
    read_us = dies / figures.rrandiops * 1e6
    planes, page_kib = _pages(dies / read_us * 1e6, figures.rbps)
    row_kib = dies * planes * page_kib
    writes = max(figures.wseqiops, figures.wrandiops) * BLOCK_BYTES
    pace = figures.wbps if figures.wbps >= writes else writes * _SLACK
    program_us = min(row_kib * 1024 / pace * 1e6, _PROGRAM_US_MAX)
    keys: _Keys = {
        "channels": (channels, "estimate: as drives with so many dies"),
        "dies_per_channel": (per_channel, f"rrandiops times {_READ_US:.0f} us, as flash takes"),
        "planes": (planes, "estimate: so that rrandiops pages a second carry more than rbps"),
        "page_kib": (page_kib, "estimate: page of today's flash"),
        "pages_per_block": (
            _pages_per_block(capacity, row_kib << 10),
            "estimate: sixteen superblocks to spare",
        ),
        "read_us": ([_digits(read_us)], "dies over rrandiops"),
        "program_us": ([_digits(program_us)], "the pages of all dies over wbps"),
        "suspend_us": (30, "estimate: no maker publishes it"),
        "channel_mb_s": (
            _digits(max(_CHANNEL_MB_S, 2 * link / channels / 1e6)),
            "estimate: together twice the link",
        ),
        "read_ahead_kib": (max(512, min(row_kib, 65536)), "estimate: keeps the dies busy"),
        "write_buffer_kib": (max(4096, 4 * row_kib), "estimate: four pages of every plane"),
        "overprovision_percent": (_SPARE_PERCENT, "estimate: usual"),
    }
    if figures.wbps < writes or program_us >= _PROGRAM_US_MAX:
        keys["program_us"] = ([_digits(program_us)], "estimate: 4 KiB writes outdo wbps")
        keys["stream_write_mb_s"] = (_digits(figures.wbps / 1e6), "wbps")
    return keys


def _firmware(figures: IoCost, link: int) -> _Keys:
    """Times of the controller, the bound of small operations."""
    command_us = 1e6 / _small(figures) / _SLACK
    keys: _Keys = {
        "command_us": (_digits(command_us), "two thirds of the time between the quickest"),
        "write_command_us": (_digits(1e6 / figures.wrandiops), "1 / wrandiops"),
        "stream_read_us": (_digits(1e6 / figures.rseqiops), "1 / rseqiops"),
        "stream_write_us": (_digits(1e6 / figures.wseqiops), "1 / wseqiops"),
        "flush_us": (1000, "estimate: mapping pages on two dies in turn"),
    }
    if figures.rbps < link:
        keys["stream_read_mb_s"] = (_digits(figures.rbps / 1e6), "rbps")
    return keys


def _small(figures: IoCost) -> int:
    """The highest rate of 4 KiB operations."""
    return max(figures.rseqiops, figures.rrandiops, figures.wseqiops, figures.wrandiops)


def _tuned(guess: _Guess, target: int) -> _Guess:
    """The guess with the read time that gives the measured rate of random reads: some reads in
    flight wait for a busy die while other dies are idle."""
    run = IoCostRun("randread", BLOCK_BYTES, DEPTH, JOBS)
    for _ in range(4):
        found = Bench(_disk(guess.text()), _TRIAL_SECONDS).per_second(run)
        if abs(found / target - 1) < TOLERANCE / 10:
            break
        guess = guess.quicker(target / found)
    return guess


def _check(figures: IoCost) -> None:
    """InputError if no solid-state disk has such figures."""
    if figures.rrandiops < _RANDOM_READS_MIN:
        _refuse(
            f"rrandiops={figures.rrandiops}: a hard disk's; expected {_RANDOM_READS_MIN} or more"
        )
    for large, names in (("rbps", ("rseqiops", "rrandiops")), ("wbps", ("wseqiops", "wrandiops"))):
        rate = getattr(figures, large)
        for name in names:
            each = getattr(figures, name)
            if each * BLOCK_BYTES > _SMALL_OVER_LARGE_MAX * rate:
                _refuse(
                    f"{name}={each} and {large}={rate} contradict each other: so many of 4 KiB "
                    f"are more than {_SMALL_OVER_LARGE_MAX} times {large}"
                )
        sequential = getattr(figures, names[0])
        if sequential * _REQUEST_BYTES < rate:
            _refuse(
                f"{names[0]}={sequential} and {large}={rate} contradict each other: so many "
                f"requests of 1280 KiB are less than {large}"
            )
    if figures.rbps > figures.rrandiops * (512 << 10) / _SLACK:
        _refuse(
            f"rrandiops={figures.rrandiops} and rbps={figures.rbps} contradict each other: so many "
            "pages of 512 KiB, the largest of the model, do not carry rbps"
        )


def _dies(random_reads: int) -> tuple[int, int]:
    """Channels, and dies on each."""
    dies = min(max(1.0, random_reads * _READ_US / 1e6), float(_DIES_MAX))
    channels = next(n for n in (1, 2, 4, 8, 16, 32, 64) if dies <= 4 * n or n == 64)  # noqa: PLR2004
    channels = min(channels, max(1, math.floor(dies)))
    return channels, max(1, round(dies / channels))


def _pages(reads_per_s: float, rbps: int) -> tuple[int, int]:
    """Planes and page size in KiB with which reading whole stripes is faster than `rbps`."""
    for planes, kib in ((2, 16), (4, 16), (8, 16), (8, 32), (8, 64)):
        if reads_per_s * (planes * kib << 10) >= _SLACK * rbps:
            break
    return planes, kib


def _pages_per_block(capacity: int, row_bytes: int) -> int:
    spare = capacity * _SPARE_PERCENT / 100
    most = int(spare / _SPARE_SUPERBLOCKS / row_bytes)
    if most < 1:
        _refuse(f"a disk of {capacity} bytes is too small for the dies that rrandiops needs")
    return min(1 << (most.bit_length() - 1), 1024)


def _disk(text: str) -> Disk:
    disk = Disk(Entry("from-iocost", Path("from-iocost.toml"), text))
    core.disk_model(disk)
    return disk


def _content(text: str | os.PathLike[str]) -> str:
    if isinstance(text, str):
        return text
    return text_content(Path(text), BYTES_MAX, "figures of io.cost")


def _words(figures: IoCost) -> str:
    return " ".join(f"{name}={value}" for name, value in asdict(figures).items())


def _digits(value: float) -> float:
    """Five significant digits."""
    return float(f"{value:.5g}")


def _refuse(what: str) -> NoReturn:
    raise InputError(f"io.cost: {what}")
