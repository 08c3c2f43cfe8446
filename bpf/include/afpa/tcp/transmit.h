/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What leaves next. */
#ifndef AFPA_ENGINE_TRANSMIT_H
#define AFPA_ENGINE_TRANSMIT_H

#include <afpa/tcp/rack.h>

struct transmission {
	__u32 offset;          /* of the answer */
	__u32 length;          /* 0: an empty segment one byte below asks whether the window has opened */
	__u8 again, reduced;   /* sent before; tell the client that a mark was heard (CWR) */
	__u8 markable;         /* new data, and no question: the network may mark it (ECT) */
	__u8 last;             /* the answer ends with it */
};

static __always_inline void transmit(struct flight *f, __u64 now, __u32 segment, struct transmission *t)
{
	__u32 start = flight_start(f, segment), end = flight_start(f, segment + 1);
	bool again = segment < f->next;

	if (again) {
		f->repeated = true;
		bits_set(&f->again, segment);
		bits_clear(&f->lost, segment);
		f->path.undo_open += f->path.undo_open < 255;
	} else {
		f->next = segment + 1;
	}
	f->sent_at[segment & (ENGINE_SEGMENTS - 1)] = now;
	f->path.used = now;
	f->peak = greater(f->peak, flight_pipe(f));
	t->offset = greater(start, f->una); /* a client may take half a segment */
	t->length = end - t->offset;
	t->again = again;
	t->reduced = !again && f->path.reduced;
	if (!again)
		f->path.reduced = false;
	t->markable = !again;
	t->last = end == f->length;
}

/* Ask whether the window has opened: with the bytes that it takes, if there are any. */
static __always_inline void ask(struct flight *f, __u64 now, struct transmission *t)
{
	__u32 segment = flight_first(f), end = greater(lesser(flight_start(f, segment + 1), f->edge), f->una);
	bool again = segment < f->next;

	f->asking = false;
	if (end > f->una) {
		transmit(f, now, segment, t);
		bits_set(&f->lost, segment); /* sent in part: the rest of it is owed */
	}
	t->offset = f->una;
	t->length = end - f->una;
	t->again = again;
	t->markable = false;
	t->last = end == f->length;
}

/* What a probe consists of: something new if the client takes it, else the last thing it may not have. */
static __always_inline __u32 probe_segment(const struct flight *f)
{
	__u32 last = bits_last(flight_outstanding(f));

	if (fits_edge(f, f->next))
		return f->next;
	return last != ENGINE_NO_SEGMENT && fits_edge(f, last) ? last : ENGINE_NO_SEGMENT;
}

/* The segment that leaves now, into `t`; false: none may. */
engine_function int choose(struct flight *f, __u64 now, struct transmission *t)
{
	__u32 segment = ENGINE_NO_SEGMENT;

	if (!f || !t)
		return false;
	if (f->asking) {
		ask(f, now, t);
		return true;
	}
	if (f->probe == PROBE_DUE) {
		f->probe = PROBE_NONE;
		segment = probe_segment(f);
		if (segment != ENGINE_NO_SEGMENT) {
			f->probe = segment == f->next ? PROBE_FRESH : PROBE_REPEATED;
			f->probe_segment = f->probe == PROBE_REPEATED ? segment : 0;
		}
	}
	if (segment == ENGINE_NO_SEGMENT) {
		segment = flight_ready(f);
		if (segment == ENGINE_NO_SEGMENT)
			return false;
		f->urgent = false;
	}
	transmit(f, now, segment, t);
	return true;
}

/* Something was chosen: the timer runs from now. Once is enough for all that leave at the same time. */
static __always_inline void flight_sent_now(struct flight *f, __u64 now)
{
	f->base = now;
	set_timer(f, now);
}

/* The next segment to send into `t`. False: none may leave now. */
static __always_inline int flight_poll_send(struct flight *f, __u64 now, struct transmission *t)
{
	if (!choose(f, now, t))
		return false;
	flight_sent_now(f, now);
	return true;
}

#endif
