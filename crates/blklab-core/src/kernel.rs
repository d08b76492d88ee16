//! What differs between the versions of Linux that can be simulated (`kernel` of the host).
//!
//! A version's differences stand here and nowhere else. Each is a field that names what the kernel
//! does, with the version that brought it and the function in which to read it. The code that models
//! the function looks at the field, never at a version. A new version is one more word in
//! [`VERSIONS`], and a field for each difference that it shows.
//!
//! Known versions are those that `blklab verify` has compared with that kernel, and 4.12, of which only merges
//! were measured. In between, versions are those of the change as far as they are known, else "after
//! 6.12".

/// The known versions, oldest first, and their numbers: 1000 times the first part plus the second.
pub const VERSIONS: &[(&str, i64)] = &[("4.12", 4012), ("6.12", 6012), ("7.3", 7003)];

/// The number of the newest one, which is the default.
pub const NEWEST: i64 = VERSIONS[VERSIONS.len() - 1].1;

/// What a version of Linux does where versions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// libata keeps a command that cannot be queued, such as a flush, until the disk has nothing else
    /// to do, and refuses all others meanwhile (`ata_scsi_qc_issue`). Before 7.0 it sent the command
    /// back, and again each time until then (`ata_std_qc_defer`).
    pub keeps_flush: bool,
    /// A bio that is submitted without a plug gets one for itself (`__submit_bio`), so that the clock is
    /// read less often. Its request is dispatched at once, not by the worker. Since 6.10, and no longer in 7.3.
    pub plugs_each_bio: bool,
    /// A run of a hardware queue leaves requests in the scheduler while the driver has refused others
    /// (`blk_mq_sched_dispatch_requests`). Before 4.14 a run that the disk took nothing of took one more
    /// request out of the scheduler.
    pub leaves_requests_in_scheduler: bool,
    /// A bio may merge with a request that waits in a software queue or in kyber
    /// (`__blk_mq_sched_bio_merge`). Before 4.13 only mq-deadline and bfq looked for one.
    pub software_queues_merge: bool,
    /// An I/O of at most a bio on a device has a plug unless the call waits for it (`__blkdev_direct_IO`).
    /// Since 5.15 it has none (`__blkdev_direct_IO_async`).
    pub plugs_queued_device_io: bool,
    /// A plug holds 32 requests in order of submission, and a bio may merge with the last of them. Before 5.0
    /// it held 16, sorted by sector (`blk_mq_flush_plug_list`), and all were searched.
    pub plugs_in_order: bool,
    /// A bio or request may merge with a request of another priority. Since 5.0 it must be the same
    /// (`blk_rq_merge_ok`, `attempt_merge`).
    pub merges_priorities: bool,
    /// A plug is flushed before the next request when its first one has 128 KiB (`blk_add_rq_to_plug` looks at the
    /// head of the list). Since 6.13, and in 6.12.117; before, the list began with the last one.
    pub plug_judged_by_first: bool,
    /// Pages that are neighbours in memory too are one piece of a bio (`bio_add_page`), so that a read-ahead window
    /// of any length is one bio while memory is not in pieces. Before 5.1 each page was a piece, of which a bio
    /// has 256.
    pub joins_pages_of_bio: bool,
    /// Under a scheduler the number of requests follows from the tags (`blk_mq_init_sched`). Before 4.14
    /// it was 256.
    pub requests_follow_tags: bool,
    /// bfq limits the requests of writes and asynchronous I/O (`bfq_limit_depth`): since 4.16.
    pub bfq_limits_requests: bool,
    /// mq-deadline knows classes of priority, and limits writes and asynchronous requests: since 5.14.
    pub deadline_has_classes: bool,
    /// Where a scheduler gives any hardware queue the requests of all, only that of the running CPU is run
    /// (`blk_mq_get_sq_hctx`). Before 5.13 all were.
    pub runs_queue_of_cpu: bool,
    /// kyber limits synchronous writes as well as asynchronous requests (`kyber_limit_depth` with
    /// `blk_mq_is_sync_read`). Before 7.0 it limited only the latter (`op_is_sync`).
    pub kyber_limits_sync_writes: bool,
    /// mq-deadline tells the tags its own least depth (`dd_depth_updated`), so that processes that wait
    /// are woken in batches of up to eight. Before 7.0 it told 1: one at a time.
    pub deadline_wakes_in_batches: bool,
    /// bfq's limits are parts of the queue's `async_depth` (`bfq_depth_updated`). Before 7.0 they were
    /// parts of `nr_requests` (`bfq_update_depths`).
    pub bfq_limits_follow_async_depth: bool,
    /// A device that has written little has at least an eighth of what is left below a limit of dirty
    /// pages, below the background threshold too (`__wb_calc_thresh`). In 6.12 only a writer's rate
    /// considered that (`wb_position_ratio`), and the flusher of such a device ran on.
    pub background_share_has_floor: bool,
    /// A direct read of a file in ext4 or XFS that fits one block has no plug (`iomap_dio_read_simple`). In
    /// 6.12 it had one, as all others have.
    pub reads_blocks_without_plug: bool,
    /// A read that reaches a page that is still being read copies the cached ones before it, and then waits
    /// (`filemap_get_pages`). In 6.12 it waits before it copies the latest batch.
    pub copies_before_it_waits: bool,
    /// The most KiB of a request, where neither user nor disk says otherwise (`BLK_DEF_MAX_SECTORS_CAP`).
    pub max_sectors_kib: u32,
    /// The read-ahead window of a rotational disk is twice its largest request (`blk_apply_bdi_limits`). In
    /// 6.12 it is 128 KiB, as that of all others.
    pub rotational_reads_ahead_two_requests: bool,
    /// A window that is read ahead in time ends at a multiple of the folios that it would be made of, which
    /// grow from window to window (`page_cache_async_ra`). In 6.12 it ends anywhere.
    pub aligns_read_ahead: bool,
    /// A window that reaches the end of the file has no mark (`do_page_cache_ra`). In 6.12 it had one.
    pub last_window_has_no_mark: bool,
}

