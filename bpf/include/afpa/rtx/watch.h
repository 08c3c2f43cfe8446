/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Answers of one segment that nobody acknowledges.
 *
 * No hit pays for a timer. It sees to it that its connection has an entry in a queue, and need not do anything while
 * it has one: all entries wait for the same time, so the first is the first to be due. User mode looks each ten
 * milliseconds (watch.bpf.c): who has its answer is forgotten, who was given another one meanwhile queues again,
 * and who waits for too long gets the same bytes again.
 *
 *  W1 An entry counts while its stamp stands in the flow's `watched`; so there is one at most for a connection. Any
 *     other is forgotten wherever it turns up.
 *  W2 Entries may get lost, with a full queue or the process that looked after them. The next answer makes a new one
 *     when the last was heard of WATCH_LAPSE ago, or waits for an answer that was sent again; without one, a lost
 *     answer comes back when the client asks again.
 *  W3 What is sent again is the last answer, byte for byte, as long as the client lacks it; it acknowledges its
 *     request alone (F4).
 *  W4 It is sent again after a probe time-out (RFC 8985, 7.2), then after time-outs, each twice as long as the one
 *     before (RFC 6298, 5.5), WATCH_TRIES times at most. Whoever sends it, time begins anew (`answered`).
 */
#ifndef AFPA_WATCH_H
#define AFPA_WATCH_H

#include <afpa/clock.h>
#include <afpa/conn/flow.h>

/* In the unit of the flow, about a millisecond. */
#define WATCH_SLICE 96   /* that entries wait; half the shortest time-out */
#define WATCH_LAPSE 2000 /* longer than an entry is not heard of, unless it is lost or its path is slow */

#define WATCH_TRIES 8
#define WATCH_AGAIN 0x80000000u /* in `watched`: the entry waits for an answer that was sent again */

static __always_inline __u32 watch_clock(__u64 ns)
{
	return ns >> 20;
}

static __always_inline __u32 watch_time(__u64 microseconds)
{
	return (microseconds * 1000 >> 20) + 1;
}

/* Has the connection reset? Nobody wants the answer any more. */
static __always_inline bool was_reset(const struct afpa_flow *flow)
{
	return flow->owner == AFPA_OWNER_CLOSING && !(flow->flags & (AFPA_FLOW_CLIENT_FIN | AFPA_FLOW_SERVER_FIN));
}

/* How long an answer may be on its way (W4). */
static __always_inline __u32 watch_patience(const struct afpa_flow *flow)
{
	const struct path *path = (const struct path *)flow->path;

	return watch_time(flow->tries ? path_rto(path, flow->tries - 1) : path_pto(path, 1));
}

#define WATCH_OVER (-1)

/* How long is the last answer waited for yet? 0: it leaves again; WATCH_OVER: not at all. With the lock held. */
static __always_inline __s32 watch_wait(const struct afpa_flow *flow, __u32 now)
{
	__s32 wait;

	if (!answer_outstanding(flow) || flow->flags & AFPA_FLOW_FLIGHT || was_reset(flow))
		return WATCH_OVER;
	wait = flow->answered + watch_patience(flow) - now;
	return wait > 0 ? wait : 0;
}

/* Would measuring the path make its time-out shorter? Until then it is guessed from the handshake's round trip. */
static __always_inline bool is_vague(const struct path *path)
{
	return path->rttvar > RTO_MIN / 4;
}

/* An answer of one segment leaves. True: an entry is to be made. Called with the lock held. */
static __always_inline bool watch_answer(struct afpa_flow *flow, __u32 now)
{
	flow->answered = now;
	flow->tries = 0;
	if (now - flow->watched <= WATCH_LAPSE)
		return false;
	flow->watched = now;
	flow->timed = is_vague((const struct path *)flow->path);
	return true;
}

/* The client has acknowledged something: all of an answer that left once (Karn)? Called with the lock held. */
static __always_inline void time_answer(struct afpa_flow *flow, __u64 now)
{
	if (!flow->timed || answer_outstanding(flow))
		return;
	flow->timed = false;
	path_rtt_sample((struct path *)flow->path, ((__u64)(watch_clock(now) - flow->answered) << 20) / 1000);
}

/* The client asked again, and the answer leaves. */
static __always_inline void watch_repeated(struct afpa_flow *flow, __u32 now)
{
	flow->answered = now;
	flow->timed = false;
}

/*
 * The client's question again, which crosses our own repetition: one is enough. Should that be lost, another time-out
 * follows, and the client's next question.
 */
static __always_inline bool watch_crosses(const struct afpa_flow *flow, __u32 now)
{
	const struct path *path = (const struct path *)flow->path;

	return flow->tries && now - flow->answered < WATCH_SLICE + watch_time(path->srtt);
}

/* Into the queue, behind all others. Its stamp is the flow's already. */
static __always_inline void watch_enter(struct afpa_watch *watch)
{
	watch->due = watch->stamp + WATCH_SLICE;
	if (bpf_map_push_elem(&watches, watch, 0))
		count(AFPA_WATCH_FULL);
}

/* The same for a client's segment, whose headers are in `ethernet`. */
__noinline int afpa_watch_flow(const struct afpa_flow_key *key, const struct ethhdr *ethernet, __u32 interface,
			       __u64 now)
{
	struct afpa_watch watch = { .interface = interface, .stamp = watch_clock(now) };
	struct ethhdr *out = (struct ethhdr *)watch.ethernet;

	if (!key || !ethernet)
		return 0;
	watch.flow = *key;
	*out = *ethernet;
	__builtin_memcpy(out->destination, ethernet->source, 6);
	__builtin_memcpy(out->source, ethernet->destination, 6);
	watch_enter(&watch);
	shared.watch_ns = now; /* behind the entry: who looks sees it, or that this moved */
	return 0;
}

#endif
