/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose turn it is on a connection, and the two sequence spaces.
 *
 * Invariants (see abi.h for the fields):
 *  F1 `rx_offset` and `tx_offset` move only while nothing is with user mode: every kernel byte up to
 *     `kernel_next` is acknowledged by the client, every client byte up to `client_next` was either
 *     answered here or answered by user mode.
 *  F2 Client bytes at or after `client_next` reach the kernel only as requests that make user mode
 *     the owner, or after the connection is kept: later drift would tear them apart.
 *  F6 While user mode is the owner, `responses_pending` is the number of requests that went up, less the final
 *     responses whose end is known: whole ones below `response_start`, as far as it has been read.
 *  F3 Kernel bytes below `stale_below` never leave again: they belong to an older drift, and the
 *     client has them. It follows what user mode sends at a distance (`keep_up`).
 *  F4 Only its answer acknowledges a request that was answered here: until the client has the answer,
 *     nothing of the kernel's may, or the client would not ask again when the answer is lost.
 *  F5 Every change of owner, drift or `kernel_next` happens under the lock, on both hooks.
 */
#ifndef AFPA_FLOW_H
#define AFPA_FLOW_H

#include <afpa/net/checksum.h>
#include <afpa/rtx/transfer.h>
#include <afpa/scratch.h>

#define OPTIONS_MAX 40
#define OPTION_NOP 1
#define SACK_LAYOUT 0x010105 /* NOP NOP kind 5 */
#define SACK_EDGES 8         /* four blocks */

/* The numbers a segment must carry on the far side. */
struct translation {
	__u32 seq, ack;
	__u32 sack_shift;  /* added to SACK edges */
	__u32 sack_floor;  /* shifted SACK edges below are of an older drift */
	__u32 ts_echo;     /* egress: newest TSval seen, 0 when there is nothing to mend */
};

static __always_inline bool flow_has_offset(const struct afpa_flow *flow)
{
	return flow->rx_offset | flow->tx_offset;
}

/*
 * Is the connection user mode's for the rest of its life? Nothing is answered on it any more, so its drift is
 * what it will be, and may be read without the lock.
 */
static __always_inline bool flow_is_final(const struct afpa_flow *flow)
{
	return flow->owner == AFPA_OWNER_USER_FINAL || flow->owner == AFPA_OWNER_BYPASSED;
}

/* Was an answer given that the client has not acknowledged? (F4) */
static __always_inline bool answer_outstanding(const struct afpa_flow *flow)
{
	return flow->request_length && before(flow->snd_una, flow->answer_seq + flow->answer_size);
}

/*
 * Has user mode answered everything it was given, completely? Its responses have left up to the end of
 * the last, and it has all bytes of the requests: an answer of ours acknowledges them (LIFECYCLE.md).
 */
static __always_inline bool flow_quiet(const struct afpa_flow *flow)
{
	if (flow->owner != AFPA_OWNER_USER)
		return flow->owner == AFPA_OWNER_NONE;
	return flow->responses_pending == 0 && flow->phase == AFPA_PHASE_HEAD && !(flow->flags & AFPA_FLOW_PARTIAL) &&
	       flow->kernel_next == flow->response_start && flow->kernel_received + flow->rx_offset == flow->client_next;
}

static __always_inline void flow_remove(const struct afpa_flow_key *key)
{
	if (bpf_map_delete_elem(&flows, key) == 0)
		count(AFPA_FLOW_CLOSED);
	afpa_transfer_remove(key);
}

/*
 * Connections without drift need no translation, so their entry goes with the first FIN or RST.
 * Drifted ones stay for the kernel's TIME_WAIT; the sweep removes them when the socket is gone.
 */
static __always_inline bool flow_over(const struct afpa_flow *flow, __u8 flags)
{
	return (flags & (TCP_FIN | TCP_RST)) && !flow_has_offset(flow);
}

/*
 * Move the edges of SACK blocks, RFC 2018. Every stack aligns the option by two NOPs in front; options
 * in any other order become NOPs on a drifted connection, which loses advice and nothing else.
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
		/* SACK is advisory: a block of an older drift is made empty, and ignored. */
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

	opaque(length);
	if (length < 4 || length > OPTIONS_MAX)
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
