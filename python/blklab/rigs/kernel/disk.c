// SPDX-License-Identifier: GPL-2.0
/*
 * A disk whose commands a process answers: blklab's disk models before the kernel's own transports.
 *
 * A process opens /dev/blklab-disk, says what the disk is (BLKLAB_CREATE) and makes it appear
 * (BLKLAB_START), while one of its threads exchanges commands (BLKLAB_EXCHANGE): one call hands
 * back what the disk has done and returns with the commands that have arrived, each with its time,
 * or at a given time of CLOCK_MONOTONIC. The data go with the call.
 *
 * SATA and SAS disks are a SCSI host with one disk, so that the command goes through the SCSI
 * layer and sd. A SATA disk's host has what libata and ahci have: 32 tags, taken in rounds, and a
 * command that cannot be queued (FLUSH; any, without NCQ) goes alone. A SAS disk's has the tags of
 * an HBA. An NVMe disk is a multi-queue block device without a budget, as nvme's are, with the
 * disk's own queues as far as there are CPUs for them (cpus.patch).
 *
 * A command that the kernel gives up after its time-out cannot be taken back from a model. Error
 * handling waits until the disk has done it, and then goes on as after an abort (SAS) or a reset
 * (SATA); an NVMe disk gets more time, as with an abort that the controller does not answer.
 */

#include <linux/blk-mq.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <scsi/scsi.h>
#include <scsi/scsi_cmnd.h>
#include <scsi/scsi_device.h>
#include <scsi/scsi_host.h>

#if __has_include(<linux/blklab_cpus.h>)
#include <linux/blklab_cpus.h>
#endif

#include "blklab_worker.h"

/* What the process and the driver tell each other. */

enum { BLKLAB_NVME, BLKLAB_SATA, BLKLAB_SAS };
enum { BLKLAB_READ, BLKLAB_WRITE, BLKLAB_FLUSH, BLKLAB_DISCARD };

#define BLKLAB_ROTATIONAL	(1u << 0)
#define BLKLAB_WRITE_CACHE	(1u << 1)
#define BLKLAB_FUA		(1u << 2)
#define BLKLAB_DISCARDS		(1u << 3)
/* Reads give zeros and what is written is forgotten: no data go with the calls. */
#define BLKLAB_NO_DATA		(1u << 4)
#define BLKLAB_FLAGS		0x1fu

struct blklab_disk {
	__u32 kind;
	__u32 flags;
	__u64 sectors;
	/* Per hardware queue. */
	__u32 depth;
	__u32 hw_queues;
	__u32 max_sectors;
	__u32 logical_bytes;
	__u32 physical_bytes;
	__u32 discard_sectors;
	char name[40];
	/* Told by BLKLAB_START: as it came to be. */
	__u32 real_depth;
	__u32 real_hw_queues;
	char path[32];
};

struct blklab_done {
	__u32 tag;
	__s32 error;
	/* Where the data lie that a read returns. */
	__u64 data;
};

struct blklab_command {
	__u64 arrived_ns;
	__u64 sector;
	__u32 sectors;
	__u32 tag;
	__u32 op;
	__u32 fua;
	/* Where in the call's room for data that what is written begins. */
	__u64 data;
};

struct blklab_exchange {
	__u64 done;
	__u64 commands;
	__u64 data;
	__u64 data_bytes;
	/* Of CLOCK_MONOTONIC; all ones: no time. */
	__u64 until_ns;
	__u32 done_count;
	/* Room for so many; told: so many came. */
	__u32 command_count;
	/* Told. */
	__u64 now_ns;
	__u32 ended;
	__u32 pad;
};

#define BLKLAB_CREATE	_IOW('B', 1, struct blklab_disk)
#define BLKLAB_START	_IOR('B', 2, struct blklab_disk)
#define BLKLAB_STOP	_IO('B', 3)
#define BLKLAB_EXCHANGE	_IOWR('B', 4, struct blklab_exchange)

#define SECTORS_MAX	65536u
#define DEPTH_MAX	10240u
#define QUEUES_MAX	1024u
#define AHCI_TAGS	32
/* estimate: of the HBAs with fewest; from 128 on nr_requests is the same. */
#define HBA_TAGS	1008

enum state { IDLE, ARRIVED, AT_DISK };

/* Follows a request, or a SCSI command, in its private data. */
struct command {
	struct list_head list;
	u64 arrived_ns, sector;
	u32 sectors, op, tag;
	bool fua, alone;
	enum state state;
	/* Error handling waits for its end. */
	struct completion *given_up;
};

struct disk {
	struct blklab_disk is;
	struct kref users;
	struct mutex lock, exchanging;
	bool created, started, ended;

	spinlock_t queue_lock;
	struct list_head arrived;
	/* By tag of the disk: hardware queue times depth, plus the queue's own tag. */
	struct command **at_disk;
	u32 tags;
	/* As handed back by the call that is under way. */
	struct blklab_done *done;
	/* SATA: commands that the disk has, one of which goes alone; and one that is to. */
	u32 in_flight;
	bool alone;
	struct command *deferred;
	wait_queue_head_t wait;

	struct Scsi_Host *host;
	struct gendisk *gendisk;
	struct blk_mq_tag_set tag_set;
};

