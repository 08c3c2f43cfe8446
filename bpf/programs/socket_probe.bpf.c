/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Probe: run by user mode's sweep, never attached, for a flow that was not used for some time. Removes it if its socket is
 * gone. A connection that never had a socket is closed: the client is sent a FIN, as an idle server sends it, and has some
 * time to answer it.
 *
 * Input: an Ethernet header, of which the protocol counts, then the flow's key.
 * Returns 1 when the flow was removed. TIME_WAIT counts as a socket: it still needs translation.
 */
#include <afpa/conn/socket.h>
#include <afpa/conn/socketless.h>
#include <afpa/rtx/segmenter.h>

#define CLOSE_WAIT_NS (8 * SECOND_NS) /* for the last segment of a client that has all of ours */
#define FIN_LIFE_NS (60 * SECOND_NS)  /* a FIN that is not acknowledged is sent again until then */

/* The numbers of the FIN. */
struct farewell {
	__u32 seq, ack, ts_value, ts_echo;
	struct afpa_way way;
	__be16 window;
	__u8 timestamps;
};

/*
 * Close an idle connection without a socket, or say again that it is closed. False: its client may still answer. Called
 * with the lock held.
 */
static __always_inline bool close_idle(struct afpa_flow *flow, __u64 now, __u32 ts_now, struct farewell *f)
{
	bool open = flow->socketless == AFPA_SOCKETLESS_OPEN, outstanding = answer_outstanding(flow);
	bool fin_lost = has_sent_fin(flow) && before(flow->snd_una, socketless_next(flow));
	__u64 age = now - flow->used_ns;

	if (outstanding || flow->socketless == AFPA_SOCKETLESS_CLOSING)
		return age >= FIN_LIFE_NS; /* timers of retransmission are at work */
	if (!open && !fin_lost)
		return age >= CLOSE_WAIT_NS;
	if (!knows_way(flow) || (fin_lost && age >= FIN_LIFE_NS))
		return true; /* nobody is there, or nobody knows where */
	f->seq = socketless_next(flow) - fin_lost;
	f->ack = flow->client_next;
	f->ts_value = before(flow->ts_sent, ts_now) ? ts_now : flow->ts_sent;
	f->ts_echo = flow->ts_seen;
	f->timestamps = !!(flow->flags & AFPA_FLOW_TIMESTAMPS);
	f->window = flow->window;
	f->way = flow->way;
	if (fin_lost)
		return false;
	flow->socketless = AFPA_SOCKETLESS_FIN_WAIT;
	flow->flags |= AFPA_FLOW_SERVER_FIN;
	flow->used_ns = now;
	return false;
}

/* The FIN leaves. */
static __always_inline void say_farewell(struct __sk_buff *skb, struct work *work, const struct farewell *f)
{
	struct outgoing out = {
		.seq = f->seq, .ack = f->ack, .ts_value = f->ts_value, .ts_echo = f->ts_echo, .window = f->window,
		.flags = TCP_FIN | TCP_ACK,
	};
	__u8 ethernet[sizeof(struct ethhdr)];
	struct segment s = {};

	if (bpf_skb_load_bytes(skb, 0, ethernet, sizeof(ethernet)))
		return;
	put_way_out(ethernet, &f->way);
	work->sending.ipv6 = is_ipv6(&work->key);
	work->sending.timestamps = f->timestamps;
	segment_of(&s, &work->key, &work->sending);
	build_headers(work, &s, ethernet);
	skb->tc_index = MARK_ROUTE_ME;
	if (make_packet(skb, work, &s, &out, false))
		bpf_clone_redirect(skb, f->way.interface, 0);
}

/* A flow that never had a socket. True: it may be removed. */
static __always_inline bool end_socketless(struct __sk_buff *skb, struct work *work, struct afpa_flow *flow)
{
	__u64 now = bpf_ktime_get_coarse_ns();
	__u32 ts_now = timestamp_at(flow);
	struct farewell f = {};
	bool over;

	bpf_spin_lock(&flow->lock);
	over = close_idle(flow, now, ts_now, &f);
	bpf_spin_unlock(&flow->lock);
	if (over)
		return true;
	if (f.way.interface) {
		count_at(place_of(f.way.interface), AFPA_SOCKETLESS_IDLE);
		say_farewell(skb, work, &f);
	}
	return false;
}

SEC("tcx/ingress")
int afpa_probe(struct __sk_buff *skb)
{
	struct bpf_sock_tuple tuple = {};
	struct afpa_flow_key key;
	struct bpf_sock *found;
	bool gone = true, ipv6;
	struct afpa_flow *flow;
	struct work *work;
	__u32 zero = 0;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &key, sizeof(key)))
		return 0;
	flow = bpf_map_lookup_elem(&flows, &key);
	work = bpf_map_lookup_elem(&rtx_work, &zero);
	if (flow && work && flow->socketless && flow->socketless != AFPA_SOCKETLESS_ASSIGNED) {
		work->key = key;
		if (!end_socketless(skb, work, flow))
			return 0;
		flow_remove(&key);
		return 1;
	}
	ipv6 = is_ipv6(&key);
	fill_tuple(&tuple, &key, ipv6);
	found = bpf_skc_lookup_tcp(skb, &tuple, ipv6 ? sizeof(tuple.ipv6) : sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	if (found) {
		gone = found->state == TCP_LISTEN;
		bpf_sk_release(found);
	}
	if (!gone)
		return 0;
	flow_remove(&key);
	return 1;
}
