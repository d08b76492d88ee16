"""A drive's facts, as in the reference folder, written as a disk file of blklab.

Each fact becomes the key of the same meaning; nothing is fitted. Facts that a drive with one
command at a time does not show, such as the arbitration of the bus, have no key.
"""

from __future__ import annotations

import json
from typing import Any

SECTOR_BYTES = 512
_DATA_KEYS = ("command", "first_disconnect", "until_reconnect")
"""For ``early_write_disconnect_ms``: the time before the drive accepts a write's data."""
_SPARING = {
    "sectors_at_end_of_zone": "zone",
    "sectors_at_end_of_track": "track",
    "sectors_at_end_of_cylinder": "cylinders",
    "sectors_at_end_of_cylinder_range": "cylinders",
    "sectors_at_end_of_disk": "disk",
    "tracks_at_end_of_zone": "zone_tracks",
}
_READ_AHEAD = {
    "to_end_of_track": "track",
    "until_segment_full": "segment",
    "to_end_of_next_track_if_sequential": "next_track",
}
_ORDER = {"normal": "plain", "serpentine_per_zone": "serpentine_heads"}


def disk_file(facts: dict[str, Any]) -> str:
    """The TOML text of a disk with these facts."""
    keys = {
        **_whole(facts),
        **_mechanics(facts),
        **_layout(facts),
        **_cache(facts["cache"]),
        **_link(facts["bus"]),
        **_overheads(facts),
    }
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def _whole(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "hdd",
        "name": facts["name"],
        "summary": f"{facts['name']}, from DiskSim's facts",
        "transport": "sas",
        "capacity_sectors": facts["capacity_sectors"],
        "ncq": facts["queue_depth"] > 1,
    }


def _mechanics(facts: dict[str, Any]) -> dict[str, Any]:
    mechanics, seek = facts["mechanics"], facts["seek"]
    return {
        "rpm": mechanics["rpm"],
        "heads": mechanics["surfaces"],
        "seek_table": list(zip(seek["distance_cylinders"], seek["read_ms"], strict=True)),
        "seek_interpolation": "linear",
        "write_settle_ms": mechanics["write_settle_extra_ms"],
        "head_switch_ms": mechanics["head_switch_ms"],
        # The zones have their skews.
        "track_skew_ms": 0,
        "cylinder_skew_ms": 0,
    }


def _layout(facts: dict[str, Any]) -> dict[str, Any]:
    layout = facts["layout"]
    by_tracks = layout["sparing"] == "tracks_at_end_of_zone"
    keys: dict[str, Any] = {
        "mapping": _ORDER[layout["lba_order"]],
        "sparing": _SPARING[layout["sparing"]],
        "sparing_cylinders": layout.get("sparing_range_cylinders", 1),
        "zone_layout": [
            [
                zone["first_cylinder"],
                zone["sectors_per_track"],
                zone["first_lba"],
                zone["track_skew_sectors"],
                zone["cylinder_skew_sectors"],
                zone["first_sector_offset_sectors"],
                zone.get("reserved_sectors", 0),
                zone.get("spare_tracks" if by_tracks else "spare_sectors", 0),
            ]
            for zone in layout["zone"]
        ],
    }
    slipped = [
        [index, place]
        for index, zone in enumerate(layout["zone"])
        for place in zone.get("slipped", ())
    ]
    return keys | ({"slipped": slipped} if slipped else {})


def _cache(cache: dict[str, Any]) -> dict[str, Any]:
    reads = cache["segments"] - (
        cache["write_segments_max"] if cache["write_segment_dedicated"] else 0
    )
    kib = max(64, -(-reads * cache["segment_sectors"] * SECTOR_BYTES // 1024))
    return {
        "cache_kib": kib,
        "cache_segments": reads,
        "cache_segment_sectors": cache["segment_sectors"],
        "read_ahead_kib": 0,
        "read_ahead_sectors": min(cache["read_ahead_max_sectors"], cache["segment_sectors"]),
        "read_ahead_to": _READ_AHEAD[cache["read_ahead"]],
        "read_ahead_keeps": cache["read_ahead_keeps"] == "keeps_requested_data",
        "zero_latency_read": cache["zero_latency_read"],
        "zero_latency_write": cache["zero_latency_write"],
        "read_keeps_passed": cache["keeps_sectors_passed_before_request"],
        "read_ahead_after_hit": cache["read_ahead_after_full_hit"],
        "read_ahead_ends_sector": not cache["read_ahead_stops_inside_sector"],
        # A segment holds either read or written data.
        "write_drops_read": True,
        "write_cache": cache["write_cache"],
        "write_cache_kib": max(4, cache["segment_sectors"] * SECTOR_BYTES // 1024),
        "write_cache_extents": cache["write_segments_max"],
        "write_cache_keeps": cache["write_cache"] and cache["reads_hit_written_data"],
        # Written data go to the medium at once.
        "destage_percent": 0,
        "destage_idle_ms": 0,
    }


def _link(bus: dict[str, Any]) -> dict[str, Any]:
    return {
        "link_mb_s": SECTOR_BYTES / (bus["read_ms_per_sector"] * 1e3),
        "link_write_mb_s": SECTOR_BYTES / (bus["write_ms_per_sector"] * 1e3),
        "link_held": bus["held_for_whole_read"],
    }


def _overheads(facts: dict[str, Any]) -> dict[str, Any]:
    overhead, cache = facts["overhead_ms"], facts["cache"]
    data_ms = overhead.get("data_preparation", 0)
    write = "write_hit" if cache["write_cache"] else "write_miss"
    keys = {
        "read_hit_us": overhead["read_hit_after_read"] + data_ms,
        "read_hit_after_write_us": overhead["read_hit_after_write"] + data_ms,
        "read_overhead_us": overhead["read_miss_after_read"],
        "read_overhead_after_write_us": overhead["read_miss_after_write"],
        "write_overhead_us": overhead[f"{write}_after_read"],
        "write_overhead_after_write_us": overhead[f"{write}_after_write"],
        "read_reselect_us": overhead.get("first_reselect", 0),
        "read_end_us": overhead.get("read_completion", 0),
        "write_end_us": overhead.get("write_completion", 0),
    }
    settings = {"read_reselect_percent": 100 * cache["read_reconnect_above_share"]}
    if not cache["write_cache"]:
        # The arm moves while the data come; the drive leaves the bus after them.
        keys["write_data_us"] = keys["write_overhead_us"]
        keys["write_reselect_us"] = overhead.get("other_reselect", 0)
    if early := facts.get("early_write_disconnect_ms"):
        before_seek = early["command"] + early["before_seek"]
        keys["write_overhead_us"] = keys["write_overhead_after_write_us"] = before_seek
        until_data = sum(early[key] for key in _DATA_KEYS)
        keys["write_data_us"] = until_data + overhead["first_reselect"] + data_ms
        settings["write_seek_min_ms"] = early["seek_at_least"]
    return {key: round(1e3 * ms, 6) for key, ms in keys.items()} | settings
