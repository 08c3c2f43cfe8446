/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Translation between the two sequence spaces: sequence and acknowledgement numbers, SACK edges and timestamp
 * echoes of segments that pass a hook on a connection with a sequence offset.
 */
#ifndef AFPA_CONN_TRANSLATE_H
#define AFPA_CONN_TRANSLATE_H

#include <afpa/conn/flow.h>

#define SACK_LAYOUT 0x010105 /* NOP NOP kind 5 */
#define SACK_EDGES 8         /* four blocks */

/* The numbers a segment must carry on the far side. */
struct translation {
	__u32 seq, ack;
	__u32 sack_shift;  /* added to SACK edges */
	__u32 sack_floor;  /* shifted SACK edges below this are of older offsets */
	__u32 ts_echo;     /* egress: newest TSval seen, 0 when there is nothing to mend */
};

/* The numbers that the kernel is to see of a segment of the client. Called with the lock held. */
static __always_inline void rx_translation(const struct afpa_flow *flow, const struct segment *s, struct translation *t)
{
	t->seq = s->seq - flow->rx_offset;
	/*
	 * The client has not got our answer, so F4 showed it older numbers. The kernel, which may have got requests behind
	 * that one, takes no inexact reset.
	 */
	if (s->flags & TCP_RST && s->seq == flow->request_seq && answer_outstanding(flow))
		t->seq = flow->kernel_received;
	t->ack = s->ack - flow->tx_offset;
	/*
	 * It acknowledges part of our answer. An older number stays as old as it is: the kernel's TCP does not take it for an
	 * acknowledgement of its last bytes (RFC 5961, 5).
	 */
	if (before(t->ack, flow->stale_below) && !before(t->ack, flow->stale_below - flow->answer_size))
		t->ack = flow->stale_below;
	t->sack_shift = -flow->tx_offset;
	t->sack_floor = flow->stale_below;
	t->ts_echo = 0;
}

/* The numbers that the client is to see of a segment of the server. Called with the lock held. */
static __always_inline void tx_translation(const struct afpa_flow *flow, const struct segment *s,
					     struct translation *t)
{
	t->seq = s->seq + flow->tx_offset;
	t->ack = s->ack + flow->rx_offset;
	if (answer_outstanding(flow) && before(flow->request_seq, t->ack))
		t->ack = flow->request_seq; /* F4 */
	t->sack_shift = flow->rx_offset;
	t->sack_floor = flow->request_seq + flow->request_length;
	/* The kernel did not see the newest segments: its own, older echo would look like a very slow network. */
	t->ts_echo = s->timestamps && before(s->ts_echo, flow->ts_seen) ? flow->ts_seen : 0;
}

/*
 * Move the edges of SACK blocks, RFC 2018. Every stack aligns the option by two NOPs in front; options
 * in any other order are overwritten with NOPs: SACK is advice, so nothing else is lost.
 */
static __always_inline void shift_sack(__be32 *options, __u32 length, const struct translation *t)
{
	__u32 first = bpf_ntohl(options[0]);

	if (first >> 8 != SACK_LAYOUT) {
		__builtin_memset(options, OPTION_NOP, OPTIONS_MAX);
		return;
	}
	for (__u32 edge = 1; edge <= SACK_EDGES; edge++) {
		__u32 moved = bpf_ntohl(options[edge]) + t->sack_shift;

		if (edge * 4 + 2 > (first & 0xff))
			return;
		/* A block of older offsets is made empty, and is ignored. */
		if (before(moved, t->sack_floor))
			moved = t->sack_floor;
		options[edge] = bpf_htonl(moved);
	}
}

/* Rewrite the `length` bytes of options at `at`. */
static __noinline int translate_options(struct __sk_buff *skb, struct work *work, const struct segment *s,
					const struct translation *t)
{
	__u8 *options = work->frame, *old = work->frame + OPTIONS_MAX + 8;
	__u32 length = other_options(s), at = s->payload_at - length, difference;

	if (!is_within(&length, 4, OPTIONS_MAX))
		return 0;
	__builtin_memset(options, 0, OPTIONS_MAX);
	if (bpf_skb_load_bytes(skb, at, options, length))
		return -1;
	__builtin_memcpy(old, options, OPTIONS_MAX);
	shift_sack((__be32 *)options, length, t);
	for (__u32 i = 0; i < OPTIONS_MAX; i += 4) /* no more than is stored may count */
		if (i >= length)
			*(__u32 *)(options + i) = 0;
	difference = bpf_csum_diff((__be32 *)old, OPTIONS_MAX, (__be32 *)options, OPTIONS_MAX, 0);
	if (bpf_skb_store_bytes(skb, at, options, length, 0))
		return -1;
	return bpf_l4_csum_replace(skb, s->tcp_at + offsetof(struct tcphdr, check), 0, difference, 0);
}

/* Write the translated numbers; the checksum follows by their difference, whole or partial alike. */
static __always_inline int translate(struct __sk_buff *skb, struct work *work, const struct segment *s,
				     const struct translation *t)
{
	__be32 old[3] = { bpf_htonl(s->seq), bpf_htonl(s->ack), bpf_htonl(s->ts_echo) };
	__be32 new[3] = { bpf_htonl(t->seq), bpf_htonl(t->ack), bpf_htonl(t->ts_echo) };
	bool echo = s->timestamps && t->ts_echo;
	__u32 difference;

	difference = bpf_csum_diff(old, echo ? 12 : 8, new, echo ? 12 : 8, 0);
	if (bpf_skb_store_bytes(skb, s->tcp_at + offsetof(struct tcphdr, seq), new, 8, 0))
		return -1;
	if (echo && bpf_skb_store_bytes(skb, s->tcp_at + sizeof(struct tcphdr) + 8, &new[2], 4, 0))
		return -1;
	if (bpf_l4_csum_replace(skb, s->tcp_at + offsetof(struct tcphdr, check), 0, difference, 0))
		return -1;
	if (!s->plain_tcp)
		return translate_options(skb, work, s, t);
	return 0;
}

#endif
