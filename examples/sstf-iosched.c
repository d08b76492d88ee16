// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sstf: shortest seek first, but no request waits for ever.
 *
 * The arm of a disk goes to the request that is nearest to where the last one ended. Seeks
 * are then short, and distant requests would starve; so a request that has waited for
 * max_wait milliseconds goes first, wherever it is. After the SSTF of the textbooks (Denning,
 * "Effects of scheduling on file memory operations", AFIPS 1967), with that one addition.
 *
 * All requests wait in two orders at once: sorted by sector in a tree, and by arrival in a
 * list. The nearest is one of two neighbours in the tree; the oldest is the list's first.
 * Bios grow into waiting requests at both ends. Two requests that have become neighbours
 * stay two, and reads are not preferred to writes.
 *
 * Written for the elevator interface of Linux 7.3. Build and try it:
 *
 *   blklab kernel build --add examples/sstf-iosched.c --name sstf
 *   blklab fio randread-qd32 --rig kernel --kernel sstf --disk wd10ezrx --scheduler sstf
 */
#include <linux/blkdev.h>
#include <linux/module.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <trace/events/block.h>

#include "elevator.h"
#include "blk.h"
#include "blk-mq.h"
#include "blk-mq-sched.h"

#define SSTF_MAX_WAIT_MS 500

struct sstf_data {
	/* Of everything below. Held for a few steps in a tree, never while anything sleeps. */
	spinlock_t lock;
	struct rb_root by_sector;
	struct list_head by_arrival;
	/* Came back from the driver: goes first, the latest before the others. */
	struct list_head put_back;
	/* Where the last request ended. */
	sector_t position;
	unsigned int max_wait_ms;
};

static sector_t sstf_distance(const struct sstf_data *sstf, struct request *rq)
{
	sector_t sector = blk_rq_pos(rq);

	return sector > sstf->position ? sector - sstf->position : sstf->position - sector;
}

/* The nearest request. The tree must not be empty. */
static struct request *sstf_nearest(const struct sstf_data *sstf)
{
	struct rb_node *node = sstf->by_sector.rb_node;
	struct request *best = rb_entry_rq(node);

	/* On the way down to the position one passes its neighbours on both sides. */
	while (node) {
		struct request *rq = rb_entry_rq(node);

		if (sstf_distance(sstf, rq) < sstf_distance(sstf, best))
			best = rq;
		node = blk_rq_pos(rq) > sstf->position ? node->rb_left : node->rb_right;
	}
	return best;
}

/* The one to go next, still in its place; NULL if none waits. */
static struct request *sstf_next(struct sstf_data *sstf)
{
	struct request *oldest =
		list_first_entry_or_null(&sstf->by_arrival, struct request, queuelist);

	/* fifo_time is when the request came: max_wait may change while it waits. */
	if (!oldest || time_after_eq(jiffies, (unsigned long)oldest->fifo_time +
						      msecs_to_jiffies(sstf->max_wait_ms)))
		return oldest;
	return sstf_nearest(sstf);
}

static struct request *sstf_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct request_queue *q = hctx->queue;
	struct sstf_data *sstf = q->elevator->elevator_data;
	struct request *rq;

	spin_lock(&sstf->lock);
	rq = list_first_entry_or_null(&sstf->put_back, struct request, queuelist);
	if (!rq) {
		rq = sstf_next(sstf);
		if (rq) {
			elv_rb_del(&sstf->by_sector, rq);
			elv_rqhash_del(q, rq);
			if (q->last_merge == rq)
				q->last_merge = NULL;
		}
	}
	if (rq) {
		list_del_init(&rq->queuelist);
		sstf->position = blk_rq_pos(rq) + blk_rq_sectors(rq);
	}
	spin_unlock(&sstf->lock);
	return rq;
}

static void sstf_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
				 blk_insert_t flags)
{
	struct request_queue *q = hctx->queue;
	struct sstf_data *sstf = q->elevator->elevator_data;
	struct request *rq, *following;

	spin_lock(&sstf->lock);
	list_for_each_entry_safe(rq, following, list, queuelist) {
		trace_block_rq_insert(rq);
		if (flags & BLK_MQ_INSERT_AT_HEAD) {
			list_move(&rq->queuelist, &sstf->put_back);
			continue;
		}
		list_move_tail(&rq->queuelist, &sstf->by_arrival);
		rq->fifo_time = jiffies;
		elv_rb_add(&sstf->by_sector, rq);
		if (rq_mergeable(rq)) {
			/* By its end: found there by a bio that goes on where it stops. */
			elv_rqhash_add(q, rq);
			if (!q->last_merge)
				q->last_merge = rq;
		}
	}
	spin_unlock(&sstf->lock);
}

