"""The answer of a machine to `collect.sh`. It comes from elsewhere: it is parsed, never trusted.

Its size, its lines and its names are bounded, and control characters are refused. Its files become
a small tree below a directory of this machine, laid out as ``/sys`` is, so that the machine's disks
are described, and udev's rules judged, by the same functions as this machine's. So are its rules
and tuned's profiles.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blklab.base.files import why
from blklab.base.text import shown
from blklab.errors import InputError
from blklab.host.roots import Roots

BYTES_MAX = 16 << 20
"""A machine with 100 disks of 32 hardware queues answers with some 1 MB."""
HEAD = "blklab-fleet\t1"
_END = "end"
_LINE_MAX = 32_768
"""udev reads lines of up to 16 KiB."""
_PATH_MAX = 1024
_PARTS_MAX = 48
_DISKS_MAX = 1024
_PART = re.compile(r"[^/\x00-\x20\x7f]{1,200}")
VALUES = ("kernel/hostname", "kernel/osrelease")
"""What is read below ``/proc/sys``."""
_NAME = re.compile(r"[A-Za-z0-9_.!-]{1,64}")
_NUMBER = re.compile(r"\d{1,4}", re.ASCII)
_DEVICE_NUMBER = re.compile(r"\d{1,8}:\d{1,8}", re.ASCII)
_NUMBERS = ("size", "partition", "queue_depth", "nr_tags")
"""Files of one number."""
_WHOLE = re.compile(r"\d{0,19}", re.ASCII)
_BYTES = "vpd_pg89"
"""The only file that is no text."""
_HEX = re.compile(r"(?:\s*[0-9a-f]{2})*\s*")
_HOST_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SETTINGS = re.compile(
    r"(etc|run|usr/local/lib|usr/lib|lib)/udev/rules\.d/[A-Za-z0-9_@:+-][A-Za-z0-9_.@:+-]{0,200}\.rules"
    r"|(etc|usr/lib)/tuned/(profiles/)?[A-Za-z0-9_@:+-][A-Za-z0-9_.@:+-]{0,200}/tuned\.conf"
    r"|etc/tuned/active_profile"
)
_OF_QUEUE = ("scheduler", "rotational", "async_depth")
_FIELDS = {
    "f": 1, "t": 1, "h": 1, "l": 2, "d": 2, "v": 2, "u": 1, "p": 2, "s": 1, "w": 1, "r": 2,
}  # fmt: skip
"""The records with the number of their fields; see `collect.sh`."""


@dataclass
class Answer:
    """What a machine says of itself."""

    values: dict[str, str] = field(default_factory=dict)
    """By name below ``/proc/sys``."""
    disks: dict[str, str] = field(default_factory=dict)
    """Directories below ``/sys``, by the kernel's names."""
    files: dict[str, bytearray] = field(default_factory=dict)
    """By path below ``/sys``."""
    links: dict[str, str] = field(default_factory=dict)
    """The last part of the target of each link, by path below ``/sys``."""
    devices: dict[str, str] = field(default_factory=dict)
    """The directory of each disk's ``device``, by the disk's directory."""
    udev: dict[str, bytearray] = field(default_factory=dict)
    """udev's properties by disk, ``NAME=VALUE`` a line."""
    settings: dict[str, bytearray] = field(default_factory=dict)
    """Files of udev's rules and of tuned, by path below the root."""
    recordings: dict[int, str] = field(default_factory=dict)
    """Size and times of each named recording, by its number; empty if there is no such file."""

    @property
    def host_name(self) -> str:
        """The machine's own name, as udev compares it; empty if it is not known, or not a name."""
        name = self.values.get("kernel/hostname", "")
        return name if _HOST_NAME.fullmatch(name) else ""


