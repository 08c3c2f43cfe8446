/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Losses, and what happens when nothing happens. */
#ifndef AFPA_TCP_RACK_H
#define AFPA_TCP_RACK_H

#include <afpa/tcp/sender.h>

/* On its way, though something that left after it has arrived? (RFC 8985, 6.2) */
static __always_inline bool rack_is_overtaken(const struct sender *snd, __u32 segment)
{
	__u32 sent_at = snd->sent_at[segment & (SENDER_SEGMENTS - 1)];

	return snd->rack_valid && (is_before(sent_at, snd->rack_xmit_ts) ||
				   (sent_at == snd->rack_xmit_ts && segment < snd->rack_segment));
}

/*
 * Has nothing that is on its way been overtaken, beyond doubt? While nothing was sent again, segments left in
 * their order, and those on their way are behind the newest that is known to have arrived.
 */
static __always_inline bool rack_in_order(const struct sender *snd)
{
	return !snd->any_retransmitted && snd->rack_segment < sender_first_unacked(snd);
}

/* How late a segment may be. Three beyond, or a recovery under way, and reordering never seen: not at all. */
static __always_inline __u32 reo_wnd(const struct sender *snd)
{
	if (snd->path.reordering_seen)
		return lesser(snd->path.min_rtt / 4 * snd->path.reo_wnd_mult, snd->path.srtt);
	if (snd->ca_state != CA_OPEN || bitset_count(snd->sacked) >= 3)
		return 0;
	return snd->path.min_rtt / 4;
}

/* Microseconds that an overtaken segment may still be merely late, by what `allowed` is known to be. */
static __always_inline __u32 rack_wait(const struct sender *snd, __u64 now, __u32 segment, __u32 allowed)
{
	__u32 age = (__u32)now - snd->sent_at[segment & (SENDER_SEGMENTS - 1)];

	return allowed > age ? allowed - age : 0;
}

/*
 * Walks what is on its way: overtaken segments whose time is over go into `late`, and the shortest wait
 * of the others is returned; ~0 when there is none.
 */
sender_function __u64 rack_detect_late(struct sender *snd, __u64 now, struct bitset *late)
{
	__u32 allowed, turn, segment;
	__u64 shortest = ~0ull;
	struct bitset rest;

	/* Nothing has arrived that could have overtaken anything, or nothing was overtaken. */
	if (!snd || !late || !snd->rack_valid || rack_in_order(snd))
		return shortest;
	rest = bitset_without(sender_outstanding(snd), snd->lost);
	allowed = snd->rack_rtt + reo_wnd(snd);
	each_turn(turn) {
		__u32 wait;

		if (!take_first(&rest, &segment))
			break;
		if (!rack_is_overtaken(snd, segment))
			continue;
		wait = rack_wait(snd, now, segment, allowed);
		if (wait == 0)
			bitset_set(late, segment);
		if (wait < shortest)
			shortest = wait;
	}
	return shortest;
}

/* Take for lost what should have arrived before the newest segment that did. */
sender_function int rack_detect_loss(struct sender *snd, __u64 now)
{
	struct bitset late = {};

	if (!snd)
		return 0;
	rack_detect_late(snd, now, &late);
	if (bitset_empty(late))
		return 0;
	if (snd->ca_state == CA_OPEN) {
		path_save_undo(&snd->path);
		path_reduce_cwnd(&snd->path);
		snd->ca_state = CA_FAST_RECOVERY;
		snd->recovery_point = snd->next;
		snd->fast_retransmit = true;
	}
	snd->lost = bitset_or(snd->lost, late);
	return 0;
}

/* Nothing came back in time: everything on its way is lost. */
static __always_inline void on_rto(struct sender *snd)
{
	if (snd->ca_state == CA_OPEN) /* a loss that was known has reduced the window already */
		path_reduce_cwnd(&snd->path);
	snd->path.cwnd = 1;
	snd->ca_state = CA_LOSS;
	snd->recovery_point = snd->next;
	path_clear_undo(&snd->path);
	snd->lost = sender_outstanding(snd);
	snd->tlp = TLP_NONE;
	snd->tlp_segment = 0;
	snd->rack_valid = false;
	snd->fast_retransmit = true;
	snd->mtu_blackhole = true;
}

