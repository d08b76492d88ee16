"""Any command of this machine, measured from its start to its end.

``command:cp a b``, with the words as in a shell, which does not run: for pipes and variables
``command:sh -c '...'``. Words before ``::`` are a command that prepares data and is not measured:
``command:dd if=/dev/zero of=a bs=1M count=100 :: cp a b``. Both start in the program's directory,
with no standard input.
"""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from blklab.base.text import shown
from blklab.errors import InputError, RunError
from blklab.programs.place import Place, last_line
from blklab.programs.program import Outcome, Program, Values

NAME = "command"
_THEN = "::"
_SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where a guest looks for programs."""
_DEVICE = "{disk}"
_HELP = "expected a program in /usr, or the path of one"


def words(text: str) -> list[str]:
    """The words of `text`. InputError if quotes do not match, or if there is no command."""
    try:
        found = shlex.split(text)
    except ValueError as error:
        raise InputError(f"{NAME}: {error}: {shown(text)}") from error
    for command in taken_apart(found):
        if not command or not command[0]:
            raise InputError(
                f"{NAME}: expected a program and its arguments, such as {NAME}:cp a b, found "
                f"'{shown(text)}'"
            )
    return found


def to_line(found: Sequence[str]) -> str:
    """For an entry's text."""
    return json.dumps(list(found))


def from_line(line: str) -> list[str]:
    """The words of `to_line`. InputError for another line."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise InputError(f"{NAME}: expected a list of words, found {shown(line)}")
    return found


def taken_apart(found: Sequence[str]) -> list[list[str]]:
    """The command that prepares, if there is one, and the measured one."""
    if _THEN not in found:
        return [list(found)]
    place = found.index(_THEN)
    return [list(found[:place]), list(found[place + 1 :])]


def program(found: Sequence[str]) -> Program:
    """The program of these words."""
    commands = taken_apart(found)

    def begin(_: Values, place: Place) -> Callable[[], Outcome]:
        *before, measured = [
            [word.replace(_DEVICE, str(place.device)) for word in command] for command in commands
        ]
        for command in before:
            _run(command, place)
        return lambda: _measured(measured, place)

    return Program(
        name=NAME,
        summary="any command of this machine: the time from its start to its end",
        unit="s",
        higher_is_better=False,
        operation="",
        needs={command[0]: _HELP for command in commands},
        parameters=(),
        begin=begin,
        rigs=("kernel",),
        find=_find,
    )


def _measured(command: Sequence[str], place: Place) -> Outcome:
    start_ns = time.perf_counter_ns()
    output = _run(command, place)
    return Outcome((time.perf_counter_ns() - start_ns) / 1e9, raw={"output.txt": output})


def _run(command: Sequence[str], place: Place) -> str:
    """Its output. A file gets it, not a pipe: processes that it leaves may hold that open. RunError
    with its last line if it fails."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "output"
        code = place.start(command, log, None, place.directory).wait()
        text = log.read_text(encoding="utf-8", errors="replace")
    if code != 0:
        raise RunError(f"{Path(command[0]).name}: {last_line(text, code)}")
    return text


def _find(name: str) -> str | None:
    if "/" in name:
        return name if Path(name).exists() or not Path(name).is_absolute() else None
    return shutil.which(name, path=_SEARCHED)
