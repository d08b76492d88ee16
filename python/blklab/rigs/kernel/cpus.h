/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The modelled host's CPUs, as far as the block layer's queues have to do with them: see worker.c.
 */
#ifndef _LINUX_BLKLAB_CPUS_H
#define _LINUX_BLKLAB_CPUS_H

#ifdef CONFIG_BLKLAB_DISK
/* How many there are, from the command line (blklab.cpus=NUMBER). */
extern unsigned int blklab_cpus;
/* That on which the running thread, work or interrupt is. */
unsigned int blklab_cpu(void);
#else
#define blklab_cpus 1U
static inline unsigned int blklab_cpu(void) { return 0; }
#endif

/* What belongs to a CPU is an array with one element for each of them. */
#define blklab_per_cpu_ptr(ptr, cpu) ((ptr) + (cpu))
#define blklab_for_each_cpu(cpu) for ((cpu) = 0; (cpu) < blklab_cpus; (cpu)++)

#endif