/* Decide what is waited for, and how long; `late` is what `rack_detect_late` returned. */
sender_function int arm_timer_after(struct sender *snd, __u64 now, __u64 late)
{
	__u32 flying;
	__u64 wait;

	if (!snd)
		return 0;
	flying = sender_pipe(snd);
	wait = path_rto(&snd->path, snd->rto_backoff);
	if (sender_done(snd)) {
		snd->timer = TIMER_NONE;
		wait = 0;
	} else if (flying == 0) {
		snd->timer = TIMER_PERSIST;
	} else if (late != ~0ull) {
		snd->timer = TIMER_RACK;
		snd->deadline = now + late;
		return 0;
	} else if (snd->ca_state == CA_OPEN && snd->tlp == TLP_NONE && snd->rto_backoff == 0) {
		snd->timer = TIMER_TLP;
		wait = path_pto(&snd->path, flying);
	} else {
		snd->timer = TIMER_RTO;
	}
	snd->deadline = snd->timer_base + wait;
	return 0;
}

/* Inline, like all that calls more than one of these: no stack gets deep. */
static __always_inline void arm_timer(struct sender *snd, __u64 now)
{
	struct bitset ignored = {};

	arm_timer_after(snd, now, rack_detect_late(snd, now, &ignored));
}

/* What is on its way was too long for the path, a router says: it is lost, and tells nothing of congestion. */
static __always_inline void sender_on_mtu_lowered(struct sender *snd, __u64 now)
{
	snd->lost = sender_outstanding(snd);
	snd->rack_valid = false;
	snd->tlp = TLP_NONE;
	snd->tlp_segment = 0;
	snd->timer_base = now;
	arm_timer(snd, now);
}

/* Does the client take the segment whole? (RFC 9293, 3.8.6.2.1: no silly windows) */
static __always_inline bool sender_fits_snd_wnd(const struct sender *snd, __u32 segment)
{
	return segment < snd->segments && sender_segment_start(snd, segment + 1) <= snd->snd_wnd_end;
}

/* The segment that may leave now: what was lost goes before what is new. */
static __always_inline __u32 sender_ready(const struct sender *snd)
{
	bool room = sender_pipe(snd) < snd->path.cwnd;
	__u32 segment = bitset_first(snd->lost);

	if (segment != SENDER_NO_SEGMENT)
		room |= snd->fast_retransmit;
	else
		segment = snd->next;
	return room && sender_fits_snd_wnd(snd, segment) ? segment : SENDER_NO_SEGMENT;
}

/* A time-out, but for what was overtaken. */
sender_function int on_timeout(struct sender *snd)
{
	if (!snd)
		return 0;
	if (snd->timer == TIMER_TLP) {
		snd->tlp = TLP_DUE;
		snd->tlp_segment = 0;
	} else if (snd->timer == TIMER_RTO) {
		on_rto(snd);
		snd->rto_backoff += snd->rto_backoff < 255;
	} else if (snd->timer == TIMER_PERSIST && sender_ready(snd) == SENDER_NO_SEGMENT) {
		/* Who bounds his work may have left something that can go now; here there is nothing. */
		snd->window_probe = true;
		snd->rto_backoff += snd->rto_backoff < 255;
	}
	return 0;
}

/* The time is `now`. Does nothing before the deadline. */
static __always_inline int sender_on_timer(struct sender *snd, __u64 now)
{
	if (snd->timer == TIMER_NONE || now < snd->deadline)
		return sender_done(snd) ? PROGRESS_DONE : PROGRESS_GOING;
	if (now > snd->last_progress && now - snd->last_progress >= SENDER_GIVE_UP_AFTER)
		return PROGRESS_GIVEN_UP;
	if (snd->timer == TIMER_RACK)
		rack_detect_loss(snd, now);
	else
		on_timeout(snd);
	snd->timer_base = now;
	arm_timer(snd, now);
	return PROGRESS_GOING;
}

#endif
