"""systemd's services whose commands write to a queue, systemd.service(5)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from blklab.devices import reading
from blklab.devices.deciders.influence import Influence, in_script, in_shell
from blklab.devices.queue import Queue
from blklab.devices.roots import Roots

_BY = "systemd unit"
_COMMAND = re.compile(r"\s*Exec(?:Start|StartPre|StartPost|Reload)\s*=\s*[-@:+!|]*(?P<command>.*)")


def influences(queue: Queue, roots: Roots) -> Iterator[Influence]:
    """Commands of services, and what stands in the scripts that they run."""
    enabled = _enabled(roots)
    for name, path in _units(roots).items():
        files = [path, *_dropins(name, roots)]
        for file in files:
            for found in _of_unit(file, queue, roots):
                if found.sure and name not in enabled:
                    yield replace(found, sure=False, why=f"{name} is not enabled")
                else:
                    yield found


def _of_unit(file: Path, queue: Queue, roots: Roots) -> Iterator[Influence]:
    text = ""
    begun = 0
    for number, line in enumerate(reading.lines(file), 1):
        begun = begun or number
        text += line.removesuffix("\\")
        if line.endswith("\\"):
            continue
        if command := _COMMAND.match(text):
            # %% and $$ are systemd's way to write one of each.
            words = command["command"].replace("%%", "%").replace("$$", "$")
            found = list(in_shell(_BY, file, begun, words, queue.name))
            yield from found or _of_script(words, queue, roots)
        text, begun = "", 0


def _of_script(words: str, queue: Queue, roots: Roots) -> Iterator[Influence]:
    try:
        parts = [Path(word) for word in shlex.split(words)[:3]]
    except ValueError:
        return
    for part in parts:
        if part.is_absolute() and len(part.parts) > 1 and part.parts[1] in ("etc", "usr", "run"):
            top = {"etc": roots.etc, "usr": roots.usr, "run": roots.run}[part.parts[1]]
            script = top.joinpath(*part.parts[2:])
            for found in in_script(_BY, script, queue.name):
                yield replace(found, sure=False, why=found.why or "a script may do it or not")


def _places(roots: Roots) -> list[Path]:
    tops = (roots.etc, roots.run, roots.usr / "local/lib", roots.usr / "lib", roots.lib)
    return [top / "systemd/system" for top in tops]


def _units(roots: Roots) -> dict[str, Path]:
    """Each service's file; masked ones are links to /dev/null and read as empty."""
    found: dict[str, Path] = {}
    for directory in _places(roots):
        for name in reading.names(directory):
            if name.endswith(".service"):
                found.setdefault(name, directory / name)
    return found


def _dropins(name: str, roots: Roots) -> list[Path]:
    directories = [directory / f"{name}.d" for directory in _places(roots)]
    return [
        directory / file
        for directory in directories
        for file in reading.names(directory)
        if file.endswith(".conf")
    ]


def _enabled(roots: Roots) -> set[str]:
    """Services that a target wants or requires; one of a template by the template's name too."""
    found = set()
    for directory in _places(roots):
        for name in reading.names(directory):
            if name.endswith((".wants", ".requires", ".upholds")):
                found |= set(reading.names(directory / name))
    return found | {re.sub(r"@.*\.service$", "@.service", name) for name in found}
