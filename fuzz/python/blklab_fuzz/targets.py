"""All targets that Python has, by name."""

from __future__ import annotations

from collections.abc import Callable

from blklab_fuzz import fleets, formats, machine, specs

TARGETS: dict[str, Callable[[bytes], None]] = {
    "apply_record": formats.apply_record,
    "boot_files": machine.boot_files,
    "disk_names": machine.disk_names,
    "disk_spec": specs.disk,
    "export": formats.export,
    "fleet_answer": fleets.fleet_answer,
    "fleet_hosts": fleets.fleet_hosts,
    "job_change": formats.job_change,
    "journal_record": formats.journal_record,
    "kernel_patch": formats.patch,
    "kernel_record": formats.kernel_record,
    "kernel_scheduler": specs.kernel_scheduler,
    "kernel_tables": machine.kernel_tables,
    "option": specs.option,
    "store_document": formats.store_document,
    "study": formats.study,
    "tuned_profile": machine.tuned_profile,
    "udev_rules": machine.udev_rules,
    "workload_spec": specs.workload,
}
"""The check of each input of that kind."""
