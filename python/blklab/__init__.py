"""blklab: the Linux I/O scheduler workbench.

Each command is a function here: ``blklab.simulate(job, disk=..., scheduler=...)`` runs a fio job
file on a modelled disk and returns a typed :class:`blklab.domain.result.Result`;
``blklab.compare`` says which scheduler suits which disk and workload. Importing the package loads
none of them, so that the command starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blklab.api.apply import Applied as Applied
    from blklab.api.apply import apply as apply
    from blklab.api.apply import status as status
    from blklab.api.apply import undo as undo
    from blklab.api.compare import Comparison as Comparison
    from blklab.api.compare import compare as compare
    from blklab.api.compare import resume as resume
    from blklab.api.explain import explain as explain
    from blklab.api.iocost import io_cost as io_cost
    from blklab.api.iocost import io_cost_qos as io_cost_qos
    from blklab.api.iocost_disk import disk_from_io_cost as disk_from_io_cost
    from blklab.api.listener import Listener as Listener
    from blklab.api.machine import Devices as Devices
    from blklab.api.machine import Restored as Restored
    from blklab.api.machine import devices as devices
    from blklab.api.machine import forget as forget
    from blklab.api.machine import restore as restore
    from blklab.api.results import Imported as Imported
    from blklab.api.results import Stored as Stored
    from blklab.api.results import difference as difference
    from blklab.api.results import export as export
    from blklab.api.results import import_results as import_results
    from blklab.api.results import remove_results as remove_results
    from blklab.api.results import results as results
    from blklab.api.results import stored as stored
    from blklab.api.results import write_report as write_report
    from blklab.api.rigs import RigSpec as RigSpec
    from blklab.api.simulate import JobRun as JobRun
    from blklab.api.simulate import run_job as run_job
    from blklab.api.simulate import simulate as simulate
    from blklab.api.study import StudyRun as StudyRun
    from blklab.api.study import resume_study as resume_study
    from blklab.api.study import run_study as run_study
    from blklab.api.verify import Agreement as Agreement
    from blklab.api.verify import verify as verify
    from blklab.domain.result import Result as Result

__all__ = [
    "Agreement",
    "Applied",
    "Comparison",
    "Devices",
    "Imported",
    "JobRun",
    "Listener",
    "Restored",
    "Result",
    "RigSpec",
    "Stored",
    "StudyRun",
    "apply",
    "compare",
    "devices",
    "difference",
    "disk_from_io_cost",
    "explain",
    "export",
    "forget",
    "import_results",
    "io_cost",
    "io_cost_qos",
    "remove_results",
    "restore",
    "results",
    "resume",
    "resume_study",
    "run_job",
    "run_study",
    "simulate",
    "status",
    "stored",
    "undo",
    "verify",
    "write_report",
]

_WHERE = {
    "Agreement": "blklab.api.verify",
    "Applied": "blklab.api.apply",
    "Comparison": "blklab.api.compare",
    "Devices": "blklab.api.machine",
    "Imported": "blklab.api.results",
    "JobRun": "blklab.api.simulate",
    "Listener": "blklab.api.listener",
    "Restored": "blklab.api.machine",
    "Result": "blklab.domain.result",
    "RigSpec": "blklab.api.rigs",
    "Stored": "blklab.api.results",
    "StudyRun": "blklab.api.study",
    "apply": "blklab.api.apply",
    "compare": "blklab.api.compare",
    "devices": "blklab.api.machine",
    "difference": "blklab.api.results",
    "disk_from_io_cost": "blklab.api.iocost_disk",
    "explain": "blklab.api.explain",
    "export": "blklab.api.results",
    "forget": "blklab.api.machine",
    "import_results": "blklab.api.results",
    "io_cost": "blklab.api.iocost",
    "io_cost_qos": "blklab.api.iocost",
    "remove_results": "blklab.api.results",
    "restore": "blklab.api.machine",
    "results": "blklab.api.results",
    "resume": "blklab.api.compare",
    "resume_study": "blklab.api.study",
    "run_job": "blklab.api.simulate",
    "run_study": "blklab.api.study",
    "simulate": "blklab.api.simulate",
    "status": "blklab.api.apply",
    "stored": "blklab.api.results",
    "undo": "blklab.api.apply",
    "verify": "blklab.api.verify",
    "write_report": "blklab.api.results",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("blklab")
    raise AttributeError(f"module 'blklab' has no attribute {name!r}")
