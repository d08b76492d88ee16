"""systemd's services with commands that write to a queue, systemd.service(5)."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from blklab.host import reading
from blklab.host.devices.deciders.influence import Influence, in_script, in_shell
from blklab.host.devices.queue import Queue
from blklab.host.roots import Roots

_BY = "systemd unit"
_COMMAND = re.compile(r"\s*Exec(?:Start|StartPre|StartPost|Reload)\s*=\s*[-@:+!|]*(?P<command>.*)")
_SERVICE = ".service"
_WANTED = (".wants", ".requires", ".upholds")


@dataclass(frozen=True)
class _Command:
    """What a service runs."""

    file: Path
    line: int
    words: str
    scripts: tuple[Path, ...]
    """The scripts among the words of a command."""


@dataclass(frozen=True)
class _File:
    """A service's file or one of its drop-ins; a rewritten file is another one."""

    path: Path
    written_ns: int
    size_bytes: int


def influences(queue: Queue, roots: Roots) -> Iterator[Influence]:
    """Commands of services, and the lines of the scripts that they run."""
    units, enabled = _units(roots)
    for name, files in units.items():
        for command in (one for file in files for one in _commands(file, roots)):
            for found in _of_command(command, queue):
                if found.sure and name not in enabled:
                    yield replace(found, sure=False, why=f"{name} is not enabled")
                else:
                    yield found


def _of_command(command: _Command, queue: Queue) -> Iterator[Influence]:
    found = list(in_shell(_BY, command.file, command.line, command.words, queue.name))
    yield from found
    for script in () if found else command.scripts:
        for one in in_script(_BY, script, queue.name):
            yield replace(one, sure=False, why=one.why or "a script may do it or not")


# There are hundreds of units, and each disk asks for all of them.
@functools.lru_cache(maxsize=4096)
def _commands(file: _File, roots: Roots) -> tuple[_Command, ...]:
    found = []
    text, begun = "", 0
    for number, line in enumerate(reading.lines(file.path), 1):
        begun = begun or number
        text += line.removesuffix("\\")
        if line.endswith("\\"):
            continue
        if command := _COMMAND.match(text):
            # %% and $$ are systemd's way to write one of each.
            words = command["command"].replace("%%", "%").replace("$$", "$")
            found.append(_Command(file.path, begun, words, tuple(_scripts(words, roots))))
        text, begun = "", 0
    return tuple(found)


def _scripts(words: str, roots: Roots) -> Iterator[Path]:
    try:
        parts = [Path(word) for word in shlex.split(words)[:3]]
    except ValueError:
        return
    for part in parts:
        if part.is_absolute() and len(part.parts) > 1 and part.parts[1] in ("etc", "usr", "run"):
            top = {"etc": roots.etc, "usr": roots.usr, "run": roots.run}[part.parts[1]]
            script = top.joinpath(*part.parts[2:])
            if reading.script(script):
                yield script


def _units(roots: Roots) -> tuple[dict[str, list[_File]], set[str]]:
    """Each service's file followed by its drop-ins; and the services that a target wants or
    requires, with instances of a template also under the template's name.

    Masked services are links to /dev/null and read as empty.
    """
    units: dict[str, Path] = {}
    dropped: dict[str, list[Path]] = {}
    enabled: set[str] = set()
    for top in (roots.etc, roots.run, roots.usr / "local/lib", roots.usr / "lib", roots.lib):
        directory = top / "systemd/system"
        for name in reading.names(directory):
            if name.endswith(_SERVICE):
                units.setdefault(name, directory / name)
            elif name.endswith(f"{_SERVICE}.d"):
                inside = (directory / name / one for one in reading.names(directory / name))
                files = [path for path in inside if path.suffix == ".conf"]
                dropped.setdefault(name.removesuffix(".d"), []).extend(files)
            elif name.endswith(_WANTED):
                enabled |= set(reading.names(directory / name))
    enabled |= {re.sub(r"@.*\.service$", "@.service", name) for name in enabled}
    every = {name: [path, *dropped.get(name, [])] for name, path in units.items()}
    return {name: list(map(_file, paths)) for name, paths in every.items()}, enabled


def _file(path: Path) -> _File:
    try:
        found = path.stat()
    except OSError:
        return _File(path, 0, 0)
    return _File(path, found.st_mtime_ns, found.st_size)
