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
    from blklab.api.compare import Comparison as Comparison
    from blklab.api.compare import compare as compare
    from blklab.api.compare import resume as resume
    from blklab.api.explain import explain as explain
    from blklab.api.listener import Listener as Listener
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
    "Comparison",
    "JobRun",
    "Listener",
    "Result",
    "RigSpec",
    "StudyRun",
    "compare",
    "explain",
    "resume",
    "resume_study",
    "run_job",
    "run_study",
    "simulate",
    "verify",
]

_WHERE = {
    "Agreement": "blklab.api.verify",
    "Comparison": "blklab.api.compare",
    "JobRun": "blklab.api.simulate",
    "Listener": "blklab.api.listener",
    "Result": "blklab.domain.result",
    "RigSpec": "blklab.api.rigs",
    "StudyRun": "blklab.api.study",
    "compare": "blklab.api.compare",
    "explain": "blklab.api.explain",
    "resume": "blklab.api.compare",
    "resume_study": "blklab.api.study",
    "run_job": "blklab.api.simulate",
    "run_study": "blklab.api.study",
    "simulate": "blklab.api.simulate",
    "verify": "blklab.api.verify",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("blklab")
    raise AttributeError(f"module 'blklab' has no attribute {name!r}")
