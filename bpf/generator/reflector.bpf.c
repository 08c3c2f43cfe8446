// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
/*
 * The upper bound of any in-kernel server: TC ingress on the server's interface answers every
 * segment with payload on one port by a constant, without looking at it.
 *
 * All segments of the answer leave at once, each but the last as a clone. Their acknowledgements
 * are dropped. The only state is a mark for each client port that was answered: the kernel's TCP
 * has to see the handshake, and should not see an acknowledgement of bytes that it never sent.
 *
 * `reflect_once` answers one request a connection, and opens and closes the connection, too. It
 * has no state at all, and proves nothing: three replies are the least that such a connection takes.
 */
#include "abi.h"
#include "packet.h"

#define FIRST_NUMBER 1000000 /* of every connection that reflect_once opens */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct answer);
} answers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << 16);
	__type(key, __u32);
	__type(value, __u32);
} answered SEC(".maps");

struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));

extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

/* `end`: the flags of the last segment besides ACK and PSH. */
static __always_inline int answer_all(struct __sk_buff *skb, const struct segment *segment,
				      const struct answer *answer, const __u8 end)
{
	__u32 number;

	bpf_for(number, 0, ANSWER_SEGMENTS) {
		__u32 at = number * answer->unit, length = answer->length - at;
		bool last = length <= answer->unit;
		struct outgoing out = {
			.from = segment->to,
			.from_port = segment->to_port,
			.seq = segment->ack + at,
			.ack = segment->seq + segment->length,
			.ts_value = segment->ts_echo, /* the value that the client has seen last: never runs backwards */
			.ts_echo = segment->ts_value,
			.length = last ? length : answer->unit,
			.flags = last ? TCP_ACK | TCP_PSH | end : TCP_ACK,
		};

		if (at > ANSWER_MAX - ANSWER_UNIT)
			return TC_ACT_SHOT;
		out.payload = answer->bytes + at;
		out.sum = answer->sums[number];
		if (turn_round(skb, segment, &out, ANSWER_UNIT, at == 0))
			return TC_ACT_SHOT;
		if (last)
			return bpf_redirect(skb->ifindex, 0);
		bpf_clone_redirect(skb, skb->ifindex, 0);
	}
	return TC_ACT_SHOT;
}

SEC("tc")
int reflect(struct __sk_buff *skb)
{
	struct segment segment = {};
	__u32 zero = 0, port, *mark;
	struct answer *answer = bpf_map_lookup_elem(&answers, &zero);

	if (!answer || read_segment(skb, &segment) || segment.to_port != answer->port)
		return TC_ACT_OK;
	port = segment.from_port;
	mark = bpf_map_lookup_elem(&answered, &port);
	if (!mark)
		return TC_ACT_OK;
	if (segment.length == 0)
		return *mark && segment.flags == TCP_ACK ? TC_ACT_SHOT : TC_ACT_OK;
	*mark = 1;
	return answer_all(skb, &segment, answer, 0);
}

/* Turns a SYN into a SYN-ACK, and a FIN into its acknowledgement. */
static __always_inline int reply(struct __sk_buff *skb, const struct segment *segment)
{
	bool syn = segment->flags & TCP_SYN;
	struct segment stamped = *segment;
	struct outgoing out = {
		.from = segment->to,
		.from_port = segment->to_port,
		.seq = syn ? FIRST_NUMBER : segment->ack,
		.ack = segment->seq + 1,
		.ts_value = syn ? 1 : segment->ts_echo,
		.ts_echo = segment->ts_value,
		.payload = syn_options,
		.length = syn ? sizeof(syn_options) : 0,
		.sum = syn ? syn_options_sum() : 0,
		.option_words = syn ? sizeof(syn_options) / 4 : 0,
		.flags = syn ? TCP_SYN | TCP_ACK : TCP_ACK,
	};

	stamped.stamped |= syn;
	if (turn_round(skb, &stamped, &out, sizeof(syn_options), true))
		return TC_ACT_SHOT;
	return bpf_redirect(skb->ifindex, 0);
}

SEC("tc")
int reflect_once(struct __sk_buff *skb)
{
	struct segment segment = {};
	__u32 zero = 0;
	struct answer *answer = bpf_map_lookup_elem(&answers, &zero);

	if (!answer || read_segment(skb, &segment) || segment.to_port != answer->port)
		return TC_ACT_OK;
	if (segment.flags & TCP_RST)
		return TC_ACT_SHOT;
	if (segment.length > 0)
		return answer_all(skb, &segment, answer, TCP_FIN);
	return segment.flags & (TCP_SYN | TCP_FIN) ? reply(skb, &segment) : TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
