/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tend: what flights need when nothing arrives. Run by user mode, never attached.
 *
 * `afpa_due_transfers` looks through the flights and names those whose time has come; its input is ignored. It
 * returns how many those are, and in the higher bits how many there are in all. `afpa_retransmit_transfer` is run for
 * each: its input is an Ethernet header and the flow's key, and becomes the segments that leave. No flight
 * pays for a timer so.
 */
#include <afpa/rtx/transfer.h>

struct due_search {
	__u64 now;       /* microseconds */
	__u32 transfers;
	__u32 dues;
};

static long is_due(const void *map, const void *key, struct afpa_transfer *transfer, struct due_search *search)
{
	struct sender *f = sender_of(transfer);
	__u32 at = search->dues;
	struct afpa_rtx_due *due;

	search->transfers++;
	if (!transfer->send_pending && (f->timer == TIMER_NONE || search->now < f->deadline))
		return 0;
	due = bpf_map_lookup_elem(&transfers_due, &at);
	if (!due)
		return 0; /* the next look finds it */
	due->flow = transfer->flow;
	due->interface = transfer->interface;
	__builtin_memcpy(due->ethernet, transfer->ethernet, sizeof(due->ethernet));
	search->dues++;
	return 0;
}

SEC("tcx/ingress")
int afpa_due_transfers(struct __sk_buff *skb)
{
	struct due_search search = { .now = microseconds() };

	bpf_for_each_map_elem(&transfers, is_due, &search, 0);
	return search.transfers << 8 | (search.dues & 255);
}

/* The connection has gone, and the flight with it; or another one has its place. */
static __always_inline bool is_orphan(const struct afpa_flow *flow, const struct afpa_transfer *transfer)
{
	return !flow || !(*(volatile __u8 *)&flow->flags & AFPA_FLOW_TRANSFER) || flow->answer_seq != transfer->at;
}

static __always_inline void on_transfer_timer(struct __sk_buff *skb, struct work *work, struct afpa_flow *flow,
				 struct afpa_transfer *transfer, const struct afpa_flow_key *key)
{
	__u32 interface = transfer->interface;
	int progress, built = BUILT_GONE;
	bool told;

	work->sending.now = microseconds();
	start_sending(&work->sending, flow, transfer);
	work->sending.partial = false;
	progress = afpa_on_timer(transfer, work->sending.now);
	bpf_spin_lock(&flow->lock);
	number(flow, transfer, &work->sending);
	bpf_spin_unlock(&flow->lock);
	if (progress != PROGRESS_GIVEN_UP)
		built = send_ready(skb, work, transfer);
	if (built != BUILT_GONE) {
		if (built == BUILT)
			bpf_clone_redirect(skb, interface, 0);
		transfer_unlock(transfer);
		return;
	}
	count_at(transfer->place, progress == PROGRESS_GIVEN_UP ? AFPA_TRANSFER_GIVEN_UP : AFPA_TRANSFER_LOST);
	told = end_connection(skb, work, transfer);
	remove_both(key);
	if (told)
		bpf_clone_redirect(skb, interface, BPF_F_INGRESS);
}

SEC("tcx/ingress")
int afpa_retransmit_transfer(struct __sk_buff *skb)
{
	struct afpa_transfer *transfer;
	struct afpa_flow_key key __attribute__((aligned(8)));
	struct afpa_flow *flow;
	struct work *work;
	__u32 zero = 0;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &key, sizeof(key)))
		return TCX_DROP;
	flow = bpf_map_lookup_elem(&flows, &key);
	transfer = bpf_map_lookup_elem(&transfers, &key);
	work = bpf_map_lookup_elem(&rtx_work, &zero);
	if (!transfer || !work || !transfer_lock(transfer, &key))
		return TCX_DROP;
	count_at(transfer->place, AFPA_TRANSFER_ON_TIMER);
	if (is_orphan(flow, transfer)) {
		bpf_map_delete_elem(&transfers, &key);
		count(AFPA_TRANSFER_ENDED);
	} else {
		on_transfer_timer(skb, work, flow, transfer, &key);
	}
	return TCX_DROP;
}
