"""The figures of io.cost, the kernel's model of a disk's cost: six rates, and the texts with them.

cgroup 2's `io.cost.model` takes them, Linux's `tools/cgroup/iocost_coef_gen.py` measures them,
systemd's ``90-iocost.hwdb`` lists them by drive, and tables of measured drives have a column for
each.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import NoReturn

from blklab.base.text import shown
from blklab.errors import InputError, nearest

BLOCK_BYTES = 4096
"""The size of the operations that the rates count."""
_DEVICE = re.compile(r"\d+:\d+")
_HWDB = re.compile(r"\s*IOCOST_MODELS?(_\w+)?\s*=\s*")
_OTHER_KEYS = frozenset({"enable", "ctrl", "model"})
"""Keys of a line that are not figures."""
_SECTOR_BYTES = 512


@dataclass(frozen=True)
class IoCost:
    """The figures of `io.cost.model`, in the order of its line."""

    rbps: int
    """Bytes read per second in large sequential operations."""
    rseqiops: int
    """Sequential reads of `BLOCK_BYTES` per second."""
    rrandiops: int
    """Random ones."""
    wbps: int
    """The same for writes."""
    wseqiops: int
    wrandiops: int

    def model_line(self, device: str | None = None) -> str:
        """A line for `io.cost.model`; `device` is MAJOR:MINOR."""
        figures = " ".join(f"{name}={value}" for name, value in asdict(self).items())
        return f"{device + ' ' if device else ''}ctrl=user model=linear {figures}"


NAMES = tuple(IoCost.__dataclass_fields__)
MOST = {name: 10**11 if name.endswith("bps") else 10**8 for name in NAMES}
"""The largest figures that are accepted."""


@dataclass(frozen=True)
class Measured:
    """The figures of a drive, and its other columns in a table."""

    figures: IoCost
    model: str | None = None
    size_bytes: int | None = None
    rlat_p95_us: float | None = None
    """95 % of random reads took at most this, measured as in `blklab.api.iocost`."""


def checked_device(text: str) -> str:
    """Checks the form MAJOR:MINOR. InputError for any other."""
    if not _DEVICE.fullmatch(text):
        raise InputError(
            f"device: found '{shown(text)}'; expected MAJOR:MINOR, as in /proc/partitions"
        )
    return text


def parse(text: str, *, model: str | None = None) -> Measured:
    """The figures in `text`: a line of `io.cost.model` or of a hwdb, or a CSV table with the
    columns' names in the first row; `model` chooses a row.

    InputError with one line if there is none, or if a figure is missing, unknown or out of range.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError("io.cost: no figures; expected a line with rbps=... to wrandiops=...")
    if "=" not in lines[0] and "," in lines[0]:
        return _table(lines, model)
    if model is not None:
        raise InputError(
            f"io.cost: --model '{shown(model)}' chooses a row of a table, not of a line"
        )
    if len(lines) > 1:
        raise InputError(f"io.cost: found {len(lines)} lines; expected one, or a table in CSV")
    return Measured(_line(lines[0]))


def _line(line: str) -> IoCost:
    found: dict[str, str] = {}
    words = _HWDB.sub("", line, count=1).split()
    for number, word in enumerate(words):
        key, equals, value = word.partition("=")
        if number == 0 and _DEVICE.fullmatch(word):
            continue
        if not equals:
            _refuse(f"expected key=value, found '{shown(word)}'")
        if key in found:
            _refuse(f"{key} is given twice")
        if key not in NAMES and key not in _OTHER_KEYS:
            _refuse(f"unknown key '{shown(key)}'{nearest(key, NAMES)}")
        found[key] = value
    if found.get("model", "linear") != "linear":
        _refuse(f"model: found '{shown(found['model'])}'; only linear is known")
    return _figures(found)


def _table(lines: list[str], model: str | None) -> Measured:
    try:
        rows = list(csv.DictReader(lines, strict=True))
    except csv.Error as error:
        _refuse(f"not a table in CSV: {error}")
    heads = [head.strip() for head in next(csv.reader(lines[:1]))]
    missing = [name for name in NAMES if name not in heads]
    if missing:
        _refuse(f"the table's first row has no column {missing[0]}")
    rows = [{(key or "").strip(): value for key, value in row.items()} for row in rows]
    if model is not None:
        chosen = [row for row in rows if model in (row.get("model"), row.get("result"))]
        if not chosen:
            names = {row.get("model") or "" for row in rows} - {""}
            _refuse(f"the table has no model '{shown(model)}'{nearest(model, names)}")
        rows = chosen[:1]
    if len(rows) != 1:
        _refuse(f"the table has {len(rows)} rows; choose one with --model NAME")
    row = {key: value or "" for key, value in rows[0].items() if isinstance(value, str)}
    size = _whole("size_bytes", row["size_bytes"], 10**18) if row.get("size_bytes") else None
    if size is not None and size < _SECTOR_BYTES:
        _refuse(f"size_bytes: found {size}; less than a sector")
    return Measured(_figures(row), row.get("model") or None, size, _latency(row))


def _latency(row: Mapping[str, str]) -> float | None:
    text = row.get("rlat_p95_us")
    return float(_whole("rlat_p95_us", text, 10**9)) if text else None


def _figures(found: Mapping[str, str]) -> IoCost:
    missing = [name for name in NAMES if name not in found]
    if missing:
        _refuse(f"{missing[0]} is missing; expected {', '.join(NAMES)}")
    return IoCost(**{name: _whole(name, found[name], MOST[name]) for name in NAMES})


def _whole(name: str, text: str, most: int) -> int:
    digits = text.strip()
    if not re.fullmatch(r"[0-9]{1,20}", digits) or not 1 <= int(digits) <= most:
        _refuse(f"{name}: found '{shown(text)}'; expected a whole number from 1 to {most}")
    return int(digits)


def _refuse(what: str) -> NoReturn:
    raise InputError(f"io.cost: {what}")
