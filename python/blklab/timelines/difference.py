"""Where two runs of the same workload part: their first request that is not the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias

from blklab.timelines.timeline import Request, Timeline

_BEFORE = 3
_AFTER = 8
"""Requests shown around the first difference."""

_Step: TypeAlias = tuple[str, int, int, str, int]


@dataclass(frozen=True)
class Difference:
    """The first difference between two runs, request by request in the order of issue."""

    index: int
    """The number of requests before it, which are the same."""
    kind: str
    """``order``: another request; ``size``: one that begins at the same sector; ``time``: the same
    one at another time; ``end``: one of the runs has no more requests."""
    before: tuple[tuple[Request | None, Request | None], ...]
    """The last requests that are the same, in both runs."""
    after: tuple[tuple[Request | None, Request | None], ...]
    """The requests from the difference on; None after a run's last."""

    @property
    def text(self) -> str:
        """The kind in words."""
        return {
            "order": "another request is issued",
            "size": "a request has another size",
            "time": "a request is issued at another time",
            "end": "one of them issues no more requests",
        }[self.kind]


def in_order_of_issue(timeline: Timeline) -> list[Request]:
    """A timeline's requests by the time at which the disk got them."""
    return sorted(timeline.requests, key=lambda request: (request.issued_ns, request.number))


def first_difference(
    one: Timeline, other: Timeline, *, times: bool, processes: bool = True
) -> Difference | None:
    """None if all requests are the same: operation, place and size, with `processes` the process,
    and with `times` the time of issue; then the order of those that are issued at one time does
    not count."""
    left, right = in_order_of_issue(one), in_order_of_issue(other)
    if times:
        # Two rigs do not number requests of one time alike, so of these the places count.
        left, right = sorted(left, key=_at_its_time), sorted(right, key=_at_its_time)
    steps = (
        [_step(request, one, times, processes) for request in left],
        [_step(request, other, times, processes) for request in right],
    )
    same = zip(*steps, strict=False)
    index = next((at for at, (a, b) in enumerate(same) if a != b), min(len(left), len(right)))
    if index == len(left) == len(right):
        return None
    pairs = tuple(zip_longest(left, right))
    return Difference(
        index,
        _kind(left[index : index + 1], right[index : index + 1], steps, index),
        pairs[max(0, index - _BEFORE) : index],
        pairs[index : index + _AFTER],
    )


def _at_its_time(request: Request) -> tuple[int, str, int, int]:
    return (request.issued_ns, request.op, request.sector, request.sectors)


def _step(request: Request, timeline: Timeline, times: bool, processes: bool) -> _Step:
    process = timeline.rows.get(request.row, "") if processes else ""
    time_ns = request.issued_ns if times else 0
    return (request.op, request.sector, request.sectors, process, time_ns)


def _kind(
    left: Sequence[Request],
    right: Sequence[Request],
    steps: tuple[list[_Step], list[_Step]],
    index: int,
) -> str:
    if not left or not right:
        return "end"
    a, b = steps[0][index], steps[1][index]
    if a[:4] == b[:4]:
        return "time"
    return "size" if (a[0], a[1], a[3]) == (b[0], b[1], b[3]) else "order"
