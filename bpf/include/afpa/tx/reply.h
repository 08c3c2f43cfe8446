/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An answer of one segment: the request's packet becomes the answer's, and leaves by the interface it came in.
 */
#ifndef AFPA_TX_REPLY_H
#define AFPA_TX_REPLY_H

#include <afpa/cache/lookup.h>
#include <afpa/conn/handover.h>
#include <afpa/tx/frame.h>

/* Does the answer fit the client's window and segment size? */
static __always_inline bool fits(const struct afpa_flow *flow, const struct segment *s, __u32 length)
{
	return length <= AFPA_ANSWER_MAX && length <= flow->mss &&
	       length <= (__u32)bpf_ntohs(s->window) << (flow->client_scale & 15);
}

/* The packet becomes `slot`'s answer with the numbers of `out`; its headers are in `work->frame`. */
static __always_inline bool build_answer(struct __sk_buff *skb, struct work *work, const struct segment *s,
					const struct afpa_slot *slot, enum afpa_kind kind, struct outgoing *out,
					const struct afpa_date *date, bool partial)
{
	__u32 max = kind == AFPA_KIND_NOT_MODIFIED ? sizeof(slot->not_modified_bytes) : sizeof(slot->bytes);
	const __u8 *bytes = kind == AFPA_KIND_NOT_MODIFIED ? slot->not_modified_bytes : slot->bytes;

	outgoing_answer(out, answer_of(slot, kind), bytes, kind == AFPA_KIND_HEAD, date);
	if (out->length > max || !make_packet(skb, work, s, out, partial))
		return false;
	if (kind == AFPA_KIND_NOT_MODIFIED) {
		out->bytes = slot->not_modified_bytes;
		return store_payload(skb, s, out, sizeof(slot->not_modified_bytes));
	}
	out->bytes = slot->bytes;
	return store_payload(skb, s, out, sizeof(slot->bytes));
}

/*
 * What remains of an answered request is the acknowledgement that it carried: the packet goes up to the kernel as
 * that. The answer has left as its clone.
 */
static __always_inline int send_ack_up(struct __sk_buff *skb, struct work *work, const struct segment *s,
					  const struct commitment *c, bool partial)
{
	struct outgoing out = {
		.seq = c->kernel_seq, .ack = c->kernel_ack, .ts_value = s->ts_value, .ts_echo = s->ts_echo,
		.window = s->window, .flags = TCP_ACK, .swap = true, /* the answer swapped them already */
	};

	return make_packet(skb, work, s, &out, partial) ? TCX_NEXT : TCX_DROP;
}

/* For the access log. */
static __always_inline void report(const struct work *work, const struct segment *s, const struct afpa_flow *flow,
				   const struct cached *cached, __u32 length, __u32 date, bool head)
{
	__u32 every = shared.log_every;
	struct afpa_event *event;

	if (every == 0 || (every > 1 && bpf_get_prandom_u32() % every))
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count(AFPA_EVENT_LOST);
		return;
	}
	event->flow = s->key;
	event->listener = flow->listener;
	event->site = cached->slot->site;
	event->date = date;
	event->version = cached->slot->version;
	event->length = length;
	event->kind = cached->kind;
	event->head = head;
	event->weight = every;
	event->block = work->request.entry;
	event->block_sequence = work->request.entry_sequence;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* Send the answer that was committed to; its headers are in `work->frame`. */
static __always_inline int reply(struct __sk_buff *skb, struct work *work, const struct segment *s,
				 const struct afpa_flow *flow, const struct cached *cached,
				 const struct commitment *c, const struct afpa_date *date, bool head)
{
	bool partial = checksum_state(skb) == CHECKSUM_PARTIAL, not_modified = cached->kind == AFPA_KIND_NOT_MODIFIED;
	struct outgoing out = {
		.flags = TCP_ACK | TCP_PSH, .swap = true, .seq = c->seq, .ack = c->ack, .ts_value = c->ts_value,
		.ts_echo = s->ts_value, .window = c->window, .ecn = c->ecn,
	};

	if (s->flags & TCP_ECE)
		out.flags |= TCP_CWR;
	if (!build_answer(skb, work, s, cached->slot, cached->kind, &out, date, partial)) {
		count_at(s->place, AFPA_PASS_SEND); /* committed: the client sends the request again, and is answered */
		return TCX_DROP;
	}
	count_at(s->place, not_modified ? AFPA_ANSWERED_NOT_MODIFIED : AFPA_ANSWERED);
	count_site(cached->slot->site, not_modified);
	report(work, s, flow, cached, c->length, c->date, head);
	if (!c->ack_up)
		return bpf_redirect(skb->ifindex, 0);
	bpf_clone_redirect(skb, skb->ifindex, 0);
	return send_ack_up(skb, work, s, c, partial);
}

#endif
