/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One answer of several segments on its way to the client: its state, and what can be said of it.
 * States, transitions and invariants (S1 to S8) stand in the model's LIFECYCLE.md.
 */
#ifndef AFPA_TCP_SENDER_H
#define AFPA_TCP_SENDER_H

#include <afpa/tcp/bitset.h>
#include <afpa/tcp/path.h>

#define SENDER_GIVE_UP_AFTER 60000000ull /* nothing arrives for so long: the client is given up */

enum ca_state { CA_OPEN, CA_FAST_RECOVERY, CA_LOSS };
enum tlp { TLP_NONE, TLP_DUE, TLP_NEW_DATA, TLP_RETRANSMITTED };
enum timer { TIMER_NONE, TIMER_RACK, TIMER_TLP, TIMER_RTO, TIMER_PERSIST };
enum progress { PROGRESS_GOING, PROGRESS_DONE, PROGRESS_IMPOSSIBLE, PROGRESS_GIVEN_UP };

/* Offsets are in bytes from the answer's first one, times in microseconds. */
struct sender {
	__u64 deadline, timer_base, last_progress;
	struct path path;
	struct bitset sacked, lost, retransmitted;
	__u32 length, mss, snd_una, snd_wnd_end;
	__u32 rack_xmit_ts, rack_rtt;
	__u16 max_pipe;
	__u8 segments, next, rack_fack;
	__u8 rack_valid, rack_segment;
	__u8 ca_state, recovery_point, fast_retransmit;
	__u8 tlp, tlp_segment, window_probe;
	__u8 timer, rto_backoff, cwr_until, reo_wnd_until;
	__u8 mtu_blackhole; /* nothing came back once: perhaps what is too long for the path is lost without a word */
	__u8 any_retransmitted; /* something was sent again, ever: they need not have left in their order. Not in the model */
	__u32 sent_at[SENDER_SEGMENTS];
};

/*
 * A function that the verifier looks at once, wherever it is called from. Its pointers may be anything of
 * the size of what they point to, so it begins by asking whether they are NULL.
 */
#ifdef AFPA_USER_SPACE
#define sender_function static __noinline
#else
#define sender_function __noinline
#endif

/*
 * As many turns as a set may have members. A loop of the kernel's own, so that the verifier looks at its
 * body once.
 */
#ifdef AFPA_USER_SPACE
#define each_turn(i) for (i = 0; i < SENDER_SEGMENTS; i++)
#else
struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));
#define each_turn(i) bpf_for(i, 0, SENDER_SEGMENTS)
#endif

/* The first of `set`, which it leaves; false when it is empty. */
static __always_inline bool take_first(struct bitset *set, __u32 *segment)
{
	*segment = bitset_first(*set);
	if (*segment >= SENDER_SEGMENTS)
		return false;
	bitset_clear(set, *segment);
	return true;
}

static __always_inline bool is_before(__u32 one, __u32 other)
{
	return (__s32)(one - other) < 0;
}

static __always_inline bool sender_done(const struct sender *snd)
{
	return snd->snd_una == snd->length;
}

/* Where segment `segment` begins. */
static __always_inline __u32 sender_segment_start(const struct sender *snd, __u32 segment)
{
	return lesser(segment * snd->mss, snd->length);
}

/* One behind the last byte that was ever sent. */
static __always_inline __u32 sender_snd_nxt(const struct sender *snd)
{
	return sender_segment_start(snd, snd->next);
}

/* The segment in which the first missing byte lies. */
static __always_inline __u32 sender_first_unacked(const struct sender *snd)
{
	if (sender_done(snd) || snd->mss == 0)
		return snd->segments;
	return snd->snd_una / snd->mss;
}

/* Has anything arrived? */
static __always_inline bool sender_any_delivered(const struct sender *snd)
{
	return snd->snd_una || snd->rack_fack;
}

/* Sent, and not known to have arrived. */
static __always_inline struct bitset sender_outstanding(const struct sender *snd)
{
	return bitset_without(bitset_range(sender_first_unacked(snd), snd->next), snd->sacked);
}

/* What the network is thought to hold. */
static __always_inline __u32 sender_pipe(const struct sender *snd)
{
	if (bitset_empty(bitset_or(snd->sacked, snd->lost)))
		return snd->next - sender_first_unacked(snd);
	return bitset_count(bitset_without(sender_outstanding(snd), snd->lost));
}

/* An answer that begins now. False: it has too many segments, or none, and is not for us. */
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
	snd->cwr_until = path->cwr_pending; /* the first segment tells */
	snd->timer_base = snd->last_progress = now;
	return true;
}

/* The request told of a mark: no second reduction when it is heard as an acknowledgement, too. */
static __always_inline void sender_on_request_ece(struct sender *snd)
{
	if (!snd->path.cwr_pending)
		path_on_ece(&snd->path);
	snd->cwr_until = 1;
}

#endif
