"""File and socket calls of a process and all its children, by strace: every successful call that
changes something, opens for writing, reads, connects or starts a program."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "strace"

# Calls that change, create or remove paths, with the numbers of the path arguments. Calls with
# descriptors are not needed: their files were opened before.
_CHANGING = {
    **dict.fromkeys(("creat", "mkdir", "rmdir", "unlink", "mknod", "truncate", "chmod"), (0,)),
    **dict.fromkeys(("chown", "lchown", "utime", "utimes", "setxattr", "lsetxattr"), (0,)),
    **dict.fromkeys(("removexattr", "lremovexattr", "swapon", "acct"), (0,)),
    **dict.fromkeys(("mkdirat", "unlinkat", "mknodat", "fchmodat", "fchownat"), (1,)),
    **dict.fromkeys(("utimensat", "futimesat"), (1,)),
    **dict.fromkeys(("rename", "link"), (0, 1)),
    **dict.fromkeys(("renameat", "renameat2", "linkat"), (1, 3)),
    "symlink": (1,),
    "symlinkat": (2,),
}
_OPENING = {"open": 0, "openat": 1, "openat2": 1}
_STARTING = {"execve": 0, "execveat": 1}
_FORKING = ("clone", "clone3", "fork", "vfork")
_WRITES = re.compile(r"\bO_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)\b")
_CALLS = (*_CHANGING, *_OPENING, *_STARTING, *_FORKING, "chdir", "fchdir", "connect", "bind")

_LINE = re.compile(r"(\d+) +(.*)", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+|\?)(?:<(.*)>)?(?: /\* (\d+) in strace)?", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)", re.DOTALL)
_UNFINISHED = " <unfinished ...>"
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_AT = re.compile(r"(?:AT_FDCWD|\d+)<(.*)>", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-f]{2})|(.))", re.DOTALL)
_NAMED = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11}


@dataclass(frozen=True)
class Call:
    """One call."""

    program: str
    """The process's program: the last part of its path."""
    what: str
    """``write`` for all changes of the path, ``read``, ``start``, ``connect``."""
    target: str
    """The path without links, or the address."""
    text: str
    """The line of strace."""


def command(output: Path, traced: Sequence[str]) -> list[str]:
    """The command line that runs `traced` with strace, which writes to `output`."""
    return ["strace", "-f", "-y", "--seccomp-bpf", "--decode-pids=pidns", "-s", "4096", "-qq",
            "-e", f"trace={','.join(f'?{name}' for name in _CALLS)}", "-e", "signal=none",
            "-o", str(output), "--", *traced]  # fmt: skip


def calls(output: Path) -> Iterator[Call]:
    """The calls in that output. A failed change of a missing directory is a ``mark``: a traced
    program can mark its progress this way."""
    programs: dict[str, str] = {}
    directories: dict[str, str] = {}
    with output.open(errors="surrogateescape") as lines:
        for process, line in _whole(lines):
            found = _CALL.match(line)
            if found is None:
                continue
            name, text, result, path, child = found.groups()
            arguments = _arguments(text)
            if name == "chdir" and result == "-1":
                yield Call(programs.get(process, ""), "mark", _text(arguments[0]), line)
            if result.startswith("-") or result == "?":
                # A started program replaces the process's program even if strace prints no end of
                # the call.
                continue
            here = directories.get(process, "/")
            if name in _FORKING:
                # In another PID namespace the process has another number.
                programs[child or result] = programs.get(process, "")
                directories[child or result] = here
            elif name == "chdir":
                directories[process] = _joined(here, _text(arguments[0]))
            elif name == "fchdir":
                directories[process] = _at(arguments[0]) or here
            elif name in _STARTING:
                target = _path(here, arguments, _STARTING[name])
                yield Call(programs.get(process, ""), "start", target, line)
                programs[process] = Path(target).name
            elif name in _OPENING:
                place = _OPENING[name]
                # The descriptor's file: the kernel has followed links.
                target = _decoded(path) if path else _path(here, arguments, place)
                what = "write" if _WRITES.search(" ".join(arguments[place + 1 :])) else "read"
                yield Call(programs.get(process, ""), what, target, line)
            elif name in ("connect", "bind"):
                yield Call(programs.get(process, ""), "connect", arguments[1], line)
            elif name in _CHANGING:
                for place in _CHANGING[name]:
                    yield Call(
                        programs.get(process, ""), "write", _path(here, arguments, place), line
                    )


def _whole(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Joins the two parts of calls that another process's call interrupted."""
    begun: dict[str, str] = {}
    for line in lines:
        found = _LINE.match(line.rstrip("\n"))
        if found is None:
            continue
        process, rest = found.groups()
        if rest.endswith(_UNFINISHED):
            begun[process] = rest.removesuffix(_UNFINISHED)
            continue
        if resumed := _RESUMED.match(rest):
            rest = begun.pop(process, "") + resumed[1]
        yield process, rest


def _arguments(text: str) -> list[str]:
    """The arguments: parts between commas outside of texts, structures and descriptors' names."""
    found, depth, quoted, begin = [], 0, False, 0
    place = 0
    while place < len(text):
        sign = text[place]
        if quoted:
            place += sign == "\\"
            quoted = sign != '"'
        elif sign == '"':
            quoted = True
        elif sign in "{[(<":
            depth += 1
        elif sign in "}])>":
            depth -= 1
        elif sign == "," and not depth:
            found.append(text[begin:place].strip())
            begin = place + 1
        place += 1
    return [*found, text[begin:].strip()]


def _path(here: str, arguments: Sequence[str], place: int) -> str:
    base = _at(arguments[place - 1]) if place and _AT.match(arguments[place - 1]) else here
    return _joined(base or here, _text(arguments[place]))


def _joined(base: str, path: str) -> str:
    """Follows links in the path's directory, but not a link at the path itself."""
    whole = Path(base, path)
    return str(Path(os.path.realpath(whole.parent), whole.name))


def _at(argument: str) -> str:
    found = _AT.match(argument)
    return _decoded(found[1]) if found else ""


def _text(argument: str) -> str:
    found = _TEXT.search(argument)
    return _decoded(found[1]) if found else ""


def _decoded(text: str) -> str:
    def byte(found: re.Match[str]) -> str:
        octal, hexadecimal, named = found.groups()
        if octal or hexadecimal:
            return chr(int(octal, 8) if octal else int(hexadecimal, 16))
        return chr(_NAMED.get(named, ord(named)))

    return _ESCAPE.sub(byte, text).encode("latin-1", "replace").decode(errors="surrogateescape")
