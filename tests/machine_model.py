"""The expected state of a machine after each step: unchanged, or as requested.

`Model` keeps the last `Snapshot` and the state before each entry of ``blklab apply``. A step
returns the requested changes (`Asked`); `settle` takes a new snapshot and raises `LostError` if
anything else has changed.

After SIGKILL, blklab may leave changed settings and its own files until the next ``restore``, run
or ``undo``. Until then those keys are *owed*: they are not compared, and their expected values are
kept.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tests.machine_snapshot import Snapshot, is_seen, settings, snapshot
from tests.machine_world import STATE, Disk, World

ANYTHING = "anything"
"""Stands for any value of a key."""
Values = frozenset[str | None]
"""The accepted values; None means that the key may be absent."""
Asked = dict[str, Values]

RULES = "machine/etc/udev/rules.d/99-blklab.rules"
RECORD = "state/applied.json"
_COUPLED = ("scheduler", "nr_requests", "wbt_lat_usec", "async_depth")
"""Settings that the kernel changes with the scheduler, besides the scheduler's tunables."""
_WITH = {
    "nr_requests": ("async_depth", "iosched/async_depth"),
    "iosched/slice_idle": ("iosched/slice_idle_us",),
    "iosched/strict_guarantees": ("iosched/slice_idle", "iosched/slice_idle_us"),
}
"""Settings that the kernel changes with these, or that are other names for them."""
_SHOWN = 12


class LostError(AssertionError):
    """The machine is not in the expected state."""


