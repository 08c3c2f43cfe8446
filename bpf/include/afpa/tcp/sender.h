/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The sender of one transfer, an answer of several segments: its state, and which segment leaves next.
 *
 * This folder is TCP's sending side, without packets, maps or clocks: the caller brings ACKs and the time, and gets
 * segments to send. States and sources are in bpf/TCP.md, S1 to S8 in docs/rules. The crate afpa-tcp-sim runs
 * the same code in user space.
 *
 *   bitset.h   sets of segments
 *   path.h     the state that outlives a transfer: RTT, cwnd (RFC 5681, 6298, 6928, 9438)
 *   sender.h   state, and the choice of the next segment
 *   rack.h     loss detection and timers (RFC 8985, 6298)
 *   ack.h      the effects of an ACK (RFC 2018, 2883, 3168, 4015)
 *
 * Order of calls: `sender_begin`; then `sender_poll` until it returns false, and again after each
 * `sender_on_ack` and `sender_on_timer`. `deadline` says when `sender_on_timer` is due.
 */
#ifndef AFPA_TCP_SENDER_H
#define AFPA_TCP_SENDER_H

#include <afpa/tcp/bitset.h>
#include <afpa/tcp/path.h>

#define SENDER_GIVE_UP_AFTER 60000000ull /* microseconds without progress */

/* CA: congestion avoidance, after the states of Linux. */
enum ca_state { CA_OPEN, CA_FAST_RECOVERY, CA_LOSS };
enum tlp { TLP_NONE, TLP_DUE, TLP_NEW_DATA, TLP_RETRANSMITTED };
enum timer { TIMER_NONE, TIMER_RACK, TIMER_TLP, TIMER_RTO, TIMER_PERSIST };
enum progress { PROGRESS_GOING, PROGRESS_DONE, PROGRESS_IMPOSSIBLE, PROGRESS_GIVEN_UP };

/* Offsets are in bytes from the transfer's first one, times in microseconds; segments are numbered from 0. */
struct sender {
	__u64 deadline;              /* when `timer` fires; user mode reads these three */
	__u64 timer_base;            /* when something was last sent or delivered: timeouts count from here */
	__u64 last_progress;         /* when snd_una last moved */
	struct path path;
	struct bitset sacked;        /* delivered, above snd_una */
	struct bitset lost;          /* presumed lost, and not retransmitted yet */
	struct bitset retransmitted; /* sent more than once */
	__u32 length, mss;           /* of the transfer; of every segment but the last */
	__u32 snd_una, snd_wnd_end;  /* everything below is acknowledged; the client accepts nothing from there on */
	__u32 rack_xmit_ts, rack_rtt; /* of the segment that was sent last among the delivered ones (RFC 8985, 5.2) */
	__u16 max_pipe;              /* most segments that were ever in flight at once */
	__u8 segments, next;         /* how many there are; the first that was never sent */
	__u8 rack_fack;              /* one above the highest segment that was delivered */
	__u8 rack_valid, rack_segment; /* is there such a segment; which one */
	__u8 ca_state, recovery_point; /* a recovery lasts until all segments below are acknowledged */
	__u8 fast_retransmit;        /* a loss was just detected: one segment may leave beyond cwnd */
	__u8 tlp, tlp_segment;       /* the segment counts with TLP_RETRANSMITTED alone */
	__u8 window_probe;           /* the client's window is closed, and a probe is due */
	__u8 timer, rto_backoff;
	__u8 cwr_until;              /* an ECE reduces cwnd once all segments below are acknowledged, not before */
	__u8 reo_wnd_until;          /* a DSACK raises the reordering window then, not before */
	__u8 mtu_blackhole;          /* the RTO fired: segments of this size may be dropped silently (RFC 8899) */
	__u8 reduced_until;          /* losses and ECEs reduce cwnd once all segments below are acknowledged, not before */
	__u8 any_retransmitted;      /* since the transfer began: segments may have left out of their order */
	__u32 sent_at[SENDER_SEGMENTS]; /* when each last left; wraps after 71 minutes */
};

