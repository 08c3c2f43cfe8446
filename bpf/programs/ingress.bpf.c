/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ingress: AFPA's state diagram in the softirq in which the segment arrived.
 *
 *     derive request -> derive cached response -> send response
 *
 * or pass to the kernel's TCP with a numbered reason, translated if the connection has a sequence offset. The way of a
 * hit goes forward through the folders net, conn, http, cache, tx: "One hit, from packet to packet" in LIFECYCLE.md.
 */
#include <afpa/conn/client_way.h>
#include <afpa/conn/cookie.h>
#include <afpa/conn/listener.h>
#include <afpa/conn/police.h>
#include <afpa/conn/socket.h>
#include <afpa/http/derive.h>
#include <afpa/net/unusual.h>
#include <afpa/tx/replay.h>
#include <afpa/rtx/on_ack.h>
#include <afpa/rtx/timers.h>
#include <afpa/tx/respond.h>

/* May a segment with these headers be answered? */
static __always_inline enum afpa_reason fit_to_answer(const struct __sk_buff *skb, const struct segment *s)
{
	if (!s->plain_ip || !s->plain_tcp || skb->gso_size)
		return AFPA_PASS_PACKET; /* the kernel's TCP must see a CE mark, to echo it */
	if (s->flags & TCP_CWR)
		return AFPA_PASS_TCP_FLAGS; /* the kernel's TCP must see it, to stop its echo */
	if (shared.not_first >> (skb->ifindex & 63) & 1)
		return AFPA_PASS_NOT_FIRST;
	if (s->length < 16 || s->length > AFPA_HEAD_MAX)
		return AFPA_PASS_HEAD_LENGTH;
	return AFPA_ANSWERED;
}

/*
 * A segment of a connection without a flow: is it the first of one that may be answered? Then `work->fresh` is its flow.
 *  P1 Nothing is read of a segment before its connection is proven, by its socket or by its flow: a stranger's segment
 *     without a handshake costs look-ups, and changes nothing that others use.
 */
static __always_inline bool prove_fresh(struct __sk_buff *skb, struct work *work, const struct segment *s,
					const struct afpa_listener *listener, struct turn *turn)
{
	struct afpa_flow *fresh = (void *)work->fresh;
	__u32 epoch = bypass_epoch(&s->key);

	turn->reason = AFPA_PASS_NO_HEARTBEAT;
	if (!date_now(turn->now))
		return false;
	__builtin_memset(work->fresh, 0, sizeof(work->fresh));
	turn->reason = prove_socket(skb, s, listener->id, turn->now, fresh);
	if (turn->reason == AFPA_PASS_OLD_CONNECTION || turn->reason == AFPA_PASS_OTHER_SOCKET)
		bypass_insert(&s->key, epoch, 0, turn->reason); /* it never gets a flow */
	fresh->any_host_site = listener->any_host_site;
	fresh->generation = work->scan.generation;
	fresh->came_by = skb->ifindex;
	if (bpf_skb_load_bytes(skb, 6, fresh->came_from, 6))
		return false;
	afpa_way_recall(&s->key, &fresh->way);
	return turn->reason == AFPA_ANSWERED;
}

/*
 * The flow of a first request on a connection that was proven, or NULL. `opened_elsewhere`: another processor has entered it
 * just now, and may have answered this very request.
 */
static __always_inline struct afpa_flow *open_flow(struct work *work, const struct segment *s, struct turn *turn,
						   bool *opened_elsewhere)
{
	enum afpa_reason why = turn->reason;

	turn->reason = AFPA_PASS_FLOWS_FULL;
	if (bpf_map_update_elem(&flows, &s->key, work->fresh, BPF_NOEXIST)) {
		*opened_elsewhere = bpf_map_lookup_elem(&flows, &s->key);
		return NULL;
	}
	count_at(s->place, AFPA_FLOW_OPENED);
	turn->reason = why;
	return bpf_map_lookup_elem(&flows, &s->key);
}