static struct request *request_of(struct disk *d, struct command *c)
{
	if (d->is.kind == BLKLAB_NVME)
		return blk_mq_rq_from_pdu(c);
	return scsi_cmd_to_rq((struct scsi_cmnd *)c - 1);
}

static struct scsi_cmnd *scsi_of(struct command *c)
{
	return (struct scsi_cmnd *)c - 1;
}

static struct command *command_of(struct scsi_cmnd *cmd)
{
	return scsi_cmd_priv(cmd);
}

/* In user-mode Linux with virtual time, reading the clock takes time unless interrupts are off. */
static u64 now_ns(void)
{
	unsigned long flags;
	u64 now;

	local_irq_save(flags);
	now = ktime_get_ns();
	local_irq_restore(flags);
	return now;
}

static void free_disk(struct kref *users)
{
	struct disk *d = container_of(users, struct disk, users);

	kvfree(d->at_disk);
	kvfree(d->done);
	kfree(d);
}

/* The command comes before the disk; with the lock. */
static void arrive(struct disk *d, struct command *c)
{
	c->state = ARRIVED;
	c->arrived_ns = now_ns();
	d->in_flight++;
	d->alone = c->alone;
	list_add_tail(&c->list, &d->arrived);
	wake_up(&d->wait);
}

/*
 * As libata does (ata_std_qc_defer(), ata_scsi_qc_issue()): what cannot be queued goes alone, and
 * while it waits for that nothing else goes. Before Linux 7 it was sent back again and again.
 */
static bool take_turn(struct disk *d, struct command *c)
{
	bool now = c->alone ? !d->in_flight : !d->alone;

	if (d->deferred)
		return false;
	if (now) {
		arrive(d, c);
		return true;
	}
	if (!c->alone || LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0))
		return false;
	d->deferred = c;
	return true;
}

static void no_longer_at_disk(struct disk *d, struct command *c)
{
	struct command *next = d->deferred;

	c->state = IDLE;
	if (c->tag < d->tags)
		d->at_disk[c->tag] = NULL;
	d->in_flight--;
	if (!d->in_flight)
		d->alone = false;
	if (next && !d->in_flight) {
		d->deferred = NULL;
		arrive(d, next);
	}
}

/* The command that the disk has under this tag. */
static struct command *at_disk(struct disk *d, u32 tag)
{
	struct command *c;

	spin_lock_irq(&d->queue_lock);
	c = tag < d->tags ? d->at_disk[tag] : NULL;
	spin_unlock_irq(&d->queue_lock);
	return c;
}

/* What a read returns. */
static int fetch(struct disk *d, const struct blklab_done *done)
{
	const char __user *from = u64_to_user_ptr(done->data);
	struct command *c = at_disk(d, done->tag);
	unsigned long left = 0;
	struct req_iterator at;
	struct bio_vec part;

	if (!c)
		return -EINVAL;
	if (c->op != BLKLAB_READ || done->error)
		return 0;
	rq_for_each_segment(part, request_of(d, c), at) {
		char *to = bvec_kmap_local(&part);

		if (d->is.flags & BLKLAB_NO_DATA)
			memset(to, 0, part.bv_len);
		else
			left = copy_from_user(to, from, part.bv_len);
		kunmap_local(to);
		if (left)
			return -EFAULT;
		from += part.bv_len;
	}
	return 0;
}

/* The error that a disk would report. */
static void scsi_fails(struct scsi_cmnd *cmd, u32 op, int error)
{
	if (error == -ENOSPC)
		scsi_build_sense(cmd, 0, DATA_PROTECT, 0x27, 0x07);
	else
		scsi_build_sense(cmd, 0, MEDIUM_ERROR, op == BLKLAB_READ ? 0x11 : 0x0c, 0x00);
}

static void finish(struct disk *d, const struct blklab_done *done)
{
	struct command *c = at_disk(d, done->tag);
	struct completion *given_up;

	/* It was handed back twice. */
	if (!c)
		return;
	if (d->is.kind != BLKLAB_NVME && done->error)
		scsi_fails(scsi_of(c), c->op, done->error);
	spin_lock_irq(&d->queue_lock);
	given_up = c->given_up;
	c->given_up = NULL;
	no_longer_at_disk(d, c);
	spin_unlock_irq(&d->queue_lock);
	if (d->is.kind == BLKLAB_NVME) {
		blklab_end_on(request_of(d, c));
		blk_mq_end_request(request_of(d, c), errno_to_blk_status(done->error));
		blklab_has_ended();
	} else if (given_up)
		complete(given_up);
	else
		scsi_done(scsi_of(c));
}

/* All of them as one interrupt: what their ends start, starts after all of them. */
static int take_back(struct disk *d, const struct blklab_exchange *x)
{
	u32 i;
	int error;

	if (x->done_count > d->tags)
		return -EINVAL;
	if (copy_from_user(d->done, u64_to_user_ptr(x->done), x->done_count * sizeof(*d->done)))
		return -EFAULT;
	for (i = 0; i < x->done_count; i++) {
		error = fetch(d, &d->done[i]);
		if (error)
			return error;
	}
	local_bh_disable();
	for (i = 0; i < x->done_count; i++)
		finish(d, &d->done[i]);
	local_bh_enable();
	/*
	 * In virtual time without CPU time nothing else takes time: a request would end and its
	 * process's next one come at one instant, which bfq takes for a negative think time.
	 */
	if (x->done_count)
		ndelay(BLKLAB_INTERRUPT_NS);
	return 0;
}

