"""Disks: figures, validation, ranges, keys."""

from __future__ import annotations

from blklab import _core
from blklab.base.units import number_text
from parts.text import code, table


def _disks() -> list[tuple[str, _core.Disk]]:
    return [(name, _core.Disk(text, f"{name}.toml")) for name, text in _core.disk_files().items()]


def disk_list() -> str:
    """One line for each disk."""
    rows = []
    for name, model in _disks():
        rows.append((f"[`{name}`](#{name})", model.name, model.summary))
    return table(("name", "disk", "what it is"), rows)


def disk_figures() -> str:
    """For each disk, its model beside the published figures, with sources."""
    parts = []
    for name, model in _disks():
        verdict = model.validation.text
        parts += [f"### {name}\n", f"{model.name}: {model.summary}.\n"]
        parts.append(f"**{verdict[0].upper()}{verdict[1:]}.**\n")
        parts.append(
            table(
                ("figure", "model", "calibrated", "checked", "deviation", "source"),
                (
                    (
                        code(row.figure),
                        f"{number_text(row.model)} {row.unit}",
                        *(_published(row, role) for role in ("calibrated", "checked")),
                        _deviation(row),
                        row.source,
                    )
                    for row in model.validate()
                ),
                right=(1, 2, 3),
            )
        )
    return "\n".join(parts)


def _published(row: _core.Check, role: str) -> str:
    if row.role != role:
        return ""
    return f"{number_text(row.published)} ± {row.tolerance_percent:g} %"


def _deviation(row: _core.Check) -> str:
    """The model's deviation, with the reason if it exceeds the tolerance."""
    text = f"{(row.model / row.published - 1) * 100:+.1f} %"
    return text if row.met else f"**{text}**: {row.not_met}"


def disk_validation() -> str:
    """A line for each disk: how many independent figures it has and meets."""
    rows = []
    for name, model in _disks():
        found = model.validation
        counts = (str(found.independent), str(found.met))
        rows.append((f"[`{name}`](#{name})", *counts, "yes" if found.validated else "no"))
    return table(("disk", "independent figures", "met", "validated"), rows, right=(1, 2))


def not_validated() -> str:
    """The disks that are not validated, with the count of independent figures that they meet."""
    lines = [
        f"* [`{name}`](disks.md#{name}): {found.met} of 5 independent figures"
        for name, model in _disks()
        if not (found := model.validation).validated
    ]
    return "\n".join(lines) + "\n"


def disk_ranges() -> str:
    """The range of an estimate, by key or unit."""

    def what(row: _core.DiskRange) -> str:
        if row.keys:
            return ", ".join(map(code, row.keys))
        return f"other keys in {row.unit}" if row.unit else "other keys without a unit"

    rows = ((what(row), row.range, row.why) for row in _core.disk_ranges())
    return table(("keys", "range", "why"), rows)


def disk_waits() -> str:
    """For each hard disk, the longest time of a 4 KiB command in it."""
    rows = []
    for name, model in _disks():
        if wait := model.longest_wait_ms:
            seconds = (f"{load_ms / 1000:.1f} s" for load_ms in (wait.reads, wait.any))
            rows.append((f"[`{name}`](#{name})", *seconds))
    head = ("disk", "reads only", "with flushes and cached writes")
    return table(head, rows, right=(1, 2))


def disk_keys(kind: str) -> str:
    """The table of keys of ``hdd``, ``ssd`` or ``constant``."""

    def absent(row: _core.DiskKey) -> str:
        if row.required:
            return "**required**"
        return code(row.default) if row.default is not None else "without"

    return table(
        ("key", "unit", "value", "default", "meaning"),
        (
            (code(row.key), row.unit, row.allowed, absent(row), row.help)
            for row in _core.disk_keys()[kind]
        ),
    )
