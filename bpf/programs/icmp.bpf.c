/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Quote: a router says that a segment was too long for it. Reached from the ingress programs by a tail call.
 *
 * A router quotes the segment as it was on the wire, and the kernel's TCP believes only quotes of numbers that
 * it has on the way itself. So they are moved into its space like all else that comes for a drifted connection.
 * Bytes of an answer of ours have no number there: their quotes are heard here, and the kernel is shown the
 * number at which it stands, which it believes: the route is learnt for user mode's responses and for the
 * connections to come.
 *
 * Contract: what is not quoted from the connection's open window changes nothing here. Nothing is dropped.
 */
#include <afpa/net/icmp.h>
#include <afpa/conn/flow.h>
#include <afpa/rtx/segmenter.h>

/* What of a flight was on its way is sent again, in pieces. Whoever works on it will see by himself. */
static __always_inline void reduce_transfer_mss(const struct afpa_flow_key *key, __u32 at)
{
	struct afpa_transfer *transfer = bpf_map_lookup_elem(&transfers, key);

	if (!transfer || !transfer_lock(transfer, key))
		return;
	if (transfer->at == at) {
		sender_on_mtu_lowered(sender_of(transfer), microseconds());
		transfer->send_pending = 1;
	}
	transfer_unlock(transfer);
}

/* The quote in the kernel's numbers. */
static __always_inline int translate_icmp(struct __sk_buff *skb, const struct pmtu *q, __u32 seq)
{
	__be32 moved = bpf_htonl(seq);

	if (moved == q->seq)
		return TCX_NEXT;
	if (bpf_l4_csum_replace(skb, q->icmp_at + offsetof(struct icmphdr, check), q->seq, moved, sizeof(moved)) ||
	    bpf_skb_store_bytes(skb, q->tcp_at + offsetof(struct quoted_tcp, seq), &moved, sizeof(moved), 0))
		count(AFPA_TRANSLATE_FAILED);
	return TCX_NEXT;
}

SEC("tcx/ingress")
int afpa_icmp(struct __sk_buff *skb)
{
	__u32 seq, most, least, answer_seq;
	struct pmtu q = {};
	struct afpa_flow *flow;
	bool ours, shorter, flies;

	if (!read_pmtu(skb, &q))
		return TCX_NEXT;
	flow = bpf_map_lookup_elem(&flows, &q.key);
	if (!flow)
		return TCX_NEXT;
	seq = bpf_ntohl(q.seq);
	least = q.ipv6 ? PMTU_SAFE : PMTU_MIN_IPV4;
	if (q.mtu < least)
		q.mtu = least;
	most = payload_within(q.mtu, q.ipv6, flow->flags & AFPA_FLOW_TIMESTAMPS);
	bpf_spin_lock(&flow->lock);
	ours = answer_outstanding(flow) && seq - flow->answer_seq < flow->answer_size;
	shorter = most < flow->mss && !before(seq, flow->snd_una) && before(seq, flow->kernel_next + flow->tx_offset);
	if (shorter)
		flow->mss = most;
	answer_seq = flow->answer_seq;
	flies = ours && shorter && flow->flags & AFPA_FLOW_TRANSFER;
	seq = ours ? flow->kernel_next : seq - flow->tx_offset;
	bpf_spin_unlock(&flow->lock);
	if (shorter)
		count_at(place_of(skb->ifindex), AFPA_PMTU_REDUCED);
	if (flies)
		reduce_transfer_mss(&q.key, answer_seq);
	return translate_icmp(skb, &q, seq);
}
