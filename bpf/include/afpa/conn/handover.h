/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Handing over the client's next bytes: `commit` gives them to the fast path, `pass_up` to the kernel's TCP and user
 * mode, in the numbers that they expect. The invariants F1 to F6 are in flow.h.
 */
#ifndef AFPA_CONN_HANDOVER_H
#define AFPA_CONN_HANDOVER_H

#include <afpa/conn/bypass.h>
#include <afpa/conn/translate.h>
#include <afpa/conn/window.h>

/* --- to the fast path --- */

/* An answer that is committed to: its bytes, and the numbers that were fixed under the lock. */
struct commitment {
	__u64 version;        /* of the slot */
	__u32 slot, length;
	__u32 date, second;   /* the value that is patched in: the second of a Date, or an Age; and the second of this moment */
	__u32 listener;
	__u8 head;            /* the method is HEAD */
	__u8 kind;            /* enum afpa_kind */
	__u8 multi_segment;   /* it is a transfer: the kernel gets the request's acknowledgement later */
	__u8 closes;          /* it is the connection's last one, and our FIN goes with it, or follows a transfer */
	/* filled by `commit` */
	__u8 ack_up;          /* the request carries an acknowledgement that the kernel waits for */
	__u8 ecn;             /* of the IP header: new data may be marked, if that was negotiated */
	__be16 window;
	__u32 seq, ack, ts_value, kernel_seq, kernel_ack;
};

_Static_assert(sizeof(struct commitment) <= sizeof(((struct work *)0)->commitment), "work->commitment");

/* A request says ECE: the window is reduced, unless it was already, and the answer says so (CWR, RFC 3168). */
static __always_inline void ece_on_request(struct path *path)
{
	if (!path->cwr_pending)
		path_on_ece(path);
	path->cwr_pending = false;
}

/* Under the lock: the numbers of the answer, and the flow as it is once the answer has left. */
static __always_inline void take_turn(struct afpa_flow *flow, const struct segment *s, struct commitment *c,
				      struct turn *turn)
{
	__u32 clock = (__u32)(turn->now / MILLISECOND_NS) + flow->ts_offset;

	c->seq = s->ack;
	c->ack = s->seq + s->length;
	c->kernel_seq = s->seq - flow->rx_offset;
	c->kernel_ack = flow->kernel_next;
	c->ack_up = flow->acked_to_kernel != flow->kernel_next;
	c->window = flow->window;
	c->ecn = flow->flags & AFPA_FLOW_ECN ? ECN_CAPABLE : 0;
	if (before(flow->ts_sent, clock))
		flow->ts_sent = clock;
	c->ts_value = flow->ts_sent;
	flow->ts_seen = s->ts_value;
	flow->owner = AFPA_OWNER_NONE;
	flow->rx_offset += s->length;
	flow->tx_offset += c->length;
	flow->client_next = c->ack;
	flow->snd_una = s->ack;
	measure_rtt(flow, turn->now);
	flow->stale_below = flow->kernel_next;
	if (c->multi_segment) {
		flow->flags |= AFPA_FLOW_TRANSFER;
	} else {
		flow->acked_to_kernel = flow->kernel_next;
		turn->arm_rtx = rtx_answer_sent(flow, rtx_clock(turn->now));
		if (s->flags & TCP_ECE) /* a transfer: `insert_transfer` */
			ece_on_request((struct path *)flow->path);
	}
	flow->request_seq = s->seq;
	flow->request_length = s->length;
	flow->answer_seq = c->seq;
	flow->answer_size = c->length;
	flow->answer_slot = c->slot;
	flow->answer_version = c->version;
	flow->answer_kind = c->kind;
	flow->answer_date = c->date;
	flow->used_ns = turn->now;
	flow->answered = rtx_clock(turn->now);
	flow->passed = 0;
	flow->way_doubted = false;
	if (c->closes)
		flow->socketless = c->multi_segment ? AFPA_SOCKETLESS_CLOSING : AFPA_SOCKETLESS_FIN_WAIT;
}

/*
 * Does the request come as the one before, and is the way back known? Then it is put into `work->way`. The request's
 * headers are in `work->frame`. Called with the lock held.
 */
static __always_inline enum afpa_reason take_way(struct afpa_flow *flow, struct work *work, __u32 interface)
{
	if (!comes_as_before(flow, interface, work->frame + FRAME_AT + 6))
		return AFPA_PASS_OTHER_WAY;
	if (!knows_way(flow))
		return AFPA_PASS_NO_WAY;
	work->way = flow->way;
	return AFPA_ANSWERED;
}

