/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Timers of retransmission: when an unacknowledged answer is sent again.
 *
 * Two kinds of answers have one, and one program services both (rtx_timer.bpf.c). A transfer has its deadline in its
 * own entry, because every acknowledgement moves it. Answers of one segment are far more, and nearly all of them are
 * acknowledged in time, so arming a timer for each would cost too much. A connection has at most one entry in a
 * FIFO, `rtx_timers`, for all its answers. All entries wait equally long, so the head expires first. User mode polls
 * every 10 ms. An entry that expires is dropped if the last answer was acknowledged, queued again if that answer
 * left only a while ago, and else waits in user mode for its time-out, when the answer is retransmitted.
 *
 *  W1 An entry counts only while its stamp is the flow's `rtx_stamp`, so a connection has at most one. Any other is
 *     dropped wherever it turns up.
 *  W2 Entries may get lost, because the queue is full or the process that serviced them has ended. The next answer
 *     makes a new one if the last was made or queued RTX_LAPSE ago, or waits for an answer that was retransmitted.
 *     A connection without an entry gets its lost answer when the client asks again.
 *  W3 A retransmission is the last answer, byte for byte, for as long as the client lacks it; it acknowledges
 *     its request alone (F4).
 *  W4 It is retransmitted after a probe time-out (RFC 8985, 7.2), then after time-outs, each twice as long as the
 *     one before (RFC 6298, 5.5), AFPA_RTX_MAX times at most. With each retransmission, caused by the client or by the
 *     timer, the time begins anew (`answer_sent`).
 */
#ifndef AFPA_RTX_TIMERS_H
#define AFPA_RTX_TIMERS_H

#include <afpa/conn/flow.h>

/* In units of `rtx_clock`. */
#define RTX_QUEUED 96 /* how long entries wait in the FIFO: half the shortest time-out */

#define RTX_RETRANSMITTED 0x80000000u /* in `rtx_stamp`: the entry waits for an answer that was retransmitted */

/* A time of the TCP sender's in units of `rtx_clock`, rounded up. */
static __always_inline __u32 rtx_units(__u64 microseconds)
{
	return (microseconds * 1000 >> AFPA_TICK_SHIFT) + 1;
}

/* Was the connection reset? Then the client does not want the answer any more. */
static __always_inline bool was_reset(const struct afpa_flow *flow)
{
	return flow->owner == AFPA_OWNER_CLOSING && !(flow->flags & (AFPA_FLOW_CLIENT_FIN | AFPA_FLOW_SERVER_FIN));
}

/* From sending the last answer to its next retransmission (W4). */
static __always_inline __u32 rtx_timeout(const struct afpa_flow *flow)
{
	const struct path *path = (const struct path *)flow->path;

	return rtx_units(flow->retransmits ? path_rto(path, flow->retransmits - 1) : path_pto(path, 1));
}

#define RTX_OVER (-1)

/* Until the last answer is retransmitted; 0: now, RTX_OVER: it need not be. Called with the lock held. */
static __always_inline __s32 rtx_wait(const struct afpa_flow *flow, __u32 now)
{
	__s32 wait;

	if (!answer_outstanding(flow) || flow->flags & AFPA_FLOW_TRANSFER || was_reset(flow))
		return RTX_OVER;
	wait = flow->answer_sent + rtx_timeout(flow) - now;
	return wait > 0 ? wait : 0;
}

/* The answer leaves again: its time begins anew, and its acknowledgement is no round trip (Karn's algorithm). */
static __always_inline void rtx_restart(struct afpa_flow *flow, __u32 now)
{
	flow->answer_sent = now;
	flow->rtt_wanted = false;
}

/*
 * Did the client's retransmitted request cross our retransmitted answer on the path? One of them is enough. Should
 * the answer be lost again, another time-out follows, and the client asks again, too.
 */
static __always_inline bool rtx_crosses(const struct afpa_flow *flow, __u32 now)
{
	const struct path *path = (const struct path *)flow->path;

	return flow->retransmits && now - flow->answer_sent < RTX_QUEUED + rtx_units(path->srtt);
}

/* Into the FIFO. The flow has its stamp already. */
static __always_inline void rtx_queue(struct afpa_rtx_timer *timer)
{
	timer->due = timer->stamp + RTX_QUEUED;
	if (bpf_map_push_elem(&rtx_timers, timer, 0))
		count(AFPA_RTX_FULL);
}

/* Arm the timer of a connection whose answer leaves this way. */
__noinline int afpa_rtx_arm(const struct afpa_flow_key *key, const struct afpa_way *way, __u64 now)
{
	struct afpa_rtx_timer timer = { .stamp = rtx_clock(now) };
	struct ethhdr *out = (struct ethhdr *)timer.ethernet;

	if (!key || !way)
		return 0;
	timer.flow = *key;
	timer.interface = way->interface;
	put_way_out(timer.ethernet, way);
	out->protocol = bpf_htons(is_ipv6(key) ? ETH_P_IPV6 : ETH_P_IP);
	rtx_queue(&timer);
	shared.rtx_ns = now; /* behind the entry: user mode sees the entry, or that this word has moved */
	return 0;
}

#endif
