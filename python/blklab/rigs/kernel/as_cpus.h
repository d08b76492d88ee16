/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From here on a file of the block layer sees the modelled host's CPUs in place of the guest's only one.
 * It is the last file that such a file includes. What is not named here stays as it is: the guest's own.
 */
#include <linux/blklab_cpus.h>
#include <linux/cpumask.h>
#include <linux/find.h>
#include <linux/percpu.h>
#include <linux/smp.h>

static inline unsigned int __maybe_unused blklab_next(unsigned int from, const struct cpumask *mask)
{
	unsigned int next = find_next_bit(cpumask_bits(mask), BITS_PER_LONG, from);

	return next < blklab_cpus ? next : blklab_cpus;
}

#undef nr_cpu_ids
#define nr_cpu_ids blklab_cpus
#undef raw_smp_processor_id
#define raw_smp_processor_id() blklab_cpu()

#undef for_each_possible_cpu
#define for_each_possible_cpu(cpu) blklab_for_each_cpu(cpu)
#undef for_each_online_cpu
#define for_each_online_cpu(cpu) blklab_for_each_cpu(cpu)
#undef for_each_cpu
#define for_each_cpu(cpu, mask) \
	for ((cpu) = blklab_next(0, mask); (cpu) < blklab_cpus; (cpu) = blklab_next((cpu) + 1, mask))

/* All of them are online, so that the second mask, which is that of CPUs online, says nothing. */
#undef cpu_online
#define cpu_online(cpu) ((cpu) < blklab_cpus)
#undef cpumask_first
#define cpumask_first(mask) blklab_next(0, mask)
#undef cpumask_first_and
#define cpumask_first_and(mask, online) blklab_next(0, mask)
#undef cpumask_next_and
#define cpumask_next_and(cpu, mask, online) blklab_next((cpu) + 1, mask)

#undef alloc_percpu
#define alloc_percpu(type) \
	((typeof(type) __percpu *)__alloc_percpu(blklab_cpus * sizeof(type), __alignof__(type)))
#undef alloc_percpu_gfp
#define alloc_percpu_gfp(type, gfp) \
	((typeof(type) __percpu *)__alloc_percpu_gfp(blklab_cpus * sizeof(type), __alignof__(type), gfp))
#undef per_cpu_ptr
#define per_cpu_ptr(ptr, cpu) blklab_per_cpu_ptr(ptr, cpu)
#undef this_cpu_read
#define this_cpu_read(element) (*per_cpu_ptr(&(element), blklab_cpu()))
#undef this_cpu_write
#define this_cpu_write(element, value) (*per_cpu_ptr(&(element), blklab_cpu()) = (value))
/* Of a variable there is only the guest's own. */
#undef per_cpu
#define per_cpu(variable, cpu) (*((void)(cpu), &(variable)))
