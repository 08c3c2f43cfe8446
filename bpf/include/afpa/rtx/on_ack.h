/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A client's segment as an acknowledgement of a transfer. Everything here wants the transfer's lock but
 * `finish_fast`, which takes it.
 */
#ifndef AFPA_RTX_ON_ACK_H
#define AFPA_RTX_ON_ACK_H

#include <afpa/rtx/transfer.h>

/* Does the segment belong to the connection as it stands? (P2; its acknowledgement is looked at later) */
static __always_inline bool belongs(const struct afpa_flow *flow, const struct segment *s, __u64 now)
{
	return s->flags & TCP_ACK && !(s->flags & TCP_SYN) && s->timestamps == !!(flow->flags & AFPA_FLOW_TIMESTAMPS) &&
	       !before(s->seq, flow->request_seq - 1) && /* a keep-alive probe stands one below */
	       !before(receive_end(flow), s->seq) && !is_stale(flow, s, now);
}

#define EARLIER (1u << 20) /* how many bytes below an answer a duplicate of an earlier one may be */

/* SACK blocks as offsets into the answer. Blocks outside of it are left empty. */
static __always_inline void read_sack(struct __sk_buff *skb, struct work *work, const struct segment *s,
					const struct afpa_transfer *transfer, struct ack *ack)
{
	__u32 length = other_options(s), whole = ((const struct sender *)transfer->sender)->length, first;
	const __be32 *options = (const __be32 *)work->head;

	if (!is_within(&length, 12, OPTIONS_MAX))
		return;
	__builtin_memset(work->head, 0, OPTIONS_MAX);
	if (bpf_skb_load_bytes(skb, s->payload_at - length, work->head, length))
		return;
	first = bpf_ntohl(options[0]);
	if (first >> 8 != SACK_LAYOUT)
		return;
	for (__u32 i = 0; i < SACK_EDGES / 2; i++) {
		__u32 from = bpf_ntohl(options[1 + 2 * i]) - transfer->at, to = bpf_ntohl(options[2 + 2 * i]) - transfer->at;

		if (8 * i + 10 > (first & 0xff))
			continue;
		if (i == 0 && -from - 1 < EARLIER)
			ack->earlier_dsack = 1;
		if (from >= whole)
			continue;
		ack->sack[i].from = from;
		ack->sack[i].to = to < whole ? to : whole;
	}
}

/* The TCP sender processes the acknowledgement in `work->ack`. Returns an `enum progress`. */
__noinline int afpa_on_ack(struct work *work, struct afpa_transfer *transfer)
{
	if (!work || !transfer)
		return PROGRESS_IMPOSSIBLE;
	return sender_on_ack(sender_of(transfer), work->sending.now, (struct ack *)work->ack);
}

/* Everything has arrived: the connection is as after any answer, and keeps the state of its path. */
static __always_inline void complete(struct afpa_flow *flow, const struct afpa_transfer *transfer)
{
	const struct path *path = &((const struct sender *)transfer->sender)->path;
	const __u64 *from = (const __u64 *)path;

	bpf_spin_lock(&flow->lock);
	flow->flags &= ~AFPA_FLOW_TRANSFER;
	for (int i = 0; i < AFPA_PATH_WORDS; i++)
		flow->path[i] = from[i];
	bpf_spin_unlock(&flow->lock);
}

/* The client has our FIN as well, which left with the last segment. If it has only that segment's bytes, the FIN comes again. */
static __always_inline void note_fin(struct afpa_flow *flow, const struct segment *s)
{
	bpf_spin_lock(&flow->lock);
	if (flow->socketless == AFPA_SOCKETLESS_CLOSING && s->ack == flow->kernel_next + flow->tx_offset + 1) {
		flow->socketless = AFPA_SOCKETLESS_FIN_WAIT;
		flow->flags |= AFPA_FLOW_SERVER_FIN;
	}
	bpf_spin_unlock(&flow->lock);
}

/* The acknowledgement of a segment in the TCP sender's terms, without SACK blocks. */
static __always_inline void ack_from_segment(struct ack *ack, const struct segment *s, const struct afpa_flow *flow,
				       const struct afpa_transfer *transfer)
{
	__builtin_memset(ack, 0, sizeof(*ack));
	ack->ack = s->ack - transfer->at;
	ack->wnd = (__u32)bpf_ntohs(s->window) << (flow->client_scale & 15);
	ack->tsecr = s->ts_echo - flow->ts_offset;
	ack->has_tsecr = s->timestamps && s->ts_echo;
	ack->ece = flow->flags & AFPA_FLOW_ECN && s->flags & TCP_ECE;
}

/* Process the segment's acknowledgement. An `enum progress`; PROGRESS_IMPOSSIBLE: it is damaged, or not of this answer. */
static __always_inline int on_ack(struct __sk_buff *skb, struct work *work, const struct segment *s,
				struct afpa_flow *flow, struct afpa_transfer *transfer)
{
	struct ack *ack = (struct ack *)work->ack;
	int progress;

	/* It acknowledges more than ever left, the server's FIN included; or only an answer before this one. */
	if (!belongs(flow, s, work->sending.now * 1000) || before(flow->kernel_next + flow->tx_offset + 1, s->ack) || before(s->ack, transfer->at) ||
	    !afpa_is_sound(skb, work, s))
		return PROGRESS_IMPOSSIBLE;
	ack_from_segment(ack, s, flow, transfer);
	read_sack(skb, work, s, transfer, ack);
	progress = afpa_on_ack(work, transfer);
	return progress == PROGRESS_GOING ? afpa_on_timer(transfer, work->sending.now) : progress;
}

/*
 * The usual end of a transfer: a request that acknowledges all of it, and nothing else. This does the work of the program
 * of transfers, but without the tail calls there and back. False: nothing was done, and that program has to.
 */
static __always_inline bool finish_fast(struct __sk_buff *skb, struct work *work, const struct segment *s,
				   struct afpa_flow *flow, __u64 now)
{
	struct ack *ack = (struct ack *)work->ack;
	struct afpa_transfer *transfer;

	if (s->length == 0 || !s->plain_tcp || s->flags & TCP_RST || s->ack != flow->answer_seq + flow->answer_size ||
	    !belongs(flow, s, now) || !afpa_is_sound(skb, work, s))
		return false;
	transfer = bpf_map_lookup_elem(&transfers, &s->key);
	if (!transfer || !transfer_lock(transfer, &s->key))
		return false;
	ack_from_segment(ack, s, flow, transfer);
	/* Not plain: it acknowledges bytes that have not left, or some segments left twice. */
	if (!sender_ack_is_plain(sender_of(transfer), ack) ||
	    sender_on_plain_ack(sender_of(transfer), microseconds(), ack) != PROGRESS_DONE) {
		transfer_unlock(transfer);
		return false;
	}
	complete(flow, transfer);
	bpf_map_delete_elem(&transfers, &s->key);
	count_at(s->place, AFPA_TRANSFER_ON_ACK);
	count_at(s->place, AFPA_TRANSFER_DONE);
	return true;
}

#endif
