/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An answer of one segment: the request's packet becomes the answer's, and leaves the kernel's way (conn/way.h).
 */
#ifndef AFPA_TX_REPLY_H
#define AFPA_TX_REPLY_H

#include <afpa/cache/lookup.h>
#include <afpa/conn/handover.h>
#include <afpa/tx/frame.h>
#include <afpa/tx/sample.h>

/* Does the answer fit the client's window and segment size? */
static __always_inline bool fits(const struct afpa_flow *flow, const struct segment *s, __u32 length)
{
	return length <= AFPA_ANSWER_MAX && length <= flow->mss &&
	       length <= (__u32)bpf_ntohs(s->window) << (flow->client_scale & 15);
}

/* Were the bytes that were copied up to here of `work->edition`? (P4) */
static __always_inline bool holds_edition(const struct work *work, const struct afpa_slot *slot,
					  const struct afpa_date *date)
{
	return holds_version(slot, work->edition.version) && *(const volatile __u64 *)&date->second == work->edition.date;
}

/*
 * The packet becomes `slot`'s answer with the numbers of `out`; its headers are in `work->frame`. False: it is spoilt,
 * or the slot and the Date have become others while they were copied.
 */
static __always_inline bool build_answer(struct __sk_buff *skb, struct work *work, const struct segment *s,
					const struct afpa_slot *slot, enum afpa_kind kind, struct outgoing *out,
					const struct afpa_date *date, bool partial)
{
	bool stored;
	__u32 max = kind == AFPA_KIND_NOT_MODIFIED ? sizeof(slot->not_modified_bytes) : sizeof(slot->bytes);

	outgoing_answer(out, slot, answer_of(slot, kind), kind == AFPA_KIND_HEAD, date);
	if (out->length > max || !make_packet(skb, work, s, out, partial))
		return false;
	if (kind == AFPA_KIND_NOT_MODIFIED)
		stored = store_payload(skb, s, out, slot->not_modified_bytes, sizeof(slot->not_modified_bytes), date);
	else
		stored = store_payload(skb, s, out, slot->bytes, sizeof(slot->bytes), date);
	if (stored && !holds_edition(work, slot, date)) {
		count_at(s->place, AFPA_ANSWER_REPLACED);
		return false;
	}
	return stored;
}

/*
 * The packet of an answered request goes up to the kernel as the bare acknowledgement that the request carried. The
 * answer has left as its clone.
 */
static __always_inline int send_ack_up(struct __sk_buff *skb, struct work *work, const struct segment *s,
					  const struct commitment *c, bool partial)
{
	struct outgoing out = {
		.seq = c->kernel_seq, .ack = c->kernel_ack, .ts_value = s->ts_value, .ts_echo = s->ts_echo,
		.window = s->window, .flags = TCP_ACK, .swap = true, /* the answer swapped them already */
	};

	return make_packet(skb, work, s, &out, partial) ? deliver(skb) : TCX_DROP;
}

/* For the access log. */
static __always_inline void report(const struct work *work, const struct segment *s, const struct commitment *c)
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
	event->listener = c->listener;
	event->site = work->request.block.site;
	event->date = c->second;
	event->version = c->version;
	event->length = c->length;
	event->kind = c->kind;
	event->head = c->head;
	event->old = work->request.old;
	event->weight = every;
	event->block = work->request.entry;
	event->block_sequence = work->request.entry_sequence;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/*
 * Send the answer that was committed to; its headers are in `work->frame`. A global function: it has a stack of its own,
 * and is verified once.
 */
__noinline int afpa_reply(struct __sk_buff *skb, struct work *work, const struct segment *s)
{
	struct outgoing out = { .flags = TCP_ACK | TCP_PSH, .swap = true };
	const struct commitment *c;
	struct afpa_slot *slot;
	__u32 index;
	bool partial;

	if (!work || !s)
		return TCX_DROP;
	c = (const struct commitment *)work->commitment;
	index = c->slot;
	slot = slot_at(&index);
	partial = checksum_state(skb) == CHECKSUM_PARTIAL;
	work->edition.version = c->version;
	work->edition.date = c->date;
	out.seq = c->seq;
	out.ack = c->ack;
	out.ts_value = c->ts_value;
	out.ts_echo = s->ts_value;
	out.window = c->window;
	out.ecn = c->ecn;
	if (s->flags & TCP_ECE)
		out.flags |= TCP_CWR;
	if (c->closes)
		out.flags |= TCP_FIN;
	if (!slot || !build_answer(skb, work, s, slot, c->kind, &out, date_or_age(work, slot, c->date), partial)) {
		count_at(s->place, AFPA_PASS_SEND); /* committed: the client sends the request again, and is answered */
		return TCX_DROP;
	}
	count_at(s->place, c->kind == AFPA_KIND_NOT_MODIFIED ? AFPA_ANSWERED_NOT_MODIFIED : AFPA_ANSWERED);
	if (slot->age_digits)
		count_at(s->place, AFPA_ANSWERED_SHARED);
	count_site(work->request.block.site, c->kind == AFPA_KIND_NOT_MODIFIED);
	report(work, s, c);
	if (is_sampled(c) && !slot->asked) /* the server's present answer may be another one */
		sample_answer(skb, work, s, c, slot);
	mark_own(skb);
	if (!c->ack_up)
		return bpf_redirect(work->way.interface, 0);
	bpf_clone_redirect(skb, work->way.interface, 0);
	return send_ack_up(skb, work, s, c, partial);
}

#endif
