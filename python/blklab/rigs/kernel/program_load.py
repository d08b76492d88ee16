"""A real program as a workload in a guest: the counterpart of `blklab.rigs.live.program_load`.

The guest runs ``python -m blklab.programs.child``, as the live rig does, with this Python and this
package, which the guest sees read-only. The program has a directory of its own on a new file system
of the modelled disk.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import blklab
from blklab import programs
from blklab.base.text import shown
from blklab.base.units import size_text
from blklab.domain import core
from blklab.domain.costs import Costs
from blklab.domain.experiment import Experiment
from blklab.domain.result import Figure, Result
from blklab.errors import InputError, RunError
from blklab.programs.child import Answer, Order
from blklab.programs.file_system import FileSystem
from blklab.rigs.kernel import file_systems, memory, nfs, outcome, view
from blklab.rigs.kernel.cache import Kernel
from blklab.rigs.kernel.rundir import RunDirectory

_DEFAULT = FileSystem("ext4", text="ext4")
_MOUNT = Path("/mnt")
_DIRECTORY = _MOUNT / "work"
_BARE_DIRECTORY = Path("/tmp/work")
"""The directory of a program that reads the device."""
_LIBRARY = view.HERE / "lib"
_PROGRAMS = view.HERE / "bin"
"""Programs that a guest does not see at their own place, such as go-tpc."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TCP = "INET"
"""The option of a kernel that has it."""
_PATCH = "cpu.patch"
_SPIN_PATCH = "spin.patch"
_DEVICE = "{disk}"
"""The guest replaces it with the disk's path."""
_COMMAND_ROOM_BYTES = 4 << 30
"""Space on the disk for a command, which does not tell how much it needs."""
_OUTPUT_BYTES_MAX = 1 << 30
_ERRORS_BYTES_MAX = 1 << 20
_ANSWER = msgspec.json.Decoder(Answer)


