"""A job file with some of fio's options changed: ``name:option=value,...``.

The core changes the text (`crates/blklab-core/src/formats/fio/changes.rs`). The result is a normal
job file: it is run, shown, stored and compared.
"""

from __future__ import annotations

from dataclasses import replace

from blklab import _core
from blklab.base.catalogue import Entry
from blklab.base.text import utf8
from blklab.domain import core
from blklab.errors import InputError


def changed(entry: Entry, changes: str) -> Entry:
    """`entry` with these options. InputError if one cannot be changed to its value."""
    name = f"{entry.name}:{changes}"
    with core.core_types():
        text = _core.changed_job(_read(entry), entry.text, entry.name, utf8(changes))
    made = replace(entry, name=name, text=text)
    try:
        _read(made)
    except InputError as error:
        if error.file != entry.place:
            # In an included file.
            raise InputError(f"{name}: {error}") from error
        # The lines differ from those of the file.
        raise error.within(name) from error
    return made


def _read(entry: Entry) -> _core.Job:
    # The rig decides whether it accepts an option that is not simulated.
    return core.describe_job(entry, ignore_unsupported=True)
