"""tuned's active profile: its ``[disk]`` and ``[sysfs]`` plugins, tuned.conf(5).

Follows tuned 2.20. A profile overrides the profiles that it includes. Each disk belongs to the
first matching section of type ``disk``, sorted by ``priority``, the lowest first, then by their
order in the file. ``devices_udev_regex`` is searched in the disk's udev properties, one
``KEY=value`` a line. Several active profiles are read one after the other. tuned sets a disk again
whenever it starts or its profile changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from blklab.host import reading
from blklab.host.devices.deciders.influence import Influence
from blklab.host.devices.queue import Queue
from blklab.host.reading import TARGET
from blklab.host.roots import Roots
from blklab.host.udev import node

_BY = "tuned profile"
_OF_DISK = {"elevator": "scheduler", "readahead": "read_ahead_kb"}
_INCLUDES_MAX = 20


@dataclass(frozen=True)
class Option:
    """``name = value``, with its file and line."""

    value: str
    file: Path
    line: int


@dataclass
class Section:
    """``[disk]``, or of any name with ``type=disk``."""

    options: dict[str, Option] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """An option's value."""
        return self.options[name].value if name in self.options else default


def active(roots: Roots) -> list[str]:
    """The names of the active profiles; none where tuned is not set up."""
    return reading.value(roots.etc / "tuned/active_profile").split()


def is_running(roots: Roots) -> bool:
    """Whether its daemon runs."""
    for name in reading.names(roots.proc):
        if name.isdigit():
            command = reading.value(roots.proc / name / "cmdline").split("\0")
            if any(Path(word).name == "tuned" for word in command[:3]):
                return True
    return False


def directories(roots: Roots) -> list[Path]:
    """Where profiles are looked for; the first that has one wins."""
    return [
        top / place
        for top in (roots.etc, roots.usr / "lib")
        for place in ("tuned/profiles", "tuned")
    ]


def profiles(names: Iterable[str], roots: Roots) -> dict[str, Section]:
    """The sections of these profiles and of those that they include, merged."""
    sections: dict[str, Section] = {}
    for name in names:
        _add(name, sections, roots, [])
    return sections


def influences(queue: Queue, roots: Roots) -> Iterator[Influence]:
    """The settings of the active profiles for this disk."""
    sections = profiles(active(roots), roots)
    # The daemon is looked for among all processes.
    running = bool(sections) and is_running(roots)
    for section, fits in of_disk(queue, sections, roots):
        why = "" if fits else "whether its devices_udev_regex fits is not known"
        for name, attribute in _OF_DISK.items():
            if option := section.options.get(name):
                yield _made(option, attribute, running, why)
    for title, section in sections.items():
        if section.text("type", title) == "sysfs" and _is_enabled(section):
            yield from _of_sysfs(section, queue, running)


def of_disk(
    queue: Queue, sections: Mapping[str, Section], roots: Roots
) -> list[tuple[Section, bool]]:
    """The section that the disk belongs to, after the sections that may match; the second value is
    False where this is not known."""
    candidates = [
        section
        for title, section in sections.items()
        if section.text("type", title) == "disk" and _is_enabled(section)
    ]
    found = []
    for section in sorted(candidates, key=_priority):
        fits = _fits(section, queue, roots)
        if fits is not False:
            found.append((section, fits is True))
        if fits:
            break
    return found


def _is_enabled(section: Section) -> bool:
    return section.text("enabled", "1").lower() not in ("0", "false", "no")


def _priority(section: Section) -> int:
    text = section.text("priority", "0")
    return int(text) if re.fullmatch(r"-?\d+", text) else 0


def _fits(section: Section, queue: Queue, roots: Roots) -> bool | None:
    """Whether the section matches this disk; None if that depends on a property that udev has not
    stored."""
    expression = section.text("devices_udev_regex")
    if not expression:
        return _is_among(queue.name, section.text("devices", "*"))
    device = node.device(queue.disk, roots)
    if device.database is None:
        return None
    known = device.properties | device.database
    text = "".join(f"{name}={value}\n" for name, value in sorted(known.items()))
    try:
        return re.search(expression, text, re.MULTILINE) is not None
    except re.error:
        return None


def _of_sysfs(section: Section, queue: Queue, running: bool) -> Iterator[Influence]:
    for path, option in section.options.items():
        found = TARGET.fullmatch(path)
        if found and fnmatchcase(queue.name, found["disk"]):
            yield _made(option, found["attribute"], running, "")


def _made(option: Option, attribute: str, running: bool, why: str) -> Influence:
    plain = re.fullmatch(r"[A-Za-z0-9_-]+", option.value)
    why = why or ("" if plain else f"it depends: {option.value}")
    why = why or ("" if running else "tuned is not running")
    value = option.value if plain else None
    return Influence(_BY, str(option.file), option.line, attribute, value, not why, why)


def _is_among(name: str, devices: str) -> bool:
    """``sda, sdb, !sdc`` with patterns: any that is named, none that is excluded."""
    words = re.split(r"[\s,;]+", devices.strip())
    excluded = [word[1:] for word in words if word.startswith("!")]
    named = [word for word in words if word and not word.startswith("!")] or ["*"]
    return any(fnmatchcase(name, word) for word in named) and not any(
        fnmatchcase(name, word) for word in excluded
    )


def _add(name: str, sections: dict[str, Section], roots: Roots, seen: list[str]) -> None:
    path = next(
        (
            directory / name / "tuned.conf"
            for directory in directories(roots)
            if reading.exists(directory / name / "tuned.conf")
        ),
        None,
    )
    if path is None or name in seen or len(seen) > _INCLUDES_MAX:
        return
    own = _sections(path)
    includes = own["main"].text("include") if "main" in own else ""
    for other in re.split(r"[\s,;]+", includes):
        _add(other.removeprefix("-"), sections, roots, [*seen, name])
    for title, section in own.items():
        if title not in sections or section.text("replace") in ("1", "true"):
            sections[title] = Section()
        # For tuned, "all devices" remains in force if the later section names none.
        sections[title].options.pop("devices", None)
        sections[title].options.update(section.options)


def _sections(path: Path) -> dict[str, Section]:
    found: dict[str, Section] = {}
    title = ""
    for number, line in enumerate(reading.lines(path), 1):
        text = re.sub(r"^\s*;.*|(^|\s)#.*", "", line).strip()
        if text.startswith("[") and text.endswith("]"):
            title = text[1:-1].strip()
            found.setdefault(title, Section())
        elif "=" in text and title:
            name, value = (part.strip() for part in text.split("=", 1))
            found[title].options[name] = Option(value, path, number)
    return found
