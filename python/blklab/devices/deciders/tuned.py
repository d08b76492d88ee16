"""tuned's active profile: its ``[disk]`` and ``[sysfs]`` plugins, tuned.conf(5).

Of a profile that includes others, the including one's word counts. tuned takes a disk's settings
away from whoever made them before, whenever it starts or its profile changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from blklab.devices import reading
from blklab.devices.deciders.influence import Influence
from blklab.devices.queue import Queue
from blklab.devices.roots import Roots

_BY = "tuned profile"
_OF_DISK = {"elevator": "scheduler", "readahead": "read_ahead_kb"}
_TARGET = re.compile(
    r"/sys/(?:block|class/block)/(?P<disk>[^/]+)/queue/(?P<attribute>[a-z_]+(?:/[a-z_]+)?)"
)
_INCLUDES_MAX = 20


@dataclass(frozen=True)
class Option:
    """``name = value`` and where it stands."""

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
    """Whether its daemon is there."""
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


def profile(name: str, roots: Roots) -> dict[str, Section]:
    """A profile's sections with those that it includes."""
    sections: dict[str, Section] = {}
    _add(name, sections, roots, [])
    return sections


def influences(queue: Queue, roots: Roots) -> Iterator[Influence]:
    """What the active profiles set of this disk."""
    running = is_running(roots)
    for name in active(roots):
        for title, section in profile(name, roots).items():
            if section.text("enabled", "1").lower() in ("0", "false", "no"):
                continue
            kind = section.text("type", title)
            if kind == "disk":
                yield from _of_disks(section, queue, running)
            elif kind == "sysfs":
                yield from _of_sysfs(section, queue, running)


def _of_disks(section: Section, queue: Queue, running: bool) -> Iterator[Influence]:
    devices = section.text("devices", "*")
    if devices != "*" and not _is_among(queue.name, devices):
        return
    by_udev = "devices_udev_regex" in section.options
    for name, attribute in _OF_DISK.items():
        if option := section.options.get(name):
            why = "which disks its devices_udev_regex means is not known" if by_udev else ""
            yield _made(option, attribute, running, why)


def _of_sysfs(section: Section, queue: Queue, running: bool) -> Iterator[Influence]:
    for path, option in section.options.items():
        found = _TARGET.fullmatch(path)
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
            if (directory / name / "tuned.conf").is_file()
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
        sections[title].options.update(section.options)


def _sections(path: Path) -> dict[str, Section]:
    found: dict[str, Section] = {}
    title = ""
    for number, line in enumerate(reading.lines(path), 1):
        text = re.sub(r"(^|\s)[#;].*", "", line).strip()
        if text.startswith("[") and text.endswith("]"):
            title = text[1:-1].strip()
            found.setdefault(title, Section())
        elif "=" in text and title:
            name, value = (part.strip() for part in text.split("=", 1))
            found[title].options[name] = Option(value, path, number)
    return found
