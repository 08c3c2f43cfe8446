/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The effects of an ACK: SACK (RFC 2018), DSACK (RFC 2883), RTT samples, undo (RFC 4015), ECE (RFC 3168), cwnd. */
#ifndef AFPA_TCP_ACK_H
#define AFPA_TCP_ACK_H

#include <afpa/tcp/rack.h>

struct sack_block {
	__u32 from, to;
};

/* An ACK of the client. Sequence numbers are offsets of the transfer. */
struct ack {
	__u32 ack;                 /* cumulative; beyond the transfer's end it counts as the end */
	__u32 wnd;                 /* bytes that the client accepts from `ack` on */
	struct sack_block sack[4]; /* empty ones are ignored */
	__u32 tsecr;               /* the echoed timestamp (RFC 7323), milliseconds of our clock */
	__u8 has_tsecr, ece;
	__u8 earlier_dsack;        /* the first block is a DSACK of an earlier transfer */
};

/* SACK blocks: a segment counts as delivered when it lies within a block as a whole. */
sender_function int on_sack(struct sender *snd, struct ack *ack)
{
	struct bitset all = {};
	__u32 sent, mss;

	if (!snd || !ack)
		return 0;
	sent = sender_snd_nxt(snd);
	mss = snd->mss;
	for (int i = 0; i < 4; i++) {
		__u32 from = ack->sack[i].from, to = ack->sack[i].to, end;

		if (from >= to || from <= snd->snd_una || to > sent || mss == 0)
			continue;
		end = to == snd->length ? snd->segments : to / mss;
		all = bitset_or(all, bitset_range((from + mss - 1) / mss, end));
	}
	snd->sacked = bitset_and(bitset_or(snd->sacked, all), bitset_range(sender_first_unacked(snd), snd->next));
	/* The client lacks the byte at snd_una. If it SACKed that segment before, it has reneged (RFC 2018, 8). */
	bitset_clear(&snd->sacked, sender_first_unacked(snd));
	snd->lost = bitset_and(snd->lost, sender_outstanding(snd));
	return 0;
}

/* Is the first block a DSACK: below the cumulative ACK, or within the second block (RFC 2883, 4)? */
static __always_inline bool is_dsack(const struct ack *ack, __u32 acked)
{
	struct sack_block one = ack->sack[0], other = ack->sack[1];

	return one.from < one.to && (one.to <= acked || (other.from <= one.from && one.to <= other.to));
}

/*
 * A DSACK: the client received something twice. Of a segment that was sent once, the network made the copy,
 * which says nothing. A spurious TLP says nothing about reordering.
 */
sender_function int on_dsack(struct sender *snd, struct ack *ack)
{
	__u32 segment;

	if (!snd || !ack || snd->mss == 0)
		return 0;
	segment = (__u8)(ack->sack[0].from / snd->mss);
	if (ack->earlier_dsack ? snd->path.undo_retrans == 0 : !bitset_has(snd->retransmitted, segment))
		return 0;
	path_on_spurious(&snd->path, 1);
	if (snd->tlp == TLP_RETRANSMITTED && snd->tlp_segment == segment && !ack->earlier_dsack)
		return 0;
	if (sender_first_unacked(snd) >= snd->reo_wnd_until) {
		path_raise_reo_wnd(&snd->path);
		snd->reo_wnd_until = snd->next;
	}
	return 0;
}

/* RACK's state: the delivered segment that was sent last (RFC 8985, 6.2, step 2). */
static __always_inline void rack_update(struct sender *snd, __u32 segment, __u32 sent_at, __u32 rtt)
{
	bool newer = is_before(snd->rack_xmit_ts, sent_at) ||
		     (snd->rack_xmit_ts == sent_at && snd->rack_segment <= segment);

	if (snd->rack_valid && !newer)
		return;
	snd->rack_valid = true;
	snd->rack_xmit_ts = sent_at;
	snd->rack_segment = segment;
	snd->rack_rtt = rtt;
}

/* May an earlier transmission of the retransmitted segment still arrive? Not after a TLP: a PTO is two RTTs. */
static __always_inline bool may_be_reordered(const struct sender *snd, __u32 segment)
{
	return snd->path.reordering_seen && !(snd->tlp == TLP_RETRANSMITTED && snd->tlp_segment == segment);
}

/* Where `on_delivered` stands. */
struct delivery {
	struct sender *snd;
	const struct ack *ack;
	__u64 now;
	struct bitset rest;
	__u32 sample;
	__u32 sampled;
};

