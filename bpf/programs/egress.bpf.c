/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Egress: the server's side of shared connections.
 *
 * Finds the end of user mode's responses, remembers the window and timestamps that answers of the fast path must carry,
 * and translates the numbers of connections with a sequence offset into the client's space.
 */
#include <afpa/conn/admit.h>
#include <afpa/conn/by_socket.h>
#include <afpa/conn/bypass.h>
#include <afpa/conn/client_way.h>
#include <afpa/conn/loss.h>
#include <afpa/conn/served.h>
#include <afpa/conn/translate.h>
#include <afpa/http/response.h>
#include <afpa/http/notes.h>

/* Take the flow's new state from a segment of the server. Called with the lock held. */
static __always_inline enum afpa_reason observe(struct afpa_flow *flow, const struct segment *s)
{
	__u32 end = s->seq + s->length;
	enum afpa_reason reason = AFPA_EGRESS_TRANSLATED;

	if (s->timestamps && before(flow->ts_sent, s->ts_value))
		flow->ts_sent = s->ts_value;
	if (s->length && flow->owner == AFPA_OWNER_NONE) {
		flow->owner = AFPA_OWNER_USER_FINAL;
		reason = AFPA_UNSOLICITED;
	}
	if (before(flow->kernel_next, end))
		flow->kernel_next = end;
	if (s->flags & (TCP_FIN | TCP_RST))
		flow->owner = AFPA_OWNER_CLOSING;
	if (s->flags & TCP_FIN)
		flow->flags |= AFPA_FLOW_SERVER_FIN;
	return reason;
}

/* Is a response of known length under way, whose last segment has not left yet? */
static __always_inline bool in_response(const struct afpa_flow *flow)
{
	return flow->owner == AFPA_OWNER_USER && before(flow->kernel_next, flow->response_start);
}

/*
 * Does the segment pass as it is, without the lock? Without a sequence offset there is nothing to translate. Then all
 * segments of a final connection pass, and those in the middle of a response: the values that `observe` takes are needed
 * when the response has left to its end, and its last segment brings all of them.
 */
static __always_inline bool tx_passes(const struct afpa_flow *flow, const struct segment *s)
{
	if (flow_has_offset(flow))
		return false;
	if (flow_is_final(flow))
		return true;
	return in_response(flow) && s->length && !(s->flags & (TCP_FIN | TCP_RST)) &&
	       before(s->seq + s->length, flow->response_start);
}

/* Enter the connection for the rest of the response. */
static __noinline int bypass_insert_response(const struct segment *s)
{
	__u32 epoch = bypass_epoch(&s->key);
	struct afpa_flow *flow = bpf_map_lookup_elem(&flows, &s->key); /* as in `bypass_insert_final` */

	if (flow && !flow_is_final(flow) && tx_passes(flow, s))
		bypass_insert(&s->key, epoch, flow->response_start, 0);
	return 0;
}

/* Has the segment bytes of user mode's responses that were not read yet? */
static __always_inline bool awaited(const struct afpa_flow *flow, const struct segment *s)
{
	return flow->owner == AFPA_OWNER_USER && s->length && before(flow->response_start, s->seq + s->length);
}

/* Where reading stands. Read without the lock; `conclude` finds out whether it still holds. */
static __always_inline void start_reading(struct reader *r, const struct afpa_flow *flow, const struct segment *s)
{
	r->at = flow->response_start;
	r->end = s->seq + s->length;
	r->shift = s->payload_at - s->seq;
	r->chunk = flow->chunk;
	r->head_bits = flow->head_bits;
	r->phase = flow->phase;
	r->responses_pending = flow->responses_pending;
	r->unsure = before(r->at, s->seq); /* bytes before these were not seen */
}

/* Does it still hold, apart from requests that were added since? Called with the lock held. */
static __always_inline bool reading_holds(const struct reader *began, const struct afpa_flow *flow)
{
	__u32 counted = (1U << (began->responses_pending & 15)) - 1;

	return flow->response_start == began->at && flow->chunk == began->chunk && flow->phase == began->phase &&
	       flow->responses_pending >= began->responses_pending && !((flow->head_bits ^ began->head_bits) & counted);
}

/*
 * Keep the progress of the reader in the segment, from `began` to `r`. If the connection changed meanwhile, the segment's bytes are
 * lost to the reader, and user mode serves the connection to its end. Called with the lock held.
 */
static __always_inline enum afpa_reason conclude(struct afpa_flow *flow, const struct reader *began,
						 const struct reader *r)
{
	__u8 ended = began->responses_pending - r->responses_pending;

	if (r->unsure || !reading_holds(began, flow)) {
		flow->owner = AFPA_OWNER_USER_FINAL;
		return AFPA_RESPONSE_UNSURE;
	}
	flow->response_start = r->at;
	flow->chunk = r->chunk;
	flow->phase = r->phase;
	flow->responses_pending -= ended;
	flow->head_bits >>= ended & 15;
	return ended ? AFPA_RESPONSE_END : AFPA_EGRESS_TRANSLATED;
}

/* Out to the client as it is, without the lock. */
static __always_inline int tx_pass(const struct afpa_flow *flow, const struct segment *s)
{
	if (s->flags & (TCP_FIN | TCP_RST))
		flow_remove(&s->key);
	else if (flow_is_final(flow))
		bypass_insert_final(&s->key);
	else if (flow->response_start - (s->seq + s->length) >= LONG_RESPONSE)
		bypass_insert_response(s);
	return TCX_NEXT;
}

/* Out to the client: read if a response is pending, translated if the numbers differ. */
static __always_inline int leave(struct __sk_buff *skb, struct work *work, const struct segment *s,
				 struct afpa_flow *flow)
{
	struct reader began = {}, reader = { .unsure = true };
	volatile struct leaving *seen = &work->leaving;
	struct translation t = {};

