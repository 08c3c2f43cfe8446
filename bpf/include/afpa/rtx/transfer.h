/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A transfer: an answer of several segments on its way. How it begins, sends and ends, whether an acknowledgement
 * drives it or its timer.
 *
 * The TCP sender decides which segment is sent when, and again (tcp/, states and invariants S1 to S8). Everything here but
 * `may_transfer` and `insert_transfer` wants the transfer's lock (conn/flow.h).
 */
#ifndef AFPA_RTX_TRANSFER_H
#define AFPA_RTX_TRANSFER_H

#include <afpa/cache/lookup.h>
#include <afpa/conn/handover.h>
#include <afpa/net/icmp.h>
#include <afpa/rtx/segmenter.h>

#define BURST 10 /* segments that leave in one interrupt: an initial window (RFC 6928) */

/* Entries of `programs`. */

/* --- its beginning --- */

/* Bytes of payload of the segments for this client. */
static __always_inline __u32 unit_of(const struct afpa_flow *flow)
{
	return flow->mss > UNIT_MAX ? UNIT_MAX : flow->mss;
}

/* May the answer leave in several segments? */
static __always_inline bool may_transfer(const struct afpa_flow *flow, const struct segment *s, const struct cached *cached,
				    __u32 length)
{
	__u32 unit = unit_of(flow), window = (__u32)bpf_ntohs(s->window) << (flow->client_scale & 15);

	return flow->flags & AFPA_FLOW_MULTI_SEGMENT && cached->kind == AFPA_KIND_WHOLE && cached->slot->pages[0] &&
	       length <= shared.answer_max && unit >= AFPA_UNIT_MIN && window >= 2 * unit &&
	       cached->slot->whole.date_offset <= AFPA_UNIT_MIN - AFPA_DATE_LENGTH;
}

/* A new transfer into the table, locked. False: the table is full, or the sender does not take it. */
static __always_inline bool insert_transfer(struct __sk_buff *skb, struct work *work, const struct segment *s,
					 const struct afpa_flow *flow, const struct commitment *c, __u64 now)
{
	__u32 window = (__u32)bpf_ntohs(s->window) << (flow->client_scale & 15);
	struct afpa_transfer *transfer = (struct afpa_transfer *)work->transfer;
	if (!sender_begin(sender_of(transfer), now, c->length, unit_of(flow), window, (const void *)flow->path))
		return false;
	if (s->flags & TCP_ECE)
		sender_on_request_ece(sender_of(transfer));
	transfer->version = c->version;
	transfer->slot = c->slot;
	transfer->date = c->date;
	transfer->flow = s->key;
	transfer->lock = 1;
	transfer->at = s->ack;
	transfer->interface = skb->ifindex;
	__builtin_memcpy(transfer->ethernet, work->frame + FRAME_AT, sizeof(transfer->ethernet)); /* for its protocol */
	transfer->send_pending = 1;
	transfer->place = s->place;
	return bpf_map_update_elem(&transfers, &s->key, transfer, BPF_NOEXIST) == 0;
}

/*
 * On to the program of transfers (transfer.bpf.c) with the segment and the time, in microseconds. Returns only if
 * that program is missing.
 */
static __always_inline void to_transfer_program(struct __sk_buff *skb, struct work *work, const struct segment *s, __u64 now,
				      bool begins)
{
	work->sending.now = now;
	work->sending.begins = begins;
	to_program(skb, work, s, AFPA_PROGRAM_TRANSFER);
}

/* The values that the first segments of a transfer have in common, as they were committed to. */
static __always_inline void number_first(struct sending *sending, const struct afpa_flow *flow,
					 const struct segment *s, const struct commitment *c)
{
	sending->payload_max = flow->mss;
	sending->ack = c->ack;
	sending->snd_una = s->ack;
	sending->ts_value = c->ts_value;
	sending->ts_echo = s->ts_value;
	sending->window = c->window;
	sending->kernel_seq = c->kernel_seq;
	sending->kernel_ack = c->kernel_ack;
	sending->ack_up = c->ack_up;
}