/* The next of the delivered segments; stops (1) behind the last. */
static long take_delivered(__u32 index, void *context)
{
	struct delivery *d = context;
	struct sender *snd = d->snd;
	__u32 segment, sent_at, rtt;
	bool reordered;

	if (!take_first(&d->rest, &segment))
		return 1;
	sent_at = snd->sent_at[segment & (SENDER_SEGMENTS - 1)];
	rtt = (__u32)d->now - sent_at;
	reordered = segment < snd->rack_fack;
	if (bitset_has(snd->retransmitted, segment)) {
		/*
		 * Which transmission was delivered? An earlier one, if the echoed timestamp is older than the last one,
		 * or if the RTT would be below the minimum (RFC 8985, 6.2, step 2). A segment beyond a gap is not echoed:
		 * the timestamp is that of the last segment before the gap (RFC 7323, 4.3), and counts only on a path
		 * that reorders.
		 */
		__u64 left = d->now > rtt ? d->now - rtt : 0;

		if (d->ack->has_tsecr && (segment < sender_first_unacked(snd) || may_be_reordered(snd, segment)) &&
		    is_before(d->ack->tsecr, left / 1000)) {
			/* The retransmission was spurious (RFC 4015). The DSACK that follows is no news then. */
			bitset_clear(&snd->retransmitted, segment);
			snd->path.reordering_seen |= reordered;
			return 0;
		}
		if (rtt < snd->path.min_rtt)
			return 0;
	} else {
		/* Karn's algorithm: only segments that were sent once give RTT samples (RFC 6298, 3). */
		d->sample = rtt;
		d->sampled = true;
		snd->path.reordering_seen |= reordered;
	}
	if (snd->rack_fack < segment + 1)
		snd->rack_fack = segment + 1;
	rack_update(snd, segment, sent_at, rtt);
	return 0;
}

/* Segments were delivered: RTT samples, reordering, RACK's state, spurious retransmissions. */
sender_function int on_delivered(struct sender *snd, __u64 now, struct bitset *arrived, struct ack *ack)
{
	struct delivery delivery = { .snd = snd, .ack = ack, .now = now };
	struct bitset retransmitted;

	if (!snd || !arrived || !ack)
		return 0;
	retransmitted = snd->retransmitted;
	delivery.rest = *arrived;
	each_turn(take_delivered, &delivery);
	path_on_spurious(&snd->path, bitset_count(bitset_without(retransmitted, snd->retransmitted)));
	if (delivery.sampled)
		path_rtt_sample(&snd->path, delivery.sample);
	return 0;
}

/* The end of a TLP. If its retransmission repaired a loss, that loss reduces cwnd (RFC 8985, 7.4). */
static __always_inline void tlp_on_ack(struct sender *snd, struct bitset delivered, bool dsack)
{
	if (snd->tlp == TLP_RETRANSMITTED) {
		if (!bitset_has(delivered, snd->tlp_segment))
			return;
		if (!dsack && snd->ca_state == CA_OPEN)
			reduce_cwnd(snd);
	} else if (snd->tlp == TLP_NONE || bitset_empty(delivered)) {
		return;
	}
	snd->tlp = TLP_NONE;
	snd->tlp_segment = 0;
}

/* The end of a recovery, the growth of cwnd by `acked` segments, and the reduction for an ECE. */
static __always_inline void update_cwnd(struct sender *snd, __u32 acked, bool ece)
{
	if (snd->ca_state != CA_OPEN && sender_first_unacked(snd) >= snd->recovery_point) {
		snd->ca_state = CA_OPEN;
		snd->recovery_point = 0;
		path_on_recovery_end(&snd->path);
	} else if (snd->ca_state == CA_LOSS ||
		   (snd->ca_state == CA_OPEN && snd->path.cwnd < 2 * snd->max_pipe)) {
		/* A cwnd that is not used says nothing about the path, and does not grow (RFC 7661). */
		path_grow_cwnd(&snd->path, acked);
	}
	if (ece && sender_first_unacked(snd) >= snd->cwr_until) {
		/* Once a window, losses included (RFC 3168, 6.1.2): the client repeats ECE until it receives CWR. */
		if (snd->ca_state == CA_OPEN)
			reduce_cwnd(snd);
		snd->path.cwr_pending = true;
		snd->cwr_until = snd->next + 1; /* the segment with CWR is acknowledged, too */
	}
}

/* The results of `process_ack`. */
struct ack_result {
	struct bitset delivered;
	__u32 acked; /* segments, cumulatively */
	__u32 dsack;
};

