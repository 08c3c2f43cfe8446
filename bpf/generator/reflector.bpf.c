// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
/*
 * The upper bound of any in-kernel server: TC ingress on the server's interface answers every
 * segment with payload on one port by a constant, without looking at it and without state.
 */
#include "abi.h"
#include "packet.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct answer);
} answers SEC(".maps");

SEC("tc")
int reflect(struct __sk_buff *skb)
{
	struct segment segment = {};
	__u32 zero = 0;
	struct answer *answer = bpf_map_lookup_elem(&answers, &zero);

	if (!answer || read_segment(skb, &segment))
		return TC_ACT_OK;
	if (segment.to_port != answer->port || segment.length == 0)
		return TC_ACT_OK;

	struct outgoing out = {
		.from = segment.to,
		.from_port = segment.to_port,
		.seq = segment.ack,
		.ack = segment.seq + segment.length,
		.ts_value = segment.ts_echo, /* what the client has seen last: never runs backwards */
		.ts_echo = segment.ts_value,
		.payload = answer->bytes,
		.length = answer->length,
		.sum = answer->sum,
		.flags = TCP_ACK | TCP_PSH,
	};
	if (turn_round(skb, &segment, &out, ANSWER_MAX, true))
		return TC_ACT_SHOT;
	return bpf_redirect(skb->ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