/*
 * Commit to the answer: from here on the two sequence spaces differ by it. AFPA_ANSWERED, or why it is not the fast
 * path's turn; then nothing has changed. Afterwards the headers in `work->frame` are as if the request had come by
 * the way back.
 */
static __always_inline enum afpa_reason commit(struct __sk_buff *skb, struct work *work, struct afpa_flow *flow,
					       const struct segment *s, struct commitment *c, struct turn *turn)
{
	__u32 interface = skb->ifindex;
	enum afpa_reason reason;
	bool first = false;

	bpf_spin_lock(&flow->lock);
	reason = whose_turn(flow, s);
	if (reason == AFPA_ANSWERED)
		reason = take_way(flow, work, interface);
	if (reason == AFPA_ANSWERED) {
		first = !flow_has_offset(flow);
		take_turn(flow, s, c, turn);
	}
	bpf_spin_unlock(&flow->lock);
	if (first)
		afpa_bypass_invalidate(&s->key);
	if (reason == AFPA_ANSWERED)
		put_way(work->frame + FRAME_AT, &work->way);
	return reason;
}

/* --- to user mode --- */

/* Does the reason lie in what the client asks for, and not only in the moment? */
static __always_inline bool is_about_client(enum afpa_reason reason)
{
	return (reason >= AFPA_PASS_METHOD && reason <= AFPA_PASS_CONDITION) || reason == AFPA_PASS_IN_PARTS;
}

/*
 * Count the pass: is it the one after which the connection is bypassed? While objects are being pinned, misses say
 * nothing about the client. Neither do misses between two versions of a popular object, so the passes must span
 * some time.
 */
