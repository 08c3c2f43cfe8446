/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ingress: AFPA's state diagram in the softirq in which the segment arrived.
 *
 *     derive request -> derive cached response -> send response
 *
 * or pass on to the kernel's TCP with a numbered reason, translated when the connection has drifted.
 */
#include <afpa/conn/socket.h>
#include <afpa/http/derive.h>
#include <afpa/tx/replay.h>
#include <afpa/rtx/on_ack.h>
#include <afpa/rtx/timers.h>

/* May a segment with these headers be answered? */
static __always_inline enum afpa_reason fit_to_answer(const struct __sk_buff *skb, const struct segment *s)
{
	if (!s->plain_ip || !s->plain_tcp || skb->gso_size)
		return AFPA_PASS_PACKET; /* marks are echoed by the kernel's TCP */
	if (s->flags & TCP_CWR)
		return AFPA_PASS_TCP_FLAGS; /* and it is the kernel's TCP that must stop doing so */
	if (s->length < 16 || s->length > AFPA_HEAD_MAX)
		return AFPA_PASS_HEAD_LENGTH;
	return AFPA_ANSWERED;
}

/* Is the segment's address served, and as what? A flow remembers it, until listeners or hosts change. */
static __always_inline bool find_listener(const struct segment *s, const struct afpa_flow *flow, __u32 generation,
					  struct afpa_listener *listener)
{
	struct afpa_endpoint endpoint = { .port = s->key.server_port };
	struct afpa_listener *found;

	if (flow && flow->generation == generation) {
		listener->id = flow->listener;
		listener->any_host_site = flow->any_host_site;
		return true;
	}
	__builtin_memcpy(endpoint.address, s->key.server, 16);
	found = bpf_map_lookup_elem(&listeners, &endpoint);
	if (!found) {
		__builtin_memset(endpoint.address, 0, 16);
		if (!s->ipv6)
			map_ipv4(endpoint.address, 0); /* 0.0.0.0; a dual-stack [::] is registered as both */
		found = bpf_map_lookup_elem(&listeners, &endpoint);
	}
	if (found)
		*listener = *found;
	return found;
}

/*
 * Send response, once it is found. Somebody must have checked the request's sum: the device, or we. GO_ON: nothing
 * was done, `turn->reason` says why.
 */
static __always_inline int send(struct __sk_buff *skb, struct work *work, const struct segment *s,
				struct afpa_flow *flow, const struct cached *cached, const struct afpa_date *date,
				struct turn *turn)
{
	struct commitment c = {
		.version = cached->slot->version, .slot = cached->index, .kind = cached->kind, .date = date->second,
		.length = answer_length(cached->slot, cached->kind),
	};
	bool single = fits(flow, s, c.length);

	turn->reason = AFPA_PASS_WINDOW;
	if (!single && !may_transfer(flow, s, cached, c.length))
		return GO_ON;
	turn->reason = AFPA_PASS_SEND;
	if (!save_headers(skb, work, s))
		return GO_ON;
	if (!checksum_holds(work, s, checksum_state(skb), 0)) {
		count_at(s->place, AFPA_PASS_CHECKSUM); /* the kernel will find it wrong, too, and drop it */
		return TCX_NEXT;
	}
	if (!single)
		return begin_transfer(skb, work, s, flow, cached, &c, turn);
	turn->reason = commit(flow, s, &c, turn);
	if (turn->reason != AFPA_ANSWERED)
		return GO_ON;
	if (turn->arm_rtx) {
		afpa_rtx_arm(&s->key, (const void *)(work->frame + FRAME_AT), skb->ifindex, turn->now);
		count_at(s->place, AFPA_RTX_ARMED);
	}
	return reply(skb, work, s, flow, cached, &c, date, turn->head_bits);
}

/* Derive cached response, then send it. GO_ON: it is for user mode. */
static __always_inline int respond(struct __sk_buff *skb, struct work *work, const struct segment *s,
				   struct afpa_flow *flow, struct turn *turn)
{
	const struct afpa_date *date = date_now(turn->now);
	struct cached cached = {};

