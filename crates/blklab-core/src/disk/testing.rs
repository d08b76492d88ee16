//! Small disks for tests.

/// Half a GiB that turns 7,200 times a minute.
pub const HDD: &str = r#"
kind = "hdd"
name = "Test disk"
summary = "small disk for tests"
transport = "sata"
capacity_sectors = 1000000
link_mb_s = 300
rpm = 7200
heads = 3
zones = 5
outer_sectors_per_track = 500
inner_sectors_per_track = 300
seek_track_to_track_ms = 0.8
seek_average_ms = 6
seek_full_stroke_ms = 12
write_settle_ms = 0.5
head_switch_ms = 0.6
track_skew_ms = 0.8
cylinder_skew_ms = 1.0
cache_kib = 8192
cache_segments = 8
read_ahead_kib = 512
write_cache_kib = 2048
write_cache_extents = 64
read_overhead_us = 100
read_hit_us = 50
write_overhead_us = 50
"#;

/// 64 MiB of flash.
pub const SSD: &str = r#"
kind = "ssd"
name = "Test flash"
summary = "small flash disk for tests"
transport = "nvme"
capacity_sectors = 131072
link_mb_s = 3000
queue_depth = 256
channels = 2
dies_per_channel = 2
planes = 2
page_kib = 16
pages_per_block = 8
read_us = [50, 70]
program_us = [400, 900]
erase_ms = 2
channel_mb_s = 400
command_us = 1
read_latency_us = 8
write_latency_us = 5
write_buffer_kib = 1024
overprovision_percent = 16
flush_us = 200
"#;
