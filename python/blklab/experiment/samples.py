"""How much a run has to measure before its figures are compared.

*A percentile* of a few samples is their maximum by another name: the 99th percentile of 8 reads is
the slowest of them. What can be said of the true q-th quantile without assuming a distribution is
said by two order statistics around it, and the widest such interval, from the least to the
largest of n samples, misses the quantile if all samples fall on one side of it: with a chance of
q^n + (1 - q)^n. So a two-sided interval at a level exists only if

    1 - q^n - (1 - q)^n >= level

(Hahn, Meeker and Escobar, "Statistical Intervals", 2nd edition 2017, section 5.2; Conover,
"Practical Nonparametric Statistics", 3.2). Below that many, a run does not know its percentile, and
nothing is ranked by it. Samples of one run follow each other and are less than independent, so
this is the least that is needed, not what makes a figure good.

*A rate* counts whole I/Os: one more or less changes that of a run with n of them by 1/n. No
difference up to that is shown by it, however many repeats agree.
"""

from __future__ import annotations

import functools
import math

from blklab.experiment.statistics import CONFIDENCE


@functools.cache
def needed(percent: float, level: float = CONFIDENCE) -> int:
    """The least number of samples of which a percentile has an interval at `level`: 6 for the
    median, 299 for the 99th, 2995 for the 99.9th at 95 %. ValueError unless 0 < `percent` < 100.
    """
    if not 0.0 < percent < 100.0:  # noqa: PLR2004
        raise ValueError(f"{percent:g} is no percentile that an interval can hold")
    q = percent / 100.0
    # The side that is missed more often decides, but for what the other one adds.
    count = max(1, math.floor(math.log(1.0 - level) / math.log(max(q, 1.0 - q))))
    while 1.0 - q**count - (1.0 - q) ** count < level:
        count += 1
    return count


def too_few(percent: float, samples: int, what: str) -> str:
    """Why nothing is ranked by a percentile of so few of `what`, such as ``reads``, in a run;
    empty if it is."""
    least = needed(percent)
    if samples >= least:
        return ""
    counted = what.removesuffix("s") if samples == 1 else what
    return (
        f"p{percent:g} of {what} not ranked: {samples} {counted} per run, at least {least} are "
        "needed; use a longer runtime"
    )


def resolution(ios: float) -> float:
    """By what factor a rate changes if there is one I/O more than `ios`."""
    return 1.0 + 1.0 / ios
