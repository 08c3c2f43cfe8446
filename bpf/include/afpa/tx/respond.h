/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Derive cached response, and send it: the checks before a request is answered, and the way from the object to the
 * packet that leaves.
 */
#ifndef AFPA_TX_RESPOND_H
#define AFPA_TX_RESPOND_H

#include <afpa/cache/lookup.h>
#include <afpa/conn/client_way.h>
#include <afpa/conn/handover.h>
#include <afpa/conn/police.h>
#include <afpa/conn/socket.h>
#include <afpa/rtx/timers.h>
#include <afpa/rtx/transfer.h>
#include <afpa/tx/reply.h>
/*
 * Send response, once it is found. Somebody must have checked the request's sum: the device, or we. GO_ON: nothing
 * was done, `turn->reason` says why.
 */
static __always_inline int send(struct __sk_buff *skb, struct work *work, const struct segment *s,
				struct afpa_flow *flow, const struct cached *cached, const struct afpa_date *date,
				struct turn *turn)
{
	struct commitment *c = (struct commitment *)work->commitment;
	bool single;

	c->version = cached->version;
	c->slot = cached->index;
	c->kind = cached->kind;
	c->second = date->second;
	c->date = cached->has_age ? cached->age : c->second;
	c->length = answer_length(cached->slot, cached->kind);
	c->listener = flow->listener;
	c->head = turn->head_bits;
	c->multi_segment = false;
	c->closes = !!(work->request.block.flags & AFPA_BLOCK_CLOSE);
	single = fits(flow, s, c->length);

	turn->reason = AFPA_PASS_LOOPBACK;
	if (!single && skb->ifindex == LOOPBACK_IFINDEX && !has_loopback_route(&s->key))
		return GO_ON;
	turn->reason = AFPA_PASS_WINDOW;
	if (!single && !may_transfer(flow, s, cached, c->length))
		return GO_ON;
	turn->reason = AFPA_PASS_SEND;
	if (!save_headers(skb, work, s))
		return GO_ON;
	if (!checksum_holds(work, s, checksum_state(skb), 0)) {
		count_at(s->place, AFPA_PASS_CHECKSUM); /* the kernel will find it wrong, too, and drop it */
		return TCX_NEXT;
	}
	if (!single)
		return begin_transfer(skb, work, s, flow, cached, c, turn);
	turn->reason = commit(skb, work, flow, s, c, turn);
	if (turn->reason != AFPA_ANSWERED)
		return GO_ON;
	if (turn->arm_rtx) {
		afpa_rtx_arm(&s->key, &work->way, turn->now);
		count_at(s->place, AFPA_RTX_ARMED);
	}
	return afpa_reply(skb, work, s);
}

/*
 * Would an offset begin that connection tracking cannot understand (E6)? It has seen the segment before us, on `lo` where it was
 * sent, on a bridge where a port of it received it: so it would know the client's numbers of the wire, and the kernel's own.
 */
static __always_inline bool is_tracked_before(struct __sk_buff *skb, const struct afpa_flow *flow)
{
	return !flow->tx_offset && !flow->socketless && is_tracked(skb);
}

/* Derive cached response, with the checks before it may be sent. AFPA_ANSWERED, or the reason. */
static __always_inline enum afpa_reason find_answer(struct __sk_buff *skb, struct work *work, const struct segment *s,
						    struct afpa_flow *flow, const struct afpa_date *date,
						    struct cached *cached, const struct turn *turn)
{
	enum afpa_reason reason;

	if (!date)
		return AFPA_PASS_NO_HEARTBEAT;
	if (*(volatile __u32 *)&shared.paused || (flow->socketless && !*(volatile __u32 *)&shared.handshake))
		return AFPA_PASS_PAUSED;
	if (flow->socketless && !renew_way(flow, &s->key, &work->way, turn->now))
		return AFPA_PASS_NO_WAY;
	if (shared.refresh_ns && !flow->socketless && turn->now - flow->user_ns > shared.refresh_ns)
		return AFPA_PASS_REFRESH;
	reason = derive_cached_response(work, cached);
	if (reason != AFPA_ANSWERED)
		return reason;
	if (flow->flags & AFPA_FLOW_REQUEST_SOCK)
		reason = confirm_socket(skb, s, flow);
	if (reason == AFPA_ANSWERED && is_tracked_before(skb, flow))
		reason = AFPA_PASS_TRACKED;
	if (reason == AFPA_ANSWERED && is_link_local(&s->key))
		reason = AFPA_PASS_LINK_LOCAL;
	if (reason == AFPA_ANSWERED && !is_admitted(&s->key, turn->now))
		reason = AFPA_PASS_UNCONFIRMED;
	if (reason == AFPA_ANSWERED && police_parts())
		reason = afpa_police_request(s);
	return reason;
}

/* Derive cached response, then send it. GO_ON: it is for user mode. */
static __always_inline int respond(struct __sk_buff *skb, struct work *work, const struct segment *s,
				   struct afpa_flow *flow, struct turn *turn)
{
	const struct afpa_date *date = date_now(turn->now);
	struct cached cached = {};
	int verdict;

	turn->reason = find_answer(skb, work, s, flow, date, &cached, turn);
	if (turn->reason == AFPA_PASS_OTHER_SOCKET)
		turn->certainty = REQUEST_UNSURE; /* user mode's to its end */
	if (turn->reason != AFPA_ANSWERED || !cached.slot)
		return GO_ON;
	verdict = send(skb, work, s, flow, &cached, date, turn);
	if (verdict == GO_ON && police_parts())
		afpa_police_return(s);
	return verdict;
}

#endif
