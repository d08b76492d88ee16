"""Which scheduler a disk should have now: from what it did, interval by interval.

A change pays if the load has been of the same kind and shade for some intervals, if another
scheduler is better than the present one under such a load by a least gain, and if the last change
is long enough ago. A disk whose load changes more often than its scheduler may change would always
have the scheduler of the load before; it is judged by the mix of its loads instead.

There is no clock here: each observation has its time.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from blklab.base.units import duration_text
from blklab.watching.evidence import Evidence, gain, is_proven
from blklab.watching.kinds import IDLE, Seen, seen
from blklab.watching.load import Load

_REMEMBERED = 3
"""The mix is that of so many times `Rules.at_most_every_s`."""
_STAYS_LEAST = 2
"""With more changes of load than this within that time, a disk's load counts as changing."""
_UNPROVEN = 2
"""A gain that may be the chance of the runs must be so many times as large."""


@dataclass(frozen=True)
class Rules:
    """The stated limits of a watch."""

    choices: tuple[str, ...]
    """The schedulers that may be set, as on the command line."""
    objective: str = "latency"
    """``latency`` or ``throughput``."""
    at_most_every_s: float = 600.0
    """The least time between two changes."""
    gain_least: float = 1.1
    """The ratio by which another scheduler must be better."""
    steady: int = 3
    """The number of intervals in a row of the same kind before it counts."""


@dataclass(frozen=True)
class Decision:
    """The answer to one observation."""

    seen: Seen
    """What this interval shows."""
    settled: bool
    """Whether that has lasted for `Rules.steady` intervals."""
    present: str
    """The scheduler in this interval."""
    better: str | None = None
    """A scheduler that would be better by `Rules.gain_least` at least; None if there is none, or
    none that is known."""
    gain: float = math.nan
    """How many times better it is; NaN without one."""
    set_now: bool = False
    """Whether the scheduler may change now."""
    reason: str = ""
    """Why, in words."""
    evidence: Evidence | None = None
    """What it rests on; None for a mix, and without any."""
    needs_evidence: bool = False
    """Whether it takes evidence about this load to decide: see `Watcher.learn`."""


@dataclass
class Watcher:
    """The memory of one disk's watch. Call `observe` once an interval, `learn` with the evidence
    that a decision needs, and `changed` after a change of the scheduler or a failed one."""

    rules: Rules
    _known: dict[str, Evidence] = field(default_factory=dict)
    """By `Seen.key`."""
    _intervals: deque[tuple[float, Seen]] = field(default_factory=deque)
    """Each interval that was not idle and its time, the latest last."""
    _starts: deque[float] = field(default_factory=deque)
    """The time of each of them that was unlike the one before."""
    _in_a_row: int = 0
    _changed_s: float = -math.inf

    def learn(self, of: Seen, evidence: Evidence) -> None:
        """From now on, decisions about such a load rest on it."""
        self._known[of.key] = evidence

    def forget(self, key: str) -> None:
        """The evidence about loads with this `Seen.key` is too old: the next decision about one
        needs another."""
        self._known.pop(key, None)

    def changed(self, now_s: float) -> None:
        """The scheduler was changed, or could not be: the next change is some time away."""
        self._changed_s = now_s

    def observe(self, now_s: float, load: Load, present: str) -> Decision:
        """The decision after an interval that ended at `now_s`, of any clock that only advances."""
        found = seen(load)
        if found.kind is IDLE:
            return Decision(found, False, present, reason="nothing to gain")
        last = self._intervals[-1][1].key if self._intervals else found.key
        self._in_a_row += 1
        if last != found.key:
            self._starts.append(now_s)
            self._in_a_row = 1
        self._intervals.append((now_s, found))
        first_s = now_s - _REMEMBERED * self.rules.at_most_every_s
        while self._intervals[0][0] < first_s:
            self._intervals.popleft()
        while self._starts and self._starts[0] < first_s:
            self._starts.popleft()
        return self.again(now_s, Decision(found, self._in_a_row >= self.rules.steady, present))

    def again(self, now_s: float, of: Decision) -> Decision:
        """The decision about the same observation, after `learn`."""
        base = Decision(of.seen, of.settled, of.present)
        if self._changes_fast():
            return self._of_mix(base, now_s)
        if not base.settled:
            return _because(base, f"such a load has lasted {self._in_a_row} intervals")
        return self._of_one(base, now_s)

    def _changes_fast(self) -> bool:
        """Whether a load lasts, on average, for less than the least time between changes. The
        present one has not ended yet, and the first one remembered may have begun before."""
        starts = self._starts
        if len(starts) <= _STAYS_LEAST:
            return False
        return (starts[-1] - starts[0]) / (len(starts) - 1) < self.rules.at_most_every_s

    def _of_one(self, base: Decision, now_s: float) -> Decision:
        one = self._known.get(base.seen.key)
        if one is None:
            return _because(base, "no evidence about such a load yet", needs_evidence=True)
        base = _because(base, "", evidence=one)
        if not one.cases:
            return _because(base, one.why_none or "no scheduler is known to be better")
        return self._decided(base, now_s, [(1.0, one)], "")

    def _of_mix(self, base: Decision, now_s: float) -> Decision:
        counts = Counter(found.key for _, found in self._intervals)
        key = base.seen.key
        if key not in self._known and counts[key] >= self.rules.steady:
            return _because(base, "no evidence about such a load yet", needs_evidence=True)
        parts = [
            (float(count), self._known[key])
            for key, count in counts.items()
            if key in self._known and self._known[key].cases
        ]
        if sum(weight for weight, _ in parts) < counts.total() / 2:
            return _because(base, f"nothing is known about most of its {len(counts)} loads")
        return self._decided(base, now_s, parts, f", under the mix of {len(counts)} loads")

    def _decided(
        self, base: Decision, now_s: float, parts: Sequence[tuple[float, Evidence]], under: str
    ) -> Decision:
        """The best of the choices under all parts, if it pays."""
        gains = {
            name: gain(parts, name, base.present)
            for name in self.rules.choices
            if name != base.present
        }
        known = {name: ratio for name, ratio in gains.items() if math.isfinite(ratio)}
        if not known:
            return _because(base, f"nothing is known of {base.present}{under}")
        better = max(known, key=lambda name: known[name])
        proven = is_proven(parts, better, base.present)
        percent = 100 * (self.rules.gain_least - 1)
        if known[better] < self.rules.gain_least:
            return _because(base, f"no scheduler is better by {percent:.3g} %{under}")
        if not proven and known[better] < 1 + _UNPROVEN * percent / 100:
            text = f"{better} may be {known[better]:.3g} times better{under}, which is not proven"
            return _because(base, text)
        reason = f"{better} would be {known[better]:.3g} times better{under}"
        if not proven:
            reason += ", not proven"
        if wait := self._changed_s + self.rules.at_most_every_s > now_s:
            every = duration_text(self.rules.at_most_every_s * 1e9)
            reason += f"; the last change was less than {every} ago"
        return _because(base, reason, better=better, gain=known[better], set_now=not wait)


def _because(base: Decision, reason: str, **changes: Any) -> Decision:
    return replace(base, reason=reason, **changes)
