"""Collect from all hosts into one directory, which is judged later, here or elsewhere.

It has a directory for each host: `ANSWER` with the machine's answer, `RECORDINGS` with what is
known of the copied recordings, and these. Each file is complete or not there; a recording that is
the same on the host as at the last time is not copied again.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from blklab.base import pool
from blklab.base.files import content, why, write_whole
from blklab.base.plain import encode, plain
from blklab.base.text import shown
from blklab.errors import BlklabError, InputError, RunError
from blklab.fleet import answer
from blklab.fleet.answer import Answer
from blklab.fleet.hosts import Fleet, Host
from blklab.fleet.ssh import HostError, Sessions

ANSWER = "answer.txt"
RECORDINGS = "recordings.json"
RECORDING_BYTES_MAX = 4 << 30
_RECORDS_BYTES_MAX = 16 << 20
_FILE = re.compile(r"[0-9a-f]{12}-[A-Za-z0-9_.-]{1,100}")
_COLLECTED = "collected\t"

Check = Callable[[Path], str]
"""Why a recording cannot be used, in a line; empty if it can."""


@dataclass(frozen=True)
class Copied:
    """A recording that was copied from a host."""

    file: str
    """Its name in the host's directory."""
    state: str
    """Its size and times on the host when it was copied."""


@dataclass(frozen=True)
class CollectedHost:
    """What came of one host."""

    host: str
    """Its label."""
    reached: bool
    copied: tuple[str, ...] = ()
    """Recordings that were copied, by their paths on the host."""
    unchanged: tuple[str, ...] = ()
    """Recordings that were here already."""
    problems: tuple[str, ...] = ()
    """A line each, without the host's name."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        document: dict[str, Any] = plain(self)
        return document


def collect(
    fleet: Fleet,
    directory: Path,
    *,
    check: Check,
    ended: Callable[[CollectedHost], object] = lambda _: None,
) -> list[CollectedHost]:
    """Ask all hosts, several at a time, and write their answers to `directory`; in the order of
    the file. A host with a problem leaves what was collected from it before.

    RunError if `directory` cannot be written; KeyboardInterrupt leaves no incomplete file.
    """
    sessions = Sessions(fleet.timeout_s)
    found: dict[str, CollectedHost] = {}

    def one(host: Host) -> CollectedHost:
        return _collect(host, directory / host.label, sessions, check)

    def done(several: Sequence[CollectedHost]) -> None:
        for collected in several:
            found[collected.host] = collected
            ended(collected)

    pool.run_all(one, fleet.hosts, fleet.parallel, done, sessions.end)
    return [found[host.label] for host in fleet.hosts]


def _collect(host: Host, place: Path, sessions: Sessions, check: Check) -> CollectedHost:
    """RunError only if this machine cannot write."""
    said = bytearray()
    paths = host.recordings
    try:
        sessions.run(
            host, answer.script(paths), said.extend, bytes_max=answer.BYTES_MAX, silent=True
        )
        found = answer.parse(bytes(said), "its answer")
    except (HostError, InputError) as error:
        return CollectedHost(host.label, False, problems=(str(error),))
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{place}: {why(error)}") from error
    known = records(place)
    copied: list[str] = []
    unchanged: list[str] = []
    problems: list[str] = []
    for number, path in enumerate(paths):
        state = found.recordings.get(number, "")
        try:
            if path in known and known[path].state == state and (place / known[path].file).exists():
                unchanged.append(path)
                continue
            known[path] = _copied(host, path, state, place, sessions, check)
            copied.append(path)
        except HostError as error:
            known.pop(path, None)
            problems.append(f"{shown(path)}: {error}")
    if sessions.is_ended:
        return CollectedHost(host.label, False, problems=("interrupted",))
    kept = {path: known[path] for path in paths if path in known}
    # In this order: an answer is as new as its recordings, or older.
    write_whole(place / RECORDINGS, encode(kept).decode())
    write_whole(place / ANSWER, _dated(bytes(said)))
    return CollectedHost(host.label, True, tuple(copied), tuple(unchanged), tuple(problems))


def _dated(said: bytes) -> str:
    """The answer alone, as text, below the time of now."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    _, lines = answer.cut_out(said, "its answer")
    return "".join(f"{line}\n" for line in (f"{_COLLECTED}{now}", *lines))


def _copied(
    host: Host, path: str, state: str, place: Path, sessions: Sessions, check: Check
) -> Copied:
    """Copy one recording. HostError if that fails or if it is not a recording; RunError if it
    cannot be written."""
    size = state.partition(" ")[0]
    if not size.isascii() or not size.isdigit() or len(size) > len(str(RECORDING_BYTES_MAX)):
        raise HostError("there is no such file" if not state else "its size is not known")
    if int(size) > RECORDING_BYTES_MAX:
        raise HostError(f"it has {size} bytes; at most {RECORDING_BYTES_MAX} are copied")
    name = f"{hashlib.sha256(path.encode()).hexdigest()[:12]}-{_plain(path)}"
    with _new_file(place / name) as (part, file):
        sessions.run(
            host,
            answer.copy_script(path),
            lambda piece: _write(file, piece),
            bytes_max=int(size),
            silent=False,
        )
        file.flush()
        found_bytes = part.stat().st_size
        if found_bytes != int(size):
            raise HostError(f"{found_bytes} of {size} bytes came")
        if reason := check(part):
            raise HostError(reason)
    return Copied(name, state)


def _plain(path: str) -> str:
    """The end of a path as a name of this machine's; readers know some formats by it."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", path.rpartition("/")[2])[-100:]


def _write(file: BinaryIO, piece: bytes) -> None:
    try:
        file.write(piece)
    except OSError as error:
        raise RunError(f"{file.name}: {why(error)}") from error


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A file that takes the place of `path` at the end, if no error was raised."""
    part = path.with_name(f".{secrets.token_hex(4)}.{path.name}")
    try:
        with part.open("xb") as file:
            yield part, file
        part.replace(path)
    except OSError as error:
        raise RunError(f"{path}: {why(error)}") from error
    finally:
        part.unlink(missing_ok=True)


def records(place: Path) -> dict[str, Copied]:
    """The copied recordings of a host, by their paths on it; none if the file is missing or
    damaged: they are then copied again."""
    try:
        data = content(place / RECORDINGS, _RECORDS_BYTES_MAX, "a list of recordings")
        found = msgspec.json.decode(data, type=dict[str, Copied])
    except (BlklabError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return {path: one for path, one in found.items() if _FILE.fullmatch(one.file)}


def read_answer(place: Path) -> tuple[Answer, str]:
    """A collected answer, and when it was collected. InputError if there is none, or a damaged
    one."""
    file = place / ANSWER
    if not file.exists():
        raise InputError(f"no answer of it in {shown(str(place.parent))}")
    data = content(file, answer.BYTES_MAX + len(_COLLECTED) + 64, "the answer of a machine")
    found = answer.parse(data, shown(str(file)))
    first = data.partition(b"\n")[0].decode(errors="backslashreplace")
    return found, shown(first.removeprefix(_COLLECTED))[:40] if first.startswith(_COLLECTED) else ""