impl Kernel {
    /// The default.
    pub const LATEST: Kernel = Kernel::of(NEWEST);

    /// The version with that number of [`VERSIONS`].
    pub const fn of(number: i64) -> Kernel {
        Kernel {
            keeps_flush: number >= since(7, 0),
            plugs_each_bio: number >= since(6, 10) && number < since(7, 3),
            leaves_requests_in_scheduler: number >= since(4, 14),
            software_queues_merge: number >= since(4, 13),
            plugs_queued_device_io: number < since(5, 15),
            plugs_in_order: number >= since(5, 0),
            merges_priorities: number < since(5, 0),
            plug_judged_by_first: number >= since(6, 12),
            joins_pages_of_bio: number >= since(5, 1),
            requests_follow_tags: number >= since(4, 14),
            bfq_limits_requests: number >= since(4, 16),
            deadline_has_classes: number >= since(5, 14),
            runs_queue_of_cpu: number >= since(5, 13),
            kyber_limits_sync_writes: number >= since(7, 0),
            deadline_wakes_in_batches: number >= since(7, 0),
            bfq_limits_follow_async_depth: number >= since(7, 0),
            background_share_has_floor: number > since(6, 12),
            reads_blocks_without_plug: number > since(6, 12),
            copies_before_it_waits: number > since(6, 12),
            max_sectors_kib: if number >= since(6, 17) { 4096 } else { 1280 },
            rotational_reads_ahead_two_requests: number > since(6, 12),
            aligns_read_ahead: number > since(6, 12),
            last_window_has_no_mark: number > since(6, 12),
        }
    }
}

const fn since(major: i64, minor: i64) -> i64 {
    1000 * major + minor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_from_the_words_and_rise() {
        for (word, number) in VERSIONS {
            let (major, minor) = word.split_once('.').expect("two parts");
            assert_eq!(*number, since(major.parse().expect(word), minor.parse().expect(word)));
        }
        assert!(VERSIONS.is_sorted_by_key(|(_, number)| number));
    }
}