	turn->reason = date ? AFPA_ANSWERED : AFPA_PASS_NO_HEARTBEAT;
	if (date && shared.refresh_ns && turn->now - flow->user_ns > shared.refresh_ns)
		turn->reason = AFPA_PASS_REFRESH;
	if (turn->reason == AFPA_ANSWERED)
		turn->reason = derive_cached_response(work, &cached);
	if (turn->reason == AFPA_ANSWERED && flow->flags & AFPA_FLOW_REQUEST_SOCK)
		turn->reason = confirm_socket(skb, s, flow);
	if (turn->reason != AFPA_ANSWERED)
		return GO_ON;
	return send(skb, work, s, flow, &cached, date, turn);
}

/* The flow of a first request on a fresh connection, or NULL. */
static __always_inline struct afpa_flow *open_flow(struct __sk_buff *skb, struct work *work, const struct segment *s,
						   const struct afpa_listener *listener, struct turn *turn)
{
	enum afpa_reason why = turn->reason;
	struct afpa_flow *fresh = (void *)work->fresh;
	__u32 epoch = bypass_epoch(&s->key);

	__builtin_memset(work->fresh, 0, sizeof(work->fresh));
	turn->reason = prove_socket(skb, s, listener->id, turn->now, fresh);
	if (turn->reason == AFPA_PASS_OLD_CONNECTION)
		bypass_insert(&s->key, epoch, 0, turn->reason); /* it will never have a flow */
	if (turn->reason != AFPA_ANSWERED)
		return NULL;
	fresh->any_host_site = listener->any_host_site;
	fresh->generation = work->scan.generation;
	turn->reason = AFPA_PASS_FLOWS_FULL;
	if (bpf_map_update_elem(&flows, &s->key, fresh, BPF_NOEXIST))
		return NULL;
	count_at(s->place, AFPA_FLOW_OPENED);
	turn->reason = why;
	return bpf_map_lookup_elem(&flows, &s->key);
}

/* Is there anything to derive: payload that begins where the next request does? `reason`: may it be answered? */
static __always_inline bool next_request(const struct __sk_buff *skb, const struct segment *s,
					 const struct afpa_flow *flow, struct turn *turn)
{
	__u8 others = s->flags & ~TCP_PSH;

	turn->reason = AFPA_PASS_TRANSLATED;
	if (s->length == 0)
		return false;
	turn->ask = true;
	if (flow && (flow_is_final(flow) || flow->owner == AFPA_OWNER_CLOSING || s->seq != flow->client_next))
		return false;
	if (flow && flow->flags & AFPA_FLOW_ECN)
		others &= ~(TCP_ECE | TCP_CWR);
	if (others != TCP_ACK) {
		turn->ask = false;
		turn->reason = AFPA_PASS_TCP_FLAGS;
		return false;
	}
	turn->reason = fit_to_answer(skb, s);
	return true;
}

/* The three states, for a segment that is the next request of `*flow`, or the first of a connection. */
static __always_inline int serve(struct __sk_buff *skb, struct work *work, const struct segment *s,
				 const struct afpa_listener *listener, struct afpa_flow **flow, struct turn *turn)
{
	enum afpa_reason fit = turn->reason;

	derive(skb, work, s, listener, *flow && (*flow)->flags & AFPA_FLOW_PARTIAL, turn);
	if (!*flow && turn->certainty != REQUEST_UNSURE) {
		if (date_now(turn->now))
			*flow = open_flow(skb, work, s, listener, turn);
		else
			turn->reason = AFPA_PASS_NO_HEARTBEAT;
	}
	if (*flow && turn->certainty == REQUEST_ANSWERABLE && fit == AFPA_ANSWERED)
		return respond(skb, work, s, *flow, turn);
	if (fit != AFPA_ANSWERED)
		turn->reason = fit;
	return GO_ON;
}

