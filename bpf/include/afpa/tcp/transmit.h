/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What leaves next. */
#ifndef AFPA_TCP_TRANSMIT_H
#define AFPA_TCP_TRANSMIT_H

#include <afpa/tcp/rack.h>

struct transmission {
	__u32 offset;          /* of the answer */
	__u32 length;          /* 0: an empty segment one byte below asks whether the window has opened */
	__u8 retransmitted, cwr;   /* sent before; tell the client that a mark was heard (CWR) */
	__u8 ect;         /* new data, and no question: the network may mark it (ECT) */
	__u8 last;             /* the answer ends with it */
};

static __always_inline void transmit_segment(struct sender *snd, __u64 now, __u32 segment, struct transmission *t)
{
	__u32 start = sender_segment_start(snd, segment), end = sender_segment_start(snd, segment + 1);
	bool retransmitted = segment < snd->next;

	if (retransmitted) {
		snd->any_retransmitted = true;
		bitset_set(&snd->retransmitted, segment);
		bitset_clear(&snd->lost, segment);
		snd->path.undo_retrans += snd->path.undo_retrans < 255;
	} else {
		snd->next = segment + 1;
	}
	snd->sent_at[segment & (SENDER_SEGMENTS - 1)] = now;
	snd->path.last_sent = now;
	snd->max_pipe = greater(snd->max_pipe, sender_pipe(snd));
	t->offset = greater(start, snd->snd_una); /* a client may take half a segment */
	t->length = end - t->offset;
	t->retransmitted = retransmitted;
	t->cwr = !retransmitted && snd->path.cwr_pending;
	if (!retransmitted)
		snd->path.cwr_pending = false;
	t->ect = !retransmitted;
	t->last = end == snd->length;
}

/* Ask whether the window has opened: with the bytes that it takes, if there are any. */
static __always_inline void send_window_probe(struct sender *snd, __u64 now, struct transmission *t)
{
	__u32 segment = sender_first_unacked(snd), end = greater(lesser(sender_segment_start(snd, segment + 1), snd->snd_wnd_end), snd->snd_una);
	bool retransmitted = segment < snd->next;

	snd->window_probe = false;
	if (end > snd->snd_una) {
		transmit_segment(snd, now, segment, t);
		bitset_set(&snd->lost, segment); /* sent in part: the rest of it is owed */
	}
	t->offset = snd->snd_una;
	t->length = end - snd->snd_una;
	t->retransmitted = retransmitted;
	t->ect = false;
	t->last = end == snd->length;
}

/* What a probe consists of: something new if the client takes it, else the last thing it may not have. */
static __always_inline __u32 tlp_segment(const struct sender *snd)
{
	__u32 last = bitset_last(sender_outstanding(snd));

	if (sender_fits_snd_wnd(snd, snd->next))
		return snd->next;
	return last != SENDER_NO_SEGMENT && sender_fits_snd_wnd(snd, last) ? last : SENDER_NO_SEGMENT;
}

/* The segment that leaves now, into `t`; false: none may. */
sender_function int sender_next(struct sender *snd, __u64 now, struct transmission *t)
{
	__u32 segment = SENDER_NO_SEGMENT;

	if (!snd || !t)
		return false;
	if (snd->window_probe) {
		send_window_probe(snd, now, t);
		return true;
	}
	if (snd->tlp == TLP_DUE) {
		snd->tlp = TLP_NONE;
		segment = tlp_segment(snd);
		if (segment != SENDER_NO_SEGMENT) {
			snd->tlp = segment == snd->next ? TLP_NEW_DATA : TLP_RETRANSMITTED;
			snd->tlp_segment = snd->tlp == TLP_RETRANSMITTED ? segment : 0;
		}
	}
	if (segment == SENDER_NO_SEGMENT) {
		segment = sender_ready(snd);
		if (segment == SENDER_NO_SEGMENT)
			return false;
		snd->fast_retransmit = false;
	}
	transmit_segment(snd, now, segment, t);
	return true;
}

/* Something was chosen: the timer runs from now. Once is enough for all that leave at the same time. */
static __always_inline void sender_rearm_timer(struct sender *snd, __u64 now)
{
	snd->timer_base = now;
	arm_timer(snd, now);
}

/* The next segment to send into `t`. False: none may leave now. */
static __always_inline int sender_poll(struct sender *snd, __u64 now, struct transmission *t)
{
	if (!sender_next(snd, now, t))
		return false;
	sender_rearm_timer(snd, now);
	return true;
}

#endif
