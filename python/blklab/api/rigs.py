"""Where to run, as an argument."""

from __future__ import annotations

from dataclasses import dataclass

from blklab import rigs
from blklab.rigs import Rig


@dataclass(frozen=True)
class RigSpec:
    """A rig and its options.

    ``RigSpec("kernel", kernel="7.3.4", driver="native")``; a rig's name alone is short for its
    `RigSpec` with all defaults.
    """

    name: str = "sim"
    """``sim``: the simulator. ``kernel``: Linux itself above the modelled disk. ``live``: this
    machine and its disks."""
    kernel: str | None = None
    """Kernel rig: a kernel of ``blklab kernel list``; None is the last one built without
    changes."""
    driver: str | None = None
    """Kernel rig: ``fio`` (None) or ``native``, which is faster."""
    cache: str | None = None
    """Live rig: ``cold`` (None) or ``warm``: whether the files are in memory at the start."""
    write_device: bool = False
    """Live rig: allow writes to a device that is not in use and holds nothing known."""
    overwrite: str | None = None
    """Live rig: the full id of a device whose contents may be destroyed."""
    trace_latency: bool = False
    """Live rig: separate queue time from service time by the kernel's block events."""
    precondition: bool = True
    """Live rig: write the used part of a flash device once before the first run."""

    @classmethod
    def of(cls, rig: str | RigSpec) -> RigSpec:
        """From a name."""
        return cls(rig) if isinstance(rig, str) else rig

    @property
    def options(self) -> dict[str, str | None]:
        """By the name of the command's option; None is the default."""
        return {
            "kernel": self.kernel,
            "driver": self.driver,
            "cache": self.cache,
            "write-device": "yes" if self.write_device else None,
            "overwrite": self.overwrite,
            "trace-latency": "yes" if self.trace_latency else None,
            "no-precondition": None if self.precondition else "yes",
        }

    def make(self) -> Rig:
        """A new rig. InputError if there is none of that name, or if it has not such an option."""
        return rigs.rig(self.name, self.options)