struct transmission {
	__u32 offset;
	__u32 length;      /* 0: a window probe, an empty segment at offset - 1 */
	__u8 retransmitted;
	__u8 cwr;          /* set the CWR flag: the client's ECE was heard */
	__u8 ect;          /* set ECT: new data only, and no window probe (RFC 3168, 6.1.5 and 6.1.6) */
	__u8 last;         /* the transfer ends with this segment */
};

/*
 * A global function: the verifier checks it once, for all its callers. It knows only the size of the memory behind
 * the pointers, so such a function first compares them with NULL.
 */
#ifdef AFPA_USER_SPACE
#define sender_function static __noinline
#else
#define sender_function __noinline
#endif

/*
 * Calls `body` as often as a set may have members, or until it returns 1. In the kernel a helper does, so that the body
 * is verified once, in every kernel that has it (open-coded iterators came with Linux 6.4 only).
 */
#ifdef AFPA_USER_SPACE
#define each_turn(body, context)                                                               \
	do {                                                                                       \
		for (__u32 turn_ = 0; turn_ < SENDER_SEGMENTS && !body(turn_, context); turn_++)       \
			;                                                                                  \
	} while (0)
#else
#define each_turn(body, context) bpf_loop(SENDER_SEGMENTS, body, context, 0)
#endif

/* Remove the lowest member from `set`. False: the set is empty. */
static __always_inline bool take_first(struct bitset *set, __u32 *segment)
{
	*segment = bitset_first(*set);
	if (*segment >= SENDER_SEGMENTS)
		return false;
	bitset_clear(set, *segment);
	return true;
}

/* Compares times that wrap. */
static __always_inline bool is_before(__u32 one, __u32 other)
{
	return (__s32)(one - other) < 0;
}

/* Is every byte acknowledged? */
static __always_inline bool sender_done(const struct sender *snd)
{
	return snd->snd_una == snd->length;
}

/* The offset at which `segment` begins. */
static __always_inline __u32 sender_segment_start(const struct sender *snd, __u32 segment)
{
	return lesser(segment * snd->mss, snd->length);
}

/* One above the last byte that was ever sent. */
static __always_inline __u32 sender_snd_nxt(const struct sender *snd)
{
	return sender_segment_start(snd, snd->next);
}

/* The segment that contains the first byte that is not acknowledged. */
static __always_inline __u32 sender_first_unacked(const struct sender *snd)
{
	if (sender_done(snd) || snd->mss == 0)
		return snd->segments;
	return snd->snd_una / snd->mss;
}

/* Was anything delivered? */
static __always_inline bool sender_any_delivered(const struct sender *snd)
{
	return snd->snd_una || snd->rack_fack;
}

/* Sent, and not known to be delivered. */
static __always_inline struct bitset sender_outstanding(const struct sender *snd)
{
	return bitset_without(bitset_range(sender_first_unacked(snd), snd->next), snd->sacked);
}

/* Segments that the network is thought to hold (RFC 6675, 4). */
static __always_inline __u32 sender_pipe(const struct sender *snd)
{
	if (bitset_empty(bitset_or(snd->sacked, snd->lost)))
		return snd->next - sender_first_unacked(snd);
	return bitset_count(bitset_without(sender_outstanding(snd), snd->lost));
}

/*
 * A transfer begins. False: it has no segment, or too many. A client whose whole window is less than two
 * segments gets shorter ones, or it would never be sent anything (RFC 9293, 3.8.6.2.1).
 */
static __always_inline bool sender_begin(struct sender *snd, __u64 now, __u32 length, __u32 segment, __u32 window,
					 const struct path *path)
{
	__u32 mss = window >= 2 * segment ? segment : lesser(window / 2, segment), segments;

	if (length == 0 || mss == 0)
		return false;
	segments = (length - 1) / mss + 1;
	if (segments > SENDER_SEGMENTS)
		return false;
	__builtin_memset(snd, 0, sizeof(*snd));
	snd->path = *path;
	path_idle_restart(&snd->path, now);
	snd->length = length;
	snd->mss = mss;
	snd->segments = segments;
	snd->snd_wnd_end = window;
	snd->cwr_until = path->cwr_pending; /* the first segment carries CWR */
	snd->timer_base = snd->last_progress = now;
	return true;
}

