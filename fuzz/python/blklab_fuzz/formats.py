"""Files that blklab reads: studies, exports, and its own files, possibly altered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from blklab.base import journal, plain
from blklab.base.catalogue import Entry
from blklab.domain import core, scheduler
from blklab.host.roots import Roots
from blklab.host.udev.parse import Line
from blklab.host.udev.parse import parse as rules
from blklab.rigs.kernel import cache as kernels
from blklab.rigs.kernel import changes
from blklab.rigs.live import borrowed, files
from blklab.settings import record, rule
from blklab.store import exchange, packing
from blklab.study.parse import parse as parsed_study
from blklab_fuzz.checks import refusing, scratch

_BOOT = "01234567-89ab-cdef-0123-456789abcdef"


def study(data: bytes) -> None:
    """A study file."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    with refusing(data):
        found = parsed_study(Entry("fuzz", Path("fuzz.toml"), text))
        for part in found.parts:
            assert part.disks and part.workloads and part.schedulers
            assert part.repeats > 0


def export(data: bytes) -> None:
    """Input of `blklab results import`: `export` writes accepted input unchanged."""
    with refusing(data):
        found = exchange.parse(data, "export.json")
        document = exchange.Document(exchange.FORMAT, exchange.VERSION, found)
        again = exchange.parse(plain.encode(document), "again.json")
        assert plain.encode(again) == plain.encode(found)


def kernel_record(data: bytes) -> None:
    """``kernel.json`` of a kernel in the cache."""
    place = scratch() / "kernels/built/0123456789ab/kernel.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    name = scratch() / "kernels/names/mine"
    name.parent.mkdir(exist_ok=True)
    name.write_text("0123456789ab\n")
    os.environ["BLKLAB_CACHE"] = str(scratch())
    with refusing(data):
        for kernel in kernels.kernels():
            assert kernel.text and kernel.label == "mine"
            scheduler.has_queue_async_depth(kernel.version)
    with refusing(data):
        kernels.find("mine")
    with refusing(data):
        kernels.chosen(None)


def patch(data: bytes) -> None:
    """A patch of the user's for a kernel."""
    place = scratch() / "mine.patch"
    place.write_bytes(data)
    tree = scratch() / "tree"
    with refusing(data):
        found = changes.apply(changes.read([place]), lambda name: tree / name)
        for name in found:
            assert not Path(name).is_absolute() and ".." not in Path(name).parts, name


def apply_record(data: bytes) -> None:
    """``applied.json``: accepted input makes rules that udev reads as intended."""
    roots = _roots()
    place = record.path(roots)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    with refusing(data):
        entries = record.load(roots)
        record.save(entries, roots)
        assert record.load(roots) == entries
        written = scratch() / "99-blklab.rules"
        written.write_text(rule.text([entry.part for entry in entries]), encoding="utf-8")
        for line in rules(written):
            _check_ours(line)


def _check_ours(line: Line) -> None:
    assert not line.error, line.error
    for token in line.tokens:
        sets = token.key in ("GOTO", "LABEL") or (
            token.key == "ATTR" and token.name.startswith("queue/")
        )
        assert token.is_match or sets, token
        assert token.key not in ("RUN", "PROGRAM", "IMPORT"), token


def journal_record(data: bytes) -> None:
    """A record of changes to undo, for a disk or for test files. Whatever it contains, only the
    journal and the simulated machine change."""
    roots = _roots()
    journals = journal.Journal(scratch() / "journal")
    journals.directory.mkdir(exist_ok=True)
    beside = scratch() / "beside/.blklab-0123456789ab"
    kinds: dict[str, Callable[[str], list[str]]] = {
        "disk-sda": lambda key: borrowed.recover(journals, key, roots),
        "files-fedcba987654": lambda key: files.recover(journals, key),
    }
    for key, recover in kinds.items():
        beside.mkdir(parents=True, exist_ok=True, mode=0o700)
        (journals.directory / f"{key}.json").write_bytes(data)
        with refusing(data):
            assert all(isinstance(line, str) for line in recover(key))
        assert beside.is_dir(), "a directory of another run was removed"


def store_document(data: bytes) -> None:
    """A column of the store that holds a document, packed."""
    try:
        found = packing.unpack_json(data)
    except packing.DamagedError:
        return
    assert packing.unpack_json(packing.pack_json(found)) == found


def job_change(data: bytes) -> None:
    """A job file, a form feed and its changes."""
    from blklab.domain import job_changes

    text, _, change = data.decode(errors="replace").partition("\f")
    entry = Entry("fuzz", Path("fuzz.fio"), text)
    with refusing(data):
        changed = job_changes.changed(entry, change)
        assert core.describe_job(changed, ignore_unsupported=True).jobs
        assert replace(changed, text=text, name=entry.name) == entry


@cache
def _roots() -> Roots:
    """An empty machine."""
    top = scratch() / "empty"
    top.mkdir()
    return Roots.under(top)


def journal_seed(kind: str) -> bytes:
    """A record as blklab writes it."""
    own: dict[str, dict[str, Any]] = {
        "disk": {"disk": "sda", "queue": 1, "settings": {"scheduler": "none", "nr_requests": "64"}},
        "files": {"directory": "/tmp/.blklab-fedcba987654"},
    }
    return json.dumps({"kind": kind, "boot_id": _BOOT, "pid": 1, **own[kind]}).encode()
