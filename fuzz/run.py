"""Fuzz every parser with coverage, Rust's by libFuzzer and Python's by Atheris.

`make fuzz` gives each target the same time, `make fuzz-long` continues until a total number of
inputs has been tried, over several calls if needed. Inputs with new coverage are stored in
``target/fuzz``; `--keep` copies the smallest of them to ``fuzz/corpus``, which every test run tries
again. A failed input is in ``target/fuzz/TARGET/failed`` and ends the run of its target.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

FUZZ = Path(__file__).parent
sys.path.insert(0, str(FUZZ / "python"))

from blklab_fuzz import packed, seeds  # noqa: E402
from blklab_fuzz.targets import TARGETS as PYTHON  # noqa: E402

WORK = FUZZ.parent / "target/fuzz"
CORPUS = FUZZ / "corpus"
KEPT = FUZZ.parent / "docs/data/fuzz.json"
"""The figures of the long run; remove the file to start again."""
TARGETS = tuple(sorted({*seeds.RUST, *PYTHON}))

# What cargo-fuzz passes to a compiler that is not nightly's: counters of edges, and the values
# that are compared. Assertions and overflows are checked; there is no memory to be unsafe with.
_RUSTFLAGS = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
    "-Ccodegen-units=1",
)
_INPUT_S_MAX = 60
"""The time limit of one input, in real time on a busy machine."""
_MEMORY_MIB_MAX = 2048
_LENGTH_MAX = {"export": 32768, "fio_output": 16384}
_LENGTH = 4096
_SLICE_S = 60
"""The length of a target's turn in a long run."""
_KEPT_BYTES_MAX = 56 << 10
"""The largest file of a target in the tree: all together stay below 2 MB."""
_LOG_LINES_MAX = 40
"""The number of lines of the fuzzer's output that are shown of a failed input."""
_COVERAGE = re.compile(r"cov: (\d+)")
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_RUNS = re.compile(r"^Done (\d+) runs", re.MULTILINE)


@dataclass
class Figures:
    """The figures of one target, over all calls."""

    inputs: int = 0
    seconds: float = 0.0
    edges: int = 0
    failed: list[str] = field(default_factory=list)
    """Files, each with an input that failed."""


def main() -> int:
    """Fuzz the requested targets; 1 if an input failed."""
    asked = _asked()
    targets = [name for name in asked.target or TARGETS if _can_run(name)]
    figures = {name: _read(name) for name in targets}
    binaries = _build([name for name in targets if name in seeds.RUST])

    def turn(name: str, seconds: float) -> None:
        figures[name] = _turn(name, seconds, binaries, figures[name])

    try:
        if asked.inputs:
            _until(asked.inputs, targets, figures, turn, asked.jobs)
        else:
            _each(targets, lambda name: turn(name, asked.seconds), asked.jobs)
        if asked.keep:
            _each(targets, lambda name: _keep(name, binaries), asked.jobs)
    except KeyboardInterrupt:
        print("interrupted; the tried inputs count, and the next call continues", file=sys.stderr)
    _print(figures)
    if asked.out:
        asked.out.write_text(_document(figures))
    return any(row.failed for row in figures.values())


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="*", choices=[*TARGETS, []], help="all, if none is named")
    parser.add_argument("--seconds", type=float, default=60, help="of each target")
    parser.add_argument("--inputs", type=int, default=0, help="of all calls together, instead")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at the same time")
    parser.add_argument("--out", type=Path, help="write the figures of all calls there, as JSON")
    parser.add_argument("--keep", action="store_true", help="bring the new inputs to fuzz/corpus")
    return parser.parse_args()


def _can_run(name: str) -> bool:
    if name in seeds.RUST:
        return True
    try:
        import atheris  # noqa: F401
    except ImportError:
        print(f"{name}: left out: Atheris is not installed here", file=sys.stderr)
        return False
    return True


