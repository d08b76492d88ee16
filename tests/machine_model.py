"""What a machine has to be like after what was done to it: as before, or as it was asked for.

`Model` knows the last `Snapshot` and what each entry of ``blklab apply`` found. A step says what it
was asked to change (`Asked`); `settle` looks at the machine and raises `LostError` if anything
else is otherwise.

Killed without a chance (SIGKILL), blklab may leave settings changed and files of its own
until the next ``restore``, run or ``undo``. Until then those keys are *owed*: not compared, and
what they have to come back to is kept.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tests.machine_snapshot import Snapshot, is_seen, settings, snapshot
from tests.machine_world import STATE, Disk, World

ANYTHING = "anything"
"""Of a key that may come to any value."""
Values = frozenset[str | None]
"""That are right; None if it is right that the key is not there."""
Asked = dict[str, Values]

RULES = "machine/etc/udev/rules.d/99-blklab.rules"
RECORD = "state/applied.json"
_COUPLED = ("scheduler", "nr_requests", "wbt_lat_usec", "async_depth")
"""What the kernel sets with a scheduler, beside the scheduler's tunables."""
_WITH = {
    "nr_requests": ("async_depth", "iosched/async_depth"),
    "iosched/slice_idle": ("iosched/slice_idle_us",),
    "iosched/strict_guarantees": ("iosched/slice_idle", "iosched/slice_idle_us"),
}
"""What the kernel sets with these, or what is another name of the same."""
_SHOWN = 12


class LostError(AssertionError):
    """The machine is not as it has to be."""


