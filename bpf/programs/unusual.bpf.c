/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Unusual: segments of clients that are cut, wrapped or merged (net/unusual.h). Reached from the ingress programs by a
 * tail call. Nothing is answered here; on a connection with a sequence offset a segment is translated, or it is dropped
 * (E3).
 */
#include <afpa/conn/police.h>
#include <afpa/http/notes.h>
#include <afpa/net/unusual.h>

/*
 * Requests may begin or end in bytes that are not here: user mode serves the connection to its end, if the kernel could
 * take the segment. A segment that a stranger makes up changes nothing (P2). A packet that IPsec has signed has no numbers that
 * could be read; it costs the connection its acceleration, no matter which sender it has.
 */
static __always_inline void leave_to_user_mode(struct afpa_flow *flow, const struct segment *s, bool numbered)
{
	bpf_spin_lock(&flow->lock);
	if ((!numbered || standing_of(flow, s) == STANDING_ACCEPTABLE) && flow->owner != AFPA_OWNER_CLOSING && !flow_is_final(flow))
		flow->owner = AFPA_OWNER_USER_FINAL;
	bpf_spin_unlock(&flow->lock);
}

/*
 * A fragment that ends within the TCP header never goes on (RFC 1858, 3): the kernel may put a request together behind
 * us, which was not counted (F6), and which may come after an answer to the same request.
 */
static __always_inline bool is_cut_too_early(const struct shape *shape)
{
	return shape->headless && !shape->wrapped;
}

/* Can it not be translated? An answer that has not arrived is sent again when a plain segment asks for it, or in time. */
static __always_inline bool must_wait(const struct afpa_flow *flow, const struct segment *s, const struct shape *shape)
{
	if (flow->socketless)
		return true; /* there is no socket that could take it */
	return flow_has_offset(flow) &&
	       (shape->headless || flow->flags & AFPA_FLOW_TRANSFER || is_request_retransmitted(flow, s));
}

/*
 * The beginning of a connection's first request. The kernel holds it until the rest comes, perhaps after the client has
 * sent the request anew, and whole, and got its answer here: then the server would get it as well. So the connection is
 * user mode's, by taking the mark from its socket (P3).
 */
static __always_inline void leave_unopened(struct __sk_buff *skb, const struct segment *s)
{
	struct bpf_sock *found = find_socket(skb, s);
	struct tcp_sock *tcp;

	if (!found)
		return;
	tcp = found->state == TCP_NEW_SYN_RECV ? NULL : bpf_skc_to_tcp_sock(found);
	if (tcp && tcp->rcv_nxt == s->seq)
		bpf_sk_storage_delete(&served, found);
	bpf_sk_release(found);
}

/* A request may begin here (V5). The rest of a packet's first fragment comes without ports: its target is not known. */
static __always_inline void note_unusual(struct __sk_buff *skb, const struct segment *s, const struct shape *shape)
{
	struct afpa_flow *flow;
	struct work *work;
	__u32 zero = 0;

	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work || !*(volatile __u32 *)&shared.notes_requests)
		return;
	if (afpa_note_segment(skb, s) == TARGET_CUT && shape->first)
		note_target(work, TARGET_ANY);
	flow = bpf_map_lookup_elem(&flows, &s->key);
	if (flow)
		note_on_flow(flow);
	else
		note_without_flow();
}

SEC("tcx/ingress")
int afpa_unusual(struct __sk_buff *skb)
{
	struct afpa_flow *flow;
	struct shape shape = {};
	struct segment s = {};
	struct work *work;
	__u32 zero = 0;

	if (!afpa_read_unusual(skb, &s, &shape) || !port_served(s.key.server_port) || !may_be_ours(skb))
		return TCX_NEXT;
	if (!shape.headless && s.flags & TCP_SYN)
		return police_syn(skb, &s);
	flow = bpf_map_lookup_elem(&flows, &s.key);
	if (flow && has_rx_handler(skb) && !is_at_home(flow, skb->ifindex))
		return TCX_NEXT;
	s.place = place_of(skb->ifindex);
	if (((flow || shape.first) && is_cut_too_early(&shape)) || (flow && must_wait(flow, &s, &shape))) {
		count_at(s.place, AFPA_DROP_UNPARSED);
		return TCX_DROP;
	}
	if (!shape.headless && s.length)
		note_unusual(skb, &s, &shape);
	if (!flow) {
		if (shape.first && !shape.headless)
			leave_unopened(skb, &s);
		return TCX_NEXT;
	}
	if (shape.first || shape.headless)
		leave_to_user_mode(flow, &s, !shape.headless);
	if (shape.headless)
		return TCX_NEXT;
	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work)
		return TCX_DROP;
	work->turn = (struct turn){
		.now = bpf_ktime_get_coarse_ns(), .reason = AFPA_PASS_PACKET, .certainty = REQUEST_UNSURE,
	};
	return pass_up(skb, work, &s, flow, &work->turn);
}
