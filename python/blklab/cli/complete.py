"""The shell's completions of an option; empty if nothing is found."""

from __future__ import annotations

from collections.abc import Iterable

# Loaded when the shell asks for names: saves 30 ms in each command.


def disk(incomplete: str) -> list[str]:
    """Disks by name."""
    return _named("disk", incomplete)


def workload(incomplete: str) -> list[str]:
    """Workloads by name."""
    return _named("workload", incomplete)


def study(incomplete: str) -> list[str]:
    """Studies by name."""
    return _named("study", incomplete)


def scheduler(incomplete: str) -> list[str]:
    """Schedulers by name, then their tunables."""
    name, colon, settings = incomplete.partition(":")
    if not colon:
        return _named("scheduler", incomplete)
    from blklab.api.names import tunables

    given, comma, _ = settings.rpartition(",")
    return _beginning(
        [f"{name}:{given}{comma}{tunable}=" for tunable in tunables(name)], incomplete
    )


def device(incomplete: str) -> list[str]:
    """This machine's block devices."""
    names = _named("device", "")
    return _beginning([*names, *(f"/dev/{name}" for name in names)], incomplete)


def host(incomplete: str) -> list[str]:
    """Tunables of the host and its page cache."""
    return _beginning(["guest", *(f"{name}=" for name in _named("host", ""))], incomplete)


def kernel(incomplete: str) -> list[str]:
    """Kernels in the cache, by name."""
    return _named("kernel", incomplete)


def rig(incomplete: str) -> list[str]:
    """Rigs."""
    return _named("rig", incomplete)


def driver(incomplete: str) -> list[str]:
    """Drivers of the kernel rig."""
    return _named("driver", incomplete)


def cache(incomplete: str) -> list[str]:
    """States of the page cache on the live rig."""
    return _named("cache", incomplete)


def objective(incomplete: str) -> list[str]:
    """Objectives."""
    return _named("objective", incomplete)


def kept(incomplete: str) -> list[str]:
    """Numbers of comparisons in the store, the latest first."""
    return _named("comparison", incomplete)


def export_format(incomplete: str) -> list[str]:
    """Formats of an export."""
    return _named("export format", incomplete)


def trace_format(incomplete: str) -> list[str]:
    """Formats of traces."""
    return _named("trace format", incomplete)


def _named(kind: str, incomplete: str) -> list[str]:
    from blklab.api.names import names

    return _beginning(names(kind), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