@dataclass
class Applied:
    """One entry of the record, as the user sees it."""

    roles: tuple[str, ...]
    """Of the disks that it is for."""
    before: Snapshot
    files: Asked
    """What `RULES` and `RECORD` were."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """The settings that were applied to each of them."""
    changed_since: dict[str, set[str | None]] = field(default_factory=dict)
    """Settings made by other programs since."""

    def undone(self, keys: Iterable[str]) -> Asked:
        """What undoing it asks for."""
        asked = {
            key: frozenset({self.before.get(key)} | self.changed_since.get(key, set()))
            for key in {*self.before, *keys}
            if key.startswith(tuple(f"queue/{role}/" for role in self.roles))
        }
        return asked | self.files


def one(value: str | None) -> Values:
    """Nothing but this is right."""
    return frozenset({value})


class Model:
    """Of one world, from the moment at which it is made."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.started: list[int] = []
        """Processes of blklab's."""
        self.compared = 0
        self.stack: list[Applied] = []
        self.interrupted: Applied | None = None
        """The latest entry, if it is not whole."""
        self.owed: dict[str, set[str | None]] = {}
        self.leftovers = False
        """Whether a killed command may have left files of its own."""
        self.leftovers_in: set[str] = set()
        """On these disks' file systems."""
        self._unseen: Asked = {}
        """What was asked for where there is no look at it now."""
        self.state = snapshot(world)

    # What was done.

    def set_by_user(self, changes: Mapping[str, str | None]) -> Asked:
        """Another program has set this; undo and restore may leave it."""
        owing = self._owing()
        for key, value in changes.items():
            for entry in self.stack:
                entry.changed_since.setdefault(key, set()).add(value)
            if key.split("/")[1] in owing:
                # All that there was is owed already.
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
        """A live run on this disk may have been in the middle of anything; `asked` is what others
        have set meanwhile."""
        again = disk.role in self._owing()
        for key in {*self.state, *asked}:
            if key.startswith(f"queue/{disk.role}/"):
                # What an earlier one has left is not what it has to come back to.
                right = self.owed.setdefault(key, {None if again else self.state.get(key)})
                right |= asked.get(key, frozenset())
        self.leftovers = True
        self.leftovers_in.add(disk.role)

    def was_replaced(self, disk: Disk, fresh: Mapping[str, str]) -> Asked:
        """Another device, with the settings of a new one."""
        prefix = f"queue/{disk.role}/"
        gone = {key for key in (*self.state, *self.owed) if key.startswith(prefix)}
        self._not_owed((disk.role,))
        changes = {key: fresh.get(key.removeprefix(prefix)) for key in gone}
        return self.set_by_user(changes | {prefix + name: value for name, value in fresh.items()})

    def forgotten(self, disk: Disk) -> Asked:
        """It is right as it is."""
        freed = [key for key in self._queue_keys() if key.startswith(f"queue/{disk.role}/")]
        gone = [key for key in self.owed if key.startswith(f"queue/{disk.role}/")]
        self._not_owed((disk.role,))
        return dict.fromkeys((*gone, *freed), frozenset({ANYTHING})) if gone else {}

    def applied(self, disks: Collection[Disk], chosen: Mapping[str, str], before: Asked) -> Asked:
        """What was `chosen` was applied to the disks. What was asked for `before` may have been
        there by then; the kernel sets with a scheduler what it likes."""
        roles = tuple(disk.role for disk in disks)
        # It is refused while leftovers exist: another command has just undone them.
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
        """What was applied to the disk before belongs to its rule too, so it is set again where
        another program, or a disk that was inserted again, has changed it since."""
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
        """What it may be, after what was `asked` for since the last look at it."""
        return asked.get(key, one(self.state.get(key)))

    def _switches(self, role: str, scheduler: str | None, asked: Asked) -> bool:
        """Whether the disk may have had another one."""
        return scheduler is not None and self._now(f"queue/{role}/scheduler", asked) != one(
            scheduler
        )

    def coupled(self, role: str, before: Asked) -> Asked:
        """The keys of the disk that go with its scheduler, this or one that it had `before`; each
        may come to anything."""
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
        """The latest `count` entries were taken back."""
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
        """Of the record: whether each entry is whole."""
        try:
            document = json.loads((STATE / "applied.json").read_text())
        except FileNotFoundError:
            return []
        return [entry["done"] for entry in document["entries"]]

    def restored(self) -> Asked:
        """What was owed is due."""
        asked = self._due(self._owing())
        seen = {disk.role for disk in self.world.with_files if disk.is_mounted()}
        self.leftovers_in &= {disk.role for disk in self.world.with_files} - seen
        self.leftovers = bool(self.leftovers_in)
        self.owed = {key: found for key, found in self.owed.items() if not is_seen(key, self.world)}
        return asked

    def _due(self, roles: Collection[str]) -> Asked:
        """What is owed of these disks; of their other settings, that they are not there."""
        due: Asked = {}
        for role in self._owing().intersection(roles):
            prefix = f"queue/{role}/"
            due |= {key: one(None) for key in self._queue_keys() if key.startswith(prefix)}
            due |= {
                key: frozenset(found) for key, found in self.owed.items() if key.startswith(prefix)
            }
        return due

    def _udev_may_set(self, role: str) -> bool:
        """Whether the rule and another program set different values of the disk: any event of it,
        as a program that closes it, may set it again."""
        return self.world.virtual and any(
            role in entry.roles and key.startswith(f"queue/{role}/")
            for entry in self.stack
            for key in entry.changed_since
        )

    def _not_owed(self, roles: Collection[str]) -> None:
        """A run that was killed has left nothing of these: it had not begun, or it is too late."""
        gone = [key for key in self.owed if key.split("/")[1] in roles]
        for key in gone:
            del self.owed[key]

    def _owing(self) -> set[str]:
        return {key.split("/")[1] for key in self.owed}

    # How it is.

    def settle(self, asked: Asked) -> None:
        """LostError unless the machine is as it was asked for, and otherwise as before."""
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
    """What blklab keeps on purpose: the directory of its journal, and the locks of disks."""
    name = key.rpartition("/")[2]
    return key == "state/journal" or (
        key.startswith("state/journal/disk-") and name.endswith(".lock")
    )


def _is_leftover(key: str) -> bool:
    """Of blklab's own, that goes with the command."""
    if key.startswith("file/"):
        return key.split("/")[2].startswith(".blklab-")
    ours = ("tmp/", "state/journal/", "cgroup/", "tracing/", "shm/")
    return key.startswith(ours) or _is_partial(key)


def _is_partial(key: str) -> bool:
    """A file that is being written, beside the one that it will be."""
    return any(key.startswith(f"{whole.rpartition('/')[0]}/.{whole.rpartition('/')[2]}.")
               for whole in (RULES, RECORD))  # fmt: skip
