"""Programs of a guest that wait without sleeping: for time, or in turn for one another."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from blklab.rigs.kernel.rig import KernelRig
from tests.test_kernel_programs import experiment, ran


def said_on_a_free_cpu(kernel: str, command: str) -> str:
    rig, one = KernelRig(kernel, cpu="free"), experiment(f"command:{command}")
    with rig.prepared([one], lambda _: None):
        return rig.run(one).raw["output.txt"].decode()


@pytest.mark.parametrize(
    "reading",
    [
        "time.clock_gettime(6)",
        "os.times().elapsed",
        "c.time(None)",
        "(os.sched_yield(), time.monotonic())[1]",
        # FUTEX_WAKE_PRIVATE, which wakes no thread.
        "(c.syscall(202, ctypes.byref(w), 129, 1), time.monotonic())[1]",
    ],
)
def test_a_program_that_waits_without_sleeping_sees_time_pass_where_the_cpu_is_free(
    reading: str, kernel: str
) -> None:
    wait = (
        "import ctypes, os, time; c = ctypes.CDLL(None); w = ctypes.c_int(0); "
        f"was = {reading}; n = next(n for n in range(90_000) if {reading} != was); print(n)"
    )
    # The first readings are free. Clock 6 is CLOCK_MONOTONIC_COARSE.
    assert 9_000 < int(said_on_a_free_cpu(kernel, f"python3 -c '{wait}'")) < 30_000


def test_a_loop_without_calls_lets_the_thread_run_that_it_waits_for(
    kernel: str, tmp_path: Path
) -> None:
    """As a thread of MariaDB waited while go-tpc filled its tables, with a free CPU: no time passed
    in its loop, so that the other thread got no turn. Where the CPU is not free, the loop's time
    was charged at its end, which never came."""
    if shutil.which("gcc") is None:
        pytest.skip("not installed: gcc")
    source, program = tmp_path / "loop.c", tmp_path / "loop"
    source.write_text(
        "#include <pthread.h>\n#include <stdio.h>\nstatic volatile int done;\n"
        "static void *other(void *none) { done = 1; return none; }\n"
        "int main(void) {\n pthread_t thread;\n pthread_create(&thread, 0, other, 0);\n"
        ' while (!done) ;\n puts("done");\n return 0;\n}\n'
    )
    subprocess.run(["gcc", "-static", "-pthread", "-o", program, source], check=True)
    assert said_on_a_free_cpu(kernel, str(program)).strip() == "done"
    real = ran(kernel, experiment(f"command:{program}"))
    assert real.raw["output.txt"].decode().strip() == "done"


def test_threads_that_pass_a_turn_to_and_fro_until_a_third_wakes_see_time_pass(kernel: str) -> None:
    """As threads of MariaDB passed a lock; with a free CPU that took no time, and had no end."""
    program = (
        "import os, threading, time; ends = [os.pipe(), os.pipe()]; awake = threading.Event(); "
        "exec('def play(take, give):\\n while not awake.is_set():\\n"
        "  os.write(give, os.read(take, 1))\\n os.write(give, bytes(1))'); "
        "of = lambda n: threading.Thread(target=play, args=(ends[n][0], ends[1 - n][1])); "
        "players = [of(0), of(1)]; "
        "[one.start() for one in players]; os.write(ends[0][1], bytes(1)); "
        "began = time.monotonic(); time.sleep(0.02); awake.set(); "
        "[one.join() for one in players]; print(time.monotonic() - began)"
    )
    assert 0.02 <= float(said_on_a_free_cpu(kernel, f'python3 -c "{program}"')) < 1


@pytest.mark.parametrize(
    ("call", "each", "work"),
    [("time.monotonic()", 60_000, 200), ("os.sched_yield()", 6_000, 1_000)],
)
def test_a_program_that_works_between_its_calls_is_not_taken_for_one_that_waits(
    call: str, each: int, work: int, kernel: str
) -> None:
    # Of the work between two calls of the kernel the cost of a switch is taken off, which is
    # measured: on a busy machine it is more than 2 us, as long as a sum of 200 numbers takes.
    program = (
        "import os, time; blocks = []; "
        "exec('for _ in range(4):\\n began = time.monotonic()\\n"
        f" for _ in range({each}): sum(range({work})); {call}\\n"
        " blocks.append(time.monotonic() - began)'); "
        "print(blocks[0], blocks[-1])"
    )
    said = ran(kernel, experiment(f'command:python3 -c "{program}"')).raw["output.txt"].decode()
    first, last = map(float, said.split())
    # If these calls let time pass, each takes up to 131 us more; the sum alone takes 0.5 to 40 us.
    assert each * 0.1e-6 < first < each * 60e-6
    assert last < 4 * first
