// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs of the modelled host, as far as the block layer's workers notice them.
 *
 * A guest has one CPU, on which work takes no time. A process whose work would take time on the
 * modelled host sleeps until then (BLKLAB_WORK of /dev/blklab-cpu). To the guest's kernel its CPU is
 * idle meanwhile, and a worker of kblockd that the process has woken would run. On the modelled host
 * it runs on the process's CPU, once the process sleeps.
 *
 * So the work of each hardware queue of our disks is wrapped: while the process that queued it last
 * computes, it is held, and queued again when the process has computed. If a completion or another
 * process queues it in the meantime, it comes to that one's CPU, as kblockd_mod_delayed_work_on()
 * does it. Without a process that computes, the wrapper changes nothing.
 *
 * Calls through the page cache compute inside the kernel (work.patch): a thread that has given its CPU
 * and its costs (BLKLAB_THREAD) owes for what it has copied, and pays before others notice. An I/O of libaio
 * works when it ends, on the CPU of the thread that has submitted it. The times
 * at which the modelled CPUs are free again are memory that the kernel and the processes share (mmap()).
 *
 * The block layer's queues see as many CPUs as the command line says (cpus.patch). A thread is on the CPU that it has
 * given, the work of a hardware queue on that for which it was queued, an end of a command on its request's, and
 * all else on the first.
 */

#include <linux/backing-dev.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/percpu.h>
#include <linux/sbitmap.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/writeback.h>
#include <linux/xarray.h>
#include <trace/events/workqueue.h>

#include "blklab_worker.h"
#if __has_include(<linux/blklab_work.h>)
#include <linux/blklab_work.h>
#define HAS_WORK_IN_CALLS
#endif
#if __has_include(<linux/blklab_as_cpus.h>)
#include <linux/blklab_as_cpus.h>
#define HAS_CPUS
#endif

/* The process computes until this time of CLOCK_MONOTONIC, in ns. */
#define BLKLAB_WORK	_IOW('B', 16, __u64)
/* A run begins: what chance has decided about tags is the same as in the simulator. */
#define BLKLAB_BEGIN	_IO('B', 17)
/* What I/O of this thread costs. */
#define BLKLAB_THREAD	_IOW('B', 18, struct costs)

/* The run that begins finds a disk of which writeback has measured nothing. */
#define BLKLAB_UNMEASURED	_IO('B', 19)
/* This thread stays on the modelled CPU of that number, counted round; its I/O costs nothing. */
#define BLKLAB_STAY	_IOW('B', 20, __u64)

/* How long before a run its disk has appeared (BEGINS in ticks.rs), and its file systems were mounted. */
#define APPEARED	(msecs_to_jiffies(3600))
#define MOUNTED		(msecs_to_jiffies(3545))

/* The most CPUs that a modelled host has, as in the simulator. */
#define CPUS		1024

struct costs {
	/* The modelled CPU on which the thread stays. */
	__u64 cpu;
	/* A call, without copying; copying, in bytes a microsecond, or 0 if it takes no time. */
	__u64 call_ns;
	__u64 copy_mb_s;
	/* When the times of CPUs begin, on CLOCK_MONOTONIC. */
	__u64 epoch_ns;
	/* The end of an I/O of libaio; 0: no time. */
	__u64 complete_ns;
};

/* The work of one hardware queue. */
struct worker {
	struct list_head list;
	struct blk_mq_hw_ctx *hctx;
	work_func_t run;
	/* The thread that queued it last; 0 for an interrupt and for a thread that never computes. */
	pid_t waker;
	bool held;
	/* The modelled CPUs on which it runs, and on which the queue's requeue_work does. */
	unsigned int cpu, requeues_on;
};

struct thread {
	struct costs costs;
	/* Not yet paid for. */
	u64 owed_ns, owed_bytes;
};

/* By the ID of the thread. A guest is too short for the ID of another to come again. */
static DEFINE_XARRAY(threads);

/* Threads that have computed, by ID: whether they do so now. */
static DEFINE_XARRAY_FLAGS(computing, XA_FLAGS_LOCK_IRQ);
static DEFINE_SPINLOCK(lock);
static LIST_HEAD(workers);

#define NO	xa_mk_value(0)
#define YES	xa_mk_value(1)

static struct worker *worker_of(struct work_struct *work)
{
	struct worker *w;

	list_for_each_entry(w, &workers, list)
		if (&w->hctx->run_work.work == work)
			return w;
	return NULL;
}

/* In place of blk_mq_run_work_fn(). */
static void run_unless_held(struct work_struct *work)
{
	work_func_t run = NULL;
	struct worker *w;
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	w = worker_of(work);
	if (w) {
		w->held = w->waker && xa_load(&computing, w->waker) == YES;
		if (!w->held)
			run = w->run;
	}
	spin_unlock_irqrestore(&lock, flags);
	if (run)
		run(work);
}

