/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose turn it is, and passing: what is not answered goes to the kernel's TCP and to user mode, in
 * the numbers they expect. The invariants F1 to F6 are in flow.h.
 */
#ifndef AFPA_PASS_H
#define AFPA_PASS_H

#include <afpa/conn/bypass.h>
#include <afpa/rtx/watch.h>

/* Steps return a verdict, or this: the next one decides. */
#define GO_ON (-2)

/* What is known about the segment in hand so far. */
struct turn {
	__u64 now;                /* coarse monotonic */
	enum certainty certainty;
	enum afpa_reason reason;  /* why it is passed, when it is */
	__u32 length;             /* bytes of the requests and their content, from the segment's start */
	__u8 requests;            /* how many begin or end in the segment, a last part aside */
	__u16 head_bits;              /* which of them are HEAD */
};

/* Is it the fast path's turn on this segment? Asked once without the lock, and again with it. */
static __always_inline enum afpa_reason whose_turn(const struct afpa_flow *flow, const struct segment *s)
{
	if (flow->owner == AFPA_OWNER_CLOSING)
		return AFPA_PASS_CLOSING;
	if (flow->owner == AFPA_OWNER_USER_FINAL)
		return AFPA_PASS_USER_FINAL;
	if (flow->owner == AFPA_OWNER_BYPASSED)
		return AFPA_PASS_BYPASSED;
	if (!flow_quiet(flow) || flow->flags & AFPA_FLOW_TRANSFER)
		return AFPA_PASS_USER_OWNS;
	if (s->seq != flow->client_next || s->ack != flow->kernel_next + flow->tx_offset)
		return AFPA_PASS_NOT_NEXT;
	return AFPA_ANSWERED;
}

/* Does it say that the fast path has nothing for this client, and not only that it was not its turn? */
static __always_inline bool is_about_client(enum afpa_reason reason)
{
	return reason >= AFPA_PASS_METHOD && reason <= AFPA_PASS_CONDITION;
}

/*
 * Count the pass: is it one too many? While objects are being pinned nothing is known of the client; nor is it in
 * the moment between two versions of an object that many ask for, so that the passes must span some time.
 */
static __always_inline bool becomes_bypassed(struct afpa_flow *flow, const struct turn *turn)
{
	__u32 now = turn->now >> AFPA_TICK_SHIFT;
	__u16 pins = shared.pins;

	if (turn->requests == 0 || !is_about_client(turn->reason))
		return false;
	if (flow->pins != pins || flow->passed == 0) {
		flow->pins = pins;
		flow->passed = 0;
		flow->passing_since = now;
	}
	if (flow->passed < 0xffff)
		flow->passed++;
	return shared.bypass_after && flow->passed >= shared.bypass_after && now - flow->passing_since >= shared.bypass_time;
}

/* Payload that the kernel will see: who owns the connection afterwards? (F2, F6) */
static __always_inline void hand_over(struct afpa_flow *flow, const struct segment *s, const struct turn *turn)
{
	if (!before(flow->client_next, s->seq + s->length))
		return; /* a repetition, or content of a request */
	flow->user_ns = turn->now;
	if (flow->owner == AFPA_OWNER_CLOSING || flow_is_final(flow))
		return;
	if (flow->owner == AFPA_OWNER_NONE) {
		flow->response_start = flow->kernel_next;
		flow->phase = AFPA_PHASE_HEAD;
		flow->responses_pending = 0;
		flow->head_bits = 0;
	}
	if (turn->certainty == REQUEST_UNSURE || s->seq != flow->client_next ||
	    flow->responses_pending + turn->requests > AFPA_RESPONSES_PENDING_MAX) {
		flow->owner = AFPA_OWNER_USER_FINAL;
		return;
	}
	flow->owner = AFPA_OWNER_USER;
	flow->head_bits |= turn->head_bits << (flow->responses_pending & 15);
	flow->responses_pending += turn->requests;
	flow->flags &= ~AFPA_FLOW_PARTIAL;
	if (turn->certainty == REQUEST_PART)
		flow->flags |= AFPA_FLOW_PARTIAL;
	flow->client_next += turn->length;
	if (becomes_bypassed(flow, turn))
		flow->owner = AFPA_OWNER_BYPASSED;
}

/*
 * May the acknowledgement stay here? It tells the kernel nothing: none of its bytes are in flight. One
 * that tells us nothing either is meant for the kernel: the reply to its keep-alive probe, say.
 */
static __always_inline bool absorbs_ack(const struct afpa_flow *flow, const struct segment *s)
{
	return s->length == 0 && s->flags == TCP_ACK && flow_has_offset(flow) && flow->owner == AFPA_OWNER_NONE &&
	       s->seq == flow->client_next && flow->acked_to_kernel == flow->kernel_next &&
	       before(flow->snd_una, s->ack) &&
	       !before(s->ack, flow->stale_below + flow->tx_offset - flow->answer_size) &&
	       !before(flow->kernel_next + flow->tx_offset, s->ack);
}