	start_reading(&began, flow, s);
	if (awaited(flow, s)) {
		reader = began;
		if (!reader.unsure)
			afpa_read_responses(skb, work, &reader);
	}
	if (seen_above(skb))
		return TCX_NEXT;
	if (!way_of(skb, &work->way))
		return TCX_DROP;
	if (!shared.namespace)
		is_in_namespace(skb); /* the connection was there before the programs */
	bpf_spin_lock(&flow->lock);
	learn_way(flow, &work->way);
	seen->has_offset = flow_has_offset(flow);
	seen->within = in_response(flow);
	/* The byte that the server's TCP takes next (P2), of stale segments, too. If it has moved, the client got through (P5). */
	flow->window = s->window;
	seen->heard = s->flags & TCP_ACK && before(flow->kernel_received, s->ack);
	if (seen->heard)
		flow->kernel_received = s->ack;
	seen->stale = seen->has_offset && s->length && before(s->seq, flow->stale_below);
	if (seen->stale)
		flow->acked_to_kernel = s->seq; /* the acknowledgement was lost on its way up: the next one is passed */
	seen->reason = seen->stale ? AFPA_EGRESS_STALE : observe(flow, s);
	seen->ended = seen->within && !in_response(flow);
	seen->found = AFPA_EGRESS_TRANSLATED;
	if (!seen->stale && awaited(flow, s))
		seen->found = conclude(flow, &began, &reader);
	if (seen->has_offset)
		tx_translation(flow, s, &t);
	bpf_spin_unlock(&flow->lock);

	if (seen->heard)
		afpa_admit(&s->key, rtx_clock(bpf_ktime_get_coarse_ns()));
	if (seen->ended)
		afpa_bypass_invalidate(&s->key);
	if (seen->stale) {
		count_at(s->place, seen->reason);
		return TCX_DROP;
	}
	if (seen->found != AFPA_EGRESS_TRANSLATED)
		count_at(s->place, seen->found);
	if (!seen->has_offset) {
		if (s->flags & (TCP_FIN | TCP_RST))
			flow_remove(&s->key);
		return TCX_NEXT;
	}
	count_at(s->place, seen->reason);
	if (translate(skb, work, s, &t)) {
		count_at(s->place, AFPA_TRANSLATE_FAILED);
		return TCX_DROP;
	}
	if (s->flags & TCP_RST)
		flow_remove(&s->key);
	return TCX_NEXT;
}

/* No segment that we know: is it one of a connection with a sequence offset all the same (E3)? */
static __always_inline int unparsed(struct __sk_buff *skb)
{
	if (!socket_has_offset(skb))
		return TCX_NEXT;
	count_at(place_of(skb->ifindex), AFPA_EGRESS_UNPARSED);
	return TCX_DROP;
}

/*
 * On `lo` a packet is received by the route it left with. A packet that was made here has none: it is sent round once more,
 * by way of the routing table.
 */
static __always_inline int give_route(struct __sk_buff *skb)
{
	skb->tc_index = MARK_DOWN;
	return bpf_redirect_neigh(skb->ifindex, NULL, 0, 0);
}

SEC("tcx/egress")
int afpa_egress(struct __sk_buff *skb)
{
	struct afpa_flow *flow;
	struct segment s = {};
	struct work *work;
	bool speaks_first;
	__u32 zero = 0;

	if (skb->tc_index == MARK_DOWN)
		return TCX_NEXT; /* the hook of a device above has seen it (E2) */
	if (skb->tc_index == MARK_ROUTE_ME)
		return skb->ifindex == LOOPBACK_IFINDEX ? give_route(skb) : TCX_NEXT;
	if (skb->ingress_ifindex)
		return TCX_NEXT; /* our own answers, and packets that are forwarded */
	if (bypass_down(skb)) {
		skb->tc_index = MARK_DOWN;
		return TCX_NEXT;
	}
	if (!parse_segment(skb, &s, FROM_SERVER))
		return unparsed(skb);
	if (!port_served(s.key.server_port)) {
		if (skb->ifindex == LOOPBACK_IFINDEX && port_served(s.key.client_port) && is_question(skb))
			skb->tc_index = MARK_UP; /* the ingress hook of `lo` passes it */
		return TCX_NEXT;
	}
	skb->tc_index = MARK_DOWN;
	flow = bpf_map_lookup_elem(&flows, &s.key);
	if (s.flags & TCP_SYN) { /* the kernel accepted a new connection on this tuple */
		if (flow)
			flow_remove(&s.key);
		afpa_bypass_invalidate(&s.key);
		if (!seen_above(skb)) {
			afpa_way_prove(skb, &s.key);
			if (shared.handshake)
				afpa_client_way_prove(skb, &s.key);
		}
		return TCX_NEXT;
	}
	if (!flow)
		return TCX_NEXT;
	if (flow->unsafe_at && s.length)
		note_unsafe(flow->unsafe_at, bpf_ktime_get_ns()); /* V5: before the client can have it */
	speaks_first = flow->socketless == AFPA_SOCKETLESS_ASSIGNED;
	if (speaks_first) {
		flow->socketless = AFPA_SOCKETLESS_NOT;
		if (!(s.flags & TCP_RST))
			note_arrival(rtx_clock(bpf_ktime_get_coarse_ns()));
	}
	/* The first acknowledgement of its socket admits the client (P5). */
	if (!speaks_first && tx_passes(flow, &s))
		return tx_pass(flow, &s);
	work = bpf_map_lookup_elem(&egress_work, &zero);
	if (!work)
		return TCX_NEXT;
	s.place = place_of(skb->ifindex);
	return leave(skb, work, &s, flow);
}
