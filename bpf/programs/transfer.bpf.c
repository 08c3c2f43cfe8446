/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Flight: segments of a client to whom an answer of several segments is on its way, from the request on.
 *
 * Reached from the ingress programs by a tail call (`to_transfer_program`), with the request's packet when nothing was
 * sent yet. A segment is taken for what it acknowledges, and is then the clay of what leaves; nothing goes up but
 * resets, and the acknowledgement that the kernel waits for. When all has arrived, the connection is as
 * after any answer, and the segment begins anew at the entry.
 */
#include <afpa/rtx/on_ack.h>

_Static_assert(sizeof(struct segment) == AFPA_SEGMENT_WORDS * 8, "AFPA_SEGMENT_WORDS");

/* Keep the flow true to the segment, and take its numbers. */
static __always_inline void note_segment(struct afpa_flow *flow, const struct segment *s,
					 const struct afpa_transfer *transfer, struct sending *sending)
{
	bpf_spin_lock(&flow->lock);
	flow->used_ns = sending->now * 1000;
	if (before(flow->snd_una, s->ack) && before(s->ack, flow->answer_seq + flow->answer_size))
		flow->snd_una = s->ack;
	if (s->timestamps && before(flow->ts_seen, s->ts_value) && !before(flow->client_next, s->seq))
		flow->ts_seen = s->ts_value;
	number(flow, transfer, sending);
	bpf_spin_unlock(&flow->lock);
}

/* Can the packet become another one? Its checksum state is about where its headers are. */
static __always_inline bool is_rewritable(struct __sk_buff *skb, const struct segment *s)
{
	return !skb->gso_size && s->tcp_at == sizeof(struct ethhdr) + (s->ipv6 ? 40 : 20);
}

/* Both sides are told that the connection has ended; the packet is the kernel's part. */
static __always_inline int end(struct __sk_buff *skb, struct work *work, const struct segment *s,
			       struct afpa_transfer *transfer, enum afpa_reason reason)
{
	bool told;

	count_at(s->place, reason);
	told = end_connection(skb, work, transfer);
	remove_both(&s->key);
	return told ? TCX_NEXT : TCX_DROP;
}

/* The kernel gets the acknowledgement it waits for, in the packet whose clone may just have left. */
static __always_inline int send_transfer_ack_up(struct __sk_buff *skb, struct work *work, const struct segment *s,
				       struct afpa_flow *flow, struct afpa_transfer *transfer)
{
	__u32 acked = work->sending.kernel_ack;
	bool told;

	work->sending.window = s->window;
	work->sending.ts_value = s->ts_echo;
	told = afpa_make_empty(skb, work, transfer, ACK_UP);
	transfer_unlock(transfer);
	if (!told)
		return TCX_DROP;
	bpf_spin_lock(&flow->lock);
	if (before(flow->acked_to_kernel, acked))
		flow->acked_to_kernel = acked;
	bpf_spin_unlock(&flow->lock);
	return TCX_NEXT;
}

/* What is sent, and what becomes of the packet. The flight is released, or gone. */
static __always_inline int go_on(struct __sk_buff *skb, struct work *work, const struct segment *s,
				 struct afpa_flow *flow, struct afpa_transfer *transfer)
{
	int built = send_ready(skb, work, transfer);

	if (built == BUILT_GONE)
		return end(skb, work, s, transfer, AFPA_TRANSFER_LOST);
	if (!work->sending.ack_up) {
		transfer_unlock(transfer);
		return built == BUILT ? bpf_redirect(skb->ifindex, 0) : TCX_DROP;
	}
	if (built == BUILT)
		bpf_clone_redirect(skb, skb->ifindex, 0);
	return send_transfer_ack_up(skb, work, s, flow, transfer);
}

static __always_inline int on_segment(struct __sk_buff *skb, struct work *work, struct segment *s, struct afpa_flow *flow,
			       struct afpa_transfer *transfer)
{
	bool is_ack = !work->sending.begins; /* of an answer that begins its request can say nothing */
	int progress = PROGRESS_GOING;

	start_sending(&work->sending, flow, transfer);
	if (is_ack)
		progress = on_ack(skb, work, s, flow, transfer);
	if (progress == PROGRESS_IMPOSSIBLE) {
		count_at(s->place, AFPA_TRANSFER_INVALID);
		transfer_unlock(transfer);
		return TCX_DROP;
	}
	if (is_ack)
		count_at(s->place, AFPA_TRANSFER_ON_ACK);
	if (progress == PROGRESS_DONE) {
		complete(flow, transfer);
		bpf_map_delete_elem(&transfers, &s->key);
		count_at(s->place, AFPA_TRANSFER_DONE);
		bpf_tail_call(skb, &alive, 0); /* what the entry program does */
		bpf_tail_call(skb, &programs, AFPA_PROGRAM_INGRESS);
		return TCX_DROP;
	}
	if (is_ack)
		note_segment(flow, s, transfer, &work->sending);
	if (!is_rewritable(skb, s)) {
		transfer->send_pending = 1;
		transfer_unlock(transfer);
		return TCX_DROP;
	}
	work->sending.partial = checksum_state(skb) == CHECKSUM_PARTIAL;
	if (bpf_skb_load_bytes(skb, 0, transfer->ethernet, sizeof(transfer->ethernet)) == 0)
		swap_ethernet(transfer->ethernet);
	transfer->interface = skb->ifindex;
	if (progress == PROGRESS_GIVEN_UP)
		return end(skb, work, s, transfer, AFPA_TRANSFER_GIVEN_UP);
	return go_on(skb, work, s, flow, transfer);
}

/* The flow says that there is a transfer, and there is none: its bytes cannot be told any more. */
static __always_inline int without_transfer(struct __sk_buff *skb, struct work *work, const struct segment *s,
					  struct afpa_flow *flow)
{
	struct afpa_transfer *none = (struct afpa_transfer *)work->transfer;

	if (!is_rewritable(skb, s) || bpf_skb_load_bytes(skb, 0, none->ethernet, sizeof(none->ethernet)))
		return TCX_DROP;
	swap_ethernet(none->ethernet);
	none->flow = s->key;
	none->interface = skb->ifindex;
	none->place = s->place;
	start_sending(&work->sending, flow, none);
	work->sending.partial = checksum_state(skb) == CHECKSUM_PARTIAL;
	note_segment(flow, s, none, &work->sending);
	return end(skb, work, s, none, AFPA_TRANSFER_LOST);
}

SEC("tcx/ingress")
int afpa_transfer(struct __sk_buff *skb)
{
	struct afpa_transfer *transfer = NULL;
	struct afpa_flow *flow;
	struct segment *s;
	struct work *work;
	__u32 zero = 0;

	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work)
		return TCX_DROP;
	s = (struct segment *)work->segment;
	flow = bpf_map_lookup_elem(&flows, &s->key);
	if (!flow)
		return TCX_DROP;
	/* A flight that ends loses the flag first: who finds the flag twice, and no transfer, finds none. */
	for (int i = 0; i < 2 && !transfer; i++) {
		if (!(*(volatile __u8 *)&flow->flags & AFPA_FLOW_TRANSFER))
			return TCX_DROP;
		transfer = bpf_map_lookup_elem(&transfers, &s->key);
	}
	if (!transfer)
		return without_transfer(skb, work, s, flow);
	if (!work->sending.begins && !transfer_lock(transfer, &s->key)) {
		transfer->send_pending = 1;
		count_at(s->place, AFPA_TRANSFER_BUSY);
		return TCX_DROP;
	}
	return on_segment(skb, work, s, flow, transfer);
}
