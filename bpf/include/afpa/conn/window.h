/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The window: which of a client's segments may change the state of its connection (RFC 9293, 3.10.7.4; RFC 5961;
 * RFC 7323, 5). All numbers here are of the wire.
 *
 *  P2 Before a field of a flow or a transfer changes by a segment of the client, the segment was found to be acceptable:
 *     a reset by its exact number, anything else by the window, by its acknowledgement, and by its timestamp; and its
 *     checksum holds. A segment that the kernel's TCP would take is always acceptable, so that no request reaches the
 *     server uncounted. Any other segment changes nothing: it goes up, and the kernel's TCP judges it. Where the kernel
 *     knows less than we do, because it has not seen the requests answered here, the segment is dropped.
 */
#ifndef AFPA_CONN_WINDOW_H
#define AFPA_CONN_WINDOW_H

#include <afpa/conn/flow.h>

/* The judgement of a segment. */
enum standing {
	STANDING_ACCEPTABLE,
	STANDING_OUTSIDE, /* the kernel's TCP will not take it */
	STANDING_STALE,   /* it might, but it must not */
};

#define ACK_SPAN_MAX (1U << 30)              /* of a connection whose acknowledgements are not all seen */
#define TIMESTAMP_LIFE (24 * 86400 * SECOND_NS) /* RFC 7323, 5.5: how long the last one counts on an idle connection */

/* The next byte that the server's TCP wants, as its last segment said. */
static __always_inline __u32 receive_next(const struct afpa_flow *flow)
{
	return flow->kernel_received + flow->rx_offset;
}

/*
 * Where its window ends, or behind that. With a sequence offset each of its segments was seen. Without one, those in the
 * middle of a response were not: then nothing is known but how long a window can be.
 */
static __always_inline __u32 receive_end(const struct afpa_flow *flow)
{
	__u32 next = receive_next(flow), scale = flow->server_scale & 15;

	if (flow_has_offset(flow))
		return next + (((__u32)bpf_ntohs(flow->window) + 1) << scale);
	if (before(next, flow->client_next))
		next = flow->client_next;
	return next + (0x10000U << scale);
}

/* Does it acknowledge something that was sent, or was acknowledged not too long ago? */
static __always_inline enum standing standing_of_ack(const struct afpa_flow *flow, const struct segment *s)
{
	__u32 sent = flow->kernel_next, acked = flow->acked_to_kernel + flow->tx_offset, span = ACK_SPAN_MAX;

	if (flow->owner == AFPA_OWNER_USER && before(sent, flow->response_start))
		sent = flow->response_start; /* its middle may not have been seen */
	sent += flow->tx_offset + 1; /* a FIN has a number, too */
	if (flow_has_offset(flow)) {
		if (before(flow->snd_una, acked))
			acked = flow->snd_una;
		span = sent - acked + (0xffffU << (flow->client_scale & 15));
		if (span > ACK_SPAN_MAX)
			span = ACK_SPAN_MAX;
	}
	if (sent - s->ack <= span)
		return STANDING_ACCEPTABLE;
	/* The kernel's TCP drops segments that acknowledge bytes it did not send, but not always those that acknowledge old ones. */
	return before(sent, s->ack) || s->length == 0 ? STANDING_OUTSIDE : STANDING_STALE;
}

/*
 * Is the segment older than one that was answered here (PAWS)? The kernel's TCP has not seen that one's timestamp, so it
 * might take the segment for new. Resets have no age.
 */
static __always_inline bool is_stale(const struct afpa_flow *flow, const struct segment *s, __u64 now)
{
	return s->timestamps && flow->flags & AFPA_FLOW_TIMESTAMPS && flow_has_offset(flow) && !(s->flags & TCP_RST) &&
	       before(s->ts_value, flow->ts_seen) && now - flow->used_ns < TIMESTAMP_LIFE;
}

/* May the segment, if it is no reset, change what is known? Called with the lock held. */
static __always_inline enum standing standing_of(const struct afpa_flow *flow, const struct segment *s)
{
	__u32 end = s->seq + s->length + !!(s->flags & TCP_FIN);

	/* A keep-alive probe stands one below. */
	if (!(s->flags & TCP_ACK) || before(end + 1, receive_next(flow)) || before(receive_end(flow), s->seq))
		return STANDING_OUTSIDE;
	return standing_of_ack(flow, s);
}

/*
 * Is it a reset that the kernel's TCP will believe? It wants the exact number (RFC 5961, 3.2). A client that has not got
 * our answer may stand before its request (F4).
 */
static __always_inline bool is_exact_reset(const struct afpa_flow *flow, const struct segment *s)
{
	return s->flags & TCP_RST && (s->seq == flow->client_next || s->seq == receive_next(flow) ||
				      (s->seq == flow->request_seq && answer_outstanding(flow)));
}

/* The newest timestamp that the client is echoed: of a segment that begins where everything before was acknowledged. */
static __always_inline void note_timestamp(struct afpa_flow *flow, const struct segment *s)
{
	if (s->timestamps && before(flow->ts_seen, s->ts_value) && !before(receive_next(flow), s->seq))
		flow->ts_seen = s->ts_value;
}

#endif
