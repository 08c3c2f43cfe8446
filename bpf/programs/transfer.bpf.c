/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Transfer: the client's segments while an answer of several segments is on its way, its request included.
 *
 * Reached from the ingress programs by a tail call (`to_transfer_program`). Each segment is processed for its
 * acknowledgement; its packet is then reused for the next outgoing segment. Nothing goes up but resets, and an
 * acknowledgement that the kernel waits for. When everything has arrived, the connection is as after any answer, and
 * the segment starts again at the entry program.
 */
#include <afpa/rtx/on_ack.h>

_Static_assert(sizeof(struct segment) == AFPA_SEGMENT_WORDS * 8, "AFPA_SEGMENT_WORDS");

/*
 * Take the flow's new state from the segment, and the numbers and the way of the segments to send. False: the way is not known.
 * The segment's Ethernet header is in `work->frame`.
 */
static __always_inline bool note_segment(struct afpa_flow *flow, const struct segment *s, struct afpa_transfer *transfer,
					 struct work *work, __u32 interface)
{
	struct sending *sending = &work->sending;
	bool known;

	bpf_spin_lock(&flow->lock);
	comes_as_before(flow, interface, work->frame + FRAME_AT + 6);
	flow->used_ns = sending->now * 1000;
	if (before(flow->snd_una, s->ack) && before(s->ack, flow->answer_seq + flow->answer_size))
		flow->snd_una = s->ack;
	if (s->timestamps && before(flow->ts_seen, s->ts_value) && !before(flow->client_next, s->seq))
		flow->ts_seen = s->ts_value;
	number(flow, transfer, sending);
	known = way_of_transfer(flow, transfer);
	bpf_spin_unlock(&flow->lock);
	return known;
}

/* `note_segment` for the request itself, whose numbers and way were committed to. */
static __always_inline void note_request(struct afpa_flow *flow, struct afpa_transfer *transfer)
{
	bpf_spin_lock(&flow->lock);
	way_of_transfer(flow, transfer);
	bpf_spin_unlock(&flow->lock);
}

/* May the packet be rewritten into another one? Its checksum state holds only if headers stay in their place. */
static __always_inline bool is_rewritable(struct __sk_buff *skb, const struct segment *s)
{
	return !skb->gso_size && !skb->vlan_present && s->tcp_at == sizeof(struct ethhdr) + (s->ipv6 ? 40 : 20);
}

/* Reset the connection on both sides; the packet becomes the reset for the kernel. */
static __always_inline int end(struct __sk_buff *skb, struct work *work, const struct segment *s,
			       struct afpa_transfer *transfer, enum afpa_reason reason)
{
	bool told;

	count_at(s->place, reason);
	mark_own(skb);
	told = end_connection(skb, work, transfer);
	remove_both(&s->key);
	return told ? deliver(skb) : TCX_DROP;
}

/* Nothing may leave until the kernel has shown its way: the packet becomes a probe that it acknowledges. */
static __always_inline int ask_for_way(struct __sk_buff *skb, struct work *work, const struct segment *s,
				       struct afpa_transfer *transfer)
{
	bool asked;

	transfer->send_pending = 1;
	work->sending.window = s->window;
	work->sending.ts_value = s->ts_echo;
	work->sending.ts_echo = s->ts_value;
	asked = afpa_make_empty(skb, work, transfer, PROBE_UP);
	transfer_unlock(transfer);
	count_at(s->place, AFPA_WAY_ASKED);
	return asked ? deliver(skb) : TCX_DROP;
}

/* The packet, whose clone may just have left, becomes the acknowledgement that the kernel waits for. */
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
	return deliver(skb);
}

/* Send the segments that may leave, and decide about the packet. Afterwards the transfer is unlocked, or removed. */
static __always_inline int send_and_finish(struct __sk_buff *skb, struct work *work, const struct segment *s,
				 struct afpa_flow *flow, struct afpa_transfer *transfer)
{
	__u32 interface = transfer->interface;
	int built;

	mark_own(skb);
	built = send_ready(skb, work, transfer);
	if (built == BUILT_GONE)
		return end(skb, work, s, transfer, AFPA_TRANSFER_LOST);
	if (!work->sending.ack_up) {
		transfer_unlock(transfer);
		return built == BUILT ? bpf_redirect(interface, 0) : TCX_DROP;
	}
	if (built == BUILT)
		bpf_clone_redirect(skb, interface, 0);
	return send_transfer_ack_up(skb, work, s, flow, transfer);
}

static __always_inline int on_segment(struct __sk_buff *skb, struct work *work, struct segment *s, struct afpa_flow *flow,
			       struct afpa_transfer *transfer)
{
	bool is_ack = !work->sending.begins; /* the request cannot acknowledge its own answer */
	int progress = PROGRESS_GOING;
	bool known = true;

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
		note_fin(flow, s);
		bpf_map_delete_elem(&transfers, &s->key);
		count_at(s->place, AFPA_TRANSFER_DONE);
		return begin_anew(skb);
	}
	if (bpf_skb_load_bytes(skb, 0, work->frame + FRAME_AT, sizeof(struct ethhdr))) {
		transfer_unlock(transfer);
		return TCX_DROP;
	}
	if (is_ack)
		known = note_segment(flow, s, transfer, work, skb->ifindex);
	else
		note_request(flow, transfer);
	if (!is_rewritable(skb, s)) {
		transfer->send_pending = 1;
		transfer_unlock(transfer);
		return TCX_DROP;
	}
	work->sending.partial = checksum_state(skb) == CHECKSUM_PARTIAL;
	if (progress == PROGRESS_GIVEN_UP)
		return end(skb, work, s, transfer, AFPA_TRANSFER_GIVEN_UP);
	if (!known)
		return ask_for_way(skb, work, s, transfer);
	return send_and_finish(skb, work, s, flow, transfer);
}

/* The flow says that there is a transfer, but its entry is gone: its bytes are not known any more. */
static __always_inline int without_transfer(struct __sk_buff *skb, struct work *work, const struct segment *s,
					  struct afpa_flow *flow)
{
	struct afpa_transfer *none = (struct afpa_transfer *)work->transfer;

	if (!is_rewritable(skb, s) || bpf_skb_load_bytes(skb, 0, none->ethernet, sizeof(none->ethernet)) ||
	    bpf_skb_load_bytes(skb, 0, work->frame + FRAME_AT, sizeof(struct ethhdr)))
		return TCX_DROP;
	swap_ethernet(none->ethernet);
	none->flow = s->key;
	none->interface = skb->ifindex;
	none->place = s->place;
	start_sending(&work->sending, flow, none);
	work->sending.partial = checksum_state(skb) == CHECKSUM_PARTIAL;
	note_segment(flow, s, none, work, skb->ifindex);
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
	/* A transfer that ends loses the flag first. If the flag stands twice without an entry, the entry is lost. */
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