#ifdef HAS_CPUS
unsigned int blklab_cpus = 1;

static int __init set_cpus(char *text)
{
	unsigned int number;

	if (kstrtouint(text, 10, &number) || !number || number > BITS_PER_LONG)
		pr_warn("blklab.cpus=%s: expected a number from 1 to %d\n", text, BITS_PER_LONG);
	else
		blklab_cpus = number;
	return 0;
}
early_param("blklab.cpus", set_cpus);

/* That of a command which ends, plus one; 0: none does. */
static unsigned int ending_on;

void blklab_end_on(struct request *rq)
{
	ending_on = 1 + blk_mq_rq_cpu(rq);
}

void blklab_has_ended(void)
{
	ending_on = 0;
}

/* The CPU of a work of one of our disks' queues; 0 for others. */
static unsigned int cpu_of_work(struct work_struct *work)
{
	unsigned int cpu = 0;
	unsigned long flags;
	struct worker *w;

	spin_lock_irqsave(&lock, flags);
	list_for_each_entry(w, &workers, list) {
		if (&w->hctx->run_work.work == work)
			cpu = w->cpu;
		if (&w->hctx->queue->requeue_work.work == work)
			cpu = w->requeues_on;
	}
	spin_unlock_irqrestore(&lock, flags);
	return cpu;
}

unsigned int blklab_cpu(void)
{
	struct work_struct *work;
	struct thread *t;

	if (blklab_cpus == 1)
		return 0;
	if (ending_on)
		return ending_on - 1;
	if (!in_task())
		return 0;
	work = current_work();
	if (work)
		return cpu_of_work(work);
	t = xa_load(&threads, task_pid_nr(current));
	return t ? t->costs.cpu % blklab_cpus : 0;
}
#else
#define blklab_cpu() 0
#endif

/* The probe of workqueue_queue_work: a work of kblockd is queued, or moved. */
static void queued(void *data, int wanted, struct pool_workqueue *pool, struct work_struct *work)
{
	unsigned int here = blklab_cpu(), cpu = wanted == WORK_CPU_UNBOUND ? here : wanted;
	unsigned long flags;
	struct worker *w;

	if (work->func != run_unless_held) {
		spin_lock_irqsave(&lock, flags);
		list_for_each_entry(w, &workers, list)
			if (&w->hctx->queue->requeue_work.work == work)
				w->requeues_on = cpu;
		spin_unlock_irqrestore(&lock, flags);
		return;
	}
	spin_lock_irqsave(&lock, flags);
	w = worker_of(work);
	if (w) {
		pid_t thread = task_pid_nr(current);

		w->waker = cpu == here && in_task() && xa_load(&computing, thread) ? thread : 0;
		w->held = false;
		w->cpu = cpu;
	}
	spin_unlock_irqrestore(&lock, flags);
}

/* What was held for the process is queued again: it runs when the process sleeps. */
static void queue_again(void)
{
	struct worker *w;
	unsigned long flags;

	for (;;) {
		struct delayed_work *work = NULL;
		unsigned int cpu = 0;

		spin_lock_irqsave(&lock, flags);
		list_for_each_entry(w, &workers, list) {
			if (w->held && w->waker == task_pid_nr(current)) {
				work = &w->hctx->run_work;
				cpu = w->cpu;
			}
		}
		spin_unlock_irqrestore(&lock, flags);
		if (!work)
			return;
		kblockd_mod_delayed_work_on(cpu, work, 0);
	}
}

/* When each modelled CPU is free, in ns since the epoch of the run. */
static u64 *free_ns;

static long compute(u64 until_ns)
{
	ktime_t until = ns_to_ktime(until_ns);
	long error = 0;

	if (xa_err(xa_store_irq(&computing, task_pid_nr(current), YES, GFP_KERNEL)))
		return -ENOMEM;
	while (!error && ktime_before(ktime_get(), until)) {
		set_current_state(TASK_KILLABLE);
		schedule_hrtimeout_range(&until, 0, HRTIMER_MODE_ABS);
		if (fatal_signal_pending(current))
			error = -EINTR;
	}
	xa_store_irq(&computing, task_pid_nr(current), NO, GFP_KERNEL);
	queue_again();
	return error;
}

#ifdef HAS_WORK_IN_CALLS
void blklab_called(void)
{
	struct thread *t = xa_load(&threads, task_pid_nr(current));

	if (t)
		t->owed_ns += t->costs.call_ns;
}

