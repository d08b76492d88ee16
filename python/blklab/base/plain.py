"""Plain data that every JSON reader accepts, and its JSON text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import msgspec


def plain(value: Any) -> Any:
    """Data classes and the core's data as mappings; numbers that are not finite, such as the open
    end of an interval, as None, because JSON has neither infinity nor NaN."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    elif names := getattr(value, "FIELDS", None):
        value = {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def encode(value: Any) -> bytes:
    """JSON without spaces, of plain data, dataclasses and paths."""
    try:
        return msgspec.json.encode(value, enc_hook=_as_data)
    except UnicodeEncodeError:
        # A file's name that is not UTF-8.
        finite = plain(json.loads(json.dumps(value, default=_as_plain)))
        return json.dumps(finite, separators=(",", ":")).encode()


def path_from_text(kind: type, value: Any) -> Any:
    """msgspec's `dec_hook` for data with paths, for which JSON has no type."""
    if kind is Path:
        return Path(value)
    # By msgspec's contract: it then reports the unknown type and its place itself.
    raise NotImplementedError(kind)


def _as_data(value: Any) -> str | dict[str, object]:
    if isinstance(value, Path):
        return str(value)
    if names := getattr(value, "FIELDS", None):
        return {name: getattr(value, name) for name in names}
    raise TypeError(f"not plain data: {type(value).__name__}")


def _as_plain(value: Any) -> Any:
    return _as_data(value) if isinstance(value, Path) or hasattr(value, "FIELDS") else vars(value)
