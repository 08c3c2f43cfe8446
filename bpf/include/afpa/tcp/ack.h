/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What an acknowledgement changes. */
#ifndef AFPA_ENGINE_ACK_H
#define AFPA_ENGINE_ACK_H

#include <afpa/tcp/rack.h>

struct block {
	__u32 from, to;
};

/* What the client says, in offsets of the answer. */
struct acknowledgement {
	__u32 ack;             /* everything below has arrived; beyond the end counts as the end */
	__u32 window;          /* bytes that the client takes from `ack` on */
	struct block sack[4];  /* empty ones are ignored */
	__u32 echo;            /* timestamp that is echoed, milliseconds of our clock */
	__u8 echoes, marked;   /* is there one; did the network mark a segment of ours */
	__u8 earlier;          /* the first block tells of a duplicate of an earlier answer */
};

/* Segments that lie whole within the blocks are known to have arrived. */
engine_function int note_blocks(struct flight *f, struct acknowledgement *ack)
{
	struct bits all = {};
	__u32 sent, unit;

	if (!f || !ack)
		return 0;
	sent = flight_sent(f);
	unit = f->unit;
	for (int i = 0; i < 4; i++) {
		__u32 from = ack->sack[i].from, to = ack->sack[i].to, end;

		if (from >= to || from <= f->una || to > sent || unit == 0)
			continue;
		end = to == f->length ? f->count : to / unit;
		all = bits_or(all, bits_range((from + unit - 1) / unit, end));
	}
	f->sacked = bits_and(bits_or(f->sacked, all), bits_range(flight_first(f), f->next));
	/* The client lacks its first byte: if it said otherwise, it has changed its mind (RFC 2018, section 8). */
	bits_clear(&f->sacked, flight_first(f));
	f->lost = bits_and(f->lost, flight_outstanding(f));
	return 0;
}

/* The first block tells of bytes that had arrived before (RFC 2883, section 4). */
static __always_inline bool is_duplicate(const struct acknowledgement *ack, __u32 acked)
{
	struct block one = ack->sack[0], other = ack->sack[1];

	return one.from < one.to && (one.to <= acked || (other.from <= one.from && one.to <= other.to));
}

/*
 * Something arrived twice. What was not sent twice the network has doubled, which tells nothing; that a
 * probe was not needed tells nothing of reordering.
 */
engine_function int sent_in_vain(struct flight *f, struct acknowledgement *ack)
{
	__u32 segment;

	if (!f || !ack || f->unit == 0)
		return 0;
	segment = (__u8)(ack->sack[0].from / f->unit);
	if (ack->earlier ? f->path.undo_open == 0 : !bits_has(f->again, segment))
		return 0;
	path_needless(&f->path, 1);
	if (f->probe == PROBE_REPEATED && f->probe_segment == segment && !ack->earlier)
		return 0;
	if (flight_first(f) >= f->patient_until) {
		path_wait_longer(&f->path);
		f->patient_until = f->next;
	}
	return 0;
}

/* Is that the newest transmission of those that arrived? Then it is remembered. */
static __always_inline void note_newest(struct flight *f, __u32 segment, __u32 sent_at, __u32 round_trip)
{
	bool newer = is_before(f->newest_sent_at, sent_at) ||
		     (f->newest_sent_at == sent_at && f->newest_segment <= segment);

	if (f->newest_known && !newer)
		return;
	f->newest_known = true;
	f->newest_sent_at = sent_at;
	f->newest_segment = segment;
	f->newest_round_trip = round_trip;
}

/* May what was sent before the segment was sent again still arrive? After a probe's patience no more. */
static __always_inline bool may_be_late(const struct flight *f, __u32 segment)
{
	return f->path.reordering && !(f->probe == PROBE_REPEATED && f->probe_segment == segment);
}

/* Learn from what arrived: round trips, reordering, the newest transmission that got through. */
engine_function int note_delivery(struct flight *f, __u64 now, struct bits *arrived, struct acknowledgement *ack)
{
	__u32 sample = 0, turn, segment;
	bool sampled = false;
	struct bits delivered, again;

	if (!f || !arrived || !ack)
		return 0;
	again = f->again;
	delivered = *arrived;
	each_turn(turn) {
		__u32 sent_at, round_trip;
		bool overtaken;

		if (!take_first(&delivered, &segment))
			break;
		sent_at = f->sent_at[segment & (ENGINE_SEGMENTS - 1)];
		round_trip = (__u32)now - sent_at;
		overtaken = segment < f->front;
		if (bits_has(f->again, segment)) {
			/*
			 * Which of the transmissions was it? Not the last one, if the echo is older than that, or
			 * if no packet can have been that fast (RFC 8985, 6.2, step 2). What arrived behind a gap is
			 * not echoed: the timestamp is that of the last segment before it (RFC 7323, 4.3), and taken for
			 * an answer only where segments overtake each other.
			 */
			__u64 left = now > round_trip ? now - round_trip : 0;

			if (ack->echoes && (segment < flight_first(f) || may_be_late(f, segment)) &&
			    is_before(ack->echo, left / 1000)) {
				/* It arrived before it was sent again (RFC 4015); the duplicate is no news then. */
				bits_clear(&f->again, segment);
				f->path.reordering |= overtaken;
				continue;
			}
			if (round_trip < f->path.shortest)
				continue;
		} else {
			sample = round_trip;
			sampled = true;
			f->path.reordering |= overtaken;
		}
		if (f->front < segment + 1)
			f->front = segment + 1;
		note_newest(f, segment, sent_at, round_trip);
	}
	path_needless(&f->path, bits_count(bits_without(again, f->again)));
	if (sampled)
		path_measured(&f->path, sample);
	return 0;
}