/* The first command that has arrived, which is the process's now. */
static struct command *next_arrived(struct disk *d, u64 room)
{
	struct command *c;

	spin_lock_irq(&d->queue_lock);
	c = list_first_entry_or_null(&d->arrived, struct command, list);
	if (c && c->op == BLKLAB_WRITE && !(d->is.flags & BLKLAB_NO_DATA) &&
	    (u64)c->sectors << SECTOR_SHIFT > room)
		c = NULL;
	if (c) {
		list_del_init(&c->list);
		c->state = AT_DISK;
		d->at_disk[c->tag] = c;
	}
	spin_unlock_irq(&d->queue_lock);
	return c;
}

static int hand_over(struct disk *d, struct command *c, struct blklab_command __user *to,
		     const struct blklab_exchange *x, u64 *used)
{
	struct blklab_command told = {
		.arrived_ns = c->arrived_ns, .sector = c->sector, .sectors = c->sectors,
		.tag = c->tag, .op = c->op, .fua = c->fua, .data = *used,
	};

	if (c->op == BLKLAB_WRITE && !(d->is.flags & BLKLAB_NO_DATA)) {
		char __user *data = u64_to_user_ptr(x->data + *used);
		struct req_iterator at;
		struct bio_vec part;

		rq_for_each_segment(part, request_of(d, c), at) {
			char *from = bvec_kmap_local(&part);
			unsigned long left = copy_to_user(data, from, part.bv_len);

			kunmap_local(from);
			if (left)
				return -EFAULT;
			data += part.bv_len;
		}
		*used += (u64)c->sectors << SECTOR_SHIFT;
	}
	return copy_to_user(to, &told, sizeof(told)) ? -EFAULT : 0;
}

/* Until a command has arrived, the disk is gone, or it is `until_ns`. */
static int wait_for_command(struct disk *d, u64 until_ns)
{
	ktime_t until = ns_to_ktime(until_ns);
	DEFINE_WAIT(wait);
	int error = 0;

	for (;;) {
		prepare_to_wait(&d->wait, &wait, TASK_INTERRUPTIBLE);
		if (!list_empty_careful(&d->arrived) || READ_ONCE(d->ended) || now_ns() >= until_ns)
			break;
		if (signal_pending(current)) {
			error = -EINTR;
			break;
		}
		schedule_hrtimeout_range(until_ns == ~0ull ? NULL : &until, 0, HRTIMER_MODE_ABS);
	}
	finish_wait(&d->wait, &wait);
	return error;
}

static long exchange(struct disk *d, struct blklab_exchange __user *arg)
{
	struct blklab_command __user *commands;
	struct blklab_exchange x;
	struct command *c;
	u64 used = 0;
	u32 count;
	int error;

	if (copy_from_user(&x, arg, sizeof(x)))
		return -EFAULT;
	error = take_back(d, &x);
	if (!error)
		error = wait_for_command(d, x.until_ns);
	if (error)
		return error;
	x.now_ns = now_ns();
	commands = u64_to_user_ptr(x.commands);
	for (count = 0; count < x.command_count; count++) {
		c = next_arrived(d, x.data_bytes - used);
		if (!c)
			break;
		error = hand_over(d, c, &commands[count], &x, &used);
		if (error)
			return error;
	}
	x.command_count = count;
	x.ended = READ_ONCE(d->ended);
	return copy_to_user(arg, &x, sizeof(x)) ? -EFAULT : 0;
}

/* SCSI: what a disk answers by itself. */

static void put_text(u8 *to, const char *text, size_t bytes)
{
	size_t length = strnlen(text, bytes);

	memset(to, ' ', bytes);
	memcpy(to, text, length);
}

static void answer(struct scsi_cmnd *cmd, const void *from, unsigned int bytes)
{
	unsigned int wanted = min(bytes, scsi_bufflen(cmd));

	sg_copy_from_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), from, wanted);
	scsi_set_resid(cmd, scsi_bufflen(cmd) - wanted);
	cmd->result = SAM_STAT_GOOD;
}

static void refuse(struct scsi_cmnd *cmd, u8 why)
{
	scsi_build_sense(cmd, 0, ILLEGAL_REQUEST, why, 0);
}

#define INVALID_OPCODE	0x20
#define OUT_OF_RANGE	0x21
#define INVALID_FIELD	0x24

