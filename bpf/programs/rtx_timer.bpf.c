/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tend: what flights need when nothing arrives. Run by user mode, never attached.
 *
 * `afpa_due` looks through the flights and names those whose time has come; its input is ignored. It
 * returns how many those are, and in the higher bits how many there are in all. `afpa_kick` is run for
 * each: its input is an Ethernet header and the flow's key, and becomes the segments that leave. No flight
 * pays for a timer so.
 */
#include <afpa/rtx/timers.h>

struct looking {
	__u64 now;       /* microseconds */
	__u32 flights;
	__u32 dues;
};

static long look_at(const void *map, const void *key, struct afpa_flight *flight, struct looking *looking)
{
	struct sender *f = engine_of(flight);
	__u32 at = looking->dues;
	struct afpa_due *due;

	looking->flights++;
	if (!flight->look && (f->timer == TIMER_NONE || looking->now < f->deadline))
		return 0;
	due = bpf_map_lookup_elem(&dues, &at);
	if (!due)
		return 0; /* the next look finds it */
	due->flow = flight->flow;
	due->interface = flight->interface;
	__builtin_memcpy(due->ethernet, flight->ethernet, sizeof(due->ethernet));
	looking->dues++;
	return 0;
}

SEC("tcx/ingress")
int afpa_due(struct __sk_buff *skb)
{
	struct looking looking = { .now = microseconds() };

	bpf_for_each_map_elem(&flights, look_at, &looking, 0);
	return looking.flights << 8 | (looking.dues & 255);
}

/* The connection has gone, and the flight with it; or another one has its place. */
static __always_inline bool is_orphan(const struct afpa_flow *flow, const struct afpa_flight *flight)
{
	return !flow || !(*(volatile __u8 *)&flow->flags & AFPA_FLOW_FLIGHT) || flow->answer_at != flight->at;
}

static __always_inline void kick(struct __sk_buff *skb, struct work *work, struct afpa_flow *flow,
				 struct afpa_flight *flight, const struct afpa_flow_key *key)
{
	__u32 interface = flight->interface;
	int progress, built = BUILT_GONE;
	bool told;

	work->sending.now = microseconds();
	start_sending(&work->sending, flow, flight);
	work->sending.partial = false;
	progress = afpa_look_at_time(flight, work->sending.now);
	bpf_spin_lock(&flow->lock);
	number(flow, flight, &work->sending);
	bpf_spin_unlock(&flow->lock);
	if (progress != PROGRESS_GIVEN_UP)
		built = send_ready(skb, work, flight);
	if (built != BUILT_GONE) {
		if (built == BUILT)
			bpf_clone_redirect(skb, interface, 0);
		flight_release(flight);
		return;
	}
	count_at(flight->place, progress == PROGRESS_GIVEN_UP ? AFPA_FLIGHT_GIVEN_UP : AFPA_FLIGHT_LOST);
	told = end_connection(skb, work, flight);
	remove_both(key);
	if (told)
		bpf_clone_redirect(skb, interface, BPF_F_INGRESS);
}

SEC("tcx/ingress")
int afpa_kick(struct __sk_buff *skb)
{
	struct afpa_flight *flight;
	struct afpa_flow_key key __attribute__((aligned(8)));
	struct afpa_flow *flow;
	struct work *work;
	__u32 zero = 0;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &key, sizeof(key)))
		return TCX_DROP;
	flow = bpf_map_lookup_elem(&flows, &key);
	flight = bpf_map_lookup_elem(&flights, &key);
	work = bpf_map_lookup_elem(&tend_work, &zero);
	if (!flight || !work || !flight_take(flight, &key))
		return TCX_DROP;
	count_at(flight->place, AFPA_FLIGHT_TIMED);
	if (is_orphan(flow, flight)) {
		bpf_map_delete_elem(&flights, &key);
		count(AFPA_FLIGHT_ENDED);
	} else {
		kick(skb, work, flow, flight, &key);
	}
	return TCX_DROP;
}
