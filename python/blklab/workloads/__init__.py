"""Workloads, one fio job file each; real fio runs them unchanged.

Your own are in ``~/.local/share/blklab/workloads``, in the directory that
``BLKLAB_WORKLOADS`` names, or anywhere, given by path.
"""

from __future__ import annotations

from pathlib import Path

from blklab.base.catalogue import Catalogue

WORKLOADS = Catalogue("workload", ".fio", Path(__file__).parent, "BLKLAB_WORKLOADS")


def summary(text: str) -> str:
    """The first comment line of a job file: the workload's summary."""
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith(("#", ";")):
            return stripped.lstrip("#; ").rstrip()
        if stripped:
            break
    return ""