static void inquire(struct disk *d, struct scsi_cmnd *cmd)
{
	bool ata = d->is.kind == BLKLAB_SATA, discards = d->is.flags & BLKLAB_DISCARDS;
	u32 blocks_per = d->is.logical_bytes >> SECTOR_SHIFT;
	u8 page[96] = { TYPE_DISK };
	unsigned int bytes;

	if (!(cmd->cmnd[1] & 1)) {
		page[2] = 7; /* SPC-5 */
		page[3] = 2;
		page[4] = 96 - 5;
		page[7] = 2; /* queues commands */
		put_text(page + 8, ata ? "ATA" : "blklab", 8);
		put_text(page + 16, d->is.name, 16);
		put_text(page + 32, "1", 4);
		return answer(cmd, page, sizeof(page));
	}
	page[1] = cmd->cmnd[2];
	switch (page[1]) {
	case 0x00: {
		static const u8 pages[] = { 0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2 };

		bytes = sizeof(pages) - !discards;
		memcpy(page + 4, pages, bytes);
		break;
	}
	case 0x80:
		bytes = 20;
		put_text(page + 4, "1", bytes);
		break;
	case 0x83: /* one name, of the vendor */
		bytes = 4 + 8 + 40;
		page[4] = 2;
		page[5] = 1;
		page[7] = 8 + 40;
		put_text(page + 8, "blklab", 8);
		put_text(page + 16, d->is.name, 40);
		break;
	case 0xb0:
		bytes = 60;
		put_unaligned_be16(d->is.physical_bytes / d->is.logical_bytes, page + 6);
		put_unaligned_be32(d->is.max_sectors / blocks_per, page + 8);
		if (discards) {
			put_unaligned_be32(d->is.discard_sectors / blocks_per, page + 20);
			put_unaligned_be32(1, page + 24);
			put_unaligned_be32(d->is.physical_bytes / d->is.logical_bytes, page + 28);
			put_unaligned_be64(d->is.discard_sectors / blocks_per, page + 36);
		}
		break;
	case 0xb1: /* its speed is not told */
		bytes = 60;
		put_unaligned_be16(d->is.flags & BLKLAB_ROTATIONAL ? 0 : 1, page + 4);
		break;
	case 0xb2:
		if (!discards)
			return refuse(cmd, INVALID_FIELD);
		bytes = 4;
		page[5] = ata ? 1 << 6 : 1 << 7; /* WRITE SAME (16), as libata; UNMAP */
		break;
	default:
		return refuse(cmd, INVALID_FIELD);
	}
	put_unaligned_be16(bytes, page + 2);
	answer(cmd, page, 4 + bytes);
}

static void sense_mode(struct disk *d, struct scsi_cmnd *cmd)
{
	bool ten = cmd->cmnd[0] == MODE_SENSE_10, cached = d->is.flags & BLKLAB_WRITE_CACHE;
	u8 wanted = cmd->cmnd[2] & 0x3f, dpofua = d->is.flags & BLKLAB_FUA ? 1 << 4 : 0;
	u8 page[8 + 20 + 12] = { 0 }, *at = page + (ten ? 8 : 4);

	if (cmd->cmnd[3] || cmd->cmnd[2] >> 6 == 3)
		return refuse(cmd, INVALID_FIELD);
	if (wanted == 0x08 || wanted == 0x3f) {
		at[0] = 0x08;
		at[1] = 18;
		/* What can be changed is nothing. */
		at[2] = cached && cmd->cmnd[2] >> 6 != 1 ? 1 << 2 : 0;
		at += 20;
	}
	if (wanted == 0x0a || wanted == 0x3f) {
		at[0] = 0x0a;
		at[1] = 10;
		at[3] = 1 << 4; /* it may reorder at will */
		at += 12;
	}
	if (at == page + (ten ? 8 : 4))
		return refuse(cmd, INVALID_FIELD);
	if (ten) {
		put_unaligned_be16(at - page - 2, page);
		page[3] = dpofua;
	} else {
		page[0] = at - page - 1;
		page[2] = dpofua;
	}
	answer(cmd, page, at - page);
}

static void read_capacity(struct disk *d, struct scsi_cmnd *cmd)
{
	u64 last = d->is.sectors / (d->is.logical_bytes >> SECTOR_SHIFT) - 1;
	u8 page[32] = { 0 };

	if (cmd->cmnd[0] == READ_CAPACITY) {
		put_unaligned_be32(min(last, (u64)U32_MAX), page);
		put_unaligned_be32(d->is.logical_bytes, page + 4);
		return answer(cmd, page, 8);
	}
	put_unaligned_be64(last, page);
	put_unaligned_be32(d->is.logical_bytes, page + 8);
	page[13] = ilog2(d->is.physical_bytes / d->is.logical_bytes);
	if (d->is.flags & BLKLAB_DISCARDS)
		page[14] = 1 << 7;
	answer(cmd, page, sizeof(page));
}

/* Blocks of a READ, WRITE, WRITE SAME, or of the one range of an UNMAP. */
static bool range_of(struct scsi_cmnd *cmd, u64 *block, u32 *blocks)
{
	const u8 *cdb = cmd->cmnd;
	u8 ranges[24];

	switch (cdb[0]) {
	case READ_6:
	case WRITE_6:
		*block = get_unaligned_be24(cdb + 1) & 0x1fffff;
		*blocks = cdb[4] ?: 256;
		return true;
	case READ_10:
	case WRITE_10:
		*block = get_unaligned_be32(cdb + 2);
		*blocks = get_unaligned_be16(cdb + 7);
		return true;
	case READ_12:
	case WRITE_12:
		*block = get_unaligned_be32(cdb + 2);
		*blocks = get_unaligned_be32(cdb + 6);
		return true;
	case READ_16:
	case WRITE_16:
	case WRITE_SAME_16:
		*block = get_unaligned_be64(cdb + 2);
		*blocks = get_unaligned_be32(cdb + 10);
		return true;
	default:
		if (sg_copy_to_buffer(scsi_sglist(cmd), scsi_sg_count(cmd), ranges, 24) < 24 ||
		    get_unaligned_be16(ranges + 2) != 16)
			return false;
		*block = get_unaligned_be64(ranges + 8);
		*blocks = get_unaligned_be32(ranges + 16);
		return true;
	}
}

