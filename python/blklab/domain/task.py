"""A run as plain data, which a process elsewhere can carry out.

Bytes hold all of it: the texts of the job file and of the disk, the scheduler, the seed, the host,
the window, the rig with its options, and what is wanted of the result. Its content hash is the same
in every process and on every machine; any other input has another hash. A file's path is no input:
it is only for messages.

What no text holds is the state of the machine that runs it. A job file may name variables and
include files; `from_bytes` refuses one that comes to something else there. A kernel is named by its
key, the hash of all that it was built of, and has to be in the cache there. The live rig's disk,
its contents and its settings are that machine's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Literal

import msgspec

from blklab import programs
from blklab.base import plain
from blklab.base.catalogue import Entry
from blklab.domain import core
from blklab.domain.experiment import Experiment, RigSpec
from blklab.errors import InputError

Wanted = Literal["figures", "result"]


@dataclass(frozen=True)
class Task:
    """An experiment on a rig, and what is wanted of its result."""

    rig: RigSpec
    """Kernels are named by their keys."""
    experiment: Experiment
    wanted: Wanted = "figures"
    """``figures``: what a comparison keeps (`blklab.execute.KeptRun`); ``result``: a whole
    `blklab.domain.result.Result`."""
    repeat: int = 0
    """In the comparison: of its first repeat more is kept."""

    @property
    def content_hash(self) -> str:
        """SHA-256 of all inputs, in hexadecimal. InputError if the job file is wrong."""
        document = _document(self)
        for entry in (document["experiment"]["job"], document["experiment"]["disk"]["file"]):
            # Where the text lies is no input.
            del entry["path"], entry["in_core"]
        return sha256(_encoded(document)).hexdigest()

    def to_bytes(self) -> bytes:
        """All of it, for `from_bytes` elsewhere. InputError if the job file is wrong."""
        return _encoded(_document(self))

    @classmethod
    def from_bytes(cls, content: bytes) -> Task:
        """What `to_bytes` was given. InputError if it is something else, or if the job file comes
        to something else on this machine."""
        try:
            document = json.loads(content)
            outside = document.pop("outside")
            task = msgspec.convert(document, cls, dec_hook=plain.path_from_text)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise InputError(f"not a task of blklab's: {error}") from error
        if outside != _outside(task.experiment.job):
            raise InputError(
                f"{task.experiment.job.name}: the job file comes to something else on this "
                "machine; its variables or the files that it includes differ"
            )
        return task


def said(job: Entry) -> str:
    """A hash of what a job file says, with its variables and includes put in; of a program of its
    parameters. InputError if it is wrong."""
    found: Mapping[str, object] = (
        dict(programs.chosen(job).values)
        if programs.is_program(job)
        # What the rig refuses does not come to be kept.
        else core.job_document(core.describe_job(job, ignore_unsupported=True))
    )
    return sha256(plain.encode(_without_paths(found))).hexdigest()


def _outside(job: Entry) -> str:
    """`said` of a job file that may name what is outside of its text; else empty."""
    is_open = "${" in job.text or "include" in job.text
    return said(job) if is_open and not programs.is_program(job) else ""


def _document(task: Task) -> dict[str, Any]:
    return asdict(task) | {"outside": _outside(task.experiment.job)}


def _encoded(document: Mapping[str, Any]) -> bytes:
    """The same bytes for the same content: sorted, ASCII, also of names that are not UTF-8."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), default=str).encode()


def _without_paths(value: Any) -> Any:
    """Without the places where files lie, which differ between machines."""
    if isinstance(value, Mapping):
        return {key: _without_paths(inner) for key, inner in value.items() if key != "path"}
    if isinstance(value, list):
        return [_without_paths(inner) for inner in value]
    return value
