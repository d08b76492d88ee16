"""Studies: parse, plan, run and judge, with plain data between the steps.

A study is one or more comparisons (`blklab.experiment`) and the published statements about them.
Output is elsewhere: `blklab.cli` prints, `blklab.report` draws.
"""

from __future__ import annotations

import os
from pathlib import Path

from blklab.studies import STUDIES
from blklab.study.model import Study
from blklab.study.parse import parse

__all__ = ["find", "parse"]


def find(spec: str | os.PathLike[str]) -> Study:
    """The study of that name or in that file. InputError if there is none or it is wrong."""
    text = os.fspath(spec)
    return parse(STUDIES.read(Path(text)) if Path(text).is_file() else STUDIES.find(text))
