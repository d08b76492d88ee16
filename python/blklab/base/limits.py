"""The largest counts that users can ask for. Larger ones are refused at once."""

from __future__ import annotations

import os

REPEATS_MAX = 10_000
"""Of each run of a comparison. Intervals shrink with the square root: so many show a tenth of what
a hundred show."""
RUNS_MAX = 100_000
"""Of a comparison, which is planned as a whole: some hundred MB of plan."""
TIMEOUT_S_MAX = 366 * 86400.0
"""Of what runs in a guest: a year, which every timer of the system still takes."""
JOBS_MAX = 1024
"""Parallel runs or compilers."""
VERIFY_JOBS_MAX = 10_000
"""Drawn for a disk: a day or two."""
JOBS_DEFAULT = min(len(os.sched_getaffinity(0)), JOBS_MAX)
"""One per CPU."""

TEXT_REQUESTS = 40
"""Of a timeline as text, unless more are asked for: some screens."""
FILE_REQUESTS = 2000
"""Of a timeline as a page or for Perfetto: what a browser draws at once."""
