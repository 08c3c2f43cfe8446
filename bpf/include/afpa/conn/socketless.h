/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection without a socket: opened, answered and closed here, or assigned to the kernel's TCP at its first
 * request that is not a hit.
 *
 * Its flow has sequence offsets like any other, so requests are derived, answered and retransmitted as everywhere: its
 * "kernel" numbers stand for ever where the handshake left them, and its assignment ends both offsets.
 *
 *  N2 A flood of SYNs fills nothing. A flow begins with the segment that acknowledges a cookie which is valid (conn/cookie.h).
 *  N3 While an answer is not acknowledged, nothing but that answer acknowledges its request (F4), and nothing else of the
 *     connection is acknowledged or assigned: the client sends it again.
 *  N4 The kernel's TCP begins at the numbers of the segment that is assigned. So this is the next one in both
 *     directions, and from then on no number is translated until an answer begins a new offset.
 *  N5 A connection is assigned once. Until its socket is seen, only the same segment may be assigned again; and while
 *     its cookie is valid (conn/assigned.h), no segment opens the tuple with the same first number.
 *  N6 Only the exact numbers end a connection (RFC 5961, 3 and 4): others are acknowledged, at most twice a second.
 */
#ifndef AFPA_CONN_SOCKETLESS_H
#define AFPA_CONN_SOCKETLESS_H

#include <afpa/conn/cookie.h>
#include <afpa/conn/window.h>

#define CHALLENGE_INTERVAL 477 /* rtx_clock: half a second */
#define LIST_TIME 2            /* rtx_clock: packets of one poll of a device pass the programs within this */

/* The next step with a segment of a connection without a socket. */
enum socketless_step {
	STEP_DROP,       /* none: the flow has taken its values from it */
	STEP_HOLD,       /* it must wait: the client sends it again */
	STEP_INVALID,
	STEP_ACK,
	STEP_FIN,        /* FIN and acknowledgement */
	STEP_LAST_ACK,   /* acknowledge the client's FIN, and forget the connection */
	STEP_CLOSED,     /* forget it: both sides have closed */
	STEP_RESET,      /* the client did: forget it */
	STEP_END,        /* reset the client, and forget it */
	STEP_ASSIGN,
};

/* Our timestamp clock on the connection. */
static __always_inline __u32 timestamp_at(const struct afpa_flow *flow)
{
	return milliseconds() + flow->ts_offset;
}

/* Has our FIN left? */
static __always_inline bool has_sent_fin(const struct afpa_flow *flow)
{
	return flow->socketless == AFPA_SOCKETLESS_FIN_WAIT || flow->socketless == AFPA_SOCKETLESS_LAST_ACK;
}

/* The next number that we send, on the wire. */
static __always_inline __u32 socketless_next(const struct afpa_flow *flow)
{
	return flow->kernel_next + flow->tx_offset + has_sent_fin(flow);
}

/* The client's first number, which says which connection of the tuple it is. */
static __always_inline __u32 client_isn_of(const struct afpa_flow *flow)
{
	return flow->kernel_received - 1;
}

/* The cookie that the connection began with. */
static __always_inline __u32 cookie_of(const struct afpa_flow *flow)
{
	return flow->kernel_next - 1;
}

/* A segment out of place is acknowledged, but not too often. Called with the lock held. */
static __always_inline enum socketless_step challenge(struct afpa_flow *flow, __u32 now)
{
	if (answer_outstanding(flow) || now - flow->challenged < CHALLENGE_INTERVAL)
		return STEP_HOLD;
	flow->challenged = now;
	return STEP_ACK;
}

/* Take the flow's new state from an acceptable segment. Called with the lock held. */
static __always_inline void socketless_note(struct afpa_flow *flow, const struct segment *s, __u64 now)
{
	flow->used_ns = now;
	if (before(flow->snd_una, s->ack) && !before(socketless_next(flow), s->ack))
		flow->snd_una = s->ack;
	measure_rtt(flow, now);
	if (s->timestamps && before(flow->ts_seen, s->ts_value) && !before(flow->client_next, s->seq))
		flow->ts_seen = s->ts_value;
}

/* The client's FIN is the next byte, and it has all of ours. Called with the lock held. */
static __always_inline enum socketless_step close_socketless(struct afpa_flow *flow)
{
	flow->client_next++;
	flow->flags |= AFPA_FLOW_CLIENT_FIN | AFPA_FLOW_SERVER_FIN;
	flow->socketless = AFPA_SOCKETLESS_LAST_ACK;
	return STEP_FIN;
}

/* The last answer has arrived whole, so our FIN leaves. Called with the lock held. */
static __always_inline enum socketless_step step_closing(struct afpa_flow *flow, const struct segment *s)
{
	if (s->ack != socketless_next(flow) || s->seq != flow->client_next || s->length)
		return STEP_HOLD;
	if (s->flags & TCP_FIN)
		return close_socketless(flow);
	flow->socketless = AFPA_SOCKETLESS_FIN_WAIT;
	return STEP_FIN;
}