/*
 * An answer of several segments: entered, committed, and sent by the program of transfers. Should that program be
 * missing, the transfer's timer is found to be due. GO_ON: nothing was done, `turn->reason` says why.
 */
static __always_inline int begin_transfer(struct __sk_buff *skb, struct work *work, const struct segment *s,
					  struct afpa_flow *flow, const struct cached *cached, struct commitment *c,
					  struct turn *turn)
{
	__u64 now = bpf_ktime_get_ns();
	struct afpa_transfer *transfer;

	c->multi_segment = true;
	turn->reason = AFPA_PASS_TRANSFERS_FULL;
	if (!insert_transfer(skb, work, s, flow, c, now / 1000))
		return GO_ON;
	turn->reason = commit(skb, work, flow, s, c, turn);
	if (turn->reason != AFPA_ANSWERED) {
		bpf_map_delete_elem(&transfers, &s->key);
		return GO_ON;
	}
	shared.transfer_ns = now; /* behind the entry: user mode sees the entry, or that this word has moved */
	count_at(s->place, AFPA_ANSWERED);
	count_at(s->place, AFPA_TRANSFER_BEGUN);
	if (cached->has_age)
		count_at(s->place, AFPA_ANSWERED_SHARED);
	count_site(work->request.block.site, false);
	report(work, s, c);
	number_first(&work->sending, flow, s, c);
	to_transfer_program(skb, work, s, now / 1000, true);
	transfer = bpf_map_lookup_elem(&transfers, &s->key);
	if (transfer)
		transfer_unlock(transfer);
	count_at(s->place, AFPA_PASS_SEND);
	return TCX_DROP;
}

/* --- output --- */

/*
 * How long may a segment be? A path whose MTU shrank need not report it (a black hole, RFC 4821): after a time-out no
 * segment is longer than every path takes. If nothing of the answer had arrived by then, the connection's next
 * answers begin with such segments.
 */
static __always_inline void limit_payload(struct afpa_flow *flow, const struct sender *f, struct sending *sending)
{
	__u32 safe = payload_within(PMTU_SAFE, sending->ipv6, sending->timestamps);

	sending->payload_max = flow->mss;
	if (!f->mtu_blackhole || flow->mss <= safe)
		return;
	sending->payload_max = safe;
	if (!sender_any_delivered(f))
		flow->mss = safe;
}

/* The numbers that the next segments have in common. Called with the flow's lock held. */
static __always_inline void number(struct afpa_flow *flow, const struct afpa_transfer *transfer, struct sending *sending)
{
	__u32 clock = (__u32)(sending->now / 1000) + flow->ts_offset;

	limit_payload(flow, (const struct sender *)transfer->sender, sending);
	if (before(flow->ts_sent, clock))
		flow->ts_sent = clock;
	sending->ack = flow->client_next;
	sending->snd_una = flow->snd_una;
	sending->ts_value = flow->ts_sent;
	sending->ts_echo = flow->ts_seen;
	sending->window = flow->window;
	sending->kernel_seq = flow->client_next - flow->rx_offset;
	sending->kernel_ack = flow->stale_below;
	sending->ack_up = before(flow->acked_to_kernel, flow->stale_below);
}

/* The transfer's segments take the way that the flow knows. False: it knows none. Called with the flow's lock held. */
static __always_inline bool way_of_transfer(const struct afpa_flow *flow, struct afpa_transfer *transfer)
{
	if (!may_repeat(flow))
		return false;
	transfer->interface = flow->way.interface;
	put_way_out(transfer->ethernet, &flow->way);
	return true;
}

static __always_inline void start_sending(struct sending *sending, const struct afpa_flow *flow,
					  const struct afpa_transfer *transfer)
{
	sending->ipv6 = is_ipv6(&transfer->flow);
	sending->timestamps = !!(flow->flags & AFPA_FLOW_TIMESTAMPS);
	sending->ecn = !!(flow->flags & AFPA_FLOW_ECN);
	sending->closes = flow->socketless == AFPA_SOCKETLESS_CLOSING;
	sending->payload_max = flow->mss;
	sending->place = transfer->place;
}