/* The cumulative ACK, the window and the blocks. False: the ACK is to be ignored, and `progress` says why. */
sender_function int process_ack(struct sender *snd, __u64 now, struct ack *ack, struct ack_result *result,
				int *progress)
{
	struct bitset before;
	__u32 acked, first;

	if (!snd || !ack || !result || !progress)
		return false;
	acked = lesser(ack->ack, snd->length);
	*progress = acked > sender_snd_nxt(snd) ? PROGRESS_IMPOSSIBLE : PROGRESS_GOING; /* S7 */
	if (acked > sender_snd_nxt(snd) || acked < snd->snd_una)
		return false; /* one below snd_una was overtaken by a newer ACK */
	first = sender_first_unacked(snd);
	before = sender_outstanding(snd);
	if (acked > snd->snd_una) {
		snd->last_progress = now;
		snd->rto_backoff = 0;
	}
	snd->snd_una = acked;
	snd->snd_wnd_end = acked + ack->wnd < acked ? ~0u : acked + ack->wnd;
	result->dsack = is_dsack(ack, acked);
	if (ack->earlier_dsack || result->dsack)
		on_dsack(snd, ack);
	on_sack(snd, ack);
	result->delivered = bitset_without(before, sender_outstanding(snd));
	if (!bitset_empty(result->delivered))
		snd->timer_base = now;
	result->acked = sender_first_unacked(snd) - first;
	return true;
}

/* The consequences of an ACK for TLP and cwnd. */
sender_function int process_cwnd(struct sender *snd, struct ack_result *result, bool ece)
{
	if (!snd || !result)
		return 0;
	tlp_on_ack(snd, result->delivered, result->dsack);
	update_cwnd(snd, result->acked, ece);
	return 0;
}

/* Is the ACK cumulative only, with nothing lost, SACKed or retransmitted in the transfer? */
static __always_inline bool sender_ack_is_plain(const struct sender *snd, const struct ack *ack)
{
	const __u64 *blocks = (const __u64 *)ack->sack;

	return !snd->any_retransmitted && bitset_empty(bitset_or(snd->sacked, snd->lost)) &&
	       !(blocks[0] | blocks[1] | blocks[2] | blocks[3]) && !ack->ece && !ack->earlier_dsack &&
	       snd->ca_state == CA_OPEN && snd->tlp == TLP_NONE && snd->rack_fack <= sender_first_unacked(snd) &&
	       ack->ack >= snd->snd_una && lesser(ack->ack, snd->length) <= sender_snd_nxt(snd);
}

/* `sender_on_ack` for a plain ACK, which is the usual one: no set needs to be searched. */
sender_function int sender_on_plain_ack(struct sender *snd, __u64 now, struct ack *ack)
{
	__u32 first, acked, last;

	if (!snd || !ack)
		return PROGRESS_IMPOSSIBLE;
	first = sender_first_unacked(snd);
	acked = lesser(ack->ack, snd->length);
	if (acked > snd->snd_una) {
		snd->last_progress = now;
		snd->rto_backoff = 0;
	}
	snd->snd_una = acked;
	snd->snd_wnd_end = acked + ack->wnd < acked ? ~0u : acked + ack->wnd;
	acked = sender_first_unacked(snd) - first;
	if (acked) {
		last = first + acked - 1;
		snd->timer_base = now;
		snd->rack_fack = last + 1;
		rack_update(snd, last, snd->sent_at[last & (SENDER_SEGMENTS - 1)],
			    (__u32)now - snd->sent_at[last & (SENDER_SEGMENTS - 1)]);
		path_rtt_sample(&snd->path, (__u32)now - snd->sent_at[last & (SENDER_SEGMENTS - 1)]);
	}
	update_cwnd(snd, acked, false);
	arm_timer_after(snd, now, ~0ull);
	return sender_done(snd) ? PROGRESS_DONE : PROGRESS_GOING;
}

/* An ACK has come. PROGRESS_IMPOSSIBLE: it acknowledges bytes that were never sent, and nothing was changed (S7). */
static __always_inline int sender_on_ack(struct sender *snd, __u64 now, struct ack *ack)
{
	int progress = PROGRESS_GOING;
	struct ack_result result = {};

	if (sender_ack_is_plain(snd, ack))
		return sender_on_plain_ack(snd, now, ack);
	if (!process_ack(snd, now, ack, &result, &progress))
		return progress;
	on_delivered(snd, now, &result.delivered, ack);
	process_cwnd(snd, &result, ack->ece);
	rack_detect_loss(snd, now);
	arm_timer(snd, now);
	return sender_done(snd) ? PROGRESS_DONE : PROGRESS_GOING;
}

#endif
