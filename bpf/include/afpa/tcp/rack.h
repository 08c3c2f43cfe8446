/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Losses, and what happens when nothing happens. */
#ifndef AFPA_ENGINE_TIMER_H
#define AFPA_ENGINE_TIMER_H

#include <afpa/tcp/sender.h>

/* On its way, though something that left after it has arrived? (RFC 8985, 6.2) */
static __always_inline bool is_overtaken(const struct flight *f, __u32 segment)
{
	__u32 sent_at = f->sent_at[segment & (ENGINE_SEGMENTS - 1)];

	return f->newest_known && (is_before(sent_at, f->newest_sent_at) ||
				   (sent_at == f->newest_sent_at && segment < f->newest_segment));
}

/*
 * Has nothing that is on its way been overtaken, beyond doubt? While nothing was sent again, segments left in
 * their order, and those on their way are behind the newest that is known to have arrived.
 */
static __always_inline bool is_in_order(const struct flight *f)
{
	return !f->repeated && f->newest_segment < flight_first(f);
}

/* How late a segment may be. Three beyond, or a recovery under way, and reordering never seen: not at all. */
static __always_inline __u32 lateness(const struct flight *f)
{
	if (f->path.reordering)
		return lesser(f->path.shortest / 4 * f->path.patience, f->path.smoothed);
	if (f->recovery != RECOVERY_OPEN || bits_count(f->sacked) >= 3)
		return 0;
	return f->path.shortest / 4;
}

/* Microseconds that an overtaken segment may still be merely late, by what `allowed` is known to be. */
static __always_inline __u32 waits(const struct flight *f, __u64 now, __u32 segment, __u32 allowed)
{
	__u32 age = (__u32)now - f->sent_at[segment & (ENGINE_SEGMENTS - 1)];

	return allowed > age ? allowed - age : 0;
}

/*
 * Walks what is on its way: overtaken segments whose time is over go into `late`, and the shortest wait
 * of the others is returned; ~0 when there is none.
 */
engine_function __u64 look_for_late(struct flight *f, __u64 now, struct bits *late)
{
	__u32 allowed, turn, segment;
	__u64 shortest = ~0ull;
	struct bits rest;

	/* Nothing has arrived that could have overtaken anything, or nothing was overtaken. */
	if (!f || !late || !f->newest_known || is_in_order(f))
		return shortest;
	rest = bits_without(flight_outstanding(f), f->lost);
	allowed = f->newest_round_trip + lateness(f);
	each_turn(turn) {
		__u32 wait;

		if (!take_first(&rest, &segment))
			break;
		if (!is_overtaken(f, segment))
			continue;
		wait = waits(f, now, segment, allowed);
		if (wait == 0)
			bits_set(late, segment);
		if (wait < shortest)
			shortest = wait;
	}
	return shortest;
}

/* Take for lost what should have arrived before the newest segment that did. */
engine_function int find_losses(struct flight *f, __u64 now)
{
	struct bits late = {};

	if (!f)
		return 0;
	look_for_late(f, now, &late);
	if (bits_empty(late))
		return 0;
	if (f->recovery == RECOVERY_OPEN) {
		path_remember(&f->path);
		path_shrink(&f->path);
		f->recovery = RECOVERY_FAST;
		f->recovery_until = f->next;
		f->urgent = true;
	}
	f->lost = bits_or(f->lost, late);
	return 0;
}

/* Nothing came back in time: everything on its way is lost. */
static __always_inline void lose_all(struct flight *f)
{
	if (f->recovery == RECOVERY_OPEN) /* a loss that was known has reduced the window already */
		path_shrink(&f->path);
	f->path.window = 1;
	f->recovery = RECOVERY_SLOW;
	f->recovery_until = f->next;
	path_forget(&f->path);
	f->lost = flight_outstanding(f);
	f->probe = PROBE_NONE;
	f->probe_segment = 0;
	f->newest_known = false;
	f->urgent = true;
	f->narrow = true;
}

/* Decide what is waited for, and how long; `late` is what `look_for_late` returned. */
engine_function int choose_timer(struct flight *f, __u64 now, __u64 late)
{
	__u32 flying;
	__u64 wait;

	if (!f)
		return 0;
	flying = flight_pipe(f);
	wait = path_time_out(&f->path, f->backoff);
	if (flight_done(f)) {
		f->timer = TIMER_NONE;
		wait = 0;
	} else if (flying == 0) {
		f->timer = TIMER_PERSIST;
	} else if (late != ~0ull) {
		f->timer = TIMER_REORDER;
		f->deadline = now + late;
		return 0;
	} else if (f->recovery == RECOVERY_OPEN && f->probe == PROBE_NONE && f->backoff == 0) {
		f->timer = TIMER_PROBE;
		wait = path_probe_out(&f->path, flying);
	} else {
		f->timer = TIMER_REPEAT;
	}
	f->deadline = f->base + wait;
	return 0;
}

/* Inline, like all that calls more than one of these: no stack gets deep. */
static __always_inline void set_timer(struct flight *f, __u64 now)
{
	struct bits ignored = {};

	choose_timer(f, now, look_for_late(f, now, &ignored));
}

/* What is on its way was too long for the path, a router says: it is lost, and tells nothing of congestion. */
static __always_inline void flight_narrowed(struct flight *f, __u64 now)
{
	f->lost = flight_outstanding(f);
	f->newest_known = false;
	f->probe = PROBE_NONE;
	f->probe_segment = 0;
	f->base = now;
	set_timer(f, now);
}

/* Does the client take the segment whole? (RFC 9293, 3.8.6.2.1: no silly windows) */
static __always_inline bool fits_edge(const struct flight *f, __u32 segment)
{
	return segment < f->count && flight_start(f, segment + 1) <= f->edge;
}

/* The segment that may leave now: what was lost goes before what is new. */
static __always_inline __u32 flight_ready(const struct flight *f)
{
	bool room = flight_pipe(f) < f->path.window;
	__u32 segment = bits_first(f->lost);

	if (segment != ENGINE_NO_SEGMENT)
		room |= f->urgent;
	else
		segment = f->next;
	return room && fits_edge(f, segment) ? segment : ENGINE_NO_SEGMENT;
}

/* A time-out, but for what was overtaken. */
engine_function int time_out(struct flight *f)
{
	if (!f)
		return 0;
	if (f->timer == TIMER_PROBE) {
		f->probe = PROBE_DUE;
		f->probe_segment = 0;
	} else if (f->timer == TIMER_REPEAT) {
		lose_all(f);
		f->backoff += f->backoff < 255;
	} else if (f->timer == TIMER_PERSIST && flight_ready(f) == ENGINE_NO_SEGMENT) {
		/* Who bounds his work may have left something that can go now; here there is nothing. */
		f->asking = true;
		f->backoff += f->backoff < 255;
	}
	return 0;
}

/* The time is `now`. Does nothing before the deadline. */
static __always_inline int flight_on_time(struct flight *f, __u64 now)
{
	if (f->timer == TIMER_NONE || now < f->deadline)
		return flight_done(f) ? PROGRESS_DONE : PROGRESS_GOING;
	if (now > f->progress && now - f->progress >= ENGINE_PATIENCE)
		return PROGRESS_GIVEN_UP;
	if (f->timer == TIMER_REORDER)
		find_losses(f, now);
	else
		time_out(f);
	f->base = now;
	set_timer(f, now);
	return PROGRESS_GOING;
}

#endif
