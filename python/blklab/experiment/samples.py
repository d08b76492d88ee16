"""The number of samples that a run needs before its figures are compared. *A percentile* of a few
samples is just their maximum: the 99th percentile of 8 reads is the slowest of them.

Without an assumed distribution, an interval for the true q-th quantile consists of two order
statistics around it, and the widest such interval, from the least to the largest of n samples,
misses the quantile if all samples fall on one side of it: with a chance of q^n + (1 - q)^n. So a
two-sided interval at a level exists only if

    1 - q^n - (1 - q)^n >= level

(Hahn, Meeker and Escobar, "Statistical Intervals", 2nd edition 2017, section 5.2; Conover,
"Practical Nonparametric Statistics", 3.2). With fewer samples, a run has no valid percentile, and
nothing is ranked by it. Samples of one run follow each other and are not fully independent, so this
number is necessary, not sufficient.

*A rate* counts whole I/Os: one more or less changes that of a run with n of them by 1/n. It cannot
show a smaller difference, however many repeats agree.
"""

from __future__ import annotations

import functools
import math

from blklab.experiment.statistics import CONFIDENCE


@functools.cache
def needed(percent: float, level: float = CONFIDENCE) -> int:
    """The least number of samples for which a percentile has an interval at `level`: 6 for the
    median, 299 for the 99th, 2995 for the 99.9th at 95 %. ValueError unless 0 < `percent` < 100.
    """
    if not 0.0 < percent < 100.0:  # noqa: PLR2004
        raise ValueError(f"{percent:g} is not a percentile with an interval")
    q = percent / 100.0
    # The side that is missed more often dominates; the other one adds a little.
    count = max(1, math.floor(math.log(1.0 - level) / math.log(max(q, 1.0 - q))))
    while 1.0 - q**count - (1.0 - q) ** count < level:
        count += 1
    return count


def too_few(percent: float, samples: int, what: str) -> str:
    """The reason if a run has too few of `what`, such as ``reads``, to rank by a percentile; else
    empty."""
    least = needed(percent)
    if samples >= least:
        return ""
    counted = what.removesuffix("s") if samples == 1 else what
    return (
        f"p{percent:g} of {what} not ranked: {samples} {counted} per run, at least {least} are "
        "needed; use a longer runtime"
    )


def resolution(ios: float) -> float:
    """The factor by which one I/O more than `ios` changes a rate."""
    return 1.0 + 1.0 / ios
