"""blklab: the Linux I/O scheduler workbench.

``blklab.simulate(job, disk=..., scheduler=...)`` runs a fio job file on a modelled disk
and returns a typed :class:`blklab.domain.result.Result`. Importing the package loads nothing
else, so that the command starts fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blklab.api.simulate import simulate as simulate
    from blklab.domain.result import Result as Result

__all__ = ["Result", "simulate"]

_WHERE = {"simulate": "blklab.api.simulate", "Result": "blklab.domain.result"}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(_WHERE[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("blklab")
    raise AttributeError(f"module 'blklab' has no attribute {name!r}")
