"""Ranges of figures as types, which msgspec checks wherever a measurement comes from a file."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

INT_MAX = 2**53
"""The largest integer of every JSON reader; in nanoseconds a hundred days."""
_NS_MAX = 2**63 - 1
"""A point of virtual time, which lasts 292 years."""
_RATE_MAX = 1e18

Count = Annotated[int, Meta(ge=0, le=INT_MAX)]
AtLeastOne = Annotated[int, Meta(ge=1, le=INT_MAX)]
Duration = Annotated[int, Meta(ge=0, le=_NS_MAX)]
"""In ns."""
Number = Annotated[int, Meta(ge=-_NS_MAX, le=_NS_MAX)]
Mean = Annotated[float, Meta(ge=0, le=INT_MAX)]
"""The mean of counts, and their standard deviation."""
Rate = Annotated[float, Meta(ge=0, le=_RATE_MAX)]
"""Per second."""
Percentiles = Annotated[tuple[Count, ...], Meta(min_length=3, max_length=3)]
"""Values of the three percentiles in `blklab.domain.latencies` and `blklab.domain.stages`."""
