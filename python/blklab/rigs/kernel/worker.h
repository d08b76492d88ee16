/* SPDX-License-Identifier: GPL-2.0 */
struct request;
struct request_queue;

/* From the end of commands until processes go on. */
#define BLKLAB_INTERRUPT_NS	1

#if __has_include(<linux/blklab_cpus.h>)
/* The end of a request is handled on its modelled CPU, until the other call. */
void blklab_end_on(struct request *rq);
void blklab_has_ended(void);
#else
static inline void blklab_end_on(struct request *rq) {}
static inline void blklab_has_ended(void) {}
#endif

int blklab_hold_workers(struct request_queue *queue);
void blklab_let_workers_go(struct request_queue *queue);
