/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One answer of several segments on its way to the client: its state, and what can be said of it.
 * States, transitions and invariants (S1 to S8) stand in the model's LIFECYCLE.md.
 */
#ifndef AFPA_ENGINE_FLIGHT_H
#define AFPA_ENGINE_FLIGHT_H

#include <afpa/tcp/bitset.h>
#include <afpa/tcp/path.h>

#define ENGINE_PATIENCE 60000000ull /* nothing arrives for so long: the client is given up */

enum recovery { RECOVERY_OPEN, RECOVERY_FAST, RECOVERY_SLOW };
enum probe { PROBE_NONE, PROBE_DUE, PROBE_FRESH, PROBE_REPEATED };
enum timer { TIMER_NONE, TIMER_REORDER, TIMER_PROBE, TIMER_REPEAT, TIMER_PERSIST };
enum progress { PROGRESS_GOING, PROGRESS_DONE, PROGRESS_IMPOSSIBLE, PROGRESS_GIVEN_UP };

/* Offsets are in bytes from the answer's first one, times in microseconds. */
struct flight {
	__u64 deadline, base, progress;
	struct path path;
	struct bits sacked, lost, again;
	__u32 length, unit, una, edge;
	__u32 newest_sent_at, newest_round_trip;
	__u16 peak;
	__u8 count, next, front;
	__u8 newest_known, newest_segment;
	__u8 recovery, recovery_until, urgent;
	__u8 probe, probe_segment, asking;
	__u8 timer, backoff, reduced_until, patient_until;
	__u8 narrow; /* nothing came back once: perhaps what is too long for the path is lost without a word */
	__u8 repeated; /* something was sent again, ever: they need not have left in their order. Not in the model */
	__u32 sent_at[ENGINE_SEGMENTS];
};

/*
 * A function that the verifier looks at once, wherever it is called from. Its pointers may be anything of
 * the size of what they point to, so it begins by asking whether they are NULL.
 */
#ifdef ENGINE_IN_USER_SPACE
#define engine_function static __noinline
#else
#define engine_function __noinline
#endif

/*
 * As many turns as a set may have members. A loop of the kernel's own, so that the verifier looks at its
 * body once.
 */
#ifdef ENGINE_IN_USER_SPACE
#define each_turn(i) for (i = 0; i < ENGINE_SEGMENTS; i++)
#else
struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));
#define each_turn(i) bpf_for(i, 0, ENGINE_SEGMENTS)
#endif

/* The first of `set`, which it leaves; false when it is empty. */
static __always_inline bool take_first(struct bits *set, __u32 *segment)
{
	*segment = bits_first(*set);
	if (*segment >= ENGINE_SEGMENTS)
		return false;
	bits_clear(set, *segment);
	return true;
}

static __always_inline bool is_before(__u32 one, __u32 other)
{
	return (__s32)(one - other) < 0;
}

static __always_inline bool flight_done(const struct flight *f)
{
	return f->una == f->length;
}

/* Where segment `segment` begins. */
static __always_inline __u32 flight_start(const struct flight *f, __u32 segment)
{
	return lesser(segment * f->unit, f->length);
}

/* One behind the last byte that was ever sent. */
static __always_inline __u32 flight_sent(const struct flight *f)
{
	return flight_start(f, f->next);
}

/* The segment in which the first missing byte lies. */
static __always_inline __u32 flight_first(const struct flight *f)
{
	if (flight_done(f) || f->unit == 0)
		return f->count;
	return f->una / f->unit;
}

/* Has anything arrived? */
static __always_inline bool flight_has_arrived(const struct flight *f)
{
	return f->una || f->front;
}

/* Sent, and not known to have arrived. */
static __always_inline struct bits flight_outstanding(const struct flight *f)
{
	return bits_without(bits_range(flight_first(f), f->next), f->sacked);
}

/* What the network is thought to hold. */
static __always_inline __u32 flight_pipe(const struct flight *f)
{
	if (bits_empty(bits_or(f->sacked, f->lost)))
		return f->next - flight_first(f);
	return bits_count(bits_without(flight_outstanding(f), f->lost));
}

/* An answer that begins now. False: it has too many segments, or none, and is not for us. */
static __always_inline bool flight_begin(struct flight *f, __u64 now, __u32 length, __u32 segment, __u32 window,
					 const struct path *path)
{
	__u32 unit = window >= 2 * segment ? segment : lesser(window / 2, segment), count;

	if (length == 0 || unit == 0)
		return false;
	count = (length - 1) / unit + 1;
	if (count > ENGINE_SEGMENTS)
		return false;
	__builtin_memset(f, 0, sizeof(*f));
	f->path = *path;
	path_restart(&f->path, now);
	f->length = length;
	f->unit = unit;
	f->count = count;
	f->edge = window;
	f->reduced_until = path->reduced; /* the first segment tells */
	f->base = f->progress = now;
	return true;
}

/* The request told of a mark: no second reduction when it is heard as an acknowledgement, too. */
static __always_inline void flight_marked(struct flight *f)
{
	if (!f->path.reduced)
		path_marked(&f->path);
	f->reduced_until = 1;
}

#endif