/* The request carried ECE. Its ACK is processed by `sender_on_ack`, too; that must not reduce cwnd a second time. */
static __always_inline void sender_on_request_ece(struct sender *snd)
{
	if (!snd->path.cwr_pending)
		path_on_ece(&snd->path);
	snd->cwr_until = 1;
}

/* Does the whole segment fit into the client's window? Never send part of one (RFC 9293, 3.8.6.2.1). */
static __always_inline bool sender_fits_snd_wnd(const struct sender *snd, __u32 segment)
{
	return segment < snd->segments && sender_segment_start(snd, segment + 1) <= snd->snd_wnd_end;
}

/* The segment that may leave now, lost ones first; SENDER_NO_SEGMENT when cwnd or the client's window forbids it. */
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

static __always_inline void transmit_segment(struct sender *snd, __u64 now, __u32 segment, struct transmission *t)
{
	__u32 start = sender_segment_start(snd, segment), end = sender_segment_start(snd, segment + 1);
	bool retransmitted = segment < snd->next;

	if (retransmitted) {
		snd->any_retransmitted = true;
		bitset_set(&snd->retransmitted, segment);
		bitset_clear(&snd->lost, segment);
		snd->path.undo_retrans += snd->path.undo_retrans < 255;
	} else {
		snd->next = segment + 1;
	}
	snd->sent_at[segment & (SENDER_SEGMENTS - 1)] = now;
	snd->path.last_sent = now;
	snd->max_pipe = greater(snd->max_pipe, sender_pipe(snd));
	t->offset = greater(start, snd->snd_una); /* the client may have acknowledged part of the segment */
	t->length = end - t->offset;
	t->retransmitted = retransmitted;
	t->cwr = !retransmitted && snd->path.cwr_pending;
	if (!retransmitted)
		snd->path.cwr_pending = false;
	t->ect = !retransmitted;
	t->last = end == snd->length;
}

/* A window probe (RFC 9293, 3.8.6.1): the bytes that the client accepts, or an empty segment if there are none. */
static __always_inline void send_window_probe(struct sender *snd, __u64 now, struct transmission *t)
{
	__u32 segment = sender_first_unacked(snd), end = sender_segment_start(snd, segment + 1);
	bool retransmitted = segment < snd->next;

	end = greater(lesser(end, snd->snd_wnd_end), snd->snd_una);
	snd->window_probe = false;
	if (end > snd->snd_una) {
		transmit_segment(snd, now, segment, t);
		bitset_set(&snd->lost, segment); /* only part of it left: the rest is still to be sent */
	}
	t->offset = snd->snd_una;
	t->length = end - snd->snd_una;
	t->retransmitted = retransmitted;
	t->ect = false;
	t->last = end == snd->length;
}

/* The segment of a tail loss probe: new data if the client accepts it, else the last outstanding one (RFC 8985, 7.3). */
static __always_inline __u32 tlp_segment(const struct sender *snd)
{
	__u32 last = bitset_last(sender_outstanding(snd));

	if (sender_fits_snd_wnd(snd, snd->next))
		return snd->next;
	return last != SENDER_NO_SEGMENT && sender_fits_snd_wnd(snd, last) ? last : SENDER_NO_SEGMENT;
}

/* The segment that leaves now, into `t`. False: none may. `sender_rearm_timer` (rack.h) belongs behind the last one. */
sender_function int sender_next(struct sender *snd, __u64 now, struct transmission *t)
{
	__u32 segment = SENDER_NO_SEGMENT;

	if (!snd || !t)
		return false;
	if (snd->window_probe) {
		send_window_probe(snd, now, t);
		return true;
	}
	if (snd->tlp == TLP_DUE) {
		snd->tlp = TLP_NONE;
		segment = tlp_segment(snd);
		if (segment != SENDER_NO_SEGMENT) {
			snd->tlp = segment == snd->next ? TLP_NEW_DATA : TLP_RETRANSMITTED;
			snd->tlp_segment = snd->tlp == TLP_RETRANSMITTED ? segment : 0;
		}
	}
	if (segment == SENDER_NO_SEGMENT) {
		segment = sender_ready(snd);
		if (segment == SENDER_NO_SEGMENT)
			return false;
		snd->fast_retransmit = false;
	}
	transmit_segment(snd, now, segment, t);
	return true;
}

#endif
