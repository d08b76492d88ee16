"""What was applied and what was before: a file that is written before anything is changed.

``/var/lib/blklab/applied.json``, or in the directory that ``BLKLAB_STATE`` names. Entries are a
stack: the latest is undone first, so what was before it is what is there after.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from blklab.apply import choice, keys
from blklab.apply.keys import Key
from blklab.apply.rule import Part
from blklab.devices.roots import Roots
from blklab.errors import InputError
from blklab.files import write_whole

_FORMAT = 1
VARIABLE = "BLKLAB_STATE"


@dataclass
class Before:
    """One disk as it was before, and as it was right after."""

    name: str
    identity: str
    """What it calls itself; empty if it says nothing."""
    before: dict[str, str]
    after: dict[str, str] = field(default_factory=dict)


@dataclass
class Entry:
    """One `blklab apply`."""

    number: int
    time: str
    key: Key
    settings: dict[str, str]
    disks: list[Before]
    tuned: list[str] | None = None
    """The profiles that were active, if a profile of ours took their place."""
    profile: str = ""
    """The whole profile of tuned as of this entry."""
    done: bool = False
    """False while it is being done; if that was the end of it, the entry can be undone."""

    @property
    def part(self) -> Part:
        """As the rule has it."""
        return Part(self.key, self.settings)


def path(roots: Roots) -> Path:
    """Where the file is."""
    own = os.environ.get(VARIABLE)
    return (Path(own) if own else roots.var / "lib/blklab") / "applied.json"


def load(roots: Roots) -> list[Entry]:
    """All entries, the latest last. InputError if the file is not ours."""
    place = path(roots)
    try:
        document = json.loads(place.read_text(encoding="utf-8"))
        if document["format"] != _FORMAT:
            raise InputError(f"{place}: format {document['format']}, expected {_FORMAT}")
        return [_entry(one) for one in document["entries"]]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{place}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{place}: not what blklab has written ({error})") from error


def save(entries: list[Entry], roots: Roots) -> None:
    """Replace the file; remove it with the last entry. RunError if it cannot be written."""
    place = path(roots)
    if not entries:
        place.unlink(missing_ok=True)
        return
    document = {"format": _FORMAT, "entries": [asdict(entry) for entry in entries]}
    write_whole(place, json.dumps(document, indent=1) + "\n")


def _entry(row: Mapping[str, Any]) -> Entry:
    key = Key(row["key"]["kind"], tuple(row["key"]["matches"]))
    disks = [Before(**one) for one in row["disks"]]
    entry = Entry(**{**row, "key": key, "disks": disks, "settings": dict(row["settings"])})
    # Whatever comes from a file goes into rules only if we could have written it.
    keys.check(entry.key)
    choice.check(entry.settings)
    return entry
