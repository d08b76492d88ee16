"""The available studies and their contents."""

from __future__ import annotations

import os
from dataclasses import dataclass

from blklab import study as studies
from blklab.errors import InputError
from blklab.studies import STUDIES
from blklab.study.model import Study


@dataclass(frozen=True)
class ListedStudy:
    """A study that can be run, or that has an error."""

    name: str
    title: str
    error: str = ""
    """The reason if its file cannot be read."""


def list_studies() -> list[ListedStudy]:
    """The studies of the package and the user's own; unreadable ones have an `error`."""
    found = []
    for name, path in STUDIES.paths().items():
        try:
            found.append(ListedStudy(name, studies.parse(STUDIES.read(path)).title))
        except InputError as error:
            # A broken file of the user must not hide the others.
            found.append(ListedStudy(name, "", str(error)))
    return found


def find_study(study: str | os.PathLike[str]) -> Study:
    """A study by name or TOML file. InputError if there is none, or if it is wrong."""
    return studies.find(study)
