/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The state of a connection's path, kept from one transfer to the next: RTT estimate, congestion window,
 * tolerance of reordering. All times are in microseconds, all windows in segments.
 */
#ifndef AFPA_TCP_PATH_H
#define AFPA_TCP_PATH_H

#define RTO_MIN 200000u          /* Linux' floor; RFC 6298, 2.4 would have a second */
#define RTO_MAX 60000000u        /* RFC 6298, 2.5 */
#define RTO_INITIAL 1000000u     /* RFC 6298, 2.1 */
#define DELAYED_ACK_MAX 200000u  /* RFC 8985, 7.2: how long a receiver may delay its ACK */
#define PTO_MIN 10000u
#define CWND_INITIAL 10          /* RFC 6928 */
#define CWND_MAX 255             /* more than a transfer has segments is of no use */
#define REO_WND_PERSIST 16       /* recoveries; RFC 8985, 6.2, step 4 */

struct path {
	__u64 last_sent;              /* when something was last sent */
	__u32 srtt;                   /* 0 before the first RTT sample */
	__u32 rttvar, min_rtt;
	__u16 cwnd, ssthresh;
	__u16 cwnd_cnt;               /* acknowledged since cwnd last grew; often too few in one transfer */
	__u8 undo_cwnd, undo_ssthresh; /* as they were before the last reduction; 0: there is nothing to undo */
	__u8 undo_retrans;            /* retransmitted segments that have not proven spurious */
	__u8 reordering_seen : 1;
	__u8 cwr_pending : 1;         /* cwnd was reduced for an ECE, and the client has not been sent CWR yet (RFC 3168) */
	__u8 reo_wnd_mult;            /* the reordering window, in quarters of min_rtt */
	__u8 reo_wnd_persist;         /* recoveries without a spurious retransmission until that is one again */
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
	/* Not `= {}`: clang puts a constant of this size into a section that loaders of BPF objects lose. */
	__builtin_memset(path, 0, sizeof(*path));
	path->cwnd = CWND_INITIAL;
	path->ssthresh = CWND_MAX;
	path->reo_wnd_mult = 1;
}

/* One RTT sample updates SRTT and RTTVAR (RFC 6298, 2.2 and 2.3: alpha 1/8, beta 1/4). */
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

/* The retransmission timeout after `backoff` timeouts in a row (RFC 6298, 2.3 and 5.5). */
static __always_inline __u64 path_rto(const struct path *path, __u32 backoff)
{
	__u64 first = RTO_INITIAL, doubled;

	if (path->srtt)
		first = path->srtt + (__u64)greater(path->rttvar * 4, RTO_MIN);
	doubled = first << (backoff < 16 ? backoff : 16);
	return doubled < RTO_MAX ? doubled : RTO_MAX;
}

/* The probe timeout with `outstanding` segments in flight (RFC 8985, 7.2). */
static __always_inline __u64 path_pto(const struct path *path, __u32 outstanding)
{
	__u64 wait = path->srtt ? greater(2 * path->srtt, PTO_MIN) : RTO_INITIAL;
	__u64 most = path_rto(path, 0);

	if (outstanding == 1)
		wait += DELAYED_ACK_MAX;
	return wait < most ? wait : most;
}

/* After an idle time longer than the RTO, cwnd says nothing about the path any more (RFC 5681, 4.1). */
static __always_inline void path_idle_restart(struct path *path, __u64 now)
{
	if (now > path->last_sent && now - path->last_sent > path_rto(path, 0))
		path->cwnd = lesser(path->cwnd, CWND_INITIAL);
}

/*
 * `acked` segments were acknowledged while cwnd limited the sender. Slow start as in RFC 5681, 3.1. Congestion
 * avoidance as in CUBIC's Reno-friendly region: a sender that keeps 0.7 of cwnd at a loss grows by
 * 3 * (1 - 0.7) / (1 + 0.7) = 9/17 of a segment a window (RFC 9438, 4.3), here one segment in 15/8 windows.
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
 * A segment was lost: ssthresh and cwnd become 0.7 of cwnd (RFC 9438, 4.6). CUBIC in Linux reduces cwnd, too,
 * rather than the flight size: transfers are short, and seldom fill their window.
 */
static __always_inline void path_reduce_cwnd(struct path *path)
{
	path->ssthresh = greater(path->cwnd * 7u / 10, 2);
	path->cwnd = path->ssthresh;
	path->cwnd_cnt = 0;
}

/* The network marked a segment instead of dropping it (RFC 3168, 6.1.2): reduce as for a loss, and owe the client a CWR. */
static __always_inline void path_on_ece(struct path *path)
{
	path_reduce_cwnd(path);
	path->cwr_pending = true;
}

/* A DSACK came, the first in this round trip: the reordering window grows (RFC 8985, 6.2, step 4). */
static __always_inline void path_raise_reo_wnd(struct path *path)
{
	path->reordering_seen = true; /* only reordering makes a retransmission by RACK spurious */
	path->reo_wnd_mult += path->reo_wnd_mult < 255;
	path->reo_wnd_persist = REO_WND_PERSIST;
}

/* A recovery has ended. After 16 without a DSACK the reordering window is at its smallest again. */
static __always_inline void path_on_recovery_end(struct path *path)
{
	path->reo_wnd_persist -= path->reo_wnd_persist > 0;
	if (path->reo_wnd_persist == 0)
		path->reo_wnd_mult = 1;
}

/* A recovery begins: save cwnd and ssthresh, in case all its retransmissions prove spurious. */
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

/* So many retransmissions have proven spurious. After the last of a recovery, its reduction of cwnd is undone. */
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