/* Does the payload begin where the next request does? `turn->reason`: may a segment with these headers be answered? */
static __always_inline bool next_request(const struct __sk_buff *skb, const struct segment *s,
					 const struct afpa_flow *flow, struct turn *turn)
{
	__u8 others = s->flags & ~TCP_PSH;

	turn->reason = AFPA_PASS_TRANSLATED;
	if (s->length == 0)
		return false;
	turn->ask = true;
	if (flow && (flow_is_final(flow) || flow->owner == AFPA_OWNER_CLOSING || s->seq != flow->client_next ||
		     standing_of_ack(flow, s) != STANDING_ACCEPTABLE))
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
	bool opened_elsewhere = false;

	if (!*flow && !prove_fresh(skb, work, s, listener, turn))
		return GO_ON;
	work->request.may_close = *flow && (*flow)->socketless;
	derive(skb, work, s, listener, *flow && (*flow)->flags & AFPA_FLOW_PARTIAL, turn);
	if (!*flow && turn->certainty != REQUEST_UNSURE)
		*flow = open_flow(work, s, turn, &opened_elsewhere);
	if (opened_elsewhere)
		return begin_anew(skb);
	if (*flow && turn->certainty == REQUEST_ANSWERABLE && fit == AFPA_ANSWERED)
		return respond(skb, work, s, *flow, turn);
	if (fit != AFPA_ANSWERED && turn->reason != AFPA_PASS_IN_PARTS)
		turn->reason = fit;
	return GO_ON;
}

/*
 * A retransmitted request, whose answer was lost, or its acknowledgement: the same bytes again. A global function, with
 * a stack of its own and verified once; the flow, which has a lock, cannot be handed to one. GO_ON: it cannot be sent
 * again now, see `afpa_tell_kernel`.
 */
__noinline int afpa_retransmit(struct __sk_buff *skb, struct work *work, const struct segment *s)
{
	__u32 now = rtx_clock(bpf_ktime_get_coarse_ns()), index, interface;
	struct outgoing out = { .flags = TCP_ACK | TCP_PSH, .swap = true };
	const struct afpa_date *date;
	struct afpa_flow *flow;
	struct afpa_slot *slot;
	bool partial, known;
	struct work *own;
	__u32 zero = 0;

	own = bpf_map_lookup_elem(&ingress_work, &zero); /* `work` itself, but Linux 6.1 does not know */
	if (!own || !work || !s)
		return TCX_DROP;
	own->key = s->key;
	flow = bpf_map_lookup_elem(&flows, &own->key);
	if (!flow || !s->plain_ip || !save_headers(skb, work, s))
		return TCX_DROP;
	interface = skb->ifindex;
	partial = checksum_state(skb) == CHECKSUM_PARTIAL;
	bpf_spin_lock(&flow->lock);
	comes_as_before(flow, interface, work->frame + FRAME_AT + 6);
	known = may_repeat(flow);
	work->way = flow->way;
	doubt_way(flow);
	bpf_spin_unlock(&flow->lock);
	work->way_wanted = !known;
	if (!known)
		return GO_ON;
	if (rtx_crosses(flow, now)) {
		count_at(s->place, AFPA_RTX_CROSSED);
		return TCX_DROP;
	}
	rtx_restart(flow, now);
	index = flow->answer_slot;
	slot = slot_at(&index);
	out.ts_echo = s->ts_value;
	out.seq = flow->answer_seq;
	out.ack = flow->request_seq + flow->request_length;
	out.ts_value = flow->ts_sent;
	out.window = flow->window;
	if (flow->socketless == AFPA_SOCKETLESS_FIN_WAIT)
		out.flags |= TCP_FIN;
	work->edition.version = flow->answer_version;
	work->edition.date = flow->answer_date;
	if (!slot || slot_version(slot) != work->edition.version)
		return GO_ON;
	date = date_or_age(work, slot, work->edition.date);
	if (date->second != work->edition.date)
		return GO_ON;
	put_way(work->frame + FRAME_AT, &work->way);
	mark_own(skb);
	if (!rebuild_answer(skb, work, s, slot, flow->answer_kind, &out, date, partial))
		return TCX_DROP;
	count_at(s->place, AFPA_ANSWERED_RETRANSMISSION);
	return bpf_redirect(work->way.interface, 0);
}

