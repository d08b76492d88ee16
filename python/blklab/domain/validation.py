"""Texts for disk models that are not validated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MARK = "not validated"


def not_validated(described: Mapping[str, Any]) -> str:
    """Why the disk that a rig describes is not validated. Empty if it is, for a real disk, and for
    results of an older version."""
    found = described.get("validation") or {"validated": True, "text": ""}
    return "" if found["validated"] else str(found["text"])


def warning(setup: Mapping[str, Any]) -> str:
    """One line that lists the disks of a set-up that are not validated; empty without such
    disks."""
    found = {disk["label"]: not_validated(disk) for disk in setup["disks"]}
    texts = [f"{label} ({why.removeprefix(_MARK + ': ')})" for label, why in found.items() if why]
    return f"Not validated: {', '.join(texts)}." if texts else ""
