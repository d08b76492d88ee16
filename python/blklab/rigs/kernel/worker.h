/* SPDX-License-Identifier: GPL-2.0 */
struct request_queue;

/* From the end of commands until processes go on. */
#define BLKLAB_INTERRUPT_NS	1

int blklab_hold_workers(struct request_queue *queue);
void blklab_let_workers_go(struct request_queue *queue);