/* A retransmitted request, whose answer was lost, or its acknowledgement: the same bytes again. */
static __always_inline int retransmit(struct __sk_buff *skb, struct work *work, const struct segment *s,
				      struct afpa_flow *flow)
{
	__u32 index = flow->answer_slot, state = checksum_state(skb);
	struct afpa_slot *slot = bpf_map_lookup_elem(&slots, &index);
	struct afpa_date *date = date_entry(flow->answer_date);
	__u32 now = rtx_clock(bpf_ktime_get_coarse_ns());
	bool partial = state == CHECKSUM_PARTIAL;
	enum afpa_kind kind = flow->answer_kind;
	struct outgoing out = {
		.flags = TCP_ACK | TCP_PSH, .swap = true, .ts_echo = s->ts_value, .seq = flow->answer_seq,
		.ack = flow->request_seq + flow->request_length, .ts_value = flow->ts_sent, .window = flow->window,
	};

	if (!s->plain_ip || !save_headers(skb, work, s))
		return TCX_DROP;
	if (rtx_crosses(flow, now)) {
		count_at(s->place, AFPA_RTX_CROSSED);
		return TCX_DROP;
	}
	rtx_restart(flow, now);
	if (!slot || slot->version != flow->answer_version || date->second != flow->answer_date)
		return reset_lost_version(skb, work, s, flow, partial);
	if (!rebuild_answer(skb, work, s, slot, kind, &out, date, partial))
		return TCX_DROP;
	count_at(s->place, AFPA_ANSWERED_RETRANSMISSION);
	return bpf_redirect(skb->ifindex, 0);
}

/* The state diagram; without user mode (`answering` is false) only what keeps connections whole. */
static __always_inline int ingress(struct __sk_buff *skb, bool answering)
{
	struct afpa_listener listener = {};
	struct afpa_flow *flow;
	struct segment s = {};
	struct turn passes;
	struct work *work;
	struct turn *turn;
	int verdict = GO_ON;
	__u32 zero = 0;
	__u64 now;

	if (!parse_segment(skb, &s, FROM_CLIENT)) {
		if (is_icmp(skb))
			bpf_tail_call(skb, &programs, AFPA_PROGRAM_ICMP);
		return TCX_NEXT;
	}
	if (!port_served(s.key.server_port))
		return TCX_NEXT;
	if (s.flags & TCP_SYN)
		return TCX_NEXT; /* in kernel numbers already; an accepted one resets the flow on egress */
	s.place = place_of(skb->ifindex);
	if (bypass_hit(&s, FROM_CLIENT))
		return TCX_NEXT;
	flow = bpf_map_lookup_elem(&flows, &s.key);
	if (!flow && (s.length == 0 || !answering))
		return TCX_NEXT;
	now = bpf_ktime_get_coarse_ns();
	if (flow && rx_passes(flow, &s))
		return rx_pass(flow, &s, now);
	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work)
		return TCX_NEXT;
	turn = answering ? &work->turn : &passes; /* what never changes need not be in memory */
	*turn = (struct turn){ .now = now, .reason = AFPA_PASS_NO_HEARTBEAT };

	if (flow && flow->flags & AFPA_FLOW_TRANSFER && !finish_fast(skb, work, &s, flow)) {
		if (!(s.flags & TCP_RST))
			to_transfer_program(skb, work, &s, microseconds(), false);
		if (!(s.flags & TCP_RST) || !afpa_is_sound(skb, work, &s))
			return TCX_DROP; /* nothing else knows what is on its way */
	}
	if (flow && is_request_retransmitted(flow, &s))
		return retransmit(skb, work, &s, flow);
	if (answering && next_request(skb, &s, flow, turn)) {
		work->scan.generation = *(volatile __u32 *)&shared.generation;
		if (find_listener(&s, flow, work->scan.generation, &listener))
			verdict = serve(skb, work, &s, &listener, &flow, turn);
		else
			*turn = (struct turn){ .now = now, .reason = AFPA_PASS_NOT_LISTENING };
	}
	if (verdict != GO_ON)
		return verdict;
	if (flow)
		return pass_up(skb, work, &s, flow, turn);
	count_at(s.place, turn->reason);
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
