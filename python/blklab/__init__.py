"""blklab: the Linux I/O scheduler workbench.

Each command is a function here: ``blklab.simulate(job, disk=..., scheduler=...)`` runs a fio job
file on a modelled disk and returns a typed :class:`blklab.domain.result.Result`;
``blklab.compare`` ranks schedulers by disk and workload. Importing the package loads no function,
so that the command starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blklab._core import RecordingColumn as RecordingColumn
    from blklab._core import TraceFinding as TraceFinding
    from blklab._core import TraceFormat as TraceFormat
    from blklab._core import TraceReading as TraceReading
    from blklab._core import TraceServed as TraceServed
    from blklab.api.apply import Applied as Applied
    from blklab.api.apply import Presets as Presets
    from blklab.api.apply import apply as apply
    from blklab.api.apply import list_presets as list_presets
    from blklab.api.apply import status as status
    from blklab.api.apply import undo as undo
    from blklab.api.bisect import Bisected as Bisected
    from blklab.api.bisect import bisect as bisect
    from blklab.api.catalogue import DiskModel as DiskModel
    from blklab.api.catalogue import DiskParameter as DiskParameter
    from blklab.api.catalogue import Host as Host
    from blklab.api.catalogue import ProgramDocument as ProgramDocument
    from blklab.api.catalogue import SchedulerModel as SchedulerModel
    from blklab.api.catalogue import Tunable as Tunable
    from blklab.api.catalogue import Workload as Workload
    from blklab.api.catalogue import find_disk as find_disk
    from blklab.api.catalogue import find_scheduler as find_scheduler
    from blklab.api.catalogue import find_workload as find_workload
    from blklab.api.catalogue import list_disks as list_disks
    from blklab.api.catalogue import list_schedulers as list_schedulers
    from blklab.api.catalogue import list_workloads as list_workloads
    from blklab.api.catalogue import load_plugin as load_plugin
    from blklab.api.catalogue import modelled_host as modelled_host
    from blklab.api.catalogue import scheduler_spec as scheduler_spec
    from blklab.api.check_rule import CheckedRule as CheckedRule
    from blklab.api.check_rule import check_rule as check_rule
    from blklab.api.compare import Comparison as Comparison
    from blklab.api.compare import compare as compare
    from blklab.api.compare import resume as resume
    from blklab.api.explain import explain as explain
    from blklab.api.fleet import FleetGroup as FleetGroup
    from blklab.api.fleet import HostChange as HostChange
    from blklab.api.fleet import JudgedFleet as JudgedFleet
    from blklab.api.fleet import collect_fleet as collect_fleet
    from blklab.api.fleet import fleet_directory as fleet_directory
    from blklab.api.fleet import judge_fleet as judge_fleet
    from blklab.api.fleet import write_rules as write_rules
    from blklab.api.host import MeasuredHost as MeasuredHost
    from blklab.api.host import measure_host as measure_host
    from blklab.api.iocost import IoCostQos as IoCostQos
    from blklab.api.iocost import io_cost as io_cost
    from blklab.api.iocost import io_cost_qos as io_cost_qos
    from blklab.api.iocost_disk import DiskFromIoCost as DiskFromIoCost
    from blklab.api.iocost_disk import disk_from_io_cost as disk_from_io_cost
    from blklab.api.kernels import Kernels as Kernels
    from blklab.api.kernels import ProgramRun as ProgramRun
    from blklab.api.kernels import RemovedKernels as RemovedKernels
    from blklab.api.kernels import build_kernel as build_kernel
    from blklab.api.kernels import kernel_shell as kernel_shell
    from blklab.api.kernels import kernel_source as kernel_source
    from blklab.api.kernels import list_kernels as list_kernels
    from blklab.api.kernels import remove_kernels as remove_kernels
    from blklab.api.kernels import run_in_kernel as run_in_kernel
    from blklab.api.listener import Listener as Listener
    from blklab.api.machine import Devices as Devices
    from blklab.api.machine import Restored as Restored
    from blklab.api.machine import devices as devices
    from blklab.api.machine import forget as forget
    from blklab.api.machine import restore as restore
    from blklab.api.names import names as names
    from blklab.api.names import rig_summaries as rig_summaries
    from blklab.api.names import tunables as tunables
    from blklab.api.record import MachineRecording as MachineRecording
    from blklab.api.record import is_disk_here as is_disk_here
    from blklab.api.record import record_machine as record_machine
    from blklab.api.record import record_run as record_run
    from blklab.api.record import recorded_disks as recorded_disks
    from blklab.api.results import Imported as Imported
    from blklab.api.results import Stored as Stored
    from blklab.api.results import difference as difference
    from blklab.api.results import export as export
    from blklab.api.results import import_results as import_results
    from blklab.api.results import remove_results as remove_results
    from blklab.api.results import results as results
    from blklab.api.results import store_text as store_text
    from blklab.api.results import stored as stored
    from blklab.api.results import write_report as write_report
    from blklab.api.rights import give_up_rights as give_up_rights
    from blklab.api.simulate import JobRun as JobRun
    from blklab.api.simulate import run_job as run_job
    from blklab.api.simulate import simulate as simulate
    from blklab.api.studies import ListedStudy as ListedStudy
    from blklab.api.studies import find_study as find_study
    from blklab.api.studies import list_studies as list_studies
    from blklab.api.study import StudyRun as StudyRun
    from blklab.api.study import resume_study as resume_study
    from blklab.api.study import run_study as run_study
    from blklab.api.trace_edits import EditedTrace as EditedTrace
    from blklab.api.trace_edits import Fidelity as Fidelity
    from blklab.api.trace_edits import anonymise_trace as anonymise_trace
    from blklab.api.trace_edits import cut_trace as cut_trace
    from blklab.api.trace_edits import merge_traces as merge_traces
    from blklab.api.trace_edits import scale_trace as scale_trace
    from blklab.api.trace_edits import trace_fidelity as trace_fidelity
    from blklab.api.trace_job import trace_job as trace_job
    from blklab.api.trace_page import trace_page as trace_page
    from blklab.api.trace_served import PerfettoTrace as PerfettoTrace
    from blklab.api.trace_served import served_trace as served_trace
    from blklab.api.trace_served import trace_perfetto as trace_perfetto
    from blklab.api.traces import ImportedTrace as ImportedTrace
    from blklab.api.traces import import_trace as import_trace
    from blklab.api.traces import read_trace as read_trace
    from blklab.api.traces import recording_columns as recording_columns
    from blklab.api.traces import trace_formats as trace_formats
    from blklab.api.tune import tune as tune
    from blklab.api.ublk import UblkCommand as UblkCommand
    from blklab.api.ublk import remove_served_disk as remove_served_disk
    from blklab.api.ublk import serve_disk as serve_disk
    from blklab.api.ublk import served_disks as served_disks
    from blklab.api.verify import Agreement as Agreement
    from blklab.api.verify import drawn_jobs as drawn_jobs
    from blklab.api.verify import verify as verify
    from blklab.api.watch import Watched as Watched
    from blklab.api.watch import WatchEvent as WatchEvent
    from blklab.api.watch import WatchLimits as WatchLimits
    from blklab.api.watch import install_watch as install_watch
    from blklab.api.watch import uninstall_watch as uninstall_watch
    from blklab.api.watch import watch as watch
    from blklab.api.whatif import Replayed as Replayed
    from blklab.api.whatif import WhatIf as WhatIf
    from blklab.api.whatif import load_recording as load_recording
    from blklab.api.whatif import replay_trace as replay_trace
    from blklab.api.whatif import whatif as whatif
    from blklab.base.catalogue import Entry as Entry
    from blklab.base.steps import Steps as Steps
    from blklab.domain.experiment import Disk as Disk
    from blklab.domain.experiment import RigSpec as RigSpec
    from blklab.domain.experiment import SchedulerSpec as SchedulerSpec
    from blklab.domain.iocost import IoCost as IoCost
    from blklab.domain.result import Result as Result
    from blklab.errors import BlklabError as BlklabError
    from blklab.errors import InputError as InputError
    from blklab.errors import RunError as RunError
    from blklab.errors import StoppedError as StoppedError
    from blklab.errors import StoreError as StoreError
    from blklab.experiment.analyse import Analysis as Analysis
    from blklab.experiment.analyse import Cell as Cell
    from blklab.experiment.analyse import Row as Row
    from blklab.experiment.statistics import Answer as Answer
    from blklab.experiment.statistics import Interval as Interval
    from blklab.fleet.collect import CollectedHost as CollectedHost
    from blklab.host.devices.deciders.influence import Influence as Influence
    from blklab.host.devices.device import Device as Device
    from blklab.report.difference import Difference as Difference
    from blklab.report.difference import Gap as Gap
    from blklab.rigs import Rig as Rig
    from blklab.rigs.kernel.build import Built as Built
    from blklab.rigs.kernel.cache import Kernel as Kernel
    from blklab.settings.change import Plan as Plan
    from blklab.settings.record import AppliedEntry as AppliedEntry
    from blklab.settings.status import Status as Status
    from blklab.settings.unit import WatchUnit as WatchUnit
    from blklab.store.read import Listed as Listed
    from blklab.study.model import Study as Study
    from blklab.timelines.timeline import Timeline as Timeline
    from blklab.tuning.answer import Confirmed as Confirmed
    from blklab.tuning.answer import Tuned as Tuned
    from blklab.tuning.sensitivity import Sensitivity as Sensitivity

__all__ = [
    "Agreement",
    "Analysis",
    "Answer",
    "Applied",
    "AppliedEntry",
    "Bisected",
    "BlklabError",
    "Built",
    "Cell",
    "CheckedRule",
    "CollectedHost",
    "Comparison",
    "Confirmed",
    "Device",
    "Devices",
    "Difference",
    "Disk",
    "DiskFromIoCost",
    "DiskModel",
    "DiskParameter",
    "EditedTrace",
    "Entry",
    "Fidelity",
    "FleetGroup",
    "Gap",
    "Host",
    "HostChange",
    "Imported",
    "ImportedTrace",
    "Influence",
    "InputError",
    "Interval",
    "IoCost",
    "IoCostQos",
    "JobRun",
    "JudgedFleet",
    "Kernel",
    "Kernels",
    "Listed",
    "ListedStudy",
    "Listener",
    "MachineRecording",
    "MeasuredHost",
    "PerfettoTrace",
    "Plan",
    "Presets",
    "ProgramDocument",
    "ProgramRun",
    "RecordingColumn",
    "RemovedKernels",
    "Replayed",
    "Restored",
    "Result",
    "Rig",
    "RigSpec",
    "Row",
    "RunError",
    "SchedulerModel",
    "SchedulerSpec",
    "Sensitivity",
    "Status",
    "Steps",
    "StoppedError",
    "StoreError",
    "Stored",
    "Study",
    "StudyRun",
    "Timeline",
    "TraceFinding",
    "TraceFormat",
    "TraceReading",
    "TraceServed",
    "Tunable",
    "Tuned",
    "UblkCommand",
    "WatchEvent",
    "WatchLimits",
    "WatchUnit",
    "Watched",
    "WhatIf",
    "Workload",
    "anonymise_trace",
    "apply",
    "bisect",
    "build_kernel",
    "check_rule",
    "collect_fleet",
    "compare",
    "cut_trace",
    "devices",
    "difference",
    "disk_from_io_cost",
    "drawn_jobs",
    "explain",
    "export",
    "find_disk",
    "find_scheduler",
    "find_study",
    "find_workload",
    "fleet_directory",
    "forget",
    "give_up_rights",
    "import_results",
    "import_trace",
    "install_watch",
    "io_cost",
    "io_cost_qos",
    "is_disk_here",
    "judge_fleet",
    "kernel_shell",
    "kernel_source",
    "list_disks",
    "list_kernels",
    "list_presets",
    "list_schedulers",
    "list_studies",
    "list_workloads",
    "load_plugin",
    "load_recording",
    "measure_host",
    "merge_traces",
    "modelled_host",
    "names",
    "read_trace",
    "record_machine",
    "record_run",
    "recorded_disks",
    "recording_columns",
    "remove_kernels",
    "remove_results",
    "remove_served_disk",
    "replay_trace",
    "restore",
    "results",
    "resume",
    "resume_study",
    "rig_summaries",
    "run_in_kernel",
    "run_job",
    "run_study",
    "scale_trace",
    "scheduler_spec",
    "serve_disk",
    "served_disks",
    "served_trace",
    "simulate",
    "status",
    "store_text",
    "stored",
    "trace_fidelity",
    "trace_formats",
    "trace_job",
    "trace_page",
    "trace_perfetto",
    "tunables",
    "tune",
    "undo",
    "uninstall_watch",
    "verify",
    "watch",
    "whatif",
    "write_report",
    "write_rules",
]

_WHERE = {
    "Agreement": "blklab.api.verify",
    "Analysis": "blklab.experiment.analyse",
    "Answer": "blklab.experiment.statistics",
    "Applied": "blklab.api.apply",
    "Bisected": "blklab.api.bisect",
    "AppliedEntry": "blklab.settings.record",
    "BlklabError": "blklab.errors",
    "Built": "blklab.rigs.kernel.build",
    "Cell": "blklab.experiment.analyse",
    "CollectedHost": "blklab.fleet.collect",
    "Comparison": "blklab.api.compare",
    "Device": "blklab.host.devices.device",
    "Devices": "blklab.api.machine",
    "Difference": "blklab.report.difference",
    "Disk": "blklab.domain.experiment",
    "DiskFromIoCost": "blklab.api.iocost_disk",
    "DiskModel": "blklab.api.catalogue",
    "DiskParameter": "blklab.api.catalogue",
    "EditedTrace": "blklab.api.trace_edits",
    "Entry": "blklab.base.catalogue",
    "Fidelity": "blklab.api.trace_edits",
    "FleetGroup": "blklab.api.fleet",
    "Gap": "blklab.report.difference",
    "Host": "blklab.api.catalogue",
    "HostChange": "blklab.api.fleet",
    "Imported": "blklab.api.results",
    "ImportedTrace": "blklab.api.traces",
    "Influence": "blklab.host.devices.deciders.influence",
    "InputError": "blklab.errors",
    "Interval": "blklab.experiment.statistics",
    "IoCost": "blklab.domain.iocost",
    "IoCostQos": "blklab.api.iocost",
    "JobRun": "blklab.api.simulate",
    "JudgedFleet": "blklab.api.fleet",
    "Kernel": "blklab.rigs.kernel.cache",
    "Kernels": "blklab.api.kernels",
    "Listed": "blklab.store.read",
    "ListedStudy": "blklab.api.studies",
    "Listener": "blklab.api.listener",
    "MeasuredHost": "blklab.api.host",
    "PerfettoTrace": "blklab.api.trace_served",
    "Plan": "blklab.settings.change",
    "Presets": "blklab.api.apply",
    "ProgramDocument": "blklab.api.catalogue",
    "ProgramRun": "blklab.api.kernels",
    "RecordingColumn": "blklab._core",
    "RemovedKernels": "blklab.api.kernels",
    "Restored": "blklab.api.machine",
    "Result": "blklab.domain.result",
    "Rig": "blklab.rigs",
    "RigSpec": "blklab.domain.experiment",
    "Row": "blklab.experiment.analyse",
    "RunError": "blklab.errors",
    "SchedulerModel": "blklab.api.catalogue",
    "SchedulerSpec": "blklab.domain.experiment",
    "Status": "blklab.settings.status",
    "Steps": "blklab.base.steps",
    "StoppedError": "blklab.errors",
    "StoreError": "blklab.errors",
    "Stored": "blklab.api.results",
    "Study": "blklab.study.model",
    "StudyRun": "blklab.api.study",
    "Timeline": "blklab.timelines.timeline",
    "TraceFinding": "blklab._core",
    "TraceFormat": "blklab._core",
    "TraceReading": "blklab._core",
    "TraceServed": "blklab._core",
    "Tunable": "blklab.api.catalogue",
    "UblkCommand": "blklab.api.ublk",
    "Workload": "blklab.api.catalogue",
    "anonymise_trace": "blklab.api.trace_edits",
    "apply": "blklab.api.apply",
    "bisect": "blklab.api.bisect",
    "build_kernel": "blklab.api.kernels",
    "collect_fleet": "blklab.api.fleet",
    "compare": "blklab.api.compare",
    "cut_trace": "blklab.api.trace_edits",
    "devices": "blklab.api.machine",
    "difference": "blklab.api.results",
    "disk_from_io_cost": "blklab.api.iocost_disk",
    "drawn_jobs": "blklab.api.verify",
    "explain": "blklab.api.explain",
    "export": "blklab.api.results",
    "find_disk": "blklab.api.catalogue",
    "find_scheduler": "blklab.api.catalogue",
    "find_study": "blklab.api.studies",
    "find_workload": "blklab.api.catalogue",
    "fleet_directory": "blklab.api.fleet",
    "load_plugin": "blklab.api.catalogue",
    "forget": "blklab.api.machine",
    "give_up_rights": "blklab.api.rights",
    "import_results": "blklab.api.results",
    "Replayed": "blklab.api.whatif",
    "WhatIf": "blklab.api.whatif",
    "judge_fleet": "blklab.api.fleet",
    "load_recording": "blklab.api.whatif",
    "merge_traces": "blklab.api.trace_edits",
    "record_run": "blklab.api.record",
    "recorded_disks": "blklab.api.record",
    "record_machine": "blklab.api.record",
    "is_disk_here": "blklab.api.record",
    "MachineRecording": "blklab.api.record",
    "replay_trace": "blklab.api.whatif",
    "scale_trace": "blklab.api.trace_edits",
    "trace_fidelity": "blklab.api.trace_edits",
    "CheckedRule": "blklab.api.check_rule",
    "check_rule": "blklab.api.check_rule",
    "tune": "blklab.api.tune",
    "Confirmed": "blklab.tuning.answer",
    "Sensitivity": "blklab.tuning.sensitivity",
    "Tuned": "blklab.tuning.answer",
    "whatif": "blklab.api.whatif",
    "WatchEvent": "blklab.api.watch",
    "WatchLimits": "blklab.api.watch",
    "WatchUnit": "blklab.settings.unit",
    "Watched": "blklab.api.watch",
    "install_watch": "blklab.api.watch",
    "uninstall_watch": "blklab.api.watch",
    "watch": "blklab.api.watch",
    "import_trace": "blklab.api.traces",
    "served_trace": "blklab.api.trace_served",
    "trace_page": "blklab.api.trace_page",
    "trace_perfetto": "blklab.api.trace_served",
    "trace_job": "blklab.api.trace_job",
    "io_cost": "blklab.api.iocost",
    "io_cost_qos": "blklab.api.iocost",
    "kernel_shell": "blklab.api.kernels",
    "kernel_source": "blklab.api.kernels",
    "list_disks": "blklab.api.catalogue",
    "list_kernels": "blklab.api.kernels",
    "list_presets": "blklab.api.apply",
    "list_schedulers": "blklab.api.catalogue",
    "list_studies": "blklab.api.studies",
    "list_workloads": "blklab.api.catalogue",
    "measure_host": "blklab.api.host",
    "modelled_host": "blklab.api.catalogue",
    "names": "blklab.api.names",
    "read_trace": "blklab.api.traces",
    "recording_columns": "blklab.api.traces",
    "remove_kernels": "blklab.api.kernels",
    "remove_results": "blklab.api.results",
    "remove_served_disk": "blklab.api.ublk",
    "restore": "blklab.api.machine",
    "results": "blklab.api.results",
    "resume": "blklab.api.compare",
    "resume_study": "blklab.api.study",
    "rig_summaries": "blklab.api.names",
    "run_in_kernel": "blklab.api.kernels",
    "run_job": "blklab.api.simulate",
    "run_study": "blklab.api.study",
    "scheduler_spec": "blklab.api.catalogue",
    "serve_disk": "blklab.api.ublk",
    "served_disks": "blklab.api.ublk",
    "simulate": "blklab.api.simulate",
    "status": "blklab.api.apply",
    "store_text": "blklab.api.results",
    "stored": "blklab.api.results",
    "trace_formats": "blklab.api.traces",
    "tunables": "blklab.api.names",
    "undo": "blklab.api.apply",
    "verify": "blklab.api.verify",
    "write_report": "blklab.api.results",
    "write_rules": "blklab.api.fleet",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("blklab")
    raise AttributeError(f"module 'blklab' has no attribute {name!r}")
