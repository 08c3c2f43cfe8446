/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a connection remembers of its path from one answer to the next: round trips, window. */
#ifndef AFPA_ENGINE_PATH_H
#define AFPA_ENGINE_PATH_H

#define RTO_MIN 200000u
#define RTO_MAX 60000000u
#define RTO_FIRST 1000000u    /* RFC 6298, 2.1 */
#define DELAYED_ACK 200000u   /* RFC 8985, 7.2 */
#define PROBE_MIN 10000u
#define INITIAL_WINDOW 10     /* segments, RFC 6928 */
#define WINDOW_MAX 255
#define PERSIST 16            /* recoveries, RFC 8985, 6.2, step 4 */

struct path {
	__u64 used;           /* when something was last sent */
	__u32 smoothed;       /* microseconds; 0 before the first measurement */
	__u32 variation, shortest;
	__u16 window, threshold; /* segments */
	__u16 credit;         /* segments acknowledged towards the next growth: an answer alone is seldom enough */
	__u8 undo_window, undo_threshold; /* before the last reduction, should it prove needless; 0: nothing to undo */
	__u8 undo_open;       /* segments sent again that have not proven needless */
	__u8 reordering : 1;  /* a segment was seen to overtake another one */
	__u8 reduced : 1;     /* for a mark, and the client is still to be told (CWR, RFC 3168) */
	__u8 patience;        /* quarters of the shortest round trip that one may then be late */
	__u8 persist;         /* recoveries without a needless repetition before that is one again */
};

static __always_inline __u32 lesser(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __always_inline __u32 greater(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

static __always_inline void path_new(struct path *path)
{
	__builtin_memset(path, 0, sizeof(*path)); /* no constant of its size: clang puts that where loaders lose it */
	path->window = INITIAL_WINDOW;
	path->threshold = WINDOW_MAX;
	path->patience = 1;
}

/* Take a measurement in (RFC 6298, section 2). */
static __always_inline void path_measured(struct path *path, __u32 sample)
{
	__u32 difference;

	sample = greater(lesser(sample, RTO_MAX), 1);
	if (path->smoothed == 0) {
		path->smoothed = path->shortest = sample;
		path->variation = sample / 2;
		return;
	}
	difference = path->smoothed > sample ? path->smoothed - sample : sample - path->smoothed;
	path->variation = path->variation - path->variation / 4 + difference / 4;
	path->smoothed = greater(path->smoothed - path->smoothed / 8 + sample / 8, 1);
	path->shortest = lesser(path->shortest, sample);
}

/* Retransmission time-out after `backoff` ones in a row. */
static __always_inline __u64 path_time_out(const struct path *path, __u32 backoff)
{
	__u64 first = RTO_FIRST, doubled;

	if (path->smoothed)
		first = path->smoothed + (__u64)greater(path->variation * 4, RTO_MIN);
	doubled = first << (backoff < 16 ? backoff : 16);
	return doubled < RTO_MAX ? doubled : RTO_MAX;
}

/* Probe time-out: when to send the tail again, hoping for one acknowledgement. */
static __always_inline __u64 path_probe_out(const struct path *path, __u32 outstanding)
{
	__u64 wait = path->smoothed ? greater(2 * path->smoothed, PROBE_MIN) : RTO_FIRST;
	__u64 most = path_time_out(path, 0);

	if (outstanding == 1)
		wait += DELAYED_ACK;
	return wait < most ? wait : most;
}

/* After an idle time the window says nothing about the path any more (RFC 5681, 4.1). */
static __always_inline void path_restart(struct path *path, __u64 now)
{
	if (now > path->used && now - path->used > path_time_out(path, 0))
		path->window = lesser(path->window, INITIAL_WINDOW);
}

/*
 * `acked` segments arrived while the window was made use of (RFC 5681, 3.1). Who gives up less at a loss
 * grows slower: a segment for 15/8 windows (RFC 9438, 4.3).
 */
static __always_inline void path_grow(struct path *path, __u32 acked)
{
	__u32 whole;

	if (path->window < path->threshold) {
		path->window = lesser(path->window + acked, WINDOW_MAX);
		return;
	}
	whole = path->window * 15 / 8;
	path->credit += acked;
	if (path->credit >= whole) {
		path->credit -= whole;
		path->window = lesser(path->window + 1, WINDOW_MAX);
	}
}

/*
 * Something was lost: to seven tenths (RFC 9438, 4.6), of the window as CUBIC does in the kernel,
 * not of what happens to be on its way: answers are short, and seldom fill it.
 */
static __always_inline void path_shrink(struct path *path)
{
	path->threshold = greater(path->window * 7u / 10, 2);
	path->window = path->threshold;
	path->credit = 0;
}

/* The network marked instead of dropping: the same, once, and the client is to be told (CWR, RFC 3168). */
static __always_inline void path_marked(struct path *path)
{
	path_shrink(path);
	path->reduced = true;
}

/* Something was sent again in vain since the last round trip: more patience. */
static __always_inline void path_wait_longer(struct path *path)
{
	path->reordering = true; /* nothing else makes a repetition needless */
	path->patience += path->patience < 255;
	path->persist = PERSIST;
}

/* A recovery has ended: after so many that were not needless, less patience. */
static __always_inline void path_recovered(struct path *path)
{
	path->persist -= path->persist > 0;
	if (path->persist == 0)
		path->patience = 1;
}

/* A recovery begins: the window as it is may come back. */
static __always_inline void path_remember(struct path *path)
{
	path->undo_window = path->window;
	path->undo_threshold = path->threshold;
	path->undo_open = 0;
}

static __always_inline void path_forget(struct path *path)
{
	path->undo_window = path->undo_threshold = 0;
	path->undo_open = 0;
}

/* So many that were sent again were there already; with the last of them the recovery was needless. */
static __always_inline void path_needless(struct path *path, __u32 segments)
{
	path->undo_open -= lesser(path->undo_open, segments);
	if (segments && path->undo_window && path->undo_open == 0) {
		path->window = greater(path->window, path->undo_window);
		path->threshold = greater(path->threshold, path->undo_threshold);
		path_forget(path);
	}
}

#endif
