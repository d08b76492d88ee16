"""The modelled host in a guest: what the native driver does of it, and what is the guest's own."""

from __future__ import annotations

from collections.abc import Mapping

from blklab.domain import core, specs
from blklab.errors import InputError
from blklab.rigs.kernel import cache

_PAGE_BYTES = 4096
# What Linux sets where there are 4 GiB and more, and huge pages
# (`set_recommended_min_free_kbytes`).
_MIN_FREE_KB = 67584
KEPT_FREE_MIB = _MIN_FREE_KB * 3 // 2 // 1024
"""Memory up to which kswapd frees pages (the high watermark): beside the page cache."""
CPUS_MAX = 64
"""The most CPUs for which a guest's kernel has queues: the bits of a word (``cpus.patch``)."""
_JOURNAL = {"journal", "lazytime"}
_FILES = {"partitions", "file_system"} | _JOURNAL
_CPU_WORK = {"cpus", "submit_ns", "complete_ns", "wake_ns", "syscall_ns", "copy_mb_s"}
_LOCK = "lock_ns."


def own(kernel: cache.Kernel) -> dict[str, int]:
    """What a guest of that kernel has by itself."""
    return specs.guest(kernel.as_guest)


def check(changed: Mapping[str, int], driver: str, kernel: cache.Kernel) -> dict[str, int]:
    """The values that count with that driver, with those in `changed`. InputError for others."""
    values = core.check_host(changed)
    counts = that_counts(driver)
    if driver == "native" and kernel.has_cpus:
        counts.add("kernel_cpus")
        if (queues := kernel_cpus(values)) > CPUS_MAX:
            raise InputError(
                f"--host: {'kernel_cpus' if values['kernel_cpus'] else 'cpus'} is {queues}, but a "
                f"guest's kernel has queues for at most {CPUS_MAX} CPUs: kernel_cpus={CPUS_MAX}"
            )
    fixed = own(kernel)
    for name, value in changed.items():
        # A scheduler's CPU work takes no time there either.
        its = fixed.get(name, 0)
        if name in counts or value == its:
            continue
        if name == "kernel":
            raise InputError(f"--host: kernel is {core.host_text(name, value)}, but {kernel.text}")
        can = driver != "native" and name in cpu_work()
        native = "; --driver native can work on modelled CPUs" if can else ""
        raise InputError(
            f"--host: {name} is {its} in a guest; with --rig kernel --driver {driver} you can set "
            f"{', '.join(sorted(counts))}{native}"
        )
    return {name: value for name, value in values.items() if name in counts}


def kernel_cpus(values: Mapping[str, int]) -> int:
    """The CPUs for which a guest's kernel has queues, if it knows CPUs and the driver is ours."""
    return values.get("kernel_cpus") or values["cpus"]


def check_of_program(values: Mapping[str, int], kernel: cache.Kernel, program: str) -> None:
    """InputError if the host has modelled CPUs or files, which a real program has not."""
    default, fixed = core.check_host({}), own(kernel)
    for name in sorted((cpu_work() | _FILES) & values.keys()):
        if values[name] not in (default[name], fixed.get(name, 0)):
            raise InputError(
                f"--host: {name} is {fixed.get(name, 0)} for {program}, a real program, which runs "
                "on the guest's own CPU and file system"
            )


def of_native(values: Mapping[str, int], kernel: cache.Kernel) -> dict[str, int]:
    """What the native driver is told of the host; how files behave depends on the version of
    Linux."""
    # A journal is that of a real file system there.
    names = sorted((cpu_work() | _FILES - _JOURNAL) & values.keys())
    return {name: values[name] for name in names} | {"kernel": own(kernel)["kernel"]}


def that_counts(driver: str) -> set[str]:
    """The values of the modelled host that a guest with that driver receives."""
    of_cache = {row.name for row in core.environment()["page cache"]}
    return of_cache | cpu_work() | _FILES if driver == "native" else of_cache


def cpu_work() -> set[str]:
    """Those that the native driver's processes work with."""
    names = {row.name for row in core.environment()["host"]}
    return {name for name in names if name in _CPU_WORK or name.startswith(_LOCK)}


def sysctls(values: Mapping[str, int]) -> dict[str, int]:
    """The page cache's settings. Limits are sizes, because a ratio would depend on the guest's free
    memory: of the modelled memory they are as many pages as the kernel and the simulator calculate
    (`domain_dirty_limits`).

    The watermarks are those of an ordinary machine. With a guest's own, kswapd is woken 195 pages
    before nothing is free, and a read-ahead window of 4,096 ends where it is: read-ahead does not
    try again (`readahead_gfp_mask`)."""
    pages = values["memory_kb"] * 1024 // _PAGE_BYTES + 1

    def of_ratio(ratio: int) -> int:
        return ratio * _PAGE_BYTES // 100 * pages // _PAGE_BYTES * _PAGE_BYTES

    size = {
        limit: values[f"{limit}_bytes"] or of_ratio(values[f"{limit}_ratio"])
        for limit in ("dirty_background", "dirty")
    }
    return (
        {f"vm.{limit}_bytes": max(size[limit], 2 * _PAGE_BYTES) for limit in size}
        | {
            f"vm.{name}": values[name]
            for name in ("dirty_expire_centisecs", "dirty_writeback_centisecs")
        }
        | {"vm.min_free_kbytes": _MIN_FREE_KB}
    )