/* What the disk model is to do; false if it is nothing of that sort, and the answer is given. */
static bool for_model(struct disk *d, struct scsi_cmnd *cmd, struct command *c)
{
	u32 blocks_per = d->is.logical_bytes >> SECTOR_SHIFT, blocks = 0;
	bool discards = d->is.flags & BLKLAB_DISCARDS;
	static const u8 good[8];
	u64 block = 0;

	c->fua = false;
	switch (cmd->cmnd[0]) {
	case READ_6:
	case READ_10:
	case READ_12:
	case READ_16:
		c->op = BLKLAB_READ;
		break;
	case WRITE_10:
	case WRITE_12:
	case WRITE_16:
		c->fua = cmd->cmnd[1] & 1 << 3;
		fallthrough;
	case WRITE_6:
		c->op = BLKLAB_WRITE;
		break;
	case WRITE_SAME_16:
		if (!discards || !(cmd->cmnd[1] & 1 << 3)) {
			refuse(cmd, INVALID_FIELD);
			return false;
		}
		c->op = BLKLAB_DISCARD;
		break;
	case UNMAP:
		if (!discards) {
			refuse(cmd, INVALID_OPCODE);
			return false;
		}
		c->op = BLKLAB_DISCARD;
		break;
	case SYNCHRONIZE_CACHE:
	case SYNCHRONIZE_CACHE_16:
		c->op = BLKLAB_FLUSH;
		c->sector = c->sectors = 0;
		return true;
	case INQUIRY:
		inquire(d, cmd);
		return false;
	case MODE_SENSE:
	case MODE_SENSE_10:
		sense_mode(d, cmd);
		return false;
	case READ_CAPACITY:
		read_capacity(d, cmd);
		return false;
	case SERVICE_ACTION_IN_16:
		if ((cmd->cmnd[1] & 0x1f) == SAI_READ_CAPACITY_16)
			read_capacity(d, cmd);
		else
			refuse(cmd, INVALID_FIELD);
		return false;
	case REPORT_LUNS: {
		static const u8 one[16] = { [3] = 8 };

		answer(cmd, one, sizeof(one));
		return false;
	}
	case REQUEST_SENSE: {
		static const u8 none[18] = { 0x70, [7] = 10 };

		answer(cmd, none, sizeof(none));
		return false;
	}
	case TEST_UNIT_READY:
	case START_STOP:
	case VERIFY:
		answer(cmd, good, 0);
		return false;
	default:
		refuse(cmd, INVALID_OPCODE);
		return false;
	}
	if (!range_of(cmd, &block, &blocks)) {
		refuse(cmd, INVALID_FIELD);
		return false;
	}
	if (block + blocks < block || (block + blocks) * blocks_per > d->is.sectors) {
		refuse(cmd, OUT_OF_RANGE);
		return false;
	}
	if (c->op != BLKLAB_DISCARD && (blocks * blocks_per > d->is.max_sectors ||
			(u64)blocks * d->is.logical_bytes != scsi_bufflen(cmd))) {
		refuse(cmd, INVALID_FIELD);
		return false;
	}
	c->sector = block * blocks_per;
	c->sectors = blocks * blocks_per;
	if (!blocks)
		answer(cmd, good, 0);
	return blocks;
}

/* Its type differs between versions of the kernel. */
typedef typeof(((struct scsi_host_template *)NULL)->queuecommand(NULL, NULL)) queued_t;

static queued_t queue_command(struct Scsi_Host *host, struct scsi_cmnd *cmd)
{
	struct disk *d = *(struct disk **)shost_priv(host);
	struct command *c = command_of(cmd);
	unsigned long flags;
	bool taken = true;

	if (!d || READ_ONCE(d->ended)) {
		cmd->result = DID_NO_CONNECT << 16;
		scsi_done(cmd);
		return 0;
	}
	if (!for_model(d, cmd, c)) {
		scsi_done(cmd);
		return 0;
	}
	cmd->result = SAM_STAT_GOOD;
	c->tag = scsi_cmd_to_rq(cmd)->tag;
	c->given_up = NULL;
	INIT_LIST_HEAD(&c->list);
	c->alone = d->is.kind == BLKLAB_SATA && (c->op == BLKLAB_FLUSH || d->is.depth == 1);
	spin_lock_irqsave(&d->queue_lock, flags);
	if (d->is.kind == BLKLAB_SATA)
		taken = take_turn(d, c);
	else
		arrive(d, c);
	spin_unlock_irqrestore(&d->queue_lock, flags);
	return taken ? 0 : SCSI_MLQUEUE_DEVICE_BUSY;
}

