"""The I/Os of a recording as a timeline, whose form for Perfetto is that of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blklab.timelines.served import process_text
from blklab.timelines.timeline import Request, Timeline, lanes, printable

if TYPE_CHECKING:
    from blklab._core import TraceIos


def build(
    ios: TraceIos, *, name: str, scheduler: str, from_ns: int, until_ns: int, span_ns: int
) -> Timeline:
    """A row for each process, and for each device of it if there are several.

    Steps that were not recorded take no time: an I/O without an issue is at the disk from its
    insert on, or from its queueing.

    Args:
        ios: the I/Os, by queue time.
        name: the trace's.
        scheduler: under which it was recorded; empty if that is not known.
        from_ns: the window's begin,
        until_ns: and its end.
        span_ns: the length of the trace.
    """
    several = len(set(ios.device)) > 1
    rows: dict[tuple[int, int], int] = {}
    requests = []
    for place, (process, device) in enumerate(zip(ios.process, ios.device, strict=True)):
        queued_ns, inserted_ns = ios.queued_ns[place], ios.inserted_ns[place]
        issued_ns = ios.issued_ns[place]
        if issued_ns is None:
            issued_ns = queued_ns if inserted_ns is None else inserted_ns
        requests.append(
            Request(
                ios.number[place],
                rows.setdefault((process, device if several else 0), len(rows)),
                ios.op[place],
                ios.sector[place],
                ios.sectors[place],
                queued_ns,
                issued_ns,
                None,
                ios.completed_ns[place],
                inserted_ns,
                printable(ios.devices[device]) if several else "",
            )
        )
    last_ns = max((request.completed_ns for request in requests), default=from_ns)
    return Timeline(
        load=printable(name),
        disk="",
        scheduler=printable(scheduler),
        rig="recorded",
        run_ns=span_ns,
        from_ns=from_ns,
        until_ns=min(until_ns, last_ns),
        rows={
            row: _process(ios, process)
            + (f" on {printable(ios.devices[device])}" if several else "")
            for (process, device), row in rows.items()
        },
        requests=requests,
        decisions=(),
        requests_left_out=ios.count - len(requests),
        decides=False,
        lanes=lanes(requests),
    )


def _process(ios: TraceIos, process: int) -> str:
    pid, name = ios.processes[process]
    return process_text(printable(name), pid)
