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
#define WINDOW_MAX 256

struct path {
	__u64 used;           /* when something was last sent */
	__u32 smoothed;       /* microseconds; 0 before the first measurement */
	__u32 variation, shortest;
	__u16 window, threshold; /* segments */
	__u8 patience;        /* quarters of the shortest round trip a segment may be late; 0: no reordering seen */
	__u8 reduced;         /* for a mark, and the client is still to be told (CWR, RFC 3168) */
	__u8 padding[2];
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

/* `acked` segments arrived while the window was made use of (RFC 5681, 3.1). */
static __always_inline void path_grow(struct path *path, __u32 acked, __u16 *credit)
{
	if (path->window < path->threshold) {
		path->window = lesser(path->window + acked, WINDOW_MAX);
		return;
	}
	*credit += acked;
	if (*credit >= path->window) {
		*credit -= path->window;
		path->window = lesser(path->window + 1, WINDOW_MAX);
	}
}

/* Something was lost while `outstanding` segments were on their way (RFC 5681, 3.2). */
static __always_inline void path_shrink(struct path *path, __u32 outstanding)
{
	path->threshold = greater(outstanding / 2, 2);
	path->window = path->threshold;
}

/* The network marked instead of dropping: half the window (RFC 3168, 6.1.2), whatever it was made use of. */
static __always_inline void path_marked(struct path *path)
{
	path_shrink(path, path->window);
	path->reduced = true;
}

/* The receiver says that it had a segment already. */
static __always_inline void path_sent_in_vain(struct path *path)
{
	if (path->patience < 16)
		path->patience++;
}

#endif
