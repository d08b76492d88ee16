"""The systemd unit of `blklab watch`: written, recognised and removed.

The file itself is the record: its second line has the time at which it was written, and a file that
is not exactly as `text` writes it is another program's and stays. systemd runs ``blklab restore``
after the service has ended in any way, also by ``kill -9``.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import blklab
from blklab.base import trust
from blklab.base.as_root import as_root
from blklab.base.files import write_whole
from blklab.base.text import shown
from blklab.errors import InputError
from blklab.host.roots import Roots
from blklab.settings.programs import Programs

NAME = "blklab-watch.service"
_FIRST = "# Written by blklab; do not edit. See: blklab status, blklab watch --uninstall"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_BYTES_MAX = 1 << 16


@dataclass(frozen=True)
class WatchUnit:
    """An installed unit."""

    time: str
    """When it was written: ISO 8601, UTC."""
    command: str
    """The command that it runs, for a shell."""


def place(roots: Roots) -> Path:
    """The unit's path."""
    return roots.etc / "systemd/system" / NAME


def text(options: Sequence[str], at: str) -> str:
    """The unit that runs ``blklab watch`` with these `options`."""
    program = [sys.executable, "-m", "blklab"]
    return (
        f"{_FIRST}\n"
        f"# {at}\n"
        "[Unit]\n"
        "Description=Set I/O schedulers as the loads of disks change\n"
        "After=local-fs.target\n"
        "\n"
        "[Service]\n"
        f"ExecStart={_line([*program, 'watch', *options])}\n"
        f"ExecStopPost={_line([*program, 'restore'])}\n"
        # SIGTERM: settings were restored.
        "SuccessExitStatus=143\n"
        "Restart=on-failure\n"
        "RestartSec=60\n"
        "Nice=10\n"
        "\n"
        "[Install]\n"
        "WantedBy=multi-user.target\n"
    )


def installed(roots: Roots) -> WatchUnit | None:
    """The unit, if there is one. InputError if another program has written or changed it."""
    path = place(roots)
    try:
        content = path.read_bytes()[:_BYTES_MAX].decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    lines = content.split("\n")
    is_ours = len(lines) > 1 and lines[0] == _FIRST and re.fullmatch(rf"# {_TIME}", lines[1])
    start = next((line for line in lines if line.startswith("ExecStart=")), "")
    words = _words(start.removeprefix("ExecStart="))
    if not is_ours or "watch" not in words:
        raise InputError(f"{path} is not as blklab wrote it; move it away first")
    options = words[words.index("watch") + 1 :]
    at = lines[1].removeprefix("# ")
    if text(options, at).split("\n")[2:] != _with_program_of_now(lines)[2:]:
        raise InputError(f"{path} is not as blklab wrote it; move it away first")
    return WatchUnit(at, shlex.join(["blklab", "watch", *options]))


def install(options: Sequence[str], roots: Roots, programs: Programs) -> list[str]:
    """Write the unit, and start it now and at each boot. Returns unexpected findings, a line each.
    InputError if that needs root, if there is one, or if another user could replace the program."""
    path = place(roots)
    _check_may_write(path)
    for file in (Path(sys.executable).resolve(), Path(blklab.__file__).resolve()):
        if why := trust.replaceable_part(file):
            raise InputError(f"{shown(str(file))}: root will not run it as a service: {why}")
    if found := installed(roots):
        raise InputError(
            f"{path} is there: {found.command}; to replace it, first: blklab watch --uninstall"
        )
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_whole(path, text(options, at), 0o644)
    return _systemctl([["daemon-reload"], ["enable", "--now", NAME]], roots, programs)


def uninstall(roots: Roots, programs: Programs) -> tuple[WatchUnit, list[str]]:
    """Stop the unit, which restores what it has set, and remove it. Returns it, and unexpected
    findings, a line each. InputError if there is none, or if that needs root."""
    path = place(roots)
    found = installed(roots)
    if found is None:
        raise InputError(f"no watch is installed: there is no {path}")
    _check_may_write(path)
    notes = _systemctl([["disable", "--now", NAME]], roots, programs)
    path.unlink(missing_ok=True)
    notes += _systemctl([["daemon-reload"]], roots, programs)
    return found, list(dict.fromkeys(notes))


def _systemctl(commands: Sequence[Sequence[str]], roots: Roots, programs: Programs) -> list[str]:
    if not (roots.run / "systemd/system").is_dir():
        return [f"systemd is not running here; where it runs: systemctl {shlex.join(commands[-1])}"]
    return [wrong for words in commands if (wrong := programs.run(["systemctl", *words]))]


def _check_may_write(path: Path) -> None:
    there = next(place for place in path.parents if place.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        if os.geteuid() == 0:
            raise InputError(f"{path}: {there} is not writable, even by root: read-only?")
        raise InputError(f"{path}: needs root; type: {as_root()}")


def _line(words: Sequence[str]) -> str:
    """A command line of systemd (systemd.service(5), "Command lines"). InputError for a word that
    it cannot have."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if not word.isprintable():
        raise InputError(f"a unit of systemd cannot have the word '{shown(word)}'")
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    # Specifiers, and variables.
    return f'"{escaped.replace("%", "%%").replace("$", "$$")}"'


def _words(line: str) -> list[str]:
    """The inverse of `_line`; empty for another text."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"(?: |$)', line)
    words = [re.sub(r"\\(.)", r"\1", word.replace("%%", "%").replace("$$", "$")) for word in found]
    return words if _line(words) == line else []


def _with_program_of_now(lines: Sequence[str]) -> list[str]:
    """The same lines with this installation's Python, which may differ from the one that wrote
    them."""
    program = _quoted(sys.executable)
    return [
        re.sub(r'^(Exec\w+=)"(?:[^"\\]|\\.)*"', lambda found: found[1] + program, line)
        for line in lines
    ]