@dataclass
class Applied:
    """One entry of the record, as the user sees it."""

    roles: tuple[str, ...]
    """The roles of its disks."""
    before: Snapshot
    files: Asked
    """The contents of `RULES` and `RECORD` before."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """The settings applied to each of them."""
    changed_since: dict[str, set[str | None]] = field(default_factory=dict)
    """Settings made by other programs since."""

    def undone(self, keys: Iterable[str]) -> Asked:
        """The changes that an undo requests."""
        asked = {
            key: frozenset({self.before.get(key)} | self.changed_since.get(key, set()))
            for key in {*self.before, *keys}
            if key.startswith(tuple(f"queue/{role}/" for role in self.roles))
        }
        return asked | self.files


def one(value: str | None) -> Values:
    """Accepts only this value."""
    return frozenset({value})


class Model:
    """The expected state of one world, from its creation on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.started: list[int] = []
        """blklab's processes so far."""
        self.compared = 0
        self.stack: list[Applied] = []
        self.interrupted: Applied | None = None
        """The latest entry, if it is incomplete."""
        self.owed: dict[str, set[str | None]] = {}
        self.leftovers = False
        """Whether a killed command may have left files of its own."""
        self.leftovers_in: set[str] = set()
        """Disks whose file systems may have such files."""
        self._unseen: Asked = {}
        """Requested changes of keys that cannot be observed now."""
        self.state = snapshot(world)

    # Steps.

    def set_by_user(self, changes: Mapping[str, str | None]) -> Asked:
        """Another program has set this; undo and restore may leave it."""
        owing = self._owing()
        for key, value in changes.items():
            for entry in self.stack:
                entry.changed_since.setdefault(key, set()).add(value)
            if key.split("/")[1] in owing:
                # Everything from before is owed already.
                self.owed.setdefault(key, {None}).add(value)
        return {key: one(value) for key, value in changes.items()}

    def may_be(self, changes: Asked) -> Asked:
        """Another program has set one of these; which one, and its current value, cannot be
        known."""
        for key, values in changes.items():
            for entry in self.stack:
                entry.changed_since.setdefault(key, set()).update(values)
            if key.split("/")[1] in self._owing():
                self.owed.setdefault(key, {None}).update(values)
        return changes

    def killed(self, disk: Disk, asked: Asked) -> None:
        """A live run on this disk was killed at any point; `asked` has the changes by other
        programs meanwhile."""
        again = disk.role in self._owing()
        for key in {*self.state, *asked}:
            if key.startswith(f"queue/{disk.role}/"):
                # The leftovers of an earlier run are not the state to restore.
                right = self.owed.setdefault(key, {None if again else self.state.get(key)})
                right |= asked.get(key, frozenset())
        self.leftovers = True
        self.leftovers_in.add(disk.role)

    def was_replaced(self, disk: Disk, fresh: Mapping[str, str]) -> Asked:
        """The disk is another device now, with a new device's settings."""
        prefix = f"queue/{disk.role}/"
        gone = {key for key in (*self.state, *self.owed) if key.startswith(prefix)}
        self._not_owed((disk.role,))
        changes = {key: fresh.get(key.removeprefix(prefix)) for key in gone}
        return self.set_by_user(changes | {prefix + name: value for name, value in fresh.items()})

    def forgotten(self, disk: Disk) -> Asked:
        """The user has chosen to keep the disk's present settings."""
        freed = [key for key in self._queue_keys() if key.startswith(f"queue/{disk.role}/")]
        gone = [key for key in self.owed if key.startswith(f"queue/{disk.role}/")]
        self._not_owed((disk.role,))
        return dict.fromkeys((*gone, *freed), frozenset({ANYTHING})) if gone else {}

    def applied(self, disks: Collection[Disk], chosen: Mapping[str, str], before: Asked) -> Asked:
        """The settings in `chosen` were applied to the disks. The changes of `before` may have come
        earlier; other settings that the kernel changes with the scheduler may have any value."""
        roles = tuple(disk.role for disk in disks)
        # apply is refused while leftovers exist: another command has just removed them.
        before = before | self._due(roles)
        self._not_owed(roles)
        meanwhile = {key: set(values) for key, values in before.items()}
        earlier = list(self.stack)
        files = {key: self._now(key, before) for key in (RULES, RECORD)}
        self.stack.append(Applied(roles, dict(self.state), files, chosen, meanwhile))
        asked: Asked = before | {key: frozenset({ANYTHING}) for key in (RULES, RECORD)}
        for role in roles:
            asked |= self._applied_again(role, earlier, before)
            if self._switches(role, chosen.get("scheduler"), before):
                asked |= self.coupled(role, before)
            with_them = (name for given in chosen for name in _WITH.get(given, ()))
            asked |= {f"queue/{role}/{name}": frozenset({ANYTHING}) for name in with_them}
            asked |= {f"queue/{role}/{name}": one(value) for name, value in chosen.items()}
        return asked

    def _applied_again(self, role: str, earlier: Iterable[Applied], before: Asked) -> Asked:
        """Settings applied to the disk earlier are in its rule too, so they are set again if
        another program, or a new insertion of the disk, has changed them since."""
        asked: Asked = {}
        for entry in earlier:
            if role not in entry.roles:
                continue
            for name, value in entry.chosen.items():
                key = f"queue/{role}/{name}"
                if name == "scheduler" and self._switches(role, value, before):
                    asked |= self.coupled(role, before)
                asked[key] = asked.get(key, frozenset()) | self._now(key, before) | {value}
        return asked

    def _now(self, key: str, asked: Asked) -> Values:
        """Its possible values after the changes of `asked` since the last snapshot."""
        return asked.get(key, one(self.state.get(key)))

    def _switches(self, role: str, scheduler: str | None, asked: Asked) -> bool:
        """Whether the disk may have had another scheduler."""
        return scheduler is not None and self._now(f"queue/{role}/scheduler", asked) != one(
            scheduler
        )

    def coupled(self, role: str, before: Asked) -> Asked:
        """The disk's keys that depend on its scheduler, the present one or one of `before`; each
        may have any value."""
        names = {
            key
            for key in (*self._queue_keys(), *before)
            if key.startswith(f"queue/{role}/iosched/")
        }
        return {
            key: frozenset({ANYTHING})
            for key in (*names, *(f"queue/{role}/{name}" for name in _COUPLED))
        }

    def undone(self, count: int) -> Asked:
        """The latest `count` entries were undone."""
        asked: Asked = {}
        for _ in range(count):
            entry = self.stack.pop()
            self._not_owed(entry.roles)
            asked |= entry.undone([*self._queue_keys(), *asked])
        self.interrupted = None if count else self.interrupted
        return asked

    def _queue_keys(self) -> list[str]:
        now = (f"queue/{disk.role}/{name}" for disk in self.world.disks for name in settings(disk))
        return [*now, *(key for key in self.state if key.startswith("queue/"))]

    def entries(self) -> list[bool]:
        """For each entry of the record, whether it is complete."""
        try:
            document = json.loads((STATE / "applied.json").read_text())
        except FileNotFoundError:
            return []
        return [entry["done"] for entry in document["entries"]]

    def restored(self) -> Asked:
        """Everything that was owed must be restored now."""
        asked = self._due(self._owing())
        seen = {disk.role for disk in self.world.with_files if disk.is_mounted()}
        self.leftovers_in &= {disk.role for disk in self.world.with_files} - seen
        self.leftovers = bool(self.leftovers_in)
        self.owed = {key: found for key, found in self.owed.items() if not is_seen(key, self.world)}
        return asked

    def _due(self, roles: Collection[str]) -> Asked:
        """The owed values of these disks; their other settings must be absent."""
        due: Asked = {}
        for role in self._owing().intersection(roles):
            prefix = f"queue/{role}/"
            due |= {key: one(None) for key in self._queue_keys() if key.startswith(prefix)}
            due |= {
                key: frozenset(found) for key, found in self.owed.items() if key.startswith(prefix)
            }
        return due

    def _udev_may_set(self, role: str) -> bool:
        """Whether the rule and another program set different values: any udev event of the disk,
        such as one after a program has closed it, may set the rule's again."""
        return self.world.virtual and any(
            role in entry.roles and key.startswith(f"queue/{role}/")
            for entry in self.stack
            for key in entry.changed_since
        )

    def _not_owed(self, roles: Collection[str]) -> None:
        """A killed run has no leftovers on these disks: it had not begun, or they are gone."""
        gone = [key for key in self.owed if key.split("/")[1] in roles]
        for key in gone:
            del self.owed[key]

    def _owing(self) -> set[str]:
        return {key.split("/")[1] for key in self.owed}

    # Comparison.

    def settle(self, asked: Asked) -> None:
        """LostError unless the requested changes, and no others, have happened."""
        now = snapshot(self.world, self.started)
        if lines := self._wrong(now, asked):
            more = [f"... and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
            raise LostError("\n".join([*lines[:_SHOWN], *more]))
        kept = {key: value for key, value in self.state.items() if not is_seen(key, self.world)}
        waiting = self._unseen | asked
        self._unseen = {key: waiting[key] for key in waiting if not is_seen(key, self.world)}
        self.state = {key: value for key, value in (kept | now).items() if not _is_leftover(key)}

    def _wrong(self, now: Snapshot, asked: Asked) -> list[str]:
        keys = sorted({*now, *self.state, *asked})
        self.compared += len(keys)
        lines = []
        for key in keys:
            right = asked.get(key, self._unseen.get(key, one(self.state.get(key))))
            found = now.get(key)
            if found in right or ANYTHING in right or self._may_differ(key):
                continue
            wanted = " or ".join(sorted(map(_text, right)))
            lines.append(f"{key}: expected {wanted}, found {_text(found)}")
        return lines

    def _may_differ(self, key: str) -> bool:
        if not is_seen(key, self.world):
            return True
        kind, role, *_ = key.split("/")
        if _is_kept(key):
            return True
        if _is_leftover(key):
            return role in self.leftovers_in if kind == "file" else self.leftovers
        if kind == "queue" and (role in self._owing() or self._udev_may_set(role)):
            return True
        entry = self.interrupted
        return entry is not None and (
            key in (RULES, RECORD) or _is_partial(key) or (kind == "queue" and role in entry.roles)
        )


def _text(value: str | None) -> str:
    return "nothing" if value is None else value or "''"


def _is_kept(key: str) -> bool:
    """Whether blklab keeps it on purpose: the journal's directory, or a disk's lock."""
    name = key.rpartition("/")[2]
    return key == "state/journal" or (
        key.startswith("state/journal/disk-") and name.endswith(".lock")
    )


def _is_leftover(key: str) -> bool:
    """Whether it is a file of blklab's that a command removes at its end."""
    if key.startswith("file/"):
        return key.split("/")[2].startswith(".blklab-")
    ours = ("tmp/", "state/journal/", "cgroup/", "tracing/", "shm/")
    return key.startswith(ours) or _is_partial(key)


def _is_partial(key: str) -> bool:
    """Whether it is a temporary file, to be renamed when it is complete."""
    return any(key.startswith(f"{whole.rpartition('/')[0]}/.{whole.rpartition('/')[2]}.")
               for whole in (RULES, RECORD))  # fmt: skip