static bool sstf_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct sstf_data *sstf = hctx->queue->elevator->elevator_data;

	/* Asked without the lock. */
	return !list_empty_careful(&sstf->put_back) || !list_empty_careful(&sstf->by_arrival);
}

/* A request has ended. The kernel takes no scheduler without this; here is nothing to do. */
static void sstf_finish_request(struct request *rq)
{
}

/* A bio has come: does it go on where a waiting request ends, or end where one begins? */
static bool sstf_bio_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs)
{
	struct sstf_data *sstf = q->elevator->elevator_data;
	struct request *unneeded = NULL;
	bool merged;

	spin_lock(&sstf->lock);
	merged = blk_mq_sched_try_merge(q, bio, nr_segs, &unneeded);
	spin_unlock(&sstf->lock);
	/* Never: two requests do not become one without former_request and next_request. */
	WARN_ON_ONCE(unneeded);
	return merged;
}

/* Asked when the block layer has found no request that ends where the bio begins. */
static int sstf_request_merge(struct request_queue *q, struct request **found, struct bio *bio)
{
	struct sstf_data *sstf = q->elevator->elevator_data;
	struct request *rq = elv_rb_find(&sstf->by_sector, bio_end_sector(bio));

	if (!rq || blk_discard_mergable(rq) || !elv_bio_merge_ok(rq, bio))
		return ELEVATOR_NO_MERGE;
	*found = rq;
	return ELEVATOR_FRONT_MERGE;
}

static void sstf_request_merged(struct request_queue *q, struct request *rq, enum elv_merge type)
{
	struct sstf_data *sstf = q->elevator->elevator_data;

	/* Grown at the front it begins elsewhere. */
	if (type == ELEVATOR_FRONT_MERGE) {
		elv_rb_del(&sstf->by_sector, rq);
		elv_rb_add(&sstf->by_sector, rq);
	}
}

static int sstf_init_sched(struct request_queue *q, struct elevator_queue *eq)
{
	struct sstf_data *sstf = kzalloc_node(sizeof(*sstf), GFP_KERNEL, q->node);

	if (!sstf)
		return -ENOMEM;
	spin_lock_init(&sstf->lock);
	sstf->by_sector = RB_ROOT;
	INIT_LIST_HEAD(&sstf->by_arrival);
	INIT_LIST_HEAD(&sstf->put_back);
	sstf->max_wait_ms = SSTF_MAX_WAIT_MS;
	eq->elevator_data = sstf;
	q->elevator = eq;
	/* One queue for all CPUs and for all hardware queues. */
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	return 0;
}

static void sstf_exit_sched(struct elevator_queue *eq)
{
	struct sstf_data *sstf = eq->elevator_data;

	WARN_ON_ONCE(!list_empty(&sstf->by_arrival) || !list_empty(&sstf->put_back));
	kfree(sstf);
}

static ssize_t sstf_max_wait_show(struct elevator_queue *eq, char *page)
{
	struct sstf_data *sstf = eq->elevator_data;

	return sysfs_emit(page, "%u\n", sstf->max_wait_ms);
}

static ssize_t sstf_max_wait_store(struct elevator_queue *eq, const char *page, size_t count)
{
	struct sstf_data *sstf = eq->elevator_data;
	int error = kstrtouint(page, 0, &sstf->max_wait_ms);

	return error ?: count;
}

/* Files in /sys/block/DISK/queue/iosched. */
static const struct elv_fs_entry sstf_attrs[] = {
	__ATTR(max_wait, 0644, sstf_max_wait_show, sstf_max_wait_store),
	__ATTR_NULL
};

static struct elevator_type sstf = {
	.ops = {
		.init_sched		= sstf_init_sched,
		.exit_sched		= sstf_exit_sched,
		.insert_requests	= sstf_insert_requests,
		.dispatch_request	= sstf_dispatch_request,
		.finish_request		= sstf_finish_request,
		.has_work		= sstf_has_work,
		.bio_merge		= sstf_bio_merge,
		.request_merge		= sstf_request_merge,
		.request_merged		= sstf_request_merged,
	},
	.elevator_attrs = sstf_attrs,
	.elevator_name = "sstf",
	.elevator_owner = THIS_MODULE,
};

static int __init sstf_init(void)
{
	return elv_register(&sstf);
}
module_init(sstf_init);

static void __exit sstf_exit(void)
{
	elv_unregister(&sstf);
}
module_exit(sstf_exit);

MODULE_DESCRIPTION("shortest seek first, with a limit of waiting");
MODULE_LICENSE("GPL");
