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

/* What of a flight was on its way is sent again, in pieces. Whoever works on it will see by himself. */
static __always_inline void narrow_flight(const struct afpa_flow_key *key, __u32 at)
{
	struct afpa_flight *flight = bpf_map_lookup_elem(&flights, key);

	if (!flight || !flight_take(flight, key))
		return;
	if (flight->at == at) {
		sender_on_mtu_lowered(engine_of(flight), microseconds());
		flight->look = 1;
	}
	flight_release(flight);
}

/* The quote in the kernel's numbers. */
static __always_inline int move_quote(struct __sk_buff *skb, const struct quote *q, __u32 seq)
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
int afpa_quote(struct __sk_buff *skb)
{
	__u32 seq, most, least, answer_at;
	struct quote q = {};
	struct afpa_flow *flow;
	bool ours, shorter, flies;

	if (!read_quote(skb, &q))
		return TCX_NEXT;
	flow = bpf_map_lookup_elem(&flows, &q.key);
	if (!flow)
		return TCX_NEXT;
	seq = bpf_ntohl(q.seq);
	least = q.ipv6 ? NARROW_MTU : NARROW_MTU_IPV4;
	if (q.mtu < least)
		q.mtu = least;
	most = payload_within(q.mtu, q.ipv6, flow->flags & AFPA_FLOW_TIMESTAMPS);
	bpf_spin_lock(&flow->lock);
	ours = answer_outstanding(flow) && seq - flow->answer_at < flow->answer_span;
	shorter = most < flow->mss && !before(seq, flow->client_acked) && before(seq, flow->kernel_next + flow->given);
	if (shorter)
		flow->mss = most;
	answer_at = flow->answer_at;
	flies = ours && shorter && flow->flags & AFPA_FLOW_FLIGHT;
	seq = ours ? flow->kernel_next : seq - flow->given;
	bpf_spin_unlock(&flow->lock);
	if (shorter)
		count_at(place_of(skb->ifindex), AFPA_PATH_NARROWED);
	if (flies)
		narrow_flight(&q.key, answer_at);
	return move_quote(skb, &q, seq);
}
