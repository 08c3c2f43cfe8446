/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Answers of one segment that nobody acknowledges.
 *
 * No hit pays for a timer. It sees to it that its connection has an entry in a queue, and need not do anything while
 * it has one: all entries wait for the same time, so the first is the first to be due. User mode looks each ten
 * milliseconds (watch.bpf.c): who has its answer is forgotten, who was given another one meanwhile queues again,
 * and who waits for too long gets the same bytes again.
 *
 *  W1 An entry counts while its stamp stands in the flow's `rtx_stamp`; so there is one at most for a connection. Any
 *     other is forgotten wherever it turns up.
 *  W2 Entries may get lost, with a full queue or the process that looked after them. The next answer makes a new one
 *     when the last was heard of RTX_LAPSE ago, or waits for an answer that was sent again; without one, a lost
 *     answer comes back when the client asks again.
 *  W3 What is sent again is the last answer, byte for byte, as long as the client lacks it; it acknowledges its
 *     request alone (F4).
 *  W4 It is sent again after a probe time-out (RFC 8985, 7.2), then after time-outs, each twice as long as the one
 *     before (RFC 6298, 5.5), AFPA_RTX_MAX times at most. Whoever sends it, time begins anew (`answer_sent`).
 */
#ifndef AFPA_RTX_WATCH_H
#define AFPA_RTX_WATCH_H

#include <afpa/clock.h>
#include <afpa/conn/flow.h>

/* In the unit of the flow, about a millisecond. */
#define RTX_QUEUED 96   /* that entries wait; half the shortest time-out */
#define RTX_LAPSE 2000 /* longer than an entry is not heard of, unless it is lost or its path is slow */

#define RTX_RETRANSMITTED 0x80000000u /* in `rtx_stamp`: the entry waits for an answer that was sent again */

static __always_inline __u32 rtx_clock(__u64 ns)
{
	return ns >> AFPA_TICK_SHIFT;
}

static __always_inline __u32 rtx_units(__u64 microseconds)
{
	return (microseconds * 1000 >> AFPA_TICK_SHIFT) + 1;
}

/* Has the connection reset? Nobody wants the answer any more. */
static __always_inline bool was_reset(const struct afpa_flow *flow)
{
	return flow->owner == AFPA_OWNER_CLOSING && !(flow->flags & (AFPA_FLOW_CLIENT_FIN | AFPA_FLOW_SERVER_FIN));
}

/* How long an answer may be on its way (W4). */
static __always_inline __u32 rtx_timeout(const struct afpa_flow *flow)
{
	const struct path *path = (const struct path *)flow->path;

	return rtx_units(flow->retransmits ? path_rto(path, flow->retransmits - 1) : path_pto(path, 1));
}

#define RTX_OVER (-1)

/* How long is the last answer waited for yet? 0: it leaves again; RTX_OVER: not at all. With the lock held. */
static __always_inline __s32 rtx_wait(const struct afpa_flow *flow, __u32 now)
{
	__s32 wait;

	if (!answer_outstanding(flow) || flow->flags & AFPA_FLOW_TRANSFER || was_reset(flow))
		return RTX_OVER;
	wait = flow->answer_sent + rtx_timeout(flow) - now;
	return wait > 0 ? wait : 0;
}

/* Would measuring the path make its time-out shorter? Until then it is guessed from the handshake's round trip. */
static __always_inline bool is_rtt_guessed(const struct path *path)
{
	return path->rttvar > RTO_MIN / 4;
}

/* An answer of one segment leaves. True: an entry is to be made. Called with the lock held. */
static __always_inline bool rtx_answer_sent(struct afpa_flow *flow, __u32 now)
{
	flow->answer_sent = now;
	flow->retransmits = 0;
	if (now - flow->rtx_stamp <= RTX_LAPSE)
		return false;
	flow->rtx_stamp = now;
	flow->rtt_wanted = is_rtt_guessed((const struct path *)flow->path);
	return true;
}

/* The client has acknowledged something: all of an answer that left once (Karn)? Called with the lock held. */
static __always_inline void measure_rtt(struct afpa_flow *flow, __u64 now)
{
	if (!flow->rtt_wanted || answer_outstanding(flow))
		return;
	flow->rtt_wanted = false;
	path_rtt_sample((struct path *)flow->path, ((__u64)(rtx_clock(now) - flow->answer_sent) << 20) / 1000);
}

/* The client asked again, and the answer leaves. */
static __always_inline void rtx_restart(struct afpa_flow *flow, __u32 now)
{
	flow->answer_sent = now;
	flow->rtt_wanted = false;
}

/*
 * The client's question again, which crosses our own repetition: one is enough. Should that be lost, another time-out
 * follows, and the client's next question.
 */
static __always_inline bool rtx_crosses(const struct afpa_flow *flow, __u32 now)
{
	const struct path *path = (const struct path *)flow->path;

	return flow->retransmits && now - flow->answer_sent < RTX_QUEUED + rtx_units(path->srtt);
}

/* Into the queue, behind all others. Its stamp is the flow's already. */
static __always_inline void rtx_insert(struct afpa_rtx_timer *timer)
{
	timer->due = timer->stamp + RTX_QUEUED;
	if (bpf_map_push_elem(&rtx_timers, timer, 0))
		count(AFPA_RTX_FULL);
}

/* The same for a client's segment, whose headers are in `ethernet`. */
__noinline int afpa_rtx_arm(const struct afpa_flow_key *key, const struct ethhdr *ethernet, __u32 interface,
			       __u64 now)
{
	struct afpa_rtx_timer timer = { .interface = interface, .stamp = rtx_clock(now) };
	struct ethhdr *out = (struct ethhdr *)timer.ethernet;

	if (!key || !ethernet)
		return 0;
	timer.flow = *key;
	*out = *ethernet;
	__builtin_memcpy(out->destination, ethernet->source, 6);
	__builtin_memcpy(out->source, ethernet->destination, 6);
	rtx_insert(&timer);
	shared.rtx_ns = now; /* behind the entry: who looks sees it, or that this moved */
	return 0;
}

#endif
