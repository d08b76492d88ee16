"""Files that a study names: what looks like a path is meant from the study's own file."""

from __future__ import annotations

import os
from pathlib import Path

from blklab.base import homes


def beside(folder: Path, spec: str, suffix: str) -> str:
    """`spec` as it is if it is a name, otherwise the path from `folder`."""
    names_a_file = os.sep in spec or spec.endswith(suffix) or f"{suffix}:" in spec
    return str(folder / homes.expanded(spec)) if names_a_file else spec
