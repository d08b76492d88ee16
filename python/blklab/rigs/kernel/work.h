/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CPU work of the modelled host inside the kernel: see worker.c.
 */
#ifndef _LINUX_BLKLAB_WORK_H
#define _LINUX_BLKLAB_WORK_H

#include <linux/types.h>

#ifdef CONFIG_BLKLAB_DISK
/* A buffered read or write begins. */
void blklab_called(void);
/* It has copied so many bytes. */
void blklab_copied(size_t bytes);
/* It sleeps until a modelled CPU has done what has been counted for this thread. */
void blklab_pay(void);
/* This thread submits an I/O of libaio: for blklab_ended(). */
u64 blklab_began(void);
/* That I/O has ended: when its modelled CPU has done the work of that, or 0. */
u64 blklab_ended(u64 began);
#else
static inline void blklab_called(void) {}
static inline void blklab_copied(size_t bytes) {}
static inline void blklab_pay(void) {}
static inline u64 blklab_began(void) { return 0; }
static inline u64 blklab_ended(u64 began) { return 0; }
#endif

#endif
