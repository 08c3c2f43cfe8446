/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ingress: AFPA's state diagram in the softirq in which the segment arrived.
 *
 *     derive request -> derive cached response -> send response
 *
 * or pass on to the kernel's TCP with a numbered reason, translated when the connection has drifted.
 */
#include <afpa/answer.h>
#include <afpa/http_request.h>
#include <afpa/socket.h>

/* May a segment with these headers be answered? */
static __always_inline enum afpa_reason fit_to_answer(const struct __sk_buff *skb, const struct segment *s)
{
	if (!s->plain_ip || !s->plain_tcp || skb->gso_size)
		return AFPA_PASS_PACKET;
	if ((s->flags & ~TCP_PSH) != TCP_ACK)
		return AFPA_PASS_TCP_FLAGS;
	if (s->length < 16 || s->length > AFPA_HEAD_MAX)
		return AFPA_PASS_HEAD_LENGTH;
	return AFPA_ANSWERED;
}

/* The payload into scratch, zeros behind it. */
static __always_inline bool load_head(struct __sk_buff *skb, struct work *work, const struct segment *s)
{
	__u32 length = s->length;

	opaque(length);
	if (length < 16 || length > AFPA_HEAD_MAX || bpf_skb_load_bytes(skb, s->payload_at, work->head, length))
		return false;
	for (int i = 0; i < 8; i++)
		*(__u64 *)(work->head + length + i * 8) = 0;
	return true;
}

static __always_inline struct afpa_listener *find_listener(const struct segment *s)
{
	struct afpa_endpoint endpoint = { .port = s->key.server_port };
	struct afpa_listener *listener;

	__builtin_memcpy(endpoint.address, s->key.server, 16);
	listener = bpf_map_lookup_elem(&listeners, &endpoint);
	if (listener)
		return listener;
	__builtin_memset(endpoint.address, 0, 16);
	if (!s->ipv6)
		map_ipv4(endpoint.address, 0); /* 0.0.0.0; a dual-stack [::] is registered as both */
	return bpf_map_lookup_elem(&listeners, &endpoint);
}

/* Derive cached response, then send it. GO_ON: user mode's turn. */
static __always_inline int respond(struct __sk_buff *skb, struct work *work, const struct segment *s,
				   struct afpa_flow *flow, struct turn *turn)
{
	const struct afpa_date *date = date_now(turn->now);
	struct cached cached = {};

	turn->reason = date ? whose_turn(flow, s) : AFPA_PASS_NO_HEARTBEAT;
	if (turn->reason == AFPA_ANSWERED && shared.refresh_ns && turn->now - flow->user_ns > shared.refresh_ns)
		turn->reason = AFPA_PASS_REFRESH;
	if (turn->reason == AFPA_ANSWERED)
		turn->reason = derive_cached_response(work, &cached);
	if (turn->reason != AFPA_ANSWERED)
		return GO_ON;
	return answer(skb, work, s, flow, &cached, date, turn);
}

/* Derive request. What it is and why it may not be answered goes into `turn`. */
static __always_inline void derive(struct __sk_buff *skb, struct work *work, const struct segment *s,
				   const struct afpa_listener *listener, struct turn *turn)
{
	turn->reason = AFPA_PASS_HEAD_LENGTH;
	if (!load_head(skb, work, s))
		return;
	turn->certainty = derive_request(work, s->length, listener, &turn->reason);
	turn->head = work->request.head;
}

/* The flow of a first request on a fresh connection, or NULL. */
static __always_inline struct afpa_flow *open_flow(struct __sk_buff *skb, const struct segment *s,
						   const struct afpa_listener *listener, struct turn *turn)
{
	enum afpa_reason why = turn->reason;
	struct afpa_flow fresh = {};

	turn->reason = prove_socket(skb, s, listener->id, turn->now, &fresh);
	if (turn->reason != AFPA_ANSWERED)
		return NULL;
	turn->reason = AFPA_PASS_FLOWS_FULL;
	if (bpf_map_update_elem(&flows, &s->key, &fresh, BPF_NOEXIST))
		return NULL;
	count_at(s->place, AFPA_FLOW_OPENED);
	turn->reason = why;
	return bpf_map_lookup_elem(&flows, &s->key);
}

/* Is there anything to derive: payload that would be the next request, and its turn? */
static __always_inline bool next_request(const struct __sk_buff *skb, const struct segment *s,
					 const struct afpa_flow *flow, struct turn *turn)
{
	turn->reason = AFPA_PASS_TRANSLATED;
	if (s->length == 0)
		return false;
	turn->reason = AFPA_ANSWERED;
	if (flow)
		turn->reason = whose_turn(flow, s);
	/* A request that follows an unacknowledged answer goes up, but its response can be awaited. */
	if (turn->reason != AFPA_ANSWERED && !(turn->reason == AFPA_PASS_NOT_NEXT && s->seq == flow->client_next))
		return false;
	if (turn->reason == AFPA_ANSWERED)
		turn->reason = fit_to_answer(skb, s);
	return turn->reason == AFPA_ANSWERED || turn->reason == AFPA_PASS_NOT_NEXT;
}

/* The three states, for a segment that is the next request of `*flow`, or the first of a connection. */
static __always_inline int serve(struct __sk_buff *skb, struct work *work, const struct segment *s,
				 const struct afpa_listener *listener, struct afpa_flow **flow, struct turn *turn)
{
	derive(skb, work, s, listener, turn);
	if (!*flow && turn->certainty != REQUEST_UNSURE && date_now(turn->now))
		*flow = open_flow(skb, s, listener, turn);
	if (*flow && turn->certainty == REQUEST_ANSWERABLE)
		return respond(skb, work, s, *flow, turn);
	return GO_ON;
}

/* The state diagram; without user mode (`answering` is false) only what keeps connections whole. */
static __always_inline int ingress(struct __sk_buff *skb, bool answering)
{
	struct afpa_listener *listener;
	struct afpa_flow *flow;
	struct segment s = {};
	struct turn turn = {};
	struct work *work;
	int verdict = GO_ON;
	__u32 zero = 0;

	if (!parse_segment(skb, &s, FROM_CLIENT) || !port_served(s.key.server_port))
		return TCX_NEXT;
	if (s.flags & TCP_SYN)
		return TCX_NEXT; /* in kernel numbers already; an accepted one resets the flow on egress */
	flow = bpf_map_lookup_elem(&flows, &s.key);
	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work || (!flow && (s.length == 0 || !answering)))
		return TCX_NEXT;
	s.place = place_of(skb->ifindex);
	turn.now = bpf_ktime_get_coarse_ns();
	turn.reason = AFPA_PASS_NO_HEARTBEAT;

	if (flow && repeats_request(flow, &s))
		return answer_again(skb, work, &s, flow);
	if (answering && next_request(skb, &s, flow, &turn)) {
		listener = find_listener(&s);
		if (listener)
			verdict = serve(skb, work, &s, listener, &flow, &turn);
		else
			turn.reason = AFPA_PASS_NOT_LISTENING;
	}
	if (verdict != GO_ON)
		return verdict;
	if (flow)
		return pass_up(skb, work, &s, flow, &turn);
	count_at(s.place, turn.reason);
	return TCX_NEXT;
}

/* Reached by the tail call below while user mode lives. */
SEC("tcx/ingress")
int afpa_answer(struct __sk_buff *skb)
{
	return ingress(skb, true);
}

/* What is attached. */
SEC("tcx/ingress")
int afpa_ingress(struct __sk_buff *skb)
{
	bpf_tail_call(skb, &alive, 0);
	return ingress(skb, false);
}
