/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Socketless: the segments of connections without a socket that are no hits (conn/socketless.h). Reached from the ingress
 * programs by a tail call. They are acknowledged, they end the connection, or they are assigned to the kernel's TCP.
 */
#include <afpa/conn/assign.h>
#include <afpa/conn/assigned.h>
#include <afpa/conn/handover.h>
#include <afpa/conn/loss.h>
#include <afpa/conn/socketless.h>
#include <afpa/tx/frame.h>

/* --- replies --- */

/* The decision that was taken under the lock. */
struct socketless_reply {
	enum socketless_step step;
	struct afpa_way way; /* an interface of 0: back by the way that the segment came */
	__u32 seq, ack;
	__u32 ts_value, ts_now;
	__u32 agreed, client_isn;
	__u32 rtt;           /* milliseconds; 0: not known */
	__be16 window;
};

/* The packet becomes a segment without payload, and leaves. */
static __always_inline int send_empty(struct __sk_buff *skb, struct work *work, const struct segment *s,
				      const struct socketless_reply *r, __u8 flags)
{
	struct outgoing out = {
		.seq = r->seq, .ack = r->ack, .ts_value = r->ts_value, .ts_echo = s->ts_value, .window = r->window,
		.flags = flags, .swap = true,
	};
	bool partial = checksum_state(skb) == CHECKSUM_PARTIAL;
	__u32 interface = r->way.interface ? r->way.interface : skb->ifindex;

	if (!s->plain_ip || !save_headers(skb, work, s))
		return TCX_DROP;
	if (r->way.interface)
		put_way(work->frame + FRAME_AT, &r->way);
	mark_own(skb);
	return make_packet(skb, work, s, &out, partial) ? bpf_redirect(interface, 0) : TCX_DROP;
}

/* --- decisions --- */

/* Under the lock: the step, and the numbers of the segment that it sends. */
static __always_inline void decide_step(struct afpa_flow *flow, const struct segment *s, const struct turn *turn,
					__u32 ts_now, struct socketless_reply *r)
{
	const struct path *path = (const struct path *)flow->path;

	r->step = turn->reason == AFPA_RESET_LOST_VERSION ? STEP_END : socketless_step(flow, s, turn->now);
	if (before(flow->ts_sent, ts_now))
		flow->ts_sent = ts_now;
	r->ts_value = r->ts_now = flow->ts_sent;
	r->seq = socketless_next(flow) - (r->step == STEP_FIN);
	if (turn->reason == AFPA_RESET_LOST_VERSION)
		r->seq = s->ack; /* the client has nothing of the answer, and believes a reset at no other number at once */
	r->ack = flow->client_next + (r->step == STEP_LAST_ACK);
	r->window = flow->window;
	r->agreed = flow->agreed;
	r->client_isn = client_isn_of(flow);
	r->rtt = path->srtt ? greater(path->min_rtt / 1000, 1) : 0;
	if (knows_way(flow))
		r->way = flow->way;
}

/* --- to the kernel --- */

/* The kernel has the segment: the flow is as after any that is passed, without an offset (F2, F6). */
static __always_inline void note_assigned(struct afpa_flow *flow, const struct segment *s, const struct turn *turn)
{
	__u32 processor = bpf_get_smp_processor_id();

	bpf_spin_lock(&flow->lock);
	leave_to_kernel(flow, s, rtx_clock(turn->now), processor);
	hand_over(flow, s, turn);
	if (s->flags & TCP_FIN) {
		flow->owner = AFPA_OWNER_CLOSING;
		flow->flags |= AFPA_FLOW_CLIENT_FIN;
	}
	bpf_spin_unlock(&flow->lock);
}

/* It was not assigned: as before. */
static __always_inline void reopen(struct afpa_flow *flow)
{
	bpf_spin_lock(&flow->lock);
	flow->socketless = AFPA_SOCKETLESS_OPEN;
	bpf_spin_unlock(&flow->lock);
}

/* The first request that is no hit. Returns a verdict. */
static __always_inline int assign_segment(struct __sk_buff *skb, struct work *work, const struct segment *s,
					     struct afpa_flow *flow, struct socketless_reply *r)
{
	struct assignment a = { .agreed = r->agreed, .ts_now = r->ts_now, .rtt = r->rtt };
	struct bpf_sock *found = find_socket(skb, s);
	struct tcp_sock *tcp;
	bool full = false, again = work->turn.reason == AFPA_SOCKETLESS_TO_KERNEL_AGAIN;
	int error = 0;

