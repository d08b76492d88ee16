/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CPU work of the modelled host in buffered calls: see worker.c.
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
#else
static inline void blklab_called(void) {}
static inline void blklab_copied(size_t bytes) {}
static inline void blklab_pay(void) {}
#endif

#endif