void blklab_copied(size_t bytes)
{
	struct thread *t = xa_load(&threads, task_pid_nr(current));

	if (t)
		t->owed_bytes += bytes;
}

void blklab_pay(void)
{
	struct thread *t = xa_load(&threads, task_pid_nr(current));
	u64 cost_ns, now_ns, *free;

	if (!t)
		return;
	cost_ns = t->owed_ns;
	if (t->costs.copy_mb_s)
		cost_ns += div64_u64(t->owed_bytes * 1000, t->costs.copy_mb_s);
	t->owed_ns = 0;
	t->owed_bytes = 0;
	if (!cost_ns)
		return;
	free = &free_ns[t->costs.cpu];
	now_ns = ktime_get_ns() - t->costs.epoch_ns;
	*free = max(*free, now_ns) + cost_ns;
	compute(t->costs.epoch_ns + *free);
}

u64 blklab_began(void)
{
	struct thread *t = xa_load(&threads, task_pid_nr(current));

	return t && t->costs.complete_ns ? task_pid_nr(current) : 0;
}

u64 blklab_ended(u64 began)
{
	struct thread *t = began ? xa_load(&threads, began) : NULL;
	unsigned long flags;
	u64 now_ns, *free;

	if (!t)
		return 0;
	local_irq_save(flags);
	now_ns = ktime_get_ns() - t->costs.epoch_ns;
	/* A durable write that a kworker has synced ends after the interrupt. */
	if (!(current->flags & PF_WQ_WORKER))
		now_ns += BLKLAB_INTERRUPT_NS;
	local_irq_restore(flags);
	free = &free_ns[t->costs.cpu];
	*free = max(*free, now_ns) + t->costs.complete_ns;
	return *free;
}
#endif

/* From now on the calling thread has these costs. */
static long keep(const struct costs *costs)
{
	struct thread *t = kzalloc(sizeof(*t), GFP_KERNEL);
	void *before;

	if (!t)
		return -ENOMEM;
	t->costs = *costs;
	before = xa_store(&threads, task_pid_nr(current), t, GFP_KERNEL);
	if (xa_is_err(before)) {
		kfree(t);
		return xa_err(before);
	}
	kfree(before);
	return 0;
}

static long set_costs(void __user *from)
{
#ifdef HAS_WORK_IN_CALLS
	struct costs costs;

	if (copy_from_user(&costs, from, sizeof(costs)) || costs.cpu >= CPUS)
		return -EFAULT;
	return keep(&costs);
#else
	return -ENOTTY;
#endif
}

static long stay_on(void __user *from)
{
#ifdef HAS_CPUS
	struct costs nothing = { 0 };
	__u64 number;

	if (copy_from_user(&number, from, sizeof(number)))
		return -EFAULT;
	nothing.cpu = number % blklab_cpus;
	return keep(&nothing);
#else
	return -ENOTTY;
#endif
}

static void do_nothing(struct work_struct *work)
{
}

static DECLARE_DELAYED_WORK(nothing, do_nothing);

/*
 * The first worker of a pool that gets work makes a second one before it does that work, and processes run
 * meanwhile. On a machine that has run for a while there are two; here too, before the run's first I/O.
 */
static void warm_up_kblockd(void)
{
	kblockd_mod_delayed_work_on(WORK_CPU_UNBOUND, &nothing, 0);
	flush_delayed_work(&nothing);
}

/* Freed tags of a word are put back only when no other is left; here at once. */
static void put_back_freed(struct sbitmap *sb)
{
	unsigned int i;

	for (i = 0; i < sb->map_nr; i++)
		atomic_long_andnot(xchg(&sb->map[i].cleared, 0), (atomic_long_t *)&sb->map[i].word);
}

/*
 * The search for a tag begins at a random one (init_alloc_hint()), or where an earlier run has left it,
 * passes tags that earlier I/O has freed, and decides what bfq may do with its limits, and on SATA which
 * process sleeps. Any state is as good as another: as in the simulator, the search begins at a quarter of
 * the tags, all are free, and the wait queues begin at the first.
 */
static void begin_run(void)
{
	struct worker *w;
	unsigned long flags;
	int cpu;

	spin_lock_irqsave(&lock, flags);
	list_for_each_entry(w, &workers, list) {
		/* Without a scheduler requests have the driver's tags. */
		struct blk_mq_tags *tags = w->hctx->sched_tags ?: w->hctx->tags;
		struct sbitmap_queue *queue = &tags->bitmap_tags;
		struct sbitmap *sb = &queue->sb;

		for_each_possible_cpu(cpu)
			*per_cpu_ptr(sb->alloc_hint, cpu) = sb->depth / 4;
		put_back_freed(sb);
		atomic_set(&w->hctx->wait_index, 0);
		atomic_set(&queue->wake_index, 0);
		atomic_set(&queue->completion_cnt, 0);
		atomic_set(&queue->wakeup_cnt, 0);
	}
	spin_unlock_irqrestore(&lock, flags);
}