	if (!again)
		afpa_count_client(&s->key, -1); /* user mode counts it from now on */
	if (!found) { /* nobody listens any more: the kernel resets the client */
		flow_remove(&s->key);
		return TCX_NEXT;
	}
	tcp = found->state == TCP_LISTEN ? bpf_skc_to_tcp_sock(found) : NULL;
	if (tcp && has_room(tcp))
		error = assign(skb, s, tcp, &a);
	else
		full = true;
	bpf_sk_release(found);
	if (full || error == ASSIGN_LATER) {
		reopen(flow);
		afpa_count_client(&s->key, 1);
		count_at(s->place, AFPA_SOCKETLESS_HELD);
		return TCX_DROP;
	}
	if (error) { /* TCP is set up in another way by now: options that were agreed on are off */
		flow_remove(&s->key);
		count_at(s->place, AFPA_SOCKETLESS_REFUSED);
		r->seq = s->ack;
		return send_empty(skb, work, s, r, TCP_RST | TCP_ACK);
	}
	note_assigned(flow, s, &work->turn);
	remember_assigned(&s->key, r->client_isn);
	count_at(s->place, work->turn.reason);
	count_at(s->place, AFPA_SOCKETLESS_TO_KERNEL);
	return deliver(skb);
}

/* --- once it is assigned, until its socket is seen --- */

/* More of the client's bytes reach the kernel (F2). */
static __always_inline void note_more(struct afpa_flow *flow, const struct segment *s, __u64 now)
{
	struct turn turn = { .now = now };

	bpf_spin_lock(&flow->lock);
	hand_over(flow, s, &turn);
	bpf_spin_unlock(&flow->lock);
}

/* The segment that was assigned, and when. */
struct assigned_segment {
	__u32 cookie, seq, at, processor;
};

/* 0 for a cookie: another processor is about to assign it. */
static __always_inline struct assigned_segment read_assigned(struct afpa_flow *flow)
{
	struct assigned_segment h;

	bpf_spin_lock(&flow->lock);
	h.cookie = flow->assigned_cookie;
	h.seq = flow->request_seq;
	h.at = flow->answer_sent;
	h.processor = flow->processor;
	bpf_spin_unlock(&flow->lock);
	return h;
}

/* The same segment again: the listener's queue was full, or the segment did not arrive there. */
static __always_inline int assign_again(struct __sk_buff *skb, const struct segment *s, struct afpa_flow *flow,
					struct tcp_sock *listener, __u32 clock)
{
	struct assignment a = { .agreed = flow->agreed, .ts_now = flow->ts_sent };

	if (before(a.ts_now, timestamp_at(flow)))
		a.ts_now = timestamp_at(flow);
	if (assign(skb, s, listener, &a))
		return TCX_DROP;
	flow->answer_sent = clock;
	count_at(s->place, AFPA_SOCKETLESS_TO_KERNEL_AGAIN);
	return deliver(skb);
}

/*
 * Was the segment assigned twice at least, for a second, and has not arrived? Then something between here and the listener
 * drops it, such as a rule that wants each connection to begin with a SYN (N14). A full queue is not counted.
 */
static __always_inline bool is_lost(struct afpa_flow *flow, const struct segment *s, __u32 clock)
{
	/* The kernel's TCP itself drops segments with some options, such as those of TCP-MD5. */
	if (!s->plain_ip || !s->plain_tcp)
		return false;
	if (!flow->assigned_again || clock - flow->challenged < ASSIGNED_LOST_AFTER) {
		flow->assigned_again = 1;
		return false;
	}
	return true;
}

/*
 * Resets the client, which would wait for minutes. If those of others are dropped as well, no SYN is answered until user mode has
 * decided. Returns a verdict.
 */
static __always_inline int reset_lost(struct __sk_buff *skb, struct work *work, const struct segment *s, __u32 since,
				      __u32 clock)
{
	struct socketless_reply r = { .seq = s->ack, .ack = s->seq };
	bool all = loses_all(s, since, clock);

	if (all)
		shared.handshake = 0;
	flow_remove(&s->key);
	count_at(s->place, all ? AFPA_SOCKETLESS_LOST : AFPA_SOCKETLESS_LOST_ALONE);
	return send_empty(skb, work, s, &r, TCP_RST | TCP_ACK);
}

/*
 * A segment of a connection that was assigned. The kernel makes the socket when it processes that segment, and a list of
 * packets (`netif_receive_skb_list`) passes the programs before the first one of it is processed: a segment that follows at
 * once on the same processor finds the socket when it gets there. GO_ON: the socket is there.
 */
static __always_inline int before_socket(struct __sk_buff *skb, struct work *work, const struct segment *s,
					 struct afpa_flow *flow)
{
	struct bpf_sock *found = find_socket(skb, s);
	__u64 now = bpf_ktime_get_coarse_ns();
	struct assigned_segment h = read_assigned(flow);
	__u32 clock = rtx_clock(now);
	int verdict = TCX_DROP;
	struct tcp_sock *tcp;

