"""The unit tests of a crate, built in the copy, each build on top of the one before."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.outcome import TIME_MAX_S, Outcome, last_line

# A build takes seconds without optimisation and symbols, and what named tests simulate is short.
# Each property gets the same inputs in each call; a failing input is neither shrunk nor kept.
_ENVIRONMENT = {
    "CARGO_INCREMENTAL": "1",
    "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
    "CARGO_PROFILE_DEV_DEBUG": "false",
    "PROPTEST_RNG_SEED": "1",
    "PROPTEST_MAX_SHRINK_ITERS": "0",
    "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "true",
    "RUST_BACKTRACE": "0",
}
_BUILD = (
    *("cargo", "test", "--lib", "--no-run", "--locked"),
    "--message-format=json-render-diagnostics",
)
_PASSED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. ok$", re.MULTILINE)
_FAILED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", re.MULTILINE)


class RustTests:
    """The tests of the crate in the folder `crate` of a tree; `target` is the build directory."""

    def __init__(self, crate: Path, target: Path) -> None:
        self._crate = crate
        self._environment = os.environ | _ENVIRONMENT | {"CARGO_TARGET_DIR": str(target)}

    def run(self, tests: Sequence[str]) -> Outcome:
        """Runs the named tests. A test without an outcome, because the program crashed or did not
        end, has failed."""
        return self._run([*tests, "--exact"], tests)

    def run_matching(self, filters: Sequence[str]) -> Outcome:
        """Runs all tests whose name contains one of these."""
        return self._run(filters, [])

    def _run(self, arguments: Sequence[str], expected: Sequence[str]) -> Outcome:
        program = self._build()
        if isinstance(program, Outcome):
            return program
        try:
            printed = subprocess.run(
                [program, *arguments],
                cwd=self._crate,
                env=self._environment,
                check=False,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIME_MAX_S if expected else None,
            ).stdout
        except subprocess.TimeoutExpired as ended:
            printed = (ended.stdout or b"").decode(errors="replace")
        passed = frozenset(_PASSED.findall(printed))
        return Outcome(passed, frozenset({*_FAILED.findall(printed), *expected} - passed))

    def _build(self) -> str | Outcome:
        """The test program, or the outcome of a failed build."""
        done = subprocess.run(
            _BUILD,
            cwd=self._crate,
            env=self._environment,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            return Outcome(frozenset(), frozenset(), last_line(done.stderr))
        messages = (json.loads(line) for line in done.stdout.splitlines())
        programs = [message["executable"] for message in messages if message.get("executable")]
        return str(programs[-1])