def _build(names: Sequence[str]) -> Path:
    """The directory of the Rust targets."""
    told = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = re.search(r"^host: (.*)$", told, re.MULTILINE)
    assert host is not None, told
    # For a named target, what the compiler itself runs (macros, build scripts) is left alone.
    where = ["--target", host[1], "--target-dir", str(WORK / "build")]
    if names:
        subprocess.run(
            ["cargo", "build", "--quiet", "--release", f"--manifest-path={FUZZ / 'Cargo.toml'}"]
            + where
            + [argument for name in names for argument in ("--bin", name)],
            check=True,
            env=os.environ | {"RUSTFLAGS": " ".join(_RUSTFLAGS)},
        )
    return WORK / "build" / host[1] / "release"


def _turn(name: str, seconds: float, binaries: Path, so_far: Figures) -> Figures:
    """One process of the fuzzer, for this time."""
    own = WORK / name
    _fill(name)
    (own / "failed").mkdir(exist_ok=True)
    (own / "words").write_text(seeds.dictionary(name))
    begun = time.monotonic()
    told = _fuzz(
        name,
        binaries,
        [
            f"-max_total_time={max(1, round(seconds))}",
            f"-dict={own / 'words'}",
            f"-artifact_prefix={own / 'failed'}/",
            "-reload=0",
            str(own / "corpus"),
        ],
    )
    (own / "log").write_text(told)
    counted = _EXECUTED.search(told) or _RUNS.search(told)
    edges = [int(found) for found in _COVERAGE.findall(told)]
    found = Figures(
        so_far.inputs + (int(counted[1]) if counted else 0),
        so_far.seconds + time.monotonic() - begun,
        max([so_far.edges, *edges]),
        sorted(str(path) for path in (own / "failed").iterdir()),
    )
    if not counted and not found.failed:
        found.failed.append(f"{own / 'log'} (the fuzzer itself)")
    (own / "figures.json").write_text(json.dumps(asdict(found)))
    return found


def _fuzz(name: str, binaries: Path, options: Sequence[str]) -> str:
    """The fuzzer's output."""
    program = [str(binaries / name)]
    if name not in seeds.RUST:
        program = [sys.executable, str(FUZZ / "python/target.py"), name]
    limits = [
        f"-timeout={_INPUT_S_MAX}",
        f"-report_slow_units={_INPUT_S_MAX}",
        f"-rss_limit_mb={_MEMORY_MIB_MAX}",
        f"-max_len={_LENGTH_MAX.get(name, _LENGTH)}",
        "-print_final_stats=1",
    ]
    done = subprocess.run([*program, *limits, *options], check=False, capture_output=True)
    return (done.stderr + done.stdout).decode(errors="replace")


def _until(
    inputs: int,
    targets: Sequence[str],
    figures: dict[str, Figures],
    turn: Callable[[str, float], None],
    jobs: int,
) -> None:
    """Turns of all targets that have not failed, until this many inputs have been tried."""
    while sum(row.inputs for row in figures.values()) < inputs:
        sound = [name for name in targets if not figures[name].failed]
        if not sound:
            return
        _each(sound, lambda name: turn(name, _SLICE_S), jobs)
        _print(figures)


def _each(names: Sequence[str], call: Callable[[str], None], jobs: int) -> None:
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(call, name) for name in names]
        try:
            for one in waiting:
                one.result()
        finally:
            for one in waiting:
                one.cancel()


def _fill(name: str) -> None:
    """Copy its seeds and the stored inputs to its working directory."""
    directory = WORK / name / "corpus"
    directory.mkdir(parents=True, exist_ok=True)
    kept = _kept(name)
    for one in [*seeds.seeds(name), *(packed.read(kept.read_text()) if kept.exists() else [])]:
        path = directory / hashlib.sha1(one, usedforsecurity=False).hexdigest()
        if not path.exists():
            path.write_bytes(one)


