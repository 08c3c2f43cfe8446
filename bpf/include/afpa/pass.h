/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose turn it is, and passing: what is not answered goes to the kernel's TCP and to user mode, in
 * the numbers they expect. The invariants F1 to F6 are in flow.h.
 */
#ifndef AFPA_PASS_H
#define AFPA_PASS_H

#include <afpa/flow.h>

/* Steps return a verdict, or this: the next one decides. */
#define GO_ON (-2)

/* What is known about the segment in hand so far. */
struct turn {
	__u64 now;                /* coarse monotonic */
	enum certainty certainty;
	enum afpa_reason reason;  /* why it is passed, when it is */
	__u32 length;             /* bytes of the requests and their content, from the segment's start */
	__u8 requests;            /* how many begin or end in the segment, a last part aside */
	__u16 heads;              /* which of them are HEAD */
};

/* Is it the fast path's turn on this segment? Asked once without the lock, and again with it. */
static __always_inline enum afpa_reason whose_turn(const struct afpa_flow *flow, const struct segment *s)
{
	if (flow->owner == AFPA_OWNER_CLOSING)
		return AFPA_PASS_CLOSING;
	if (flow->owner == AFPA_OWNER_KEPT)
		return AFPA_PASS_KEPT;
	if (!flow_quiet(flow) || flow->flags & AFPA_FLOW_FLIGHT)
		return AFPA_PASS_USER_OWNS;
	if (s->seq != flow->client_next || s->ack != flow->kernel_next + flow->given)
		return AFPA_PASS_NOT_NEXT;
	return AFPA_ANSWERED;
}

/* Payload that the kernel will see: who owns the connection afterwards? (F2, F6) */
static __always_inline void hand_over(struct afpa_flow *flow, const struct segment *s, const struct turn *turn)
{
	if (!before(flow->client_next, s->seq + s->length))
		return; /* a repetition, or content of a request */
	flow->user_ns = turn->now;
	if (flow->owner == AFPA_OWNER_CLOSING)
		return;
	if (flow->owner == AFPA_OWNER_NONE) {
		flow->response_start = flow->kernel_next;
		flow->phase = AFPA_PHASE_HEAD;
		flow->owed = 0;
		flow->heads = 0;
	}
	if (turn->certainty == REQUEST_UNSURE || s->seq != flow->client_next || flow->owner == AFPA_OWNER_KEPT ||
	    flow->owed + turn->requests > AFPA_OWED_MAX) {
		flow->owner = AFPA_OWNER_KEPT;
		return;
	}
	flow->owner = AFPA_OWNER_USER;
	flow->heads |= turn->heads << (flow->owed & 15);
	flow->owed += turn->requests;
	flow->flags &= ~AFPA_FLOW_PART;
	if (turn->certainty == REQUEST_PART)
		flow->flags |= AFPA_FLOW_PART;
	flow->client_next += turn->length;
}

/*
 * May the acknowledgement stay here? It tells the kernel nothing: none of its bytes are in flight. One
 * that tells us nothing either is meant for the kernel: the reply to its keep-alive probe, say.
 */
static __always_inline bool swallow(const struct afpa_flow *flow, const struct segment *s)
{
	return s->length == 0 && s->flags == TCP_ACK && flow_drifted(flow) && flow->owner == AFPA_OWNER_NONE &&
	       s->seq == flow->client_next && flow->kernel_acked == flow->kernel_next &&
	       before(flow->client_acked, s->ack) &&
	       !before(s->ack, flow->kernel_edge + flow->given - flow->answer_span) &&
	       !before(flow->kernel_next + flow->given, s->ack);
}

/* What the kernel is to see of a segment. Called with the lock held. */
static __always_inline void translation_up(struct afpa_flow *flow, const struct segment *s, struct translation *t)
{
	t->seq = s->seq - flow->taken;
	/* A reset in the numbers that F4 shows to a client without its last answer: it must be exact. */
	if (s->flags & TCP_RST && s->seq == flow->answer_from && answer_outstanding(flow))
		t->seq += flow->answer_length;
	t->ack = s->ack - flow->given;
	if (before(t->ack, flow->kernel_edge))
		t->ack = flow->kernel_edge; /* it acknowledges part of an answer of ours */
	t->sack_shift = -flow->given;
	t->sack_floor = flow->kernel_edge;
	t->ts_echo = 0;
	if (before(flow->kernel_acked, t->ack) && !before(flow->kernel_next, t->ack))
		flow->kernel_acked = t->ack;
}

/* A reset that the kernel will believe ends an answer on its way, too. */
static __always_inline bool ends_flight(const struct afpa_flow *flow, const struct segment *s)
{
	return flow->flags & AFPA_FLOW_FLIGHT && s->flags & TCP_RST &&
	       (s->seq == flow->client_next || s->seq == flow->answer_from);
}

/* Up to the kernel's TCP and user mode, translated if need be. */
static __always_inline int pass_up(struct __sk_buff *skb, struct work *work, const struct segment *s,
				   struct afpa_flow *flow, const struct turn *turn)
{
	struct translation t = {};
	bool drifted, swallowed, ended;

	bpf_spin_lock(&flow->lock);
	ended = ends_flight(flow, s);
	if (ended)
		flow->flags &= ~AFPA_FLOW_FLIGHT;
	drifted = flow_drifted(flow);
	swallowed = swallow(flow, s);
	flow->used_ns = turn->now;
	if (before(flow->client_acked, s->ack) && !before(flow->kernel_next + flow->given, s->ack))
		flow->client_acked = s->ack;
	if (s->timestamps && before(flow->ts_seen, s->ts_value))
		flow->ts_seen = s->ts_value;
	if (!swallowed) {
		hand_over(flow, s, turn);
		translation_up(flow, s, &t);
		if (s->flags & (TCP_FIN | TCP_RST))
			flow->owner = AFPA_OWNER_CLOSING;
		if (s->flags & TCP_FIN)
			flow->flags |= AFPA_FLOW_CLIENT_FIN;
	}
	bpf_spin_unlock(&flow->lock);

	if (ended)
		afpa_forget_flight(&s->key);
	if (swallowed) {
		count_at(s->place, AFPA_SWALLOWED_ACK);
		return TCX_DROP;
	}
	count_at(s->place, turn->reason);
	if (!drifted) {
		if (s->flags & (TCP_FIN | TCP_RST))
			flow_remove(&s->key);
		return TCX_NEXT;
	}
	if (translate(skb, work, s, &t)) {
		count_at(s->place, AFPA_TRANSLATE_FAILED);
		return TCX_DROP;
	}
	return TCX_NEXT;
}

#endif
