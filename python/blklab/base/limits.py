"""The largest counts that users can ask for. Larger ones are refused at once."""

from __future__ import annotations

import os

REPEATS_MAX = 10_000
"""Repeats of a comparison. Intervals shrink with the square root of the number: this many detect a
tenth of the difference that a hundred detect."""
RUNS_MAX = 1_000_000
"""Runs of a comparison. Its plan takes some MB, its results about 10 KB each."""
BUDGET_RUNS_MAX = 100_000
"""Runs of a comparison with a budget, which is planned as a whole: some hundred MB."""
TIMEOUT_S_MAX = 366 * 86400.0
"""The longest run in a guest: a year, within the range of every timer of the system."""
JOBS_MAX = 1024
"""Parallel runs or compilers."""
VERIFY_JOBS_MAX = 10_000
"""Jobs drawn for a disk: they take a day or two."""
JOBS_DEFAULT = min(len(os.sched_getaffinity(0)), JOBS_MAX)
"""One per CPU."""

TEXT_REQUESTS = 40
"""Requests of a timeline as text by default: some screens."""
FILE_REQUESTS = 2000
"""Requests of a timeline as a page or for Perfetto: as many as a browser draws quickly."""
