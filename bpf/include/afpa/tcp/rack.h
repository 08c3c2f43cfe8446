/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Loss detection by RACK (RFC 8985, section 6), and the timers: RACK, TLP (section 7), RTO (RFC 6298), persist. */
#ifndef AFPA_TCP_RACK_H
#define AFPA_TCP_RACK_H

#include <afpa/tcp/sender.h>

/*
 * A sign of congestion outside of a recovery: cwnd is reduced once a window, for a loss, an ECE or several signs
 * at once (RFC 5681, 3.1; RFC 3168, 6.1.2).
 */
static __always_inline void reduce_cwnd(struct sender *snd)
{
	if (sender_first_unacked(snd) < snd->reduced_until)
		return;
	path_reduce_cwnd(&snd->path);
	snd->reduced_until = snd->next;
}

/* Was something delivered that left after the segment? (RACK_sent_after, RFC 8985, 5.1) */
static __always_inline bool rack_is_overtaken(const struct sender *snd, __u32 segment)
{
	__u32 sent_at = snd->sent_at[segment & (SENDER_SEGMENTS - 1)];

	return snd->rack_valid && (is_before(sent_at, snd->rack_xmit_ts) ||
				   (sent_at == snd->rack_xmit_ts && segment < snd->rack_segment));
}

/*
 * A quick test that no outstanding segment was overtaken. Without retransmissions segments left in their order,
 * so outstanding ones left after the delivered one that was sent last.
 */
static __always_inline bool rack_in_order(const struct sender *snd)
{
	return !snd->any_retransmitted && snd->rack_segment < sender_first_unacked(snd);
}

/*
 * The reordering window (RFC 8985, 6.2, step 4): how long after the RACK RTT a segment is merely late. Zero in
 * recovery, or with three segments SACKed (DupThresh), unless the path is known to reorder.
 */
static __always_inline __u32 reo_wnd(const struct sender *snd)
{
	if (snd->path.reordering_seen)
		return lesser(snd->path.min_rtt / 4 * snd->path.reo_wnd_mult, snd->path.srtt);
	if (snd->ca_state != CA_OPEN || bitset_count(snd->sacked) >= 3)
		return 0;
	return snd->path.min_rtt / 4;
}

/* How long the overtaken segment is merely late yet; 0: it is lost. `allowed` is the RACK RTT plus `reo_wnd`. */
static __always_inline __u32 rack_wait(const struct sender *snd, __u64 now, __u32 segment, __u32 allowed)
{
	__u32 age = (__u32)now - snd->sent_at[segment & (SENDER_SEGMENTS - 1)];

	return allowed > age ? allowed - age : 0;
}

/* Where `rack_detect_late` stands. */
struct late_search {
	const struct sender *snd;
	__u64 now;
	struct bitset rest, late;
	__u64 shortest;
	__u32 allowed;
};

/* The next of the outstanding segments; stops (1) behind the last. */
static long rack_look_at_next(__u32 index, void *context)
{
	struct late_search *search = context;
	__u32 segment, wait;

	if (!take_first(&search->rest, &segment))
		return 1;
	if (!rack_is_overtaken(search->snd, segment))
		return 0;
	wait = rack_wait(search->snd, search->now, segment, search->allowed);
	if (wait == 0)
		bitset_set(&search->late, segment);
	if (wait < search->shortest)
		search->shortest = wait;
	return 0;
}

/*
 * Puts the overtaken segments whose time is over into `late`. Returns the shortest wait of all overtaken ones,
 * ~0 when there is none.
 */
sender_function __u64 rack_detect_late(struct sender *snd, __u64 now, struct bitset *late)
{
	struct late_search search = { .snd = snd, .now = now, .shortest = ~0ull };

	if (!snd || !late || !snd->rack_valid || rack_in_order(snd))
		return search.shortest;
	search.rest = bitset_without(sender_outstanding(snd), snd->lost);
	search.allowed = snd->rack_rtt + reo_wnd(snd);
	each_turn(rack_look_at_next, &search);
	*late = bitset_or(*late, search.late);
	return search.shortest;
}

/* Presume overtaken segments lost whose time is over. The first loss of a window begins a fast recovery. */
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
		reduce_cwnd(snd);
		snd->ca_state = CA_FAST_RECOVERY;
		snd->recovery_point = snd->next;
		snd->fast_retransmit = true;
	}
	snd->lost = bitset_or(snd->lost, late);
	return 0;
}

/* The RTO fired: everything outstanding is presumed lost, and cwnd is one segment (RFC 5681, 3.1; RFC 8985, 6.3). */
static __always_inline void on_rto(struct sender *snd)
{
	if (snd->ca_state == CA_OPEN) /* a recovery under way has reduced ssthresh already */
		reduce_cwnd(snd);
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

/* Choose the timer and set its deadline (S5). `late` is the result of `rack_detect_late`. */
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

/* Inlined, as is everything that calls two global functions: call stacks stay shallow. */
static __always_inline void arm_timer(struct sender *snd, __u64 now)
{
	struct bitset ignored = {};

	arm_timer_after(snd, now, rack_detect_late(snd, now, &ignored));
}

/*
 * ICMP said that segments are too big for the path (RFC 1191, RFC 8201): everything outstanding was dropped,
 * which is no sign of congestion. The caller sends shorter segments from now on.
 */
static __always_inline void sender_on_mtu_lowered(struct sender *snd, __u64 now)
{
	snd->lost = sender_outstanding(snd);
	snd->rack_valid = false;
	snd->tlp = TLP_NONE;
	snd->tlp_segment = 0;
	snd->timer_base = now;
	arm_timer(snd, now);
}

/* The timer TLP, RTO or persist fired. */
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
		/* A caller that bounds its bursts may have left a segment that is ready: no probe is needed then. */
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

/* Segments have left: timeouts count from now. One call is enough for all segments that leave at the same time. */
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