/* A segment of an open connection, which is no hit. Called with the lock held. */
static __always_inline enum socketless_step step_open(struct afpa_flow *flow, const struct segment *s, __u32 now)
{
	__u32 sent = socketless_next(flow);
	bool fin = s->flags & TCP_FIN;

	if (s->length <= 1 && !fin && s->seq == flow->client_next - 1) /* keep-alive probe: RFC 9293, 3.8.4 */
		return answer_outstanding(flow) ? STEP_HOLD : STEP_ACK;
	if (s->length == 0 && !fin) {
		/* The client's FIN was held back; now it has the answer. */
		if (flow->flags & AFPA_FLOW_CLIENT_FIN && s->seq == flow->client_next + 1 && s->ack == sent)
			return close_socketless(flow);
		return s->seq == flow->client_next ? STEP_DROP : challenge(flow, now);
	}
	if (s->seq != flow->client_next)
		return challenge(flow, now);
	if (s->ack != sent) {
		if (s->length == 0)
			flow->flags |= AFPA_FLOW_CLIENT_FIN;
		return STEP_HOLD;
	}
	if (s->length == 0)
		return close_socketless(flow);
	if (s->timestamps != !!(flow->flags & AFPA_FLOW_TIMESTAMPS))
		return STEP_INVALID; /* RFC 7323, 3.2; by it the kernel would take the connection for another one */
	flow->socketless = AFPA_SOCKETLESS_ASSIGNED;
	return STEP_ASSIGN;
}

/* We have closed, the client has not. Called with the lock held. */
static __always_inline enum socketless_step step_fin_wait(struct afpa_flow *flow, const struct segment *s, __u32 now)
{
	if (s->seq != flow->client_next)
		return challenge(flow, now);
	if (s->length)
		return STEP_END; /* a request that crossed our FIN: nobody is there any more */
	if (!(s->flags & TCP_FIN))
		return STEP_DROP;
	return answer_outstanding(flow) ? STEP_HOLD : STEP_LAST_ACK;
}

/* Both have closed. Called with the lock held. */
static __always_inline enum socketless_step step_last_ack(const struct afpa_flow *flow, const struct segment *s)
{
	if (s->flags & TCP_FIN && s->seq + s->length + 1 == flow->client_next)
		return STEP_FIN; /* ours was lost */
	return s->ack == socketless_next(flow) && s->seq == flow->client_next ? STEP_CLOSED : STEP_DROP;
}

/* A reset. Called with the lock held. */
static __always_inline enum socketless_step step_reset(struct afpa_flow *flow, const struct segment *s, __u32 now)
{
	if (s->seq == flow->client_next || (s->seq == flow->request_seq && answer_outstanding(flow)))
		return STEP_RESET;
	return before(s->seq, flow->client_next) || before(receive_end(flow), s->seq) ? STEP_INVALID : challenge(flow, now);
}

/* The next step with a sound segment that is no hit. Called with the lock held. */
static __always_inline enum socketless_step socketless_step(struct afpa_flow *flow, const struct segment *s, __u64 now)
{
	__u32 clock = rtx_clock(now);

	if (s->flags & TCP_RST)
		return step_reset(flow, s, clock);
	if (s->flags & TCP_SYN)
		return challenge(flow, clock); /* RFC 5961, 4 */
	if (!(s->flags & TCP_ACK) || standing_of_ack(flow, s) != STANDING_ACCEPTABLE)
		return STEP_INVALID;
	if (standing_of(flow, s) == STANDING_ACCEPTABLE)
		socketless_note(flow, s, now);
	if (flow->socketless == AFPA_SOCKETLESS_OPEN)
		return step_open(flow, s, clock);
	if (flow->socketless == AFPA_SOCKETLESS_CLOSING)
		return step_closing(flow, s);
	if (flow->socketless == AFPA_SOCKETLESS_FIN_WAIT)
		return step_fin_wait(flow, s, clock);
	return step_last_ack(flow, s);
}

/* The connection is the kernel's from this segment on (N4). Called with the lock held. */
static __always_inline void leave_to_kernel(struct afpa_flow *flow, const struct segment *s, __u32 clock, __u32 processor)
{
	flow->assigned_cookie = cookie_of(flow);
	flow->rx_offset = flow->tx_offset = 0;
	flow->client_next = flow->kernel_received = s->seq;
	flow->kernel_next = flow->stale_below = flow->acked_to_kernel = flow->snd_una = s->ack;
	flow->request_seq = s->seq; /* which segment was assigned, and when */
	flow->request_length = 0;
	flow->answer_sent = flow->challenged = clock;
	flow->processor = processor;
	/* The socket that there will be proves the connection before anything is answered on it again. */
	flow->flags = (flow->flags & AFPA_FLOW_TIMESTAMPS) | AFPA_FLOW_REQUEST_SOCK;
}

#endif
