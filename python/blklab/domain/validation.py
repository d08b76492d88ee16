"""Whether a disk model was held against enough independent figures, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MARK = "not validated"


def not_validated(described: Mapping[str, Any]) -> str:
    """Why a disk, as its rig describes it, is not validated; empty if it is, or if it is not known:
    of a real one, and in results of an older version."""
    found = described.get("validation") or {"validated": True, "text": ""}
    return "" if found["validated"] else str(found["text"])


def warning(setup: Mapping[str, Any]) -> str:
    """One line about all disks of a set-up that are not validated; empty if there are none."""
    found = {disk["label"]: not_validated(disk) for disk in setup["disks"]}
    texts = [f"{label} ({why.removeprefix(_MARK + ': ')})" for label, why in found.items() if why]
    return f"Not validated: {', '.join(texts)}." if texts else ""