/* Returns when the disk has nothing more to do with the command, which then counts as given up. */
static void give_up(struct disk *d, struct command *c)
{
	DECLARE_COMPLETION_ONSTACK(done);
	bool wait = false;

	spin_lock_irq(&d->queue_lock);
	if (d->deferred == c) {
		d->deferred = NULL;
	} else if (c->state == ARRIVED) {
		list_del_init(&c->list);
		no_longer_at_disk(d, c);
	} else if (c->state == AT_DISK) {
		c->given_up = &done;
		wait = true;
	}
	spin_unlock_irq(&d->queue_lock);
	if (wait)
		wait_for_completion(&done);
}

static int abort_command(struct scsi_cmnd *cmd)
{
	struct disk *d = *(struct disk **)shost_priv(cmd->device->host);

	/* ATA has no abort: libata resets the link. */
	if (d->is.kind == BLKLAB_SATA)
		return FAILED;
	give_up(d, command_of(cmd));
	return SUCCESS;
}

/* The error handler runs when no command is under way but those that have timed out. */
static int reset_disk(struct scsi_cmnd *cmd)
{
	struct Scsi_Host *host = cmd->device->host;
	struct disk *d = *(struct disk **)shost_priv(host);
	u32 tag;

	for (tag = 0; tag < d->tags; tag++) {
		struct command *c = at_disk(d, tag);

		if (c)
			give_up(d, c);
	}
	give_up(d, command_of(cmd));
	return SUCCESS;
}

static int change_depth(struct scsi_device *device, int depth)
{
	struct disk *d = *(struct disk **)shost_priv(device->host);

	/* Not above what the disk takes. */
	return scsi_change_queue_depth(device, min_t(int, depth, d->is.depth));
}

static const struct scsi_host_template scsi_template = {
	.module = THIS_MODULE,
	.name = "blklab disk",
	.proc_name = "blklab",
	.queuecommand = queue_command,
	.eh_abort_handler = abort_command,
	.eh_device_reset_handler = reset_disk,
	.change_queue_depth = change_depth,
	.cmd_size = sizeof(struct command),
	.this_id = -1,
	.sg_tablesize = SG_MAX_SEGMENTS,
};

static const struct scsi_host_template ata_template = {
	.module = THIS_MODULE,
	.name = "blklab disk",
	.proc_name = "blklab",
	.queuecommand = queue_command,
	.eh_abort_handler = abort_command,
	.eh_device_reset_handler = reset_disk,
	.change_queue_depth = change_depth,
	.cmd_size = sizeof(struct command),
	.this_id = -1,
	.sg_tablesize = SG_MAX_SEGMENTS,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
	.tag_alloc_policy_rr = true,
#else
	.tag_alloc_policy = BLK_TAG_ALLOC_RR,
#endif
};

static int create_scsi(struct disk *d)
{
	bool ata = d->is.kind == BLKLAB_SATA;
	struct Scsi_Host *host;

	host = scsi_host_alloc(ata ? &ata_template : &scsi_template, sizeof(struct disk *));
	if (!host)
		return -ENOMEM;
	*(struct disk **)shost_priv(host) = d;
	host->can_queue = max(d->is.depth, ata ? AHCI_TAGS : HBA_TAGS);
	host->cmd_per_lun = d->is.depth;
	host->max_sectors = d->is.max_sectors;
	host->max_id = 1;
	host->max_lun = 1;
	host->max_cmd_len = 16;
	d->tags = host->can_queue;
	d->host = host;
	return 0;
}

static int start_scsi(struct disk *d)
{
	int error = scsi_add_host(d->host, NULL);

	if (error)
		return error;
	scsi_scan_host(d->host);
	/* sd looks at the disk in a thread of its own. */
	wait_for_device_probe();
	d->is.real_depth = d->is.depth;
	d->is.real_hw_queues = 1;
	snprintf(d->is.path, sizeof(d->is.path), "%u:0:0:0", d->host->host_no);
	return 0;
}

/* NVMe. */

static blk_status_t queue_request(struct blk_mq_hw_ctx *hw, const struct blk_mq_queue_data *bd)
{
	struct request *rq = bd->rq;
	struct disk *d = hw->queue->queuedata;
	struct command *c = blk_mq_rq_to_pdu(rq);
	unsigned long flags;

	switch (req_op(rq)) {
	case REQ_OP_READ:
		c->op = BLKLAB_READ;
		break;
	case REQ_OP_WRITE:
		c->op = BLKLAB_WRITE;
		break;
	case REQ_OP_FLUSH:
		c->op = BLKLAB_FLUSH;
		break;
	case REQ_OP_DISCARD:
		c->op = BLKLAB_DISCARD;
		break;
	default:
		return BLK_STS_NOTSUPP;
	}
	if (READ_ONCE(d->ended))
		return BLK_STS_IOERR;
	blk_mq_start_request(rq);
	c->fua = c->op == BLKLAB_WRITE && rq->cmd_flags & REQ_FUA;
	c->sector = c->op == BLKLAB_FLUSH ? 0 : blk_rq_pos(rq);
	c->sectors = c->op == BLKLAB_FLUSH ? 0 : blk_rq_sectors(rq);
	c->tag = hw->queue_num * d->is.depth + rq->tag;
	c->alone = false;
	c->given_up = NULL;
	INIT_LIST_HEAD(&c->list);
	spin_lock_irqsave(&d->queue_lock, flags);
	arrive(d, c);
	spin_unlock_irqrestore(&d->queue_lock, flags);
	return BLK_STS_OK;
}

