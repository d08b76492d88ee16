"""``blklab devices`` and ``blklab restore``: this machine's disks, and leftovers of killed runs.

Names are shown escaped.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

import blklab
from blklab.base.text import shown
from blklab.base.units import size_text
from blklab.cli import complete, console
from blklab.errors import RunError

if TYPE_CHECKING:
    from blklab import Device, Devices, Influence

_WIDTH = 80
_INDENT = "  "


def devices(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DEVICE",
            help="Show all details of these: sda, /dev/sda, /dev/disk/by-id/...; of a "
            "directory: the disks below it.",
            autocompletion=complete.device,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List partitions and empty devices too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Show this machine's disks: schedulers, settings, contents, and what sets them."""
    found = blklab.devices(names or ())
    if as_json:
        console.print_json(found.to_json())
        return
    if names:
        print("\n\n".join("\n".join(_full(one, found.partitions)) for one in found.devices))
    else:
        _print_table(found.devices, every=every)
    console.print_notes(_unreadable(found))


def restore(
    forget: Annotated[
        str | None,
        typer.Option(
            help="Discard this disk's saved settings and keep the current ones; or discard the "
            "record of this directory of test files.",
            metavar="DISK|DIRECTORY",
        ),
    ] = None,
) -> None:
    """Restore disk settings and remove test files that a killed blklab left."""
    if forget is not None:
        print(blklab.forget(forget))
        return
    found = blklab.restore()
    for line in (*found.done, *found.busy):
        print(line)
    if found.problems:
        raise RunError("; ".join(found.problems))
    if not (found.done or found.busy):
        print("nothing to restore")


def _print_table(devices: Sequence[Device], *, every: bool) -> None:
    """One line for each device; without `every`, only whole ones that hold something."""
    by_name = {one.name: one for one in devices}
    listed = [one for one in devices if every or (one.kind != "partition" and one.size_bytes)]
    table = console.table("device", "size", "kind", "scheduler", "decided by", "what", right=[1])
    for one in listed:
        table.add_row(
            shown(one.name),
            size_text(one.size_bytes) if one.size_bytes else "-",
            shown(kind_text(one)),
            one.schedulers.active if one.schedulers else "-",
            one.decision.text if one.decision else "-",
            _what(one, [by_name[name] for name in one.partitions if name in by_name]),
        )
    if listed:
        console.console().print(table)
    partitions = sum(one.kind == "partition" for one in devices)
    empty = len(devices) - len(listed) - partitions
    if not every and (partitions or empty):
        left = [(partitions, "partition"), (empty, "empty device")]
        told = [f"{count} {word}{'s' if count > 1 else ''}" for count, word in left if count]
        print(f"not listed: {', '.join(told)}; see --all")
    elif not listed:
        print("no block devices here")


def kind_text(one: Device) -> str:
    """``sata hdd``, ``nvme ssd``, ``lvm``."""
    if one.kind != "disk":
        return one.kind
    kind = {True: "hdd", False: "ssd", None: "disk"}[one.rotational]
    return f"{one.identity.transport} {kind}".strip() if one.identity else kind


def _full(one: Device, parts: Mapping[str, Device]) -> Iterator[str]:
    """Everything about one device, in lines; `parts` are its partitions by name."""
    yield f"{shown(one.node)}: {shown(kind_text(one))}, {size_text(one.size_bytes)}"
    yield from _section("identity", _identity(one))
    yield from _section("on it", _content(one, parts))
    if one.below or one.backing_file:
        yield from _section("stacked on", _stack(one))
    if one.kind == "partition":
        yield from _section("scheduler", [f"that of {shown(', '.join(one.disks))}"])
        return
    yield from _section("scheduler", _scheduler(one))
    of_queue = [f"{name} = {shown(value)}" for name, value in one.tunables.items()]
    if of_queue:
        yield from _section("its tunables (queue/iosched)", of_queue)
    rest = [
        f"{shown(name)} = {shown(value)}"
        for name, value in one.attributes.items()
        if name != "scheduler"
    ]
    yield from _section("queue", _columns(rest))
    yield from _section("I/O cost, weights and limits of cgroups", _cgroups(one))


def influence_text(one: Influence) -> str:
    """``FILE:LINE: scheduler = bfq (udev rule)``."""
    value = "?" if one.value is None else shown(one.value)
    doubt = f"; may not count: {shown(one.why)}" if not one.sure else ""
    return f"{shown(one.place)}: {shown(one.attribute)} = {value} ({one.by}{doubt})"