/* An answer cannot be sent again: its version is gone, or the way back is not known. The packet tells the kernel. */
__noinline int afpa_tell_kernel(struct __sk_buff *skb, struct work *work, const struct segment *s)
{
	struct afpa_flow *flow;
	struct work *own;
	__u32 zero = 0;
	bool partial;

	own = bpf_map_lookup_elem(&ingress_work, &zero); /* as in `afpa_retransmit` */
	if (!own || !work || !s)
		return TCX_DROP;
	own->key = s->key;
	flow = bpf_map_lookup_elem(&flows, &own->key);
	if (!flow)
		return TCX_DROP;
	partial = checksum_state(skb) == CHECKSUM_PARTIAL;
	if (work->way_wanted)
		return ask_kernel_for_way(skb, work, s, flow, partial);
	return reset_lost_version(skb, work, s, flow, partial);
}

/*
 * Does the stack deliver the segment from another device (E1)? It does not where the connection's own segments leave by
 * this one, as those of the card beside a macvlan do.
 */
static __always_inline bool is_delivered_elsewhere(struct __sk_buff *skb, const struct afpa_flow *flow)
{
	return has_rx_handler(skb) && !is_at_home(flow, skb->ifindex);
}

/* The same of a tuple that has no flow. A segment that opens a connection without a socket belongs where its SYN did. */
static __always_inline bool begins_elsewhere(struct __sk_buff *skb, const struct segment *s, bool opens)
{
	struct afpa_way way = {};
	bool known;

	if (!has_rx_handler(skb))
		return false;
	known = opens ? afpa_client_way_recall(&s->key, &way, CLIENT_WAY_OF_COOKIE) : afpa_way_recall(&s->key, &way);
	return !known || way.interface != skb->ifindex;
}

/* On to the program of handshakes, with the options of a cookie. Returns only if that program is missing. */
static __always_inline void to_handshake(struct __sk_buff *skb, const struct segment *s, __u32 agreed)
{
	struct work *work;
	__u32 zero = 0;

	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work)
		return;
	work->agreed = agreed;
	to_program(skb, work, s, AFPA_PROGRAM_HANDSHAKE);
}

/*
 * The segment acknowledges our SYN-ACK, but is not the client's first one, which was lost or is late. When that has come, this
 * one will be right when it comes again. The kernel's TCP would reset a segment that it does not know; but where the record of
 * the SYN-ACK got lost, one number in 256 looks like this by chance, so the kernel is asked: for a socket, and, where SYNs overflow
 * its queue, for a cookie of its own. A cookie that is not the kernel's either may have been guessed, and is counted (N13).
 */
__noinline int afpa_is_early(struct __sk_buff *skb, const struct segment *s, bool guessed)
{
	struct bpf_sock *found;
	bool is_known;

	if (!s)
		return false;
	found = find_socket(skb, s);
	is_known = found && (found->state != TCP_LISTEN || is_cookie_of_kernel(skb, s, found));
	if (found)
		bpf_sk_release(found);
	if (is_known)
		return false;
	count_at(s->place, guessed ? AFPA_SOCKETLESS_WRONG_COOKIE : AFPA_SOCKETLESS_EARLY);
	if (guessed)
		count_wrong_cookie(rtx_clock(bpf_ktime_get_coarse_ns()));
	return true;
}

/* The worth of a cookie without a record: it counts as a guess where the kernel has not shown the client's way lately. */
static __always_inline enum cookie_kind worth_alone(const struct segment *s)
{
	struct afpa_way way = {};

	return afpa_client_way_recall(&s->key, &way, CLIENT_WAY_OF_COOKIE) == KNOWN_NOT ? COOKIE_GUESSED : COOKIE_VALID;
}