	if (!found) {
		flow_remove(&s->key);
		return TCX_NEXT;
	}
	tcp = found->state == TCP_LISTEN ? bpf_skc_to_tcp_sock(found) : NULL;
	if (!tcp) {
		flow->socketless = AFPA_SOCKETLESS_NOT;
		bpf_sk_release(found);
		return GO_ON;
	}
	if (s->flags & TCP_RST) {
		if (s->seq == h.seq || s->seq == flow->client_next) {
			bpf_sk_release(found);
			flow_remove(&s->key);
			count_at(s->place, AFPA_SOCKETLESS_RESET);
			return TCX_DROP;
		}
	} else if (s->flags & TCP_SYN) {
		if (!was_assigned(&s->key, s->seq)) { /* not its own: the client has begun anew */
			bpf_sk_release(found);
			flow_remove(&s->key);
			return GO_ON;
		}
	} else if (!h.cookie || !has_room(tcp)) {
		verdict = TCX_DROP; /* segments in the same list would be reset, too */
	} else if (s->seq == h.seq && s->length && is_lost(flow, s, clock)) {
		bpf_sk_release(found);
		return reset_lost(skb, work, s, flow->challenged, clock);
	} else if (s->seq == h.seq && s->length) {
		verdict = assign_again(skb, s, flow, tcp, clock);
	} else if (h.processor == (__u16)bpf_get_smp_processor_id() && clock - h.at < LIST_TIME) {
		verdict = deliver(skb);
	}
	bpf_sk_release(found);
	if (verdict == TCX_NEXT)
		note_more(flow, s, now);
	else
		count_at(s->place, AFPA_SOCKETLESS_HELD);
	return verdict;
}

/* --- */

static __always_inline int on_socketless(struct __sk_buff *skb, struct work *work, const struct segment *s,
					 struct afpa_flow *flow)
{
	__u32 ts_now = timestamp_at(flow);
	struct socketless_reply r = {};

	bpf_spin_lock(&flow->lock);
	decide_step(flow, s, &work->turn, ts_now, &r);
	bpf_spin_unlock(&flow->lock);
	switch (r.step) {
	case STEP_ASSIGN:
		return assign_segment(skb, work, s, flow, &r);
	case STEP_ACK:
		count_at(s->place, AFPA_SOCKETLESS_CHALLENGED);
		return send_empty(skb, work, s, &r, TCP_ACK);
	case STEP_FIN:
		count_at(s->place, AFPA_SOCKETLESS_ACKED);
		return send_empty(skb, work, s, &r, TCP_FIN | TCP_ACK);
	case STEP_LAST_ACK:
	case STEP_CLOSED:
		flow_remove(&s->key);
		count_at(s->place, AFPA_SOCKETLESS_CLOSED);
		return r.step == STEP_CLOSED ? TCX_DROP : send_empty(skb, work, s, &r, TCP_ACK);
	case STEP_END:
		flow_remove(&s->key);
		count_at(s->place, AFPA_SOCKETLESS_ENDED);
		return send_empty(skb, work, s, &r, TCP_RST | TCP_ACK);
	case STEP_RESET:
		flow_remove(&s->key);
		count_at(s->place, AFPA_SOCKETLESS_RESET);
		return TCX_DROP;
	case STEP_DROP:
		count_at(s->place, AFPA_SOCKETLESS_ACKED);
		return TCX_DROP;
	case STEP_HOLD:
		count_at(s->place, AFPA_SOCKETLESS_HELD);
		return TCX_DROP;
	case STEP_INVALID:
		count_at(s->place, AFPA_SOCKETLESS_INVALID);
	}
	return TCX_DROP;
}

SEC("tcx/ingress")
int afpa_socketless(struct __sk_buff *skb)
{
	struct afpa_flow *flow;
	struct segment *s;
	struct work *work;
	__u32 zero = 0;
	int verdict;

	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work)
		return TCX_DROP;
	s = (struct segment *)work->segment;
	flow = bpf_map_lookup_elem(&flows, &s->key);
	if (!flow)
		return TCX_DROP; /* it has just ended, on another processor */
	verdict = GO_ON;
	if (flow->socketless != AFPA_SOCKETLESS_NOT && !afpa_is_sound(skb, work, s)) {
		count_at(s->place, AFPA_SOCKETLESS_INVALID);
		return TCX_DROP;
	}
	if (flow->socketless == AFPA_SOCKETLESS_ASSIGNED)
		verdict = before_socket(skb, work, s, flow);
	else if (flow->socketless != AFPA_SOCKETLESS_NOT)
		return on_socketless(skb, work, s, flow);
	return verdict == GO_ON ? begin_anew(skb) : verdict; /* anew: the kernel's TCP has it */
}