static enum blk_eh_timer_return request_timed_out(struct request *rq)
{
	pr_warn("blklab disk: a command takes longer than %u s\n", rq->timeout / HZ);
	return BLK_EH_RESET_TIMER;
}

#if __has_include(<linux/blklab_cpus.h>)
/* CPUs in a row share a queue, as group_cpus_evenly() makes it where no two CPUs share more than others. */
static void map_queues(struct blk_mq_tag_set *set)
{
	struct blk_mq_queue_map *map = &set->map[HCTX_TYPE_DEFAULT];
	u32 least = blklab_cpus / map->nr_queues, more = blklab_cpus % map->nr_queues;
	u32 cpu, of_more = more * (least + 1);

	for (cpu = 0; cpu < blklab_cpus; cpu++)
		map->mq_map[cpu] = cpu < of_more ? cpu / (least + 1) : more + (cpu - of_more) / least;
}
#define MAP_QUEUES .map_queues = map_queues,
#else
#define MAP_QUEUES
#endif

static const struct blk_mq_ops queue_ops = {
	MAP_QUEUES
	.queue_rq = queue_request,
	.timeout = request_timed_out,
};

static void gendisk_gone(struct gendisk *gendisk)
{
	struct disk *d = gendisk->private_data;

	blk_mq_free_tag_set(&d->tag_set);
	kref_put(&d->users, free_disk);
}

static const struct block_device_operations disk_ops = {
	.owner = THIS_MODULE,
	.free_disk = gendisk_gone,
};

static int create_nvme(struct disk *d)
{
	u32 flags = d->is.flags;
	struct queue_limits limits = {
		.logical_block_size = d->is.logical_bytes,
		.physical_block_size = d->is.physical_bytes,
		.io_min = d->is.physical_bytes,
		.max_hw_sectors = d->is.max_sectors,
		.max_segments = USHRT_MAX,
		.max_segment_size = UINT_MAX,
		.features = (flags & BLKLAB_ROTATIONAL ? BLK_FEAT_ROTATIONAL : 0) |
			    (flags & BLKLAB_WRITE_CACHE ? BLK_FEAT_WRITE_CACHE : 0) |
			    (flags & BLKLAB_FUA ? BLK_FEAT_FUA : 0),
	};
	int error;

	if (flags & BLKLAB_DISCARDS) {
		limits.max_hw_discard_sectors = d->is.discard_sectors;
		limits.max_discard_segments = 1;
		limits.discard_granularity = d->is.physical_bytes;
	}
	d->tag_set.ops = &queue_ops;
	d->tag_set.nr_hw_queues = d->is.hw_queues;
	d->tag_set.queue_depth = d->is.depth;
	d->tag_set.numa_node = NUMA_NO_NODE;
	d->tag_set.cmd_size = sizeof(struct command);
	d->tag_set.timeout = 30 * HZ;
	error = blk_mq_alloc_tag_set(&d->tag_set);
	if (error)
		return error;
	d->gendisk = blk_mq_alloc_disk(&d->tag_set, &limits, d);
	if (IS_ERR(d->gendisk)) {
		error = PTR_ERR(d->gendisk);
		d->gendisk = NULL;
		blk_mq_free_tag_set(&d->tag_set);
		return error;
	}
	kref_get(&d->users);
	d->gendisk->fops = &disk_ops;
	d->gendisk->private_data = d;
	snprintf(d->gendisk->disk_name, DISK_NAME_LEN, "nvme0n1");
	set_capacity(d->gendisk, d->is.sectors);
	/* With fewer CPUs than queues there are fewer queues. */
	d->is.real_hw_queues = d->tag_set.nr_hw_queues;
	d->is.real_depth = d->tag_set.queue_depth;
	d->tags = d->is.real_hw_queues * d->is.depth;
	return 0;
}

static int start_nvme(struct disk *d)
{
	int error = add_disk(d->gendisk);

	if (!error)
		strscpy(d->is.path, d->gendisk->disk_name, sizeof(d->is.path));
	return error;
}

/* The character device. */

static bool makes_sense(const struct blklab_disk *is)
{
	u32 logical = is->logical_bytes, physical = is->physical_bytes;

	return is->kind <= BLKLAB_SAS && !(is->flags & ~BLKLAB_FLAGS) &&
	       is->depth && is->depth <= (is->kind == BLKLAB_SATA ? AHCI_TAGS : DEPTH_MAX) &&
	       is->hw_queues && is->hw_queues <= QUEUES_MAX &&
	       logical >= SECTOR_SIZE && logical <= PAGE_SIZE && is_power_of_2(logical) &&
	       physical >= logical && physical <= SZ_1M && is_power_of_2(physical) &&
	       is->max_sectors >= PAGE_SIZE >> SECTOR_SHIFT && is->max_sectors <= SECTORS_MAX &&
	       is->sectors && is->sectors < 1ull << 50 &&
	       !(is->sectors & ((logical >> SECTOR_SHIFT) - 1));
}