/* A segment on a tuple that has no flow. GO_ON: its request may begin one. */
static __always_inline int without_flow(struct __sk_buff *skb, const struct segment *s, __u64 now, bool answering)
{
	__u32 said = cookie_kind(s, now);
	enum cookie_kind cookie = said & COOKIE_KIND;
	bool may_begin = s->length && answering;

	if (cookie == COOKIE_NOT_OURS && !may_begin)
		return TCX_NEXT;
	if (cookie == COOKIE_ALONE)
		cookie = worth_alone(s);
	if (begins_elsewhere(skb, s, cookie == COOKIE_VALID))
		return TCX_NEXT;
	if (cookie == COOKIE_VALID) {
		if (may_begin)
			note_without_flow(); /* it may never get one */
		to_handshake(skb, s, said >> COOKIE_AGREED_SHIFT);
		return TCX_NEXT; /* the kernel's TCP resets it */
	}
	if (cookie != COOKIE_NOT_OURS && afpa_is_early(skb, s, cookie == COOKIE_GUESSED))
		return TCX_DROP;
	return may_begin ? GO_ON : TCX_NEXT;
}

/* On to the program of connections without a socket, with `turn`: the kernel's TCP must not see the segment. */
static __always_inline int to_socketless(struct __sk_buff *skb, struct work *work, const struct segment *s,
					 const struct turn *turn)
{
	work->turn = *turn;
	to_program(skb, work, s, AFPA_PROGRAM_SOCKETLESS);
	return TCX_DROP;
}

/*
 * Is the SYN's tuple that of a connection without a socket? The kernel's TCP must not answer it, or a SYN that anybody can send
 * ends the connection (RFC 5961, 4). The client of one that both sides have closed may begin anew.
 */
static __always_inline bool is_of_socketless(const struct segment *s)
{
	const struct afpa_flow *flow;

	if (!*(volatile __u64 *)&shared.cookie_ns)
		return false; /* there never was one */
	flow = bpf_map_lookup_elem(&flows, &s->key);
	return flow && flow->socketless && flow->socketless != AFPA_SOCKETLESS_LAST_ACK;
}

/* May the segment of a connection without a socket be a request that is answered here? */
static __always_inline bool may_be_hit(const struct afpa_flow *flow, const struct segment *s)
{
	return flow->socketless == AFPA_SOCKETLESS_OPEN && s->length && (s->flags & ~TCP_PSH) == TCP_ACK;
}

/* Note what a segment that goes up means for attached servers' answers (V5). */
static __always_inline void note_passed(struct work *work, const struct segment *s, struct afpa_flow *flow,
					const struct turn *turn)
{
	if (flow)
		note_on_flow(flow);
	else
		note_without_flow();
	if (turn->reason == AFPA_PASS_NOT_PINNED && turn->requests == 1 &&
	    (turn->certainty == REQUEST_ONE || turn->certainty == REQUEST_ANSWERABLE))
		afpa_report_miss(work, s);
}

