"""The trace that ``blklab explain --perfetto`` writes, read back by its published schema."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as Packets
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

from blklab.timelines import trace
from tests.test_explain import DECIDING, timeline


def slices(packets: Packets) -> dict[int, list[tuple[str, int, int]]]:
    """For each track, name, begin and end of its slices, which must nest."""
    ordered = sorted(
        (p for p in packets.packet if p.HasField("track_event")), key=lambda p: p.timestamp
    )
    open_: dict[int, list[tuple[str, int]]] = {}
    found: dict[int, list[tuple[str, int, int]]] = {}
    for packet in ordered:
        event = packet.track_event
        stack = open_.setdefault(event.track_uuid, [])
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            stack.append((event.name, packet.timestamp))
        elif event.type == TrackEvent.TYPE_SLICE_END:
            name, begin_ns = stack.pop()
            found.setdefault(event.track_uuid, []).append((name, begin_ns, packet.timestamp))
    assert not any(open_.values())
    return found


@pytest.mark.parametrize("scheduler", DECIDING)
def test_perfetto_reads_the_written_trace(scheduler: str) -> None:
    found = timeline(scheduler)
    packets = Packets.FromString(trace.perfetto(found))
    tracks = {
        p.track_descriptor.uuid: p.track_descriptor
        for p in packets.packet
        if p.HasField("track_descriptor")
    }
    processes = {u: t.process.process_name for u, t in tracks.items() if t.HasField("process")}
    assert list(processes.values()) == list(found.rows.values())
    assert all(p.trusted_packet_sequence_id for p in packets.packet)
    by_process: dict[str, list[tuple[str, int, int]]] = {}
    for track, inside in slices(packets).items():
        by_process.setdefault(processes[tracks[track].parent_uuid], []).extend(inside)
    for request in found.requests:
        name = f"#{request.number} {request.words}"
        way = (name, request.queued_ns, request.completed_ns)
        assert way in by_process[found.rows[request.row]]
    for span in found.spans:
        assert (span.kind, span.start_ns, span.end_ns) in by_process[found.rows[span.row]]
    instants = [
        (p.timestamp, p.track_event.name)
        for p in packets.packet
        if p.track_event.type == TrackEvent.TYPE_INSTANT
    ]
    assert instants == [(d.at_ns, d.words) for d in found.decisions]


def test_perfettos_counters_end_at_nothing() -> None:
    packets = Packets.FromString(trace.perfetto(timeline("mq-deadline")))
    counters: dict[int, list[int]] = {}
    for packet in packets.packet:
        if packet.track_event.type == TrackEvent.TYPE_COUNTER:
            counters.setdefault(packet.track_event.track_uuid, []).append(
                packet.track_event.counter_value
            )
    assert len(counters) == 2
    assert all(min(values) == values[-1] == 0 and max(values) > 0 for values in counters.values())


@pytest.mark.skipif(
    shutil.which("trace_processor_shell") is None, reason="Perfetto's trace_processor_shell"
)
def test_perfettos_own_reader_finds_no_fault(tmp_path: Path) -> None:
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    found = timeline("cfq")
    path = tmp_path / "run.pftrace"
    path.write_bytes(trace.perfetto(found))
    config = TraceProcessorConfig(bin_path=shutil.which("trace_processor_shell"))
    with TraceProcessor(trace=str(path), config=config) as reader:
        count = next(iter(reader.query("select count(*) as n from slice where depth = 0"))).n
        assert count >= len(found.requests)
        faults = reader.query("select name from stats where severity != 'info' and value > 0")
        assert [row.name for row in faults] == []
