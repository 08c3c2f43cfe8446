/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a connection remembers of its path from one answer to the next: round trips, window. */
#ifndef AFPA_TCP_PATH_H
#define AFPA_TCP_PATH_H

#define RTO_MIN 200000u
#define RTO_MAX 60000000u
#define RTO_INITIAL 1000000u    /* RFC 6298, 2.1 */
#define DELAYED_ACK_MAX 200000u   /* RFC 8985, 7.2 */
#define PTO_MIN 10000u
#define CWND_INITIAL 10     /* segments, RFC 6928 */
#define CWND_MAX 255
#define REO_WND_PERSIST 16            /* recoveries, RFC 8985, 6.2, step 4 */

struct path {
	__u64 last_sent;           /* when something was last sent */
	__u32 srtt;       /* microseconds; 0 before the first measurement */
	__u32 rttvar, min_rtt;
	__u16 cwnd, ssthresh; /* segments */
	__u16 cwnd_cnt;         /* segments acknowledged towards the next growth: an answer alone is seldom enough */
	__u8 undo_cwnd, undo_ssthresh; /* before the last reduction, should it prove needless; 0: nothing to undo */
	__u8 undo_retrans;       /* segments sent again that have not proven needless */
	__u8 reordering_seen : 1;  /* a segment was seen to overtake another one */
	__u8 cwr_pending : 1;     /* for a mark, and the client is still to be told (CWR, RFC 3168) */
	__u8 reo_wnd_mult;        /* quarters of the shortest round trip that one may then be late */
	__u8 reo_wnd_persist;         /* recoveries without a needless repetition before that is one again */
};

static __always_inline __u32 lesser(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __always_inline __u32 greater(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

static __always_inline void path_init(struct path *path)
{
	__builtin_memset(path, 0, sizeof(*path)); /* no constant of its size: clang puts that where loaders lose it */
	path->cwnd = CWND_INITIAL;
	path->ssthresh = CWND_MAX;
	path->reo_wnd_mult = 1;
}

/* Take a measurement in (RFC 6298, section 2). */
static __always_inline void path_rtt_sample(struct path *path, __u32 sample)
{
	__u32 difference;

	sample = greater(lesser(sample, RTO_MAX), 1);
	if (path->srtt == 0) {
		path->srtt = path->min_rtt = sample;
		path->rttvar = sample / 2;
		return;
	}
	difference = path->srtt > sample ? path->srtt - sample : sample - path->srtt;
	path->rttvar = path->rttvar - path->rttvar / 4 + difference / 4;
	path->srtt = greater(path->srtt - path->srtt / 8 + sample / 8, 1);
	path->min_rtt = lesser(path->min_rtt, sample);
}

/* Retransmission time-out after `backoff` ones in a row. */
static __always_inline __u64 path_rto(const struct path *path, __u32 backoff)
{
	__u64 first = RTO_INITIAL, doubled;

	if (path->srtt)
		first = path->srtt + (__u64)greater(path->rttvar * 4, RTO_MIN);
	doubled = first << (backoff < 16 ? backoff : 16);
	return doubled < RTO_MAX ? doubled : RTO_MAX;
}

/* Probe time-out: when to send the tail again, hoping for one acknowledgement. */
static __always_inline __u64 path_pto(const struct path *path, __u32 outstanding)
{
	__u64 wait = path->srtt ? greater(2 * path->srtt, PTO_MIN) : RTO_INITIAL;
	__u64 most = path_rto(path, 0);

	if (outstanding == 1)
		wait += DELAYED_ACK_MAX;
	return wait < most ? wait : most;
}

/* After an idle time the window says nothing about the path any more (RFC 5681, 4.1). */
static __always_inline void path_idle_restart(struct path *path, __u64 now)
{
	if (now > path->last_sent && now - path->last_sent > path_rto(path, 0))
		path->cwnd = lesser(path->cwnd, CWND_INITIAL);
}

/*
 * `acked` segments arrived while the window was made use of (RFC 5681, 3.1). Who gives up less at a loss
 * grows slower: a segment for 15/8 windows (RFC 9438, 4.3).
 */
static __always_inline void path_grow_cwnd(struct path *path, __u32 acked)
{
	__u32 whole;

	if (path->cwnd < path->ssthresh) {
		path->cwnd = lesser(path->cwnd + acked, CWND_MAX);
		return;
	}
	whole = path->cwnd * 15 / 8;
	path->cwnd_cnt += acked;
	if (path->cwnd_cnt >= whole) {
		path->cwnd_cnt -= whole;
		path->cwnd = lesser(path->cwnd + 1, CWND_MAX);
	}
}

/*
 * Something was lost: to seven tenths (RFC 9438, 4.6), of the window as CUBIC does in the kernel,
 * not of what happens to be on its way: answers are short, and seldom fill it.
 */
static __always_inline void path_reduce_cwnd(struct path *path)
{
	path->ssthresh = greater(path->cwnd * 7u / 10, 2);
	path->cwnd = path->ssthresh;
	path->cwnd_cnt = 0;
}

/* The network marked instead of dropping: the same, once, and the client is to be told (CWR, RFC 3168). */
static __always_inline void path_on_ece(struct path *path)
{
	path_reduce_cwnd(path);
	path->cwr_pending = true;
}

/* Something was sent again in vain since the last round trip: more patience. */
static __always_inline void path_raise_reo_wnd(struct path *path)
{
	path->reordering_seen = true; /* nothing else makes a repetition needless */
	path->reo_wnd_mult += path->reo_wnd_mult < 255;
	path->reo_wnd_persist = REO_WND_PERSIST;
}

/* A recovery has ended: after so many that were not needless, less patience. */
static __always_inline void path_on_recovery_end(struct path *path)
{
	path->reo_wnd_persist -= path->reo_wnd_persist > 0;
	if (path->reo_wnd_persist == 0)
		path->reo_wnd_mult = 1;
}

/* A recovery begins: the window as it is may come back. */
static __always_inline void path_save_undo(struct path *path)
{
	path->undo_cwnd = path->cwnd;
	path->undo_ssthresh = path->ssthresh;
	path->undo_retrans = 0;
}

static __always_inline void path_clear_undo(struct path *path)
{
	path->undo_cwnd = path->undo_ssthresh = 0;
	path->undo_retrans = 0;
}

/* So many that were sent again were there already; with the last of them the recovery was needless. */
static __always_inline void path_on_spurious(struct path *path, __u32 segments)
{
	path->undo_retrans -= lesser(path->undo_retrans, segments);
	if (segments && path->undo_cwnd && path->undo_retrans == 0) {
		path->cwnd = greater(path->cwnd, path->undo_cwnd);
		path->ssthresh = greater(path->ssthresh, path->undo_ssthresh);
		path_clear_undo(path);
	}
}

#endif
