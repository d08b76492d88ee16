"""A job file with some of fio's options changed: ``name:option=value,...``.

An option that one section sets is changed there, under any of its names; an option that no section
sets is set in ``[global]``, for all jobs. The result is a normal job file: it is run, shown, stored
and compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from blklab import _core
from blklab.base.catalogue import Entry
from blklab.base.text import shown
from blklab.domain import core
from blklab.errors import InputError

_BETWEEN = re.compile(r",(?=\s*\w+\s*=)")
"""Values may have commas: ``bs=4k,8k``."""
_OPTION = re.compile(r"\s*(\w+)\s*=\s*(\S.*?)\s*", re.DOTALL)
_COMMENT = re.compile("[;#]")
_GLOBAL = "global"


@dataclass(frozen=True)
class _Line:
    number: int
    section: str
    """With its number among all sections, because names may repeat."""


def changed(entry: Entry, changes: str) -> Entry:
    """`entry` with these options. InputError if one cannot be changed to its value."""
    name = f"{entry.name}:{changes}"
    pairs = _pairs(entry.name, changes)
    _check(entry)
    text = entry.text
    for option, value in pairs:
        text = _with(text, entry, option, value)
    made = replace(entry, name=name, text=text)
    try:
        _check(made)
    except InputError as error:
        if error.file != entry.place:
            # In an included file.
            raise InputError(f"{name}: {error}") from error
        # The lines differ from those of the file.
        raise error.within(name) from error
    return made


def _pairs(name: str, changes: str) -> list[tuple[str, str]]:
    pairs: dict[str, str] = {}
    for change in _BETWEEN.split(changes):
        found = _OPTION.fullmatch(change)
        if found is None:
            raise InputError(
                f"{name}: expected option=value behind ':', found '{change}'",
                found=change,
                expected="option=value",
            )
        option, value = found.groups()
        if not value.isprintable() or _COMMENT.search(value):
            raise InputError(
                f"{name}: {option}: '{shown(value)}' cannot stand in a job file's line",
                option=option,
                found=shown(value),
            )
        if any(other in pairs for other in _names(option)):
            raise InputError(f"{name}: '{option}' is given twice", option=option)
        pairs[option] = value
    return list(pairs.items())


def _with(text: str, entry: Entry, option: str, value: str) -> str:
    """The text with that option changed in place, or added to [global]."""
    lines = text.split("\n")
    set_there = _places(lines, _names(option))
    if len({line.section for line in set_there}) > 1:
        raise InputError(
            f"{entry.name}: '{option}' is set in several sections of {entry.place}; change a copy"
        )
    if set_there:
        lines[set_there[-1].number] = f"{option}={value}"
    elif _is_included(entry, option):
        raise InputError(
            f"{entry.name}: '{option}' is set in a file that {entry.place} includes; change a copy"
        )
    else:
        _into_global(lines, f"{option}={value}")
    return "\n".join(lines)


def _places(lines: list[str], names: frozenset[str]) -> list[_Line]:
    """The places that set one of these options."""
    found, section, count = [], "", 0
    for number, line in enumerate(lines):
        said = _COMMENT.split(line, maxsplit=1)[0].strip()
        if said.startswith("["):
            count += 1
            section = f"{count} {said}"
        elif said.partition("=")[0].strip() in names:
            found.append(_Line(number, section))
    return found


def _into_global(lines: list[str], setting: str) -> None:
    """Adds the option before all jobs, in a new section if the file does not begin with one of that
    name."""
    first = next(number for number, line in enumerate(lines) if line.strip().startswith("["))
    if lines[first].strip().startswith(f"[{_GLOBAL}"):
        lines.insert(first + 1, setting)
    else:
        lines[first:first] = [f"[{_GLOBAL}]", setting, ""]


def _is_included(entry: Entry, option: str) -> bool:
    """The error for an option that none of the file's own lines sets."""
    given = [name for job in _check(entry).jobs for name, _ in job.options]
    return not _names(option).isdisjoint(given)


def _check(entry: Entry) -> _core.Job:
    # The rig decides whether it accepts an option that is not simulated.
    return core.describe_job(entry, ignore_unsupported=True)


def _names(option: str) -> frozenset[str]:
    """All names of that option."""
    return core.option_names().get(option, frozenset({option}))