/* The state diagram. Without user mode (`answering` is false) only the part that connections with an offset need. */
static __always_inline int ingress(struct __sk_buff *skb, bool answering)
{
	struct afpa_listener listener = {};
	struct afpa_flow *flow;
	struct segment s = {};
	struct turn passes;
	struct work *work;
	struct turn *turn;
	int verdict = GO_ON;
	bool noting;
	__u32 zero = 0;
	__u64 now;

	if (!parse_segment(skb, &s, FROM_CLIENT)) {
		if (is_icmp(skb))
			bpf_tail_call(skb, &programs, AFPA_PROGRAM_ICMP);
		if (may_be_unusual(skb))
			bpf_tail_call(skb, &programs, AFPA_PROGRAM_UNUSUAL);
		return TCX_NEXT;
	}
	if (!port_served(s.key.server_port) || !may_be_ours(skb))
		return TCX_NEXT;
	s.place = place_of(skb->ifindex);
	if (s.flags & TCP_SYN) {
		if (is_of_socketless(&s)) {
			work = bpf_map_lookup_elem(&ingress_work, &zero);
			passes = (struct turn){ .now = bpf_ktime_get_coarse_ns(), .reason = AFPA_PASS_TCP_FLAGS };
			return work ? to_socketless(skb, work, &s, &passes) : TCX_DROP;
		}
		if (answering && police_syn(skb, &s) == TCX_DROP)
			return TCX_DROP;
		if (answering && shared.handshake)
			to_handshake(skb, &s, 0);
		return TCX_NEXT; /* numbers of a new connection; if the server accepts it, egress removes the old flow */
	}
	if (bypass_hit(&s))
		return TCX_NEXT;
	noting = answering && s.length && *(volatile __u32 *)&shared.notes_requests;
	if (noting)
		afpa_note_segment(skb, &s);
	now = bpf_ktime_get_coarse_ns();
	flow = bpf_map_lookup_elem(&flows, &s.key);
	verdict = flow ? GO_ON : without_flow(skb, &s, now, answering);
	if (verdict != GO_ON) {
		if (noting && verdict == TCX_NEXT)
			note_without_flow();
		return verdict;
	}
	if (flow && noting)
		note_on_flow(flow);
	if (flow && is_delivered_elsewhere(skb, flow))
		return TCX_NEXT;
	if (flow && !flow->socketless && rx_passes(flow, &s))
		return rx_pass(flow, &s, now);
	if (flow && is_stale(flow, &s, now)) {
		count_at(s.place, AFPA_STALE_SEGMENT);
		return TCX_DROP;
	}
	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work)
		return TCX_NEXT;
	turn = answering ? &work->turn : &passes; /* without user mode the compiler knows what is in it */
	*turn = (struct turn){ .now = now, .reason = AFPA_PASS_NO_HEARTBEAT };

	if (flow && flow->flags & AFPA_FLOW_TRANSFER && !finish_fast(skb, work, &s, flow, now)) {
		if (!(s.flags & TCP_RST))
			to_transfer_program(skb, work, &s, microseconds(), false);
		if (!(s.flags & TCP_RST) || !afpa_is_sound(skb, work, &s))
			return TCX_DROP; /* nobody else knows the transfer */
	}
	if (flow && is_request_retransmitted(flow, &s)) {
		/* Here, and not one call deeper: Linux 6.1 adds up the stack of all calls. */
		if (!afpa_is_sound(skb, work, &s))
			return TCX_DROP;
		verdict = afpa_retransmit(skb, work, &s);
		if (verdict != GO_ON)
			return verdict;
		turn->reason = AFPA_RESET_LOST_VERSION;
		return flow->socketless ? to_socketless(skb, work, &s, turn) : afpa_tell_kernel(skb, work, &s);
	}
	if (flow && flow->socketless && !may_be_hit(flow, &s))
		return to_socketless(skb, work, &s, turn);
	if (answering && next_request(skb, &s, flow, turn)) {
		work->scan.generation = *(volatile __u32 *)&shared.generation;
		if (find_listener(&s, flow, work->scan.generation, &listener))
			verdict = serve(skb, work, &s, &listener, &flow, turn);
		else
			*turn = (struct turn){ .now = now, .reason = AFPA_PASS_NOT_LISTENING };
	}
	if (verdict != GO_ON)
		return verdict;
	if (noting)
		note_passed(work, &s, flow, turn);
	if (flow && flow->socketless)
		return to_socketless(skb, work, &s, turn);
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

/* The program that is attached. */
SEC("tcx/ingress")
int afpa_ingress(struct __sk_buff *skb)
{
	if (bypass_up(skb))
		return TCX_NEXT;
	bpf_tail_call(skb, &alive, 0);
	return ingress(skb, false);
}