/* A repeated tail that repaired a loss is a loss (RFC 8985, 7.4). */
static __always_inline void probe_answered(struct flight *f, struct bits delivered, bool duplicate)
{
	if (f->probe == PROBE_REPEATED) {
		if (!bits_has(delivered, f->probe_segment))
			return;
		if (!duplicate && f->recovery == RECOVERY_OPEN)
			path_shrink(&f->path);
	} else if (f->probe == PROBE_NONE || bits_empty(delivered)) {
		return;
	}
	f->probe = PROBE_NONE;
	f->probe_segment = 0;
}

/* The window after `acked` segments more, and perhaps a mark. */
static __always_inline void congestion(struct flight *f, __u32 acked, bool marked)
{
	if (f->recovery != RECOVERY_OPEN && flight_first(f) >= f->recovery_until) {
		f->recovery = RECOVERY_OPEN;
		f->recovery_until = 0;
		path_recovered(&f->path);
	} else if (f->recovery == RECOVERY_SLOW ||
		   (f->recovery == RECOVERY_OPEN && f->path.window < 2 * f->peak)) {
		/* A window that was not made use of says nothing about the path (RFC 7661). */
		path_grow(&f->path, acked);
	}
	if (marked && flight_first(f) >= f->reduced_until) {
		/* Once a window, losses included; the client repeats it until it is told. */
		if (f->recovery == RECOVERY_OPEN)
			path_marked(&f->path);
		f->path.reduced = true;
		f->reduced_until = f->next + 1; /* what tells it has arrived, too */
	}
}

/* What `note_ack` found. */
struct news {
	struct bits delivered;
	__u32 acked;     /* segments */
	__u32 duplicate; /* something arrived twice */
};

/* What is acknowledged, cumulatively and in blocks. False: `progress` says why nothing follows. */
engine_function int note_ack(struct flight *f, __u64 now, struct acknowledgement *ack, struct news *news, int *progress)
{
	struct bits before;
	__u32 acked, first;

	if (!f || !ack || !news || !progress)
		return false;
	acked = lesser(ack->ack, f->length);
	*progress = acked > flight_sent(f) ? PROGRESS_IMPOSSIBLE : PROGRESS_GOING; /* S7 */
	if (acked > flight_sent(f) || acked < f->una)
		return false; /* one that is below was overtaken by a newer one */
	first = flight_first(f);
	before = flight_outstanding(f);
	if (acked > f->una) {
		f->progress = now;
		f->backoff = 0;
	}
	f->una = acked;
	f->edge = acked + ack->window < acked ? ~0u : acked + ack->window;
	news->duplicate = is_duplicate(ack, acked);
	if (ack->earlier || news->duplicate)
		sent_in_vain(f, ack);
	note_blocks(f, ack);
	news->delivered = bits_without(before, flight_outstanding(f));
	if (!bits_empty(news->delivered))
		f->base = now;
	news->acked = flight_first(f) - first;
	return true;
}

/* What follows for probe and window. */
engine_function int note_window(struct flight *f, struct news *news, bool marked)
{
	if (!f || !news)
		return 0;
	probe_answered(f, news->delivered, news->duplicate);
	congestion(f, news->acked, marked);
	return 0;
}

/* Does the acknowledgement say no more than how far everything has arrived, and did everything leave once, in order? */
static __always_inline bool is_plain(const struct flight *f, const struct acknowledgement *ack)
{
	const __u64 *blocks = (const __u64 *)ack->sack;

	return !f->repeated && bits_empty(bits_or(f->sacked, f->lost)) &&
	       !(blocks[0] | blocks[1] | blocks[2] | blocks[3]) && !ack->marked && !ack->earlier &&
	       f->recovery == RECOVERY_OPEN && f->probe == PROBE_NONE && f->front <= flight_first(f) &&
	       ack->ack >= f->una && lesser(ack->ack, f->length) <= flight_sent(f);
}

/* What `flight_on_ack` does with a plain acknowledgement: there are no sets to go through. */
engine_function int hear_plain(struct flight *f, __u64 now, struct acknowledgement *ack)
{
	__u32 first, acked, last;

	if (!f || !ack)
		return PROGRESS_IMPOSSIBLE;
	first = flight_first(f);
	acked = lesser(ack->ack, f->length);
	if (acked > f->una) {
		f->progress = now;
		f->backoff = 0;
	}
	f->una = acked;
	f->edge = acked + ack->window < acked ? ~0u : acked + ack->window;
	acked = flight_first(f) - first;
	if (acked) {
		last = first + acked - 1;
		f->base = now;
		f->front = last + 1;
		note_newest(f, last, f->sent_at[last & (ENGINE_SEGMENTS - 1)],
			    (__u32)now - f->sent_at[last & (ENGINE_SEGMENTS - 1)]);
		path_measured(&f->path, (__u32)now - f->sent_at[last & (ENGINE_SEGMENTS - 1)]);
	}
	congestion(f, acked, false);
	choose_timer(f, now, ~0ull);
	return flight_done(f) ? PROGRESS_DONE : PROGRESS_GOING;
}

/* An acknowledgement has come. */
static __always_inline int flight_on_ack(struct flight *f, __u64 now, struct acknowledgement *ack)
{
	int progress = PROGRESS_GOING;
	struct news news = {};

	if (is_plain(f, ack))
		return hear_plain(f, now, ack);
	if (!note_ack(f, now, ack, &news, &progress))
		return progress;
	note_delivery(f, now, &news.delivered, ack);
	note_window(f, &news, ack->marked);
	find_losses(f, now);
	set_timer(f, now);
	return flight_done(f) ? PROGRESS_DONE : PROGRESS_GOING;
}

#endif