@dataclass(frozen=True)
class ProgramLoad:
    """One experiment's program."""

    experiment: Experiment
    chosen: programs.Chosen
    cpu_permille: int
    """Thousandths of the used CPU time that pass; 0 if CPU work takes no time."""

    @classmethod
    def of(cls, experiment: Experiment, cpu_permille: int = 0) -> ProgramLoad:
        """InputError if it cannot run in a guest of this machine, or not on that disk."""
        chosen, name = programs.chosen(experiment.job), experiment.job.name
        if why := chosen.program.missing():
            raise InputError(f"{name}: {why}")
        load = cls(experiment, chosen, cpu_permille)
        if chosen.program.on_device and chosen.file_system is not None:
            raise InputError(f"{name}: reads from the device itself, and has no file system: --fs")
        capacity = core.disk_model(experiment.disk).limits.capacity_bytes
        aged = load.file_system.aged_percent if load.file_system else None
        if aged is not None:
            capacity = capacity * (100 - aged) // 100
        if load.room_bytes > capacity and not chosen.words:
            left = "the disk has" if aged is None else "its old files leave"
            raise InputError(
                f"{experiment.disk.label}: {name} may need {size_text(load.room_bytes)}; {left} "
                f"{size_text(capacity)}"
            )
        return load

    @property
    def file_system(self) -> FileSystem | None:
        """Its file system; None if it reads from the device itself."""
        if self.chosen.program.on_device:
            return None
        return self.chosen.file_system or _DEFAULT

    @property
    def room_bytes(self) -> int:
        """The maximum size of its files on the disk, which are in the guest's memory."""
        if self.chosen.words:
            return _COMMAND_ROOM_BYTES
        return self.chosen.program.room_bytes(self.chosen.values)

    def check(self, kernel: Kernel, memory_mib: int) -> None:
        """InputError or RunError if that kernel, or this machine's memory, cannot do it."""
        if self.file_system is not None:
            file_systems.check(self.file_system.kind, kernel, "--fs")
        if self.chosen.program.ends_by_cpu:
            name = self.experiment.job.name
            if not self.cpu_permille:
                raise InputError(f"{name}: would never end if CPU work took no time: --cpu")
            if _PATCH not in kernel.patches:
                raise InputError(
                    f"{name}: would never end, because CPU work takes no time on the kernel "
                    f"'{kernel.label}', which lacks {_PATCH}: blklab kernel build"
                )
        if self.chosen.program.spins and _SPIN_PATCH not in kernel.patches:
            raise InputError(
                f"{self.experiment.job.name}: would never end, because no time passes for a program"
                f" that waits without sleeping on the kernel '{kernel.label}', which lacks "
                f"{_SPIN_PATCH}: blklab kernel build"
            )
        if self.chosen.program.tcp and not kernel.has([_TCP]):
            raise InputError(
                f"{self.experiment.job.name}: needs TCP, and the kernel '{kernel.label}' lacks "
                f"CONFIG_{_TCP}: blklab kernel build"
            )
        if self.chosen.program.nfsd_threads is not None:
            nfs.check(kernel, self.experiment.job.name)
        free, needed = memory.available_bytes(), self.memory_bytes(memory_mib)
        if needed > free:
            raise RunError(
                f"{self.experiment.job.name}: its files may need {size_text(needed)} of this "
                f"machine's memory, which has {size_text(free)} available"
            )

    def memory_bytes(self, memory_mib: int) -> int:
        """What its files may need of this machine's memory, on the disk and in the page cache, in a
        guest with that much; 0 for a command, which does not tell."""
        return 0 if self.chosen.words else min(2 * self.room_bytes, memory_mib << 20)

    def order(self) -> dict[str, Any]:
        """``run`` and ``file_system`` in ``guest.json``, and the directories that a guest would
        hide."""
        experiment, nfsd_threads = self.experiment, self.chosen.program.nfsd_threads
        directory = _DIRECTORY if self.file_system else _BARE_DIRECTORY
        shared = None
        if nfsd_threads is not None:
            directory = nfs.MOUNT / _DIRECTORY.relative_to(_MOUNT)
            shared = nfs.to_order(nfsd_threads(self.chosen.values))
        child: Order = {
            "text": experiment.job.text,
            "seed": experiment.seed,
            "directory": str(directory),
            "device": _DEVICE,
        }
        # Without site-packages: the child imports only this package and Python's library.
        python = [str(_python()), "-s", "-S", "-P", "-m", "blklab.programs.child"]
        # Modules are compiled where pip or an earlier start has left them.
        environment = {"PYTHONPATH": str(_LIBRARY), "PYTHONDONTWRITEBYTECODE": "1"}
        own = [_LIBRARY]
        if self._unseen():
            environment["PATH"] = f"{_PATH}:{_PROGRAMS}"
            own.append(_PROGRAMS)
        found: dict[str, Any] = {
            "run": {
                "workload": {
                    "command": [*python, json.dumps(child)],
                    "environment": environment,
                    "directory": str(directory),
                    "cpu_permille": self.cpu_permille,
                    "nfs": shared,
                    "window": experiment.window and asdict(experiment.window),
                }
            },
            "host_directories": list(map(str, [*own, *self._view().hidden_by_own()])),
            "host_files": list(map(str, self._view().files_hidden_by_own())),
        }
        if self.file_system is not None:
            found["file_system"] = file_systems.to_order(self.file_system, _MOUNT, experiment.seed)
        return found

    def seen(self, init: Path) -> view.View:
        """What the guest sees besides the system; `init` is its first program."""
        package = Path(blklab.__file__).parent
        inside = _LIBRARY.relative_to(view.HERE) / package.name
        mine = self._view()
        unseen = {
            str((_PROGRAMS / name).relative_to(view.HERE)): path
            for name, path in self._unseen().items()
        }
        return replace(mine, programs={init.name: init, str(inside): package, **unseen})

    def _unseen(self) -> dict[str, Path]:
        """Needed programs, by name, that no guest sees at their own place."""
        # A command's programs are shown with its words.
        if self.chosen.words:
            return {}
        program = self.chosen.program
        found = {name: program.find(name) for name in program.needs}
        paths = {name: Path(path).resolve() for name, path in found.items() if path}
        return {name: path for name, path in paths.items() if not view.is_seen(path)}

    def _view(self) -> view.View:
        # Python may be installed anywhere, with its library.
        python = [path for path in (_python(), Path(sys.base_prefix)) if not view.is_seen(path)]
        words = self.chosen.words
        shared = view.shared(words).paths if words else ()
        return view.View(
            shared=(*shared, *python),
            mountpoints=(
                _LIBRARY,
                *([_PROGRAMS] if self._unseen() else []),
                *([_MOUNT] if self.file_system else []),
            ),
        )

    def answer(self, run: RunDirectory, found: outcome.Outcome) -> Answer:
        """What the program measured. RunError with its own message if it failed."""
        name, ended = self.chosen.program.name, found["program"]
        if ended is None:
            raise RunError("the guest left no result of the program")
        if found["disk"]["errors"]:
            raise RunError(
                f"{name}: its data did not fit into the guest's memory; more of it: "
                "--host memory_kb=..."
            )
        output = _read(run, "program.stdout", _OUTPUT_BYTES_MAX)
        if ended["exit_code"] != 0 or not output.strip():
            raise RunError(f"{name}: {_reason(run, ended)}")
        try:
            answer = _ANSWER.decode(output.splitlines()[-1])
        except (msgspec.ValidationError, msgspec.DecodeError, IndexError) as error:
            raise RunError(f"{name}: its answer is not in the expected format: {error}") from None
        if not 0 < answer["value"] < math.inf:
            raise RunError(f"{name}: gave {answer['value']:g}, which is not a figure")
        return answer

    def result(self, answer: Answer, found: outcome.Outcome, measured: Result) -> Result:
        """The program's result; `measured` has the disk's activity."""
        told = self.chosen.program
        own = Result.of_program(
            Figure(answer["value"], told.unit, told.higher_is_better),
            np.array(answer["took_ns"], np.int64),
            answer["duration_ns"],
            {file: text.encode() for file, text in answer["raw"].items()},
        )
        return replace(
            own,
            disk=measured.disk,
            series=measured.series,
            overview=measured.overview,
            detail=measured.detail,
            detail_left_out=measured.detail_left_out,
            costs=_costs(found),
        )

    def notes(self, found: outcome.Outcome) -> tuple[str, ...]:
        """Lines about the conditions of its run."""
        shared = () if self.chosen.program.nfsd_threads is None else (nfs.NOTE,)
        return (*shared, *self._notes_of_cpu(found))

    def _notes_of_cpu(self, found: outcome.Outcome) -> tuple[str, ...]:
        if self.cpu_permille and found.get("charged") is None:
            return (
                f"CPU work takes no time: this kernel lacks {_PATCH}; to build one: blklab kernel "
                "build",
            )
        if not self.cpu_permille:
            return ("CPU work takes no time",)
        factor = self.cpu_permille / 1000
        times = "" if factor == 1 else f", times {factor:g}"
        return (
            f"CPU work takes the time that it uses of this machine's CPU{times}, and of one CPU: "
            "not quite the same in every run",
        )


def _costs(found: outcome.Outcome) -> Costs | None:
    costs = found.get("costs")
    return None if costs is None else replace(costs, cpu=found.get("charged"))


def _python() -> Path:
    return Path(sys.executable).resolve()


def _reason(run: RunDirectory, ended: outcome.Ended) -> str:
    lines = _read(run, "program.stderr", _ERRORS_BYTES_MAX).decode(errors="replace").splitlines()
    said = [line.strip() for line in lines if line.strip()]
    if said:
        return shown(said[-1])
    if ended["signal"] is not None:
        return f"was ended by signal {ended['signal']}"
    return f"ended with exit code {ended['exit_code']}, without a word"


def _read(run: RunDirectory, name: str, bytes_max: int) -> bytes:
    try:
        return run.read(name, bytes_max)
    except FileNotFoundError:
        return b""