def cut_out(data: bytes, source: str) -> tuple[int, list[str]]:
    """The lines of the answer in `data`, from its first to its last one, and the number of the
    first. What the machine's shell says before and after, such as a greeting, does not count.
    InputError without a whole answer."""
    if len(data) > BYTES_MAX:
        raise InputError(f"the answer has more than {BYTES_MAX} bytes", source)
    lines = data.decode(errors="backslashreplace").split("\n")
    if HEAD not in lines:
        raise InputError(f"no answer of a machine: there is no line '{shown(HEAD)}'", source)
    first = lines.index(HEAD)
    if _END not in lines[first:]:
        raise InputError("the answer is cut off: its last line is missing", source, len(lines))
    return first + 1, lines[first : lines.index(_END, first) + 1]


def parse(data: bytes, source: str) -> Answer:
    """The answer in `data`, which came from `source`. InputError with the line of what is wrong."""
    first, lines = cut_out(data, source)
    reader = _Reader()
    for number, line in enumerate(lines[1:-1], first + 1):
        try:
            reader.take(line)
        except ValueError as error:
            raise InputError(str(error), source, number) from None
    return reader.found


class _Reader:
    """Takes one line after the other. ValueError for a line that is wrong."""

    def __init__(self) -> None:
        self.found = Answer()
        self._open: bytearray | None = None
        self._told: bytearray | None = None
        self._name = ""
        self._takers: dict[str, Callable[..., None]] = {
            "f": self._file,
            "t": self._text,
            "h": self._hex,
            "l": self._link,
            "d": self._disk,
            "v": self._device,
            "u": self._udev,
            "p": self._value,
            "s": self._settings,
            "w": self._words,
            "r": self._recording,
        }

    def take(self, line: str) -> None:
        if len(line) > _LINE_MAX:
            raise ValueError(f"a line of {len(line)} characters; expected at most {_LINE_MAX}")
        kind, _, rest = line.partition("\t")
        if kind not in _FIELDS:
            raise ValueError(
                f"no record '{shown(kind[:20])}'; expected one of {', '.join(_FIELDS)}"
            )
        fields = rest.split("\t", _FIELDS[kind] - 1)
        if len(fields) != _FIELDS[kind]:
            raise ValueError(f"record {kind}: expected {_FIELDS[kind]} fields, found {len(fields)}")
        if kind == "w":
            # Of whatever an administrator has written; what it says is only ever compared.
            fields = ["".join(one if one.isprintable() else " " for one in rest)]
        elif not rest.replace("\t", " ", 0 if kind == "t" else -1).isprintable():
            raise ValueError(f"record {kind}: a control character in '{shown(rest[:60])}'")
        if kind not in "th":
            self._open = None
        if kind != "w":
            self._told = None
        self._takers[kind](*fields)

    def _file(self, path: str) -> None:
        self._open = self.found.files[_path(path)] = bytearray()
        self._name = path.rpartition("/")[2]

    def _text(self, line: str) -> None:
        place = self._opened()
        if self._name in _NUMBERS and (place or not _WHOLE.fullmatch(line)):
            raise ValueError(f"{self._name}: expected a number, found '{shown(line[:60])}'")
        place.extend(f"{line}\n".encode())

    def _hex(self, text: str) -> None:
        if self._name != _BYTES:
            raise ValueError(f"bytes of '{shown(self._name)}'; expected those of {_BYTES}")
        if not _HEX.fullmatch(text):
            raise ValueError(f"expected bytes in hexadecimal, found '{shown(text[:60])}'")
        self._opened().extend(bytes.fromhex(text))

    def _link(self, path: str, name: str) -> None:
        self.found.links[_path(path)] = _part(name)

    def _disk(self, name: str, path: str) -> None:
        if len(self.found.disks) == _DISKS_MAX:
            raise ValueError(f"more than {_DISKS_MAX} disks")
        place = _path(path)
        if not _NAME.fullmatch(name) or place.rpartition("/")[2] != name:
            raise ValueError(f"'{shown(name[:60])}' is not the name of a disk at that path")
        self.found.disks[name] = place

    def _device(self, disk: str, path: str) -> None:
        self.found.devices[_path(disk)] = _path(path)

    def _udev(self, name: str) -> None:
        if name not in self.found.disks:
            raise ValueError(f"udev's properties of '{shown(name[:60])}', which is not listed")
        self._open = self.found.udev[name] = bytearray()
        self._name = ""

    def _value(self, name: str, value: str) -> None:
        if name not in VALUES:
            raise ValueError(f"'{shown(name[:60])}': expected one of {', '.join(VALUES)}")
        self.found.values[name] = value

    def _settings(self, path: str) -> None:
        if not _SETTINGS.fullmatch(path):
            raise ValueError(f"'{shown(path[:60])}' is not a file of udev's rules or of tuned")
        self._told = self.found.settings[path] = bytearray()

    def _words(self, line: str) -> None:
        if self._told is None:
            raise ValueError("a line without a file of settings")
        self._told.extend(f"{line}\n".encode())

    def _recording(self, number: str, text: str) -> None:
        if not _NUMBER.fullmatch(number):
            raise ValueError(f"expected the number of a recording, found '{shown(number[:20])}'")
        self.found.recordings[int(number)] = text

    def _opened(self) -> bytearray:
        if self._open is None:
            raise ValueError("a line without a file")
        return self._open