/* What the kernel is to see of a segment. Called with the lock held. */
static __always_inline void translation_up(struct afpa_flow *flow, const struct segment *s, struct translation *t)
{
	t->seq = s->seq - flow->rx_offset;
	/* A reset in the numbers that F4 shows to a client without its last answer: it must be exact. */
	if (s->flags & TCP_RST && s->seq == flow->request_seq && answer_outstanding(flow))
		t->seq += flow->request_length;
	t->ack = s->ack - flow->tx_offset;
	if (before(t->ack, flow->stale_below))
		t->ack = flow->stale_below; /* it acknowledges part of an answer of ours */
	t->sack_shift = -flow->tx_offset;
	t->sack_floor = flow->stale_below;
	t->ts_echo = 0;
	if (before(flow->acked_to_kernel, t->ack) && !before(flow->kernel_next, t->ack))
		flow->acked_to_kernel = t->ack;
}

/* A reset that the kernel will believe ends an answer on its way, too. */
static __always_inline bool ends_transfer(const struct afpa_flow *flow, const struct segment *s)
{
	return flow->flags & AFPA_FLOW_TRANSFER && s->flags & TCP_RST &&
	       (s->seq == flow->client_next || s->seq == flow->request_seq);
}

#define FAR_BEHIND (1U << 29)

/*
 * What only answers move must not fall half the sequence space behind user mode's bytes, or it would look as if
 * it were ahead of them (F3, F4). `acked`: the client has all before it, in kernel numbers. Called with the lock held.
 */
static __always_inline void keep_up(struct afpa_flow *flow, __u32 acked)
{
	if (before(flow->stale_below + FAR_BEHIND, acked) && !before(flow->kernel_next, acked))
		flow->stale_below = acked - FAR_BEHIND / 2;
	if (flow->request_length && before(flow->answer_seq + flow->answer_size + FAR_BEHIND, flow->snd_una)) {
		flow->request_seq += flow->request_length;
		flow->request_length = 0; /* nobody asks for it again */
	}
}

/*
 * Does the segment move nothing on this connection? Without drift there is nothing to translate; then that holds
 * for all of a connection that is left to user mode, and for bare acknowledgements, since `commit` takes from the
 * request what it must know. One that crosses the first commit on another processor goes up as it was meant: its
 * client did not have the answer.
 */
static __always_inline bool rx_passes(const struct afpa_flow *flow, const struct segment *s)
{
	if (flow_has_offset(flow))
		return false;
	return flow_is_final(flow) || (s->length == 0 && !(s->flags & (TCP_FIN | TCP_RST)));
}

/* Up as it is, without the lock. */
static __always_inline int rx_pass(struct afpa_flow *flow, const struct segment *s, __u64 now)
{
	if (now - flow->used_ns >= SECOND_NS)
		flow->used_ns = now; /* near enough for the sweep, and seldom written */
	if (s->length == 0)
		count_at(s->place, AFPA_PASS_NO_PAYLOAD);
	else
		count_at(s->place, flow->owner == AFPA_OWNER_BYPASSED ? AFPA_PASS_BYPASSED : AFPA_PASS_USER_FINAL);
	if (s->flags & (TCP_FIN | TCP_RST))
		flow_remove(&s->key);
	else if (flow_is_final(flow))
		bypass_insert_final(&s->key);
	return TCX_NEXT;
}

/* Up to the kernel's TCP and user mode, translated if need be. */
static __always_inline int pass_up(struct __sk_buff *skb, struct work *work, const struct segment *s,
				   struct afpa_flow *flow, const struct turn *turn)
{
	struct translation t = {};
	bool has_offset, absorbed, ended, final, bypassed;

	bpf_spin_lock(&flow->lock);
	ended = ends_transfer(flow, s);
	if (ended)
		flow->flags &= ~AFPA_FLOW_TRANSFER;
	final = flow_is_final(flow);
	has_offset = flow_has_offset(flow);
	absorbed = absorbs_ack(flow, s);
	flow->used_ns = turn->now;
	if (before(flow->snd_una, s->ack) && !before(flow->kernel_next + flow->tx_offset, s->ack))
		flow->snd_una = s->ack;
	measure_rtt(flow, turn->now);
	if (s->timestamps && before(flow->ts_seen, s->ts_value))
		flow->ts_seen = s->ts_value;
	if (!absorbed) {
		hand_over(flow, s, turn);
		translation_up(flow, s, &t);
		keep_up(flow, t.ack);
		if (s->flags & (TCP_FIN | TCP_RST))
			flow->owner = AFPA_OWNER_CLOSING;
		if (s->flags & TCP_FIN)
			flow->flags |= AFPA_FLOW_CLIENT_FIN;
	}
	bypassed = !final && flow->owner == AFPA_OWNER_BYPASSED;
	bpf_spin_unlock(&flow->lock);

	if (ended)
		afpa_transfer_remove(&s->key);
	if (absorbed) {
		count_at(s->place, AFPA_ABSORBED_ACK);
		return TCX_DROP;
	}
	count_at(s->place, turn->reason);
	if (bypassed)
		count_at(s->place, AFPA_FLOW_BYPASSED);
	if (!has_offset) {
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