/* The time is `now`. Returns an `enum progress`. */
__noinline int afpa_on_timer(struct afpa_transfer *transfer, __u64 now)
{
	return transfer ? sender_on_timer(sender_of(transfer), now) : PROGRESS_IMPOSSIBLE;
}

/* Something has left: arm the timer. */
__noinline int afpa_sent_now(struct afpa_transfer *transfer, __u64 now)
{
	if (transfer)
		sender_rearm_timer(sender_of(transfer), now);
	return 0;
}

/* May more leave at once? */
__noinline int afpa_has_more(struct afpa_transfer *transfer)
{
	return transfer && sender_ready(sender_of(transfer)) != SENDER_NO_SEGMENT;
}

/* Send the segments that may leave, BURST at most. The last one stays in the packet; returns its `enum built`. */
static __always_inline int send_ready(struct __sk_buff *skb, struct work *work, struct afpa_transfer *transfer)
{
	int built = BUILT_NOT;

	transfer->send_pending = 0;
	work->sending.sent = 0;
	work->sending.chosen = false;
	work->sending.rest = 0;
#pragma clang loop unroll(disable)
	for (int turn = 0; turn < 2 * BURST; turn++) { /* pieces: a segment is two when the path takes less */
		if (work->sending.sent >= BURST && !work->sending.rest)
			break;
		if (!afpa_next_piece(work, transfer))
			break;
		work->sending.chosen = true;
		if (built == BUILT)
			bpf_clone_redirect(skb, transfer->interface, 0);
		built = afpa_build_piece(skb, work, transfer);
		if (built != BUILT)
			break;
		count_at(transfer->place, work->sending.retransmitted ? AFPA_TRANSFER_RETRANSMITTED : AFPA_TRANSFER_SENT);
		work->sending.sent++;
	}
	if (built == BUILT_NOT && work->sending.sent)
		count_at(transfer->place, AFPA_PASS_SEND);
	if (work->sending.chosen)
		afpa_sent_now(transfer, work->sending.now);
	/* The next acknowledgement sends the rest, or the next tick of the timers. */
	if (work->sending.sent >= BURST && afpa_has_more(transfer))
		transfer->send_pending = 1;
	return built;
}

/* --- its end --- */

/* Segments without payload: from us to the client, or as if from the client to the kernel. */
enum empty { RESET_DOWN, RESET_UP, ACK_UP, PROBE_UP };

/* The packet becomes one of these. False: it is spoilt. */
__noinline int afpa_make_empty(struct __sk_buff *skb, struct work *work, struct afpa_transfer *transfer, enum empty what)
{
	struct outgoing out = {};
	struct segment s = {};
	struct sending *sending;
	bool up = what != RESET_DOWN;

	if (!work || !transfer)
		return false;
	sending = &work->sending;
	out.seq = up ? sending->kernel_seq - (what == PROBE_UP) : sending->snd_una;
	out.ack = up ? sending->kernel_ack : sending->ack;
	out.ts_value = up ? sending->ts_echo : sending->ts_value;
	out.ts_echo = up ? sending->ts_value : sending->ts_echo;
	out.window = sending->window;
	out.flags = what == ACK_UP || what == PROBE_UP ? TCP_ACK : TCP_RST | TCP_ACK;
	out.swap = up;
	segment_of(&s, &transfer->flow, sending);
	build_headers(work, &s, transfer->ethernet);
	return make_packet(skb, work, &s, &out, sending->partial);
}

/*
 * Reset the connection on both sides: the answer's bytes are gone, also for user mode, or the client has been silent for
 * too long. Afterwards the packet is the reset for the kernel. False: that one could not be made.
 */
static __always_inline bool end_connection(struct __sk_buff *skb, struct work *work, struct afpa_transfer *transfer)
{
	if (afpa_make_empty(skb, work, transfer, RESET_DOWN))
		bpf_clone_redirect(skb, transfer->interface, 0);
	return afpa_make_empty(skb, work, transfer, RESET_UP);
}

/* Remove both entries of a connection that was reset. The transfer's lock stays taken: see conn/flow.h. */
static __always_inline void remove_both(const struct afpa_flow_key *key)
{
	bpf_map_delete_elem(&transfers, key);
	flow_remove(key);
}

#endif