def _part(name: str) -> str:
    if not _PART.fullmatch(name) or name in (".", ".."):
        raise ValueError(f"'{shown(name[:60])}' is not a name of sysfs")
    return name


def _path(text: str) -> str:
    """A path below ``/sys/devices``, without a way out of it."""
    parts = text.split("/")
    if parts[0] != "devices" or not 1 < len(parts) <= _PARTS_MAX or len(text) > _PATH_MAX:
        raise ValueError(f"'{shown(text[:60])}' is not a path below /sys/devices")
    for part in parts:
        _part(part)
    return text


def write_tree(answer: Answer, top: Path, source: str) -> Roots:
    """Lay out the answer below `top`, an empty directory. InputError if its files contradict each
    other."""
    roots = Roots.under(top)
    try:
        for path, data in answer.files.items():
            if _is_read(path):
                _write(roots.sys / path, bytes(data))
            else:
                (roots.sys / path).parent.mkdir(parents=True, exist_ok=True)
        for path, data in answer.settings.items():
            _write(top / path, bytes(data))
        # No file is written after the first link: none can be followed.
        for path, name in answer.links.items():
            _link(roots.sys / path, Path(name))
        for disk, path in answer.devices.items():
            (roots.sys / path).mkdir(parents=True, exist_ok=True)
            _link(roots.sys / disk / "device", roots.sys / path)
        for name, path in answer.disks.items():
            directory = roots.sys / path
            directory.mkdir(parents=True, exist_ok=True)
            for place in ("block", "class/block"):
                _link(roots.sys / place / name, directory)
        for name, value in answer.values.items():
            _write(roots.proc / "sys" / name, f"{value}\n".encode())
        for name, properties in answer.udev.items():
            number = answer.files.get(f"{answer.disks[name]}/dev", b"").decode().strip()
            if _DEVICE_NUMBER.fullmatch(number):
                stored = [b"E:" + line for line in bytes(properties).splitlines()]
                _write(roots.run / "udev/data" / f"b{number}", b"\n".join(stored) + b"\n")
    except OSError as error:
        raise InputError(
            f"files of the answer contradict each other: {why(error)}", source
        ) from None
    return roots


def _is_read(path: str) -> bool:
    """Whether the description of a disk, or a rule, needs the file: hundreds of machines have many
    queues with many settings."""
    *_, above, parent, name = f"//{path}".split("/")
    if above == "mq":
        return parent == "0"
    return parent != "queue" or name in _OF_QUEUE


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(data)


def _link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def script(recordings: Sequence[str]) -> str:
    """The script that a machine runs, which also names these recordings."""
    text = (Path(__file__).with_name("collect.sh")).read_text(encoding="utf-8")
    named = "".join(f"  recording {n} {shlex.quote(path)}\n" for n, path in enumerate(recordings))
    # The shell has read all of it before a command in it can read from its input.
    return f"{text}{{\n  answer\n{named}  printf 'end\\n'\n  exit 0\n}}\n"


def copy_script(recording: str) -> str:
    """The script that sends a recording."""
    return f"exec cat -- {shlex.quote(recording)}\n"
