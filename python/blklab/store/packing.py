"""Documents and texts as bytes, compressed if that saves space.

Level 1 of zlib: a run's measurement shrinks to a quarter in half a millisecond; level 6 takes
four times as long for another fifth.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import Any, TypeVar, cast

import msgspec

from blklab.base.plain import encode
from blklab.domain.setup import SetupData
from blklab.errors import StoreError

_Kind = TypeVar("_Kind")

_PLAIN, _ZLIB = b"\x00", b"\x01"
_LEVEL = 1
_SMALL_BYTES = 200
"""Shorter data are not compressed."""
_BYTES_MAX = 1 << 30


class DamagedError(StoreError):
    """Stored data differ from what was written; the message names the place."""


def pack(content: bytes) -> bytes:
    """The stored form."""
    if len(content) < _SMALL_BYTES:
        return _PLAIN + content
    return _ZLIB + zlib.compress(content, _LEVEL)


def unpack(kept: Any) -> bytes:
    """The bytes that `pack` was given. DamagedError for anything else: a column of SQLite accepts
    values of any type."""
    if not isinstance(kept, bytes):
        raise DamagedError(f"{type(kept).__name__} in place of bytes")
    kind, body = kept[:1], kept[1:]
    if kind == _PLAIN:
        return body
    if kind != _ZLIB:
        raise DamagedError("of no known kind")
    machine = zlib.decompressobj()
    try:
        content = machine.decompress(body, _BYTES_MAX)
    except zlib.error as error:
        raise DamagedError(str(error)) from error
    if not machine.eof:
        raise DamagedError("cut off, or too long")
    return content


def pack_json(value: Any) -> bytes:
    """The stored form of a document."""
    return pack(encode(value))


def unpack_json(kept: Any) -> Any:
    """The document. DamagedError if it is not valid."""
    try:
        return json.loads(unpack(kept), parse_float=_finite, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise DamagedError(str(error)) from error


def column(where: str, kept: Any, kind: type[_Kind], unknown: Any = None) -> _Kind:
    """A document as data of that kind; `unknown` is msgspec's `dec_hook`. DamagedError, which names
    `where`."""
    try:
        return msgspec.convert(unpack_json(kept), kind, dec_hook=unknown)
    except (DamagedError, msgspec.ValidationError) as error:
        raise DamagedError(f"{where}: {error}") from error


def setup(where: str, kept: Any) -> SetupData:
    """The set-up of a comparison, with all that it has: as a `column` of its type it would lose
    what a rig says besides. DamagedError, which says `where`, if it is no mapping."""
    return cast(SetupData, column(where, kept, dict[str, Any]))


def text(value: str) -> str:
    """For a column of text: bytes that are not Unicode, as in names of files, are escaped."""
    return value.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits[:40]} is larger than a number can be")
    return value


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a number")