def _unreadable(found: Devices) -> list[str]:
    """Rules that udev ignores."""
    return [
        f"{shown(str(line.file))}:{line.number}: udev ignores this line: {shown(line.error)}"
        for line in found.unreadable_rules
    ]


def _what(one: Device, parts: Sequence[Device]) -> str:
    """The model or the disks below, and where the device and its partitions are mounted."""
    identity = one.identity
    words = shown(f"{identity.vendor} {identity.model}".strip()) if identity else ""
    if one.mapped_name:
        words = shown(one.mapped_name)
    if one.backing_file:
        words = shown(one.backing_file)
    if one.below and one.kind != "partition":
        disks = ", ".join(map(shown, one.disks))
        words = f"{words} on {disks}".strip()
    places: list[str] = []
    for each in (one, *parts):
        places += [shown(mount.point) for mount in each.mounts] + ["swap"] * each.swap
    return ", ".join(filter(None, [words, *dict.fromkeys(places)])) or "-"


def _identity(one: Device) -> Iterator[str]:
    identity = one.identity
    if identity:
        for word, value in (
            ("vendor", identity.vendor),
            ("model", identity.model),
            ("firmware", identity.firmware),
            ("serial", identity.serial),
            ("wwid", identity.wwid),
            ("transport", identity.transport),
            ("driver", identity.driver),
        ):
            if value:
                yield f"{word} = {shown(value)}"
        if one.rotational is not None:
            yield f"rotational = {'yes' if one.rotational else 'no'}"
        depth = "not known" if one.queue_depth is None else str(one.queue_depth)
        yield f"hardware queues = {one.hardware_queues}, queue depth = {depth}"
    yield from (f"/dev/disk/by-id/{shown(name)}" for name in one.ids)


def _content(one: Device, parts: Mapping[str, Device]) -> Iterator[str]:
    if one.filesystem:
        names = (one.filesystem.label, one.filesystem.uuid)
        yield " ".join(map(shown, filter(None, (one.filesystem.type, *names))))
    yield from (f"mounted at {shown(mount.point)} ({shown(mount.options)})" for mount in one.mounts)
    if one.swap:
        yield "used as swap"
    for name in one.partitions:
        part = parts[name]
        yield f"partition {shown(name)}, {size_text(part.size_bytes)}"
        yield from (f"{_INDENT}{line}" for line in _content(part, {}))
    if one.above:
        yield f"used by {', '.join(map(shown, one.above))}"


def _stack(one: Device) -> Iterator[str]:
    if one.backing_file:
        yield f"the file {shown(one.backing_file)}"
    if one.below:
        yield f"directly {', '.join(map(shown, one.below))}"
        yield f"disks {', '.join(map(shown, one.disks))}"


def _scheduler(one: Device) -> Iterator[str]:
    if one.schedulers is None:
        yield "it has none"
        return
    yield f"active: {one.schedulers.active}"
    yield f"available: {', '.join(one.schedulers.available)}"
    if one.loadable:
        modules = (f"{shown(name)} (module {shown(m)})" for name, m in one.loadable.items())
        yield f"can be loaded: {', '.join(modules)}"
    if one.decision:
        yield f"decided by: {one.decision.text}"
        if one.decision.default:
            yield f"the kernel's default: {one.decision.default}"
        if one.decision.influences:
            yield "set by (the last one wins):"
            yield from (f"{_INDENT}{influence_text(each)}" for each in one.decision.influences)


def _cgroups(one: Device) -> Iterator[str]:
    for setting in one.cgroups:
        scope = " (all devices)" if setting.number == "default" else ""
        yield f"{shown(setting.cgroup)} {setting.file}: {shown(setting.value)}{scope}"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield f"\n{title}"
        for line in found:
            indent = _INDENT + line[: len(line) - len(line.lstrip())]
            yield textwrap.fill(line.strip(), _WIDTH, initial_indent=indent,
                                subsequent_indent=f"{indent}    ",
                                break_on_hyphens=False, break_long_words=False)  # fmt: skip


def _columns(words: Sequence[str]) -> list[str]:
    """Prints them side by side, as many as fit."""
    width = max(map(len, words), default=0) + 2
    count = max(1, (_WIDTH - len(_INDENT)) // width)
    rows = -(-len(words) // count)
    return ["".join(f"{word:{width}}" for word in words[row::rows]).rstrip() for row in range(rows)]
