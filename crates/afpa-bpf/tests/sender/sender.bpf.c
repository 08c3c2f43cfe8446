/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The TCP sender in the kernel, one step a packet, for BPF_PROG_TEST_RUN: the step stands behind an Ethernet
 * header, and the state comes back in its place.
 */
#include <afpa/kernel.h>
#include "steps.h" /* of crates/afpa-tcp-sim */

struct bench {
	struct sender sender;
	struct step step;
	struct state state;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bench);
} bench SEC(".maps");

SEC("tc")
int sender_step(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct bench *b = bpf_map_lookup_elem(&bench, &zero);

	if (!b || bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &b->step, sizeof(b->step)))
		return 1;
	take_step(&b->sender, &b->step, &b->state);
	return bpf_skb_store_bytes(skb, sizeof(struct ethhdr), &b->state, sizeof(b->state), 0) ? 2 : 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
