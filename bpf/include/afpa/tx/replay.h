/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The same answer of one segment again, byte for byte, whether the client asked again or its rtx timer expired; and
 * the end of a connection whose answer cannot be sent again.
 */
#ifndef AFPA_TX_REPLAY_H
#define AFPA_TX_REPLAY_H

#include <afpa/tx/reply.h>

/* The version that was sent is gone, and no other may be mixed into the stream: reset the connection. */
static __always_inline int reset_lost_version(struct __sk_buff *skb, struct work *work, const struct segment *s,
				 const struct afpa_flow *flow, bool partial)
{
	struct outgoing out = {
		.seq = flow->client_next - flow->rx_offset, .ack = flow->kernel_next, .ts_value = s->ts_value,
		.ts_echo = s->ts_echo, .flags = TCP_RST | TCP_ACK,
	};

	count_at(s->place, AFPA_RESET_LOST_VERSION);
	if (!make_packet(skb, work, s, &out, partial))
		return TCX_DROP;
	flow_remove(&s->key); /* the client's next segment finds no socket, and the kernel resets it */
	return deliver(skb);
}

/*
 * The way back is not known any more, and an answer is to be sent again: only the kernel can show the way. The packet
 * becomes a probe, one byte below the number that the kernel expects, which it acknowledges (RFC 9293, 3.8.4).
 */
static __always_inline int ask_kernel_for_way(struct __sk_buff *skb, struct work *work, const struct segment *s,
					      const struct afpa_flow *flow, bool partial)
{
	struct outgoing out = {
		.seq = flow->client_next - flow->rx_offset - 1, .ack = flow->kernel_next, .ts_value = s->ts_value,
		.ts_echo = s->ts_echo, .window = s->window, .flags = TCP_ACK,
	};

	count_at(s->place, AFPA_WAY_ASKED);
	return make_packet(skb, work, s, &out, partial) ? deliver(skb) : TCX_DROP;
}

/* No path takes less of an IPv6 packet's payload, with timestamps or without. */
#define PART 1208

/*
 * A longer answer in two segments: the first one leaves, and the packet becomes the second. Neither acknowledges the
 * request: else the client would not ask again when the other one is lost (F4). Once the client has both, the request
 * is acknowledged by the answer to its next one, or by the kernel's TCP when the client sends it again.
 */
static __always_inline bool rebuild_in_two(struct __sk_buff *skb, struct work *work, const struct segment *s,
				       struct afpa_slot *slot, bool head_only, struct outgoing *out,
				       const struct afpa_date *date, bool partial)
{
	__u32 whole, rest, sum, begin = 0;
	__u8 fin;

	outgoing_answer(out, slot, &slot->whole, head_only, date);
	whole = out->length;
	sum = out->sum;
	begin = bpf_csum_diff(0, 0, (__be32 *)slot->bytes, SUM_CHUNK, begin);
	begin = bpf_csum_diff(0, 0, (__be32 *)(slot->bytes + SUM_CHUNK), SUM_CHUNK, begin);
	begin = bpf_csum_diff(0, 0, (__be32 *)(slot->bytes + 2 * SUM_CHUNK), PART - 2 * SUM_CHUNK, begin);
	out->ack = s->seq;
	fin = out->flags & TCP_FIN;
	out->flags &= ~TCP_FIN; /* the second one has it */
	out->length = PART;
	out->sum = fold((__u64)begin + (slot->whole.date_offset & 1 ? date->sum_odd : date->sum_even));
	if (!make_packet(skb, work, s, out, partial) || !store_payload(skb, s, out, slot->bytes, PART, date) ||
	    !holds_edition(work, slot, date))
		return false;
	bpf_clone_redirect(skb, work->way.interface, 0);
	rest = whole - PART;
	out->swap = false; /* make_packet has swapped them already */
	out->seq += PART;
	out->flags |= fin;
	out->length = rest;
	out->sum = fold((__u64)sum + (__u16)~out->sum);
	if (!make_packet(skb, work, s, out, partial))
		return false;
	if (!is_within(&rest, 1, AFPA_ANSWER_MAX - PART))
		return false;
	return bpf_skb_store_bytes(skb, plain_headers(s), slot->bytes + PART, rest, 0) == 0 &&
	       holds_edition(work, slot, date);
}

/*
 * The packet becomes the same answer again. It may have been lost because it is too long for a path that has
 * changed: IPv4 routers may fragment it; with IPv6 it is cut in two here.
 */
static __always_inline bool rebuild_answer(struct __sk_buff *skb, struct work *work, const struct segment *s,
				       struct afpa_slot *slot, enum afpa_kind kind, struct outgoing *out,
				       const struct afpa_date *date, bool partial)
{
	bool head_only = kind == AFPA_KIND_HEAD;
	__u32 length = head_only ? slot->whole.head_length : slot->whole.length;

	if (s->ipv6 && kind != AFPA_KIND_NOT_MODIFIED && length > PART)
		return rebuild_in_two(skb, work, s, slot, head_only, out, date, partial);
	out->id = bpf_get_prandom_u32() | 1;
	return build_answer(skb, work, s, slot, kind, out, date, partial);
}

#endif