static __always_inline bool becomes_bypassed(struct afpa_flow *flow, const struct turn *turn)
{
	__u32 now = rtx_clock(turn->now);
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

/* The kernel will see this payload: who owns the connection afterwards? (F2, F6) */
static __always_inline void hand_over(struct afpa_flow *flow, const struct segment *s, const struct turn *turn)
{
	if (!before(flow->client_next, s->seq + s->length))
		return; /* retransmitted, or the content of a request */
	flow->user_ns = turn->now;
	if (flow->owner == AFPA_OWNER_CLOSING || flow_is_final(flow))
		return;
	if (flow->owner == AFPA_OWNER_NONE) {
		flow->response_start = flow->kernel_next;
		flow->phase = AFPA_PHASE_HEAD;
		flow->responses_pending = 0;
		flow->head_bits = 0;
	}
	if (turn->certainty == REQUEST_UNSURE || turn->closes || s->seq != flow->client_next ||
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
 * May the acknowledgement be absorbed here? It must tell us something, and the kernel nothing, because none of the
 * kernel's bytes are on their way. An acknowledgement with no news for us either is meant for the kernel: it may be
 * the reply to its keep-alive probe.
 */
static __always_inline bool absorbs_ack(const struct afpa_flow *flow, const struct segment *s)
{
	return s->length == 0 && s->flags == TCP_ACK && flow_has_offset(flow) && flow->owner == AFPA_OWNER_NONE &&
	       s->seq == flow->client_next && flow->acked_to_kernel == flow->kernel_next &&
	       before(flow->snd_una, s->ack) &&
	       !before(s->ack, flow->stale_below + flow->tx_offset - flow->answer_size) &&
	       !before(flow->kernel_next + flow->tx_offset, s->ack);
}

#define FAR_BEHIND (1U << 29)

/*
 * Numbers that only answers move must not fall half the sequence space behind user mode's bytes, or they would seem
 * to be ahead of them (F3, F4). `acked`, in kernel numbers: the client has all bytes below. Called with the lock held.
 */
static __always_inline void keep_up(struct afpa_flow *flow, __u32 acked)
{
	if (before(flow->stale_below + FAR_BEHIND, acked) && !before(flow->kernel_next, acked))
		flow->stale_below = acked - FAR_BEHIND / 2;
	if (flow->request_length && before(flow->answer_seq + flow->answer_size + FAR_BEHIND, flow->snd_una)) {
		flow->request_seq += flow->request_length;
		flow->request_length = 0; /* no client asks for it any more */
	}
}

/*
 * Does the segment go up as it is, without the lock? Without a sequence offset there is nothing to translate. Then
 * nothing has to be kept of the segments of a connection that is final, nor of bare acknowledgements, because
 * `commit` takes the state that it needs from the request. A bare acknowledgement that crosses the first commit on another
 * processor goes up as it was meant: its client did not have the answer yet.
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
		flow->used_ns = now; /* precise enough for the sweep, and seldom written */
	if (s->length == 0)
		count_at(s->place, AFPA_PASS_NO_PAYLOAD);
	else
		count_at(s->place, flow->owner == AFPA_OWNER_BYPASSED ? AFPA_PASS_BYPASSED : AFPA_PASS_USER_FINAL);
	if (flow_is_final(flow) && !(s->flags & (TCP_FIN | TCP_RST)))
		bypass_insert_final(&s->key);
	return TCX_NEXT;
}

/* Take the flow's new state from an acceptable segment. Called with the lock held. */
static __always_inline void note(struct afpa_flow *flow, const struct segment *s, __u64 now)
{
	flow->used_ns = now;
	if (before(flow->snd_una, s->ack) && !before(flow->kernel_next + flow->tx_offset, s->ack))
		flow->snd_una = s->ack;
	measure_rtt(flow, now);
	note_timestamp(flow, s);
}

/* The kernel sees this acknowledgement. Called with the lock held. */
static __always_inline void told(struct afpa_flow *flow, const struct translation *t)
{
	if (before(flow->acked_to_kernel, t->ack) && !before(flow->kernel_next, t->ack))
		flow->acked_to_kernel = t->ack;
	keep_up(flow, t->ack);
}

/* Up to the kernel's TCP and user mode, translated if the numbers differ. */
static __always_inline int pass_up(struct __sk_buff *skb, struct work *work, const struct segment *s,
				   struct afpa_flow *flow, struct turn *turn)
{
	volatile struct rising *seen = &work->rising;
	enum afpa_reason why = AFPA_ANSWERED;
	struct translation t = {};

	seen->damaged = !afpa_is_sound(skb, work, s);
	seen->standing = STANDING_OUTSIDE;
	bpf_spin_lock(&flow->lock);
	seen->reset = !seen->damaged && is_exact_reset(flow, s);
	if (!seen->damaged && !(s->flags & TCP_RST))
		seen->standing = standing_of(flow, s);
	if (turn->ask && seen->standing == STANDING_ACCEPTABLE)
		why = whose_turn(flow, s);
	if (why != AFPA_ANSWERED && turn->reason != AFPA_PASS_IN_PARTS)
		turn->reason = why; /* goes before any other reason */
	seen->ended = seen->reset && flow->flags & AFPA_FLOW_TRANSFER;
	if (seen->ended)
		flow->flags &= ~AFPA_FLOW_TRANSFER;
	seen->final = flow_is_final(flow);
	seen->has_offset = flow_has_offset(flow);
	seen->absorbed = seen->standing == STANDING_ACCEPTABLE && absorbs_ack(flow, s);
	seen->taken = seen->standing == STANDING_ACCEPTABLE && !seen->absorbed;
	if (seen->standing == STANDING_ACCEPTABLE)
		note(flow, s, turn->now);
	if (seen->taken) {
		hand_over(flow, s, turn);
		if (s->flags & TCP_FIN) {
			flow->owner = AFPA_OWNER_CLOSING;
			flow->flags |= AFPA_FLOW_CLIENT_FIN;
		}
	}
	rx_translation(flow, s, &t);
	if (seen->taken)
		told(flow, &t);
	if (seen->reset)
		flow->owner = AFPA_OWNER_CLOSING;
	seen->bypassed = !seen->final && flow->owner == AFPA_OWNER_BYPASSED;
	bpf_spin_unlock(&flow->lock);

	if (seen->standing == STANDING_STALE) {
		count_at(s->place, AFPA_STALE_SEGMENT);
		return TCX_DROP;
	}
	if (seen->damaged)
		turn->reason = AFPA_PASS_CHECKSUM;
	else if (seen->standing == STANDING_OUTSIDE && !seen->reset)
		turn->reason = AFPA_PASS_OUTSIDE;
	if (seen->ended)
		afpa_transfer_remove(&s->key);
	if (seen->absorbed) {
		count_at(s->place, AFPA_ABSORBED_ACK);
		return TCX_DROP;
	}
	count_at(s->place, turn->reason);
	if (seen->bypassed)
		count_at(s->place, AFPA_FLOW_BYPASSED);
	if (!seen->has_offset) {
		if (seen->reset)
			flow_remove(&s->key);
		return TCX_NEXT;
	}
	if (translate(skb, work, s, &t)) {
		count_at(s->place, AFPA_TRANSLATE_FAILED);
		return TCX_DROP;
	}
	return deliver(skb);
}

#endif
