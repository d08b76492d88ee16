"""Published recommendations of settings, by name, with blklab's own measurements.

The figures come from the simulator and, where named, from Linux itself on the kernel rig;
``docs/applying.md`` has the commands.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from blklab.base.text import shown
from blklab.errors import InputError, nearest


@dataclass(frozen=True)
class Preset:
    """One recommendation."""

    said: str
    """Its source, in a line."""
    scheduler: str
    """As on the command line; empty if the preset concerns only the queue."""
    measured: str
    """Its measured effect."""
    queue: dict[str, str] = field(default_factory=dict)
    """Attributes of the queue."""


PRESETS = {
    "hongkong-2025/nvme": Preset(
        "for NVMe: deadline with read_expire 200 ms and write_expire 500 ms",
        "mq-deadline:read_expire=200,write_expire=500",
        "the two deadlines had no effect in any run: no request waits so long on such a disk; "
        "none moved 1 to 9 % more than mq-deadline under every workload tried",
    ),
    "hongkong-2025/sas": Preset(
        "for SAS arrays: CFQ with slice_idle 8; Linux has had no CFQ since 5.0, bfq is the "
        "scheduler that idles today",
        "bfq:slice_idle=8",
        "beside a writer, the p99 of readers was 12 ms, under mq-deadline 731 ms, and two thirds "
        "of its bytes were moved (Linux 7.3 on the same model: 12 and 860 ms); streams moved 64 % "
        "more, with a p99 of 0.7 s instead of 68 ms (the same); a database gained nothing (the "
        "same). 8 ms is bfq's default",
    ),
    "hongkong-2025/mysql": Preset(
        "for busy MySQL servers: nr_requests 128",
        "",
        "nothing changed under any workload tried, on a disk with many queues and on a SAS disk; "
        "on an NVMe disk with one queue of 128 commands the p99 of readers beside a writer fell "
        "from 16 to 2 ms under mq-deadline",
        {"nr_requests": "128"},
    ),
}
NOT_SETTINGS = (
    "hongkong-2025 also advises a queue for each KVM guest and ionice; set these in the guest's "
    "definition and for processes, not on a disk"
)


def find(name: str) -> Preset:
    """InputError if there is no preset of that name."""
    if name not in PRESETS:
        raise InputError(f"--preset: no '{shown(name)}'{nearest(name, PRESETS)}")
    return PRESETS[name]