/* What wb_init() sets, as if the disk had appeared APPEARED ago. */
static void forget(struct bdi_writeback *wb)
{
	const unsigned long bandwidth = 100UL << (20 - PAGE_SHIFT);

	cancel_delayed_work_sync(&wb->bw_dwork);
	spin_lock_irq(&wb->list_lock);
	wb->last_old_flush = wb->bw_time_stamp = jiffies - APPEARED;
	wb->dirtied_stamp = percpu_counter_read(&wb->stat[WB_DIRTIED]);
	wb->written_stamp = percpu_counter_read(&wb->stat[WB_WRITTEN]);
	if (wb_has_dirty_io(wb))
		atomic_long_add(bandwidth - wb->avg_write_bandwidth, &wb->bdi->tot_write_bandwidth);
	wb->write_bandwidth = wb->avg_write_bandwidth = bandwidth;
	wb->dirty_ratelimit = wb->balanced_dirty_ratelimit = bandwidth;
	spin_unlock_irq(&wb->list_lock);
}

/*
 * The few pages that a mount writes take as long as its disk needs. Writeback measures its bandwidth by them,
 * and counts the first period of VM_COMPLETIONS_PERIOD_LEN from their end. For a run this is as on a disk
 * of which nothing has been measured, and which was mounted MOUNTED ago, so that the second period lasts.
 */
static void forget_measurements(void)
{
	struct wb_domain *all = &global_wb_domain;
	struct worker *w;

	/* Disks neither come nor go while a run begins. */
	list_for_each_entry(w, &workers, list)
		forget(&w->hctx->queue->disk->bdi->wb);
	if (!all->period_time)
		return;
	if (!all->completions.period)
		fprop_new_period(&all->completions, 1);
	all->period_time = jiffies - MOUNTED + 2 * 3 * HZ;
	mod_timer(&all->period_timer, all->period_time);
}

/* The workers of this queue wait for processes that compute. */
int blklab_hold_workers(struct request_queue *queue)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i, flags;

	queue_for_each_hw_ctx(queue, hctx, i) {
		struct worker *w = kzalloc(sizeof(*w), GFP_KERNEL);

		if (!w)
			return -ENOMEM;
		w->hctx = hctx;
		spin_lock_irqsave(&lock, flags);
		w->run = hctx->run_work.work.func;
		list_add(&w->list, &workers);
		hctx->run_work.work.func = run_unless_held;
		spin_unlock_irqrestore(&lock, flags);
	}
	return 0;
}

/* The queue's workers are the kernel's own again. */
void blklab_let_workers_go(struct request_queue *queue)
{
	struct worker *w, *next;
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	list_for_each_entry_safe(w, next, &workers, list) {
		if (w->hctx->queue != queue)
			continue;
		w->hctx->run_work.work.func = w->run;
		if (w->held)
			kblockd_mod_delayed_work_on(WORK_CPU_UNBOUND, &w->hctx->run_work, 0);
		list_del(&w->list);
		kfree(w);
	}
	spin_unlock_irqrestore(&lock, flags);
}

static long called(struct file *file, unsigned int number, unsigned long arg)
{
	u64 until_ns;

	if (number == BLKLAB_BEGIN) {
		begin_run();
		warm_up_kblockd();
		return 0;
	}
	if (number == BLKLAB_UNMEASURED) {
		forget_measurements();
		return 0;
	}
	if (number == BLKLAB_THREAD)
		return set_costs((void __user *)arg);
	if (number == BLKLAB_STAY)
		return stay_on((void __user *)arg);
	if (number != BLKLAB_WORK)
		return -ENOTTY;
	if (copy_from_user(&until_ns, (void __user *)arg, sizeof(until_ns)))
		return -EFAULT;
	return compute(until_ns);
}

static int map(struct file *file, struct vm_area_struct *vma)
{
	return remap_vmalloc_range(vma, free_ns, vma->vm_pgoff);
}

static const struct file_operations cpu_ops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = called,
	.mmap = map,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "blklab-cpu",
	.fops = &cpu_ops,
	.mode = 0600,
};

static int __init begin(void)
{
	int error;

	free_ns = vmalloc_user(CPUS * sizeof(*free_ns));
	if (!free_ns)
		return -ENOMEM;
	error = register_trace_workqueue_queue_work(queued, NULL);
	return error ?: misc_register(&device);
}

device_initcall(begin);
MODULE_DESCRIPTION("CPUs of a modelled host");
MODULE_LICENSE("GPL");
