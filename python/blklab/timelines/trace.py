"""A timeline for the Perfetto UI: TracePackets after its published schema.

A process of the run is a process there, with a track for its turns, one for each other kind of
span, one for decisions, and as many for requests as were in flight at once, because slices of one
track must be nested or disjoint. A request is a slice of three parts; a recorded I/O is one of
such parts, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent
from perfetto.trace_builder.proto_builder import TraceProtoBuilder

from blklab.timelines.timeline import Request, Timeline

_SEQUENCE = 1
_QUEUED, _AT_DISK = "requests waiting in the scheduler", "requests at the disk"


def perfetto(timeline: Timeline) -> bytes:
    """The trace, times in ns of the run."""
    return _Trace(timeline).bytes()


class _Trace:
    def __init__(self, timeline: Timeline) -> None:
        self._builder = TraceProtoBuilder()
        self._uuids = 0
        self._tracks: dict[tuple[int, str], int] = {}
        self._processes: dict[int, int] = {}
        first = self._packet(timeline.from_ns)
        first.sequence_flags = first.SEQ_INCREMENTAL_STATE_CLEARED
        for pid, (row, name) in enumerate(timeline.rows.items(), 1):
            self._processes[row] = self._process(name, pid)
        for span in timeline.spans:
            track = self._track(span.row, f"{span.of} {span.kind}".strip())
            told = {"began": span.began, "ended": span.ended}
            self._slice(track, span.kind, span.start_ns, span.end_ns, told)
        for decision in timeline.decisions:
            self._instant(self._track(decision.row, "decisions"), decision.words, decision.at_ns)
        for request in timeline.requests:
            lane = timeline.lanes[request.number]
            self._request(self._track(request.row, f"requests {lane + 1}"), request)
        self._counters(timeline)

    def bytes(self) -> bytes:
        data: bytes = self._builder.serialize()
        return data

    def _packet(self, at_ns: int | None = None) -> TracePacket:
        packet = self._builder.add_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        if at_ns is not None:
            packet.timestamp = at_ns
        return packet

    def _uuid(self) -> int:
        self._uuids += 1
        return self._uuids

    def _process(self, name: str, pid: int) -> int:
        descriptor = self._packet().track_descriptor
        descriptor.uuid = self._uuid()
        descriptor.process.pid = pid
        descriptor.process.process_name = name
        return int(descriptor.uuid)

    def _track(self, row: int, name: str) -> int:
        key = (row, name)
        if key not in self._tracks:
            descriptor = self._packet().track_descriptor
            descriptor.uuid = self._tracks[key] = self._uuid()
            descriptor.parent_uuid = self._processes[row]
            descriptor.name = name
        return self._tracks[key]

    def _event(self, at_ns: int, kind: TrackEvent.Type.ValueType, track: int) -> TrackEvent:
        event = self._packet(at_ns).track_event
        event.type = kind
        event.track_uuid = track
        return event

    def _slice(
        self, track: int, name: str, start_ns: int, end_ns: int, told: Mapping[str, str | int]
    ) -> None:
        begin = self._event(start_ns, TrackEvent.TYPE_SLICE_BEGIN, track)
        begin.name = name
        for key, value in told.items():
            _annotate(begin, key, value)
        self._event(end_ns, TrackEvent.TYPE_SLICE_END, track)

    def _instant(self, track: int, name: str, at_ns: int) -> None:
        self._event(at_ns, TrackEvent.TYPE_INSTANT, track).name = name

    def _request(self, track: int, request: Request) -> None:
        begin = self._event(request.queued_ns, TrackEvent.TYPE_SLICE_BEGIN, track)
        begin.name = f"#{request.number} {request.words}"
        _annotate(begin, "sector", request.sector)
        _annotate(begin, "sectors", request.sectors)
        for name, start_ns, end_ns in _parts(request):
            self._slice(track, name, start_ns, end_ns, {})
        self._event(request.completed_ns, TrackEvent.TYPE_SLICE_END, track)

    def _counters(self, timeline: Timeline) -> None:
        """The number of shown requests that wait, and that the disk has."""
        changes: dict[str, dict[int, int]] = {}
        for device in dict.fromkeys(["", *(request.device for request in timeline.requests)]):
            of = f" {device}" if device else ""
            changes[_QUEUED + of] = defaultdict(int)
            changes[_AT_DISK + of] = defaultdict(int)
        for request in timeline.requests:
            of = f" {request.device}" if request.device else ""
            changes[_QUEUED + of][request.queued_ns] += 1
            changes[_QUEUED + of][request.issued_ns] -= 1
            changes[_AT_DISK + of][request.issued_ns] += 1
            changes[_AT_DISK + of][request.completed_ns] -= 1
        for name, steps in changes.items():
            if not steps and timeline.requests:
                continue
            descriptor = self._packet().track_descriptor
            descriptor.uuid = self._uuid()
            descriptor.name = name
            descriptor.counter.SetInParent()
            count = 0
            for at_ns, change in sorted(steps.items()):
                count += change
                event = self._event(at_ns, TrackEvent.TYPE_COUNTER, descriptor.uuid)
                event.counter_value = count


def _parts(request: Request) -> Iterator[tuple[str, int, int]]:
    """Stages without duration are left out."""
    began_ns = request.issued_ns if request.began_ns is None else request.began_ns
    inserted_ns = request.issued_ns if request.inserted_ns is None else request.inserted_ns
    served = "at the disk" if request.began_ns is None else "on disk"
    parts = (
        ("queued", request.queued_ns, inserted_ns),
        ("in the scheduler", inserted_ns, request.issued_ns),
        ("dispatched", request.issued_ns, began_ns),
        (served, began_ns, request.completed_ns),
    )
    return (part for part in parts if part[2] > part[1])


def _annotate(event: TrackEvent, key: str, value: str | int) -> None:
    if value == "":
        return
    annotation = event.debug_annotations.add()
    annotation.name = key
    if isinstance(value, int):
        annotation.int_value = value
    else:
        annotation.string_value = value
