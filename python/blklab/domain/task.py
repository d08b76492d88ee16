"""A run as plain data, which a process elsewhere can carry out.

Its bytes hold everything: the texts of the job file and of the disk, the scheduler, the seed, the
host, the window, the rig with its options, and the wanted part of the result. Its content hash is
the same in every process and on every machine, and any other input has another hash. A file's path
is not an input: it is only for messages.

The bytes do not hold the state of the machine that runs it. A job file may name variables and
include files; `from_bytes` refuses one that expands differently there. A kernel is named by its
key, the hash of all its inputs, and must be in the cache there. The live rig's disk, its contents
and its settings belong to that machine.
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
from blklab.domain import core, plugins, recordings
from blklab.domain.experiment import Experiment, RigSpec
from blklab.errors import InputError

Wanted = Literal["figures", "result"]


@dataclass(frozen=True)
class Task:
    """An experiment on a rig, and the wanted part of its result."""

    rig: RigSpec
    """Kernels are named by their keys."""
    experiment: Experiment
    wanted: Wanted = "figures"
    """``figures``: the part that a comparison stores (`blklab.execute.KeptRun`); ``result``: a
    whole `blklab.domain.result.Result`."""
    repeat: int = 0
    """The repeat in the comparison: more is stored for the first."""

    @property
    def content_hash(self) -> str:
        """SHA-256 of all inputs, in hexadecimal. InputError if the job file is wrong."""
        document = _document(self)
        experiment = document["experiment"]
        for entry in (experiment["job"], experiment["disk"]["file"]):
            _leave_out_paths(entry)
        # The hash of a run on the bare disk is that of versions without file systems.
        if experiment["files"] is None:
            del experiment["files"]
        # The hash of a run to its end is that of versions without short runs.
        if experiment["until_ns"] is None:
            del experiment["until_ns"]
        # The hash of a plug-in stands for its content; other schedulers have none.
        if experiment["scheduler"]["plugin"] is None:
            del experiment["scheduler"]["plugin"]
        # The hash of a run with the default CPU time of programs is that of versions without it.
        if document["rig"]["cpu"] is None:
            del document["rig"]["cpu"]
        return sha256(_encoded(document)).hexdigest()

    def to_bytes(self) -> bytes:
        """All of it, with the content of a plug-in, for `from_bytes` elsewhere. InputError if the
        job file is wrong."""
        digest = self.experiment.scheduler.plugin
        plugin = None if digest is None else plugins.packed(digest)
        return _encoded(_document(self) | {"plugin": plugin})

    @classmethod
    def from_bytes(cls, content: bytes) -> Task:
        """The task that `to_bytes` was given. InputError for other bytes, or if the job file
        expands differently on this machine."""
        try:
            document = json.loads(content)
            outside, plugin = document.pop("outside"), document.pop("plugin")
            task = msgspec.convert(document, cls, dec_hook=plain.path_from_text)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            raise InputError(f"not a task of blklab's: {error}") from error
        digest = task.experiment.scheduler.plugin
        if digest is not None:
            plugins.unpack(digest, str(plugin))
        if outside != _outside(task.experiment.job):
            raise InputError(
                f"{task.experiment.job.name}: the job file expands differently on this "
                "machine; its variables or the files that it includes differ"
            )
        return task


def _leave_out_paths(entry: dict[str, Any]) -> None:
    """The path of a text is not an input."""
    del entry["path"], entry["in_core"]
    # Hashes of runs with files are those of versions without kinds, and without workloads beside.
    if entry["kind"] == "file":
        del entry["kind"]
    for one in entry["beside"]:
        _leave_out_paths(one)
    if not entry["beside"]:
        del entry["beside"]


def said(job: Entry) -> str:
    """A hash of a job file's contents, with its variables and includes expanded; for a program or a
    recording, of its parameters. InputError if it is wrong."""
    found: Mapping[str, object]
    if programs.is_program(job):
        found = dict(programs.chosen(job).values)
    elif recordings.is_recording(job):
        found = recordings.document(job)
    else:
        # A refused job is never stored.
        found = core.job_document(core.describe_job(job, ignore_unsupported=True))
    if job.beside:
        found = {**found, "beside": [recordings.document(one) for one in job.beside]}
    return sha256(plain.encode(_without_paths(found))).hexdigest()


def _outside(job: Entry) -> str:
    """The hash of a job file that may refer to anything outside its text; else empty."""
    is_open = "${" in job.text or "include" in job.text
    return said(job) if is_open and job.kind == "file" else ""


def _document(task: Task) -> dict[str, Any]:
    return asdict(task) | {"outside": _outside(task.experiment.job)}


def _encoded(document: Mapping[str, Any]) -> bytes:
    """The same bytes for the same content: sorted, ASCII, also for names that are not UTF-8."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), default=str).encode()


def _without_paths(value: Any) -> Any:
    """Without the paths of files, which differ between machines."""
    if isinstance(value, Mapping):
        return {key: _without_paths(inner) for key, inner in value.items() if key != "path"}
    if isinstance(value, list):
        return [_without_paths(inner) for inner in value]
    return value
