/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ICMP: handles "fragmentation needed" and "packet too big". Reached from the ingress programs by a tail call.
 *
 * The quoted sequence number is the client's. If it is in flight, the flow's MSS is lowered. Then the number is
 * translated into the kernel's space; where the segment was one of our answers, which the kernel never sent, the number
 * at which the kernel stands is substituted, so that it updates its route MTU, also for connections to come.
 *
 * Contract: a number that is not in flight changes nothing here (RFC 5927), nor does a message that the kernel drops because
 * its checksum is wrong. Nothing is dropped.
 */
#include <afpa/net/icmp.h>
#include <afpa/conn/flow.h>
#include <afpa/rtx/segmenter.h>

/*
 * The transfer's segments in flight are lost, and are retransmitted in pieces. A program that works on the transfer just now
 * is left alone: losses show it the same.
 */
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

/* Write the number that the kernel is to see. */
static __always_inline int translate_icmp(struct __sk_buff *skb, const struct pmtu *q, __u32 seq)
{
	__be32 moved = bpf_htonl(seq);

	if (moved == q->seq)
		return TCX_NEXT;
	if (bpf_l4_csum_replace(skb, q->icmp_at + offsetof(struct icmphdr, check), q->seq, moved, sizeof(moved)) ||
	    bpf_skb_store_bytes(skb, q->tcp_at + offsetof(struct quoted_tcp, seq), &moved, sizeof(moved), 0))
		count(AFPA_TRANSLATE_FAILED);
	return deliver(skb);
}

SEC("tcx/ingress")
int afpa_icmp(struct __sk_buff *skb)
{
	__u32 seq, most, least, answer_seq;
	struct pmtu q = {};
	struct afpa_flow *flow;
	bool ours, shorter, transfer;

	if (!may_be_ours(skb) || !read_pmtu(skb, &q))
		return TCX_NEXT;
	flow = bpf_map_lookup_elem(&flows, &q.key);
	if (!flow || (has_rx_handler(skb) && !is_at_home(flow, skb->ifindex)) || !is_pmtu_sound(skb, &q))
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
	transfer = ours && shorter && flow->flags & AFPA_FLOW_TRANSFER;
	seq = ours ? flow->kernel_next : seq - flow->tx_offset;
	bpf_spin_unlock(&flow->lock);
	if (shorter)
		count_at(place_of(skb->ifindex), AFPA_PMTU_REDUCED);
	if (transfer)
		reduce_transfer_mss(&q.key, answer_seq);
	return translate_icmp(skb, &q, seq);
}