def _keep(name: str, binaries: Path) -> None:
    """The smallest set of inputs with the coverage of all of them, and those that failed once. For
    Python, which has few, all: Atheris cannot merge."""
    least = WORK / name / "corpus"
    if not least.exists():
        # It had no turn in this checkout: nothing is new.
        return
    if name in seeds.RUST:
        least = WORK / name / "least"
        shutil.rmtree(least, ignore_errors=True)
        least.mkdir()
        _fuzz(name, binaries, ["-set_cover_merge=1", str(least), str(WORK / name / "corpus")])
    inputs = sorted((path.read_bytes() for path in least.iterdir()), key=len)
    # Inputs that failed once always stay.
    chosen, room = set(_once_failed(name)), _KEPT_BYTES_MAX
    for one in inputs:
        room -= len(packed.packed([one]))
        if room < 0:
            break
        chosen.add(one)
    if inputs:
        _kept(name).parent.mkdir(parents=True, exist_ok=True)
        _kept(name).write_text(packed.packed(chosen))


def _once_failed(name: str) -> list[bytes]:
    path = CORPUS / "failed" / name
    return packed.read(path.read_text()) if path.exists() else []


def _kept(name: str) -> Path:
    return CORPUS / ("rust" if name in seeds.RUST else "python") / name


def _read(name: str) -> Figures:
    try:
        found = Figures(**json.loads((WORK / name / "figures.json").read_text()))
    except FileNotFoundError:
        return _in_tree().get(name, Figures())
    # Removed by hand after the fix.
    found.failed = [path for path in found.failed if Path(path).exists()]
    return found


def _in_tree() -> dict[str, Figures]:
    """The figures of the committed calls: a long run may take several checkouts."""
    if not KEPT.exists():
        return {}
    rows = json.loads(KEPT.read_text())
    return {
        name: Figures(row["inputs"], row["seconds"], row["edges"]) for name, row in rows.items()
    }


def _print(figures: dict[str, Figures]) -> None:
    print(f"{'target':18} {'inputs':>13} {'a second':>9} {'edges':>6} {'kept':>5} {'failed':>6}")
    for name, row in figures.items():
        rate = row.inputs / row.seconds if row.seconds else 0
        kept = len(list((WORK / name / "corpus").glob("*")))
        print(
            f"{name:18} {row.inputs:13,} {rate:9,.0f} {row.edges:6,} {kept:5,} {len(row.failed):6}"
        )
    inputs, failed = (sum(each) for each in zip(*((row.inputs, len(row.failed)) for row in figures.values()), strict=True))  # fmt: skip  # noqa: E501
    print(f"{'all':18} {inputs:13,} {'':9} {'':6} {'':5} {failed:6}")
    for name, row in figures.items():
        for path in row.failed:
            _print_failed(name, Path(path))


def _print_failed(name: str, path: Path) -> None:
    """The input, as a line of ``fuzz/corpus/failed``, and what the fuzzer printed: enough to repeat
    a failure of another machine."""
    print(f"failed: {path}", file=sys.stderr)
    log = WORK / name / "log"
    if log.exists():
        progress = ("#", "INFO: ")
        lines = [one for one in log.read_text().splitlines() if not one.startswith(progress)]
        print("\n".join(line[:200] for line in lines[-_LOG_LINES_MAX:]), file=sys.stderr)
    if path.exists():
        print(f"{name}: {packed.packed([path.read_bytes()])}", end="", file=sys.stderr)


def _document(figures: dict[str, Figures]) -> str:
    """Write the figures of `make fuzz-long` for the documentation."""
    rows = {
        name: {
            "inputs": row.inputs,
            "seconds": round(row.seconds),
            "edges": row.edges,
            "failed": len(row.failed),
        }
        for name, row in figures.items()
    }
    return json.dumps(rows, indent=1) + "\n"


if __name__ == "__main__":
    sys.exit(main())