static int create(struct disk *d, const void __user *arg)
{
	int error;

	if (d->created || d->host || d->gendisk)
		return -EBUSY;
	if (copy_from_user(&d->is, arg, sizeof(d->is)))
		return -EFAULT;
	d->is.name[sizeof(d->is.name) - 1] = 0;
	if (!makes_sense(&d->is))
		return -EINVAL;
	error = d->is.kind == BLKLAB_NVME ? create_nvme(d) : create_scsi(d);
	if (error)
		return error;
	d->at_disk = kvcalloc(d->tags, sizeof(*d->at_disk), GFP_KERNEL);
	d->done = kvcalloc(d->tags, sizeof(*d->done), GFP_KERNEL);
	if (!d->at_disk || !d->done)
		return -ENOMEM; /* what was made goes with the file */
	smp_store_release(&d->created, true);
	return 0;
}

static int hold_workers(struct disk *d)
{
	struct scsi_device *device;
	int error = 0;

	if (d->gendisk)
		return blklab_hold_workers(d->gendisk->queue);
	shost_for_each_device(device, d->host)
		error = error ?: blklab_hold_workers(device->request_queue);
	return error;
}

static void let_workers_go(struct disk *d)
{
	struct scsi_device *device;

	if (d->gendisk)
		blklab_let_workers_go(d->gendisk->queue);
	if (d->host)
		shost_for_each_device(device, d->host)
			blklab_let_workers_go(device->request_queue);
}

static int start(struct disk *d, void __user *arg)
{
	int error;

	if (!d->created || d->started || d->ended)
		return -EINVAL;
	error = d->is.kind == BLKLAB_NVME ? start_nvme(d) : start_scsi(d);
	if (error)
		return error;
	d->started = true;
	error = hold_workers(d);
	if (error)
		return error;
	return copy_to_user(arg, &d->is, sizeof(d->is)) ? -EFAULT : 0;
}

/* No command comes any more, and those that came have ended. */
static void stop(struct disk *d)
{
	if (d->started)
		let_workers_go(d);
	if (d->host) {
		if (d->started)
			scsi_remove_host(d->host);
		*(struct disk **)shost_priv(d->host) = NULL;
		scsi_host_put(d->host);
		d->host = NULL;
	}
	if (d->gendisk) {
		if (d->started)
			del_gendisk(d->gendisk);
		put_disk(d->gendisk);
		d->gendisk = NULL;
	}
	WRITE_ONCE(d->ended, true);
	wake_up(&d->wait);
}

/* Nothing answers commands any more: they fail. */
static void fail_all(struct disk *d)
{
	struct command *c;
	u32 tag;

	WRITE_ONCE(d->ended, true);
	do
		c = d->created ? next_arrived(d, U64_MAX) : NULL;
	while (c);
	for (tag = 0; d->created && tag < d->tags; tag++) {
		struct blklab_done done = { .tag = tag, .error = -EIO };

		local_bh_disable();
		finish(d, &done);
		local_bh_enable();
	}
}

static int opened(struct inode *inode, struct file *file)
{
	struct disk *d = kzalloc(sizeof(*d), GFP_KERNEL);

	if (!d)
		return -ENOMEM;
	kref_init(&d->users);
	mutex_init(&d->lock);
	mutex_init(&d->exchanging);
	spin_lock_init(&d->queue_lock);
	INIT_LIST_HEAD(&d->arrived);
	init_waitqueue_head(&d->wait);
	file->private_data = d;
	return 0;
}

static int closed(struct inode *inode, struct file *file)
{
	struct disk *d = file->private_data;

	if (!d->ended)
		fail_all(d);
	stop(d);
	kref_put(&d->users, free_disk);
	return 0;
}

static long called(struct file *file, unsigned int number, unsigned long arg)
{
	struct disk *d = file->private_data;
	void __user *user = (void __user *)arg;
	long result = 0;

	if (number == BLKLAB_EXCHANGE) {
		if (!smp_load_acquire(&d->created))
			return -EINVAL;
		if (mutex_lock_interruptible(&d->exchanging))
			return -EINTR;
		result = exchange(d, user);
		mutex_unlock(&d->exchanging);
		return result;
	}
	if (mutex_lock_interruptible(&d->lock))
		return -EINTR;
	switch (number) {
	case BLKLAB_CREATE:
		result = create(d, user);
		break;
	case BLKLAB_START:
		result = start(d, user);
		break;
	case BLKLAB_STOP:
		stop(d);
		break;
	default:
		result = -ENOTTY;
	}
	mutex_unlock(&d->lock);
	return result;
}

static const struct file_operations device_ops = {
	.owner = THIS_MODULE,
	.open = opened,
	.release = closed,
	.unlocked_ioctl = called,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "blklab-disk",
	.fops = &device_ops,
	.mode = 0600,
};

module_misc_device(device);
MODULE_DESCRIPTION("A disk whose commands a process answers");
MODULE_LICENSE("GPL");
