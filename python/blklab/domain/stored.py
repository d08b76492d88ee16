"""Numbers and times of stored comparisons, as the user writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from blklab.errors import InputError

_MOST = 2**31 - 1
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"(\d{1,5})([mhdw])", re.ASCII)


def number(text: str) -> int:
    """``12``. InputError for anything else."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MOST))):
        raise InputError(f"'{text}': not the number of a comparison; see: blklab results")
    found = int(text)
    if not 0 < found <= _MOST:
        raise InputError(f"'{text}': no comparison has that number; see: blklab results")
    return found


def numbers(text: str) -> list[int]:
    """``12`` or ``12,15``. InputError."""
    return list(dict.fromkeys(number(part) for part in text.split(",")))


def since(text: str) -> str:
    """``7d`` ago, or ``2026-11-22`` with or without a time of this machine's clock: ISO 8601 in
    UTC. InputError if it is neither."""
    try:
        if ago := _AGO.fullmatch(text):
            then = datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        else:
            then = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"--since: '{text}' is not a time; "
            "expected 2026-11-22, '2026-11-22 10:00' or 30m, 12h, 7d"
        ) from error
    return then.isoformat(timespec="milliseconds")


def local(kept: str) -> str:
    """A stored time by this machine's clock, to the minute."""
    try:
        return f"{datetime.fromisoformat(kept).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return kept
