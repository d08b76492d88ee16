"""A single run, as ``blklab fio`` makes it: a comparison of one scheduler with itself.

`blklab.store.importing` writes it into the store like all others, but not at once: loading the
database libraries takes longer than many a run. So it is one file in a directory beside the store,
and the next process that opens the store imports the waiting files. A file is an export of one
comparison in the format of `blklab.store.exchange`; its `uid` prevents a second import.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from blklab.base.files import check_directory, write_together
from blklab.domain.comparison import Planned
from blklab.domain.measurement import measure
from blklab.domain.result import Result
from blklab.domain.setup import SetupData
from blklab.errors import BlklabError, StoreError
from blklab.store import origin, packing
from blklab.store.origin import facts
from blklab.store.packing import DamagedError

if TYPE_CHECKING:
    from blklab.store.database import Store
    from blklab.store.document import ComparisonDocument
    from blklab.store.place import StorePlace


@dataclass(frozen=True)
class Single:
    """The place of one run in the store."""

    place: StorePlace
    described: SetupData
    """The set-up from `blklab.experiment.describe`."""
    server: Store | None = None
    """The open store, if it is not a file."""

    def keep(
        self, planned: Planned, result: Result, begun_at: datetime, ended_at: datetime
    ) -> None:
        """Both times are UTC. StoreError or RunError, one line, if it cannot be stored."""
        document = _document(self.described, planned, result, begun_at, ended_at)
        if self.server is not None:
            from blklab.store import importing, packing

            one = parsed(packing.pack_json(document))
            importing.put(self.server, [one], elsewhere=False)
            return
        put(self.place, document, durable=self.described["rig"] != "sim")

    @property
    def many_wait(self) -> bool:
        """Whether so many runs wait that this command should import them, to spare the next one."""
        return self.server is None and len(files(self.place)) % MANY == 0


def _document(
    described: SetupData,
    planned: Planned,
    result: Result,
    begun_at: datetime,
    ended_at: datetime,
) -> dict[str, Any]:
    """The JSON of a `blklab.store.document.ComparisonDocument`, made without the class, because
    creating the class takes longer than writing the file."""
    times = {
        "begun_at": begun_at.isoformat(timespec="milliseconds"),
        "ended_at": ended_at.isoformat(timespec="milliseconds"),
    }
    run = {
        "number": 0,
        **times,
        "measurement": measure(planned.experiment, result, repeat=0),
        "device_before": result.device_before,
        "device_after": result.device_after,
        "raw": result.raw,
    }
    return {
        "uid": uuid.uuid4().hex,
        **times,
        "rig": described["rig"],
        "machine": origin.machine(),
        "objective": "both",
        "planned": 1,
        "setup": described,
        "facts": facts(described["rig"]),
        "runs": [run],
    }


MANY = 100
"""From this number on, the writer imports them, so that the next command does not have to."""
_ENDING = ".run"
_ASIDE = ".refused"
_SQLITE = b"SQLite format 3\0"


def check(place: StorePlace) -> None:
    """BlklabError, one line, if no file can be written there, or if the store's path is something
    else."""
    assert place.file is not None, "runs for a server do not wait"
    check_directory(directory(place))
    try:
        with place.file.open("rb") as file:
            head = file.read(len(_SQLITE))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{place.text}: {error.strerror or error}") from error
    if head and head != _SQLITE:
        raise StoreError(f"{place.text}: not a store of blklab, or damaged")


def directory(place: StorePlace) -> Path:
    """The directory of waiting runs of that store."""
    assert place.file is not None, "runs for a server do not wait"
    return place.file.with_name(f"{place.file.name}-waiting")


def files(place: StorePlace) -> list[Path]:
    """The waiting files."""
    return [] if place.file is None else sorted(directory(place).glob(f"*{_ENDING}"))


def put(place: StorePlace, document: Mapping[str, Any], *, durable: bool) -> None:
    """One run; see `blklab.store.database.open_database` for `durable`. RunError."""
    file = directory(place) / f"{document['uid']}{_ENDING}"
    write_together({file: packing.pack_json(document)}, durable=durable)


def parsed(content: bytes) -> ComparisonDocument:
    """The run that `put` has written. DamagedError."""
    from blklab.store.document import ComparisonDocument

    try:
        return msgspec.convert(packing.unpack_json(content), ComparisonDocument)
    except msgspec.ValidationError as error:
        raise DamagedError(str(error)) from error


def take_in(store: Store, waiting: Sequence[Path]) -> list[str]:
    """Import these into the store; returns a line for each obstacle. A run that no store would
    accept is set aside, so that it is reported once and does not block the others; the rest keeps
    waiting.
    """
    from blklab.store import importing

    told: list[str] = []
    runs: dict[Path, ComparisonDocument] = {}
    for file in waiting:
        try:
            content = file.read_bytes()
            # Truncated by a power cut, which is possible for a run without `durable`.
            if content:
                runs[file] = parsed(content)
        except FileNotFoundError:
            # Another process has imported it meanwhile.
            continue
        except OSError as error:
            told.append(f"{file}: {error.strerror or error}")
        except (DamagedError, UnicodeError) as error:
            told += _set_aside(file, str(error))
        else:
            if not content:
                _remove(file)
    if not runs:
        return told
    in_order = sorted(runs, key=lambda file: runs[file].begun_at)
    try:
        reasons = importing.put_each(store, [runs[file] for file in in_order])
    except BlklabError as error:
        what = "1 run of 'blklab fio' is" if len(runs) == 1 else f"{len(runs)} runs are"
        told.append(f"{what} not imported yet: {error}")
        return told
    for file, why in zip(in_order, reasons, strict=True):
        if why:
            told += _set_aside(file, why)
        else:
            _remove(file)
    return told


def _set_aside(file: Path, why: str) -> list[str]:
    """A line for the user; none if another process has set it aside meanwhile."""
    aside = file.with_suffix(_ASIDE)
    line = f"{file}: not a run that waits for the store, or damaged: {why}"
    try:
        file.replace(aside)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"{line}; not set aside: {error.strerror or error}"]
    return [f"{line}; set aside as {aside.name}"]


def _remove(file: Path) -> None:
    """A file that cannot be removed is recognised as imported the next time."""
    with contextlib.suppress(OSError):
        file.unlink()
