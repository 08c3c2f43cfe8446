/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Send response: commit to the answer under the flow's lock, then build it and send it; and the same
 * bytes again for a client that did not get them.
 */
#ifndef AFPA_ANSWER_H
#define AFPA_ANSWER_H

#include <afpa/cache/lookup.h>
#include <afpa/conn/handover.h>
#include <afpa/tx/frame.h>

/* Someone must have checked the segment's sum before it is answered: the device, or we. */
static __always_inline bool checksum_holds(struct work *work, const struct segment *s, __u32 state, __u32 have)
{
	void *tcp = work->frame + FRAME_AT + s->tcp_at;
	__u64 sum = sum_pseudo(s, s->payload_at - s->tcp_at + s->length);

	if (state == CHECKSUM_PARTIAL || state == CHECKSUM_UNNECESSARY)
		return true;
	if (s->tcp_at != 34 && s->tcp_at != 54)
		return false;
	tcp = work->frame + FRAME_AT + (s->tcp_at == 34 ? 34 : 54);
	sum += sum_words(tcp, sizeof(struct tcphdr) / 4);
	if (s->timestamps)
		sum += sum_words(tcp + sizeof(struct tcphdr), TIMESTAMP_SIZE / 4);
	opaque(have);
	if (have > AFPA_HEAD_MAX)
		return false;
	return fold(sum + sum_bytes(work->head + have, s->length)) == 0xffff;
}

/* Numbers of an answer, fixed under the lock. */
struct commitment {
	__u32 seq, ack, ts_value, kernel_seq, kernel_ack;
	__be16 window;
	__u8 ack_up; /* the request carries an acknowledgement the kernel waits for */
	__u8 ecn;         /* of the IP header: new data may be marked, if that was negotiated */
	__u8 arm_rtx;       /* the connection is to be entered into `watches` */
};

/* A request that tells of a mark reduces the window, unless that was done, and its answer says so (RFC 3168). */
static __always_inline void answer_mark(struct path *path)
{
	if (!path->cwr_pending)
		path_on_ece(path);
	path->cwr_pending = false;
}

/*
 * Commit to the answer: from here on the two sequence spaces are apart by it. With `several` segments it
 * is a transfer, and the kernel is told later what the request acknowledges.
 */
static __always_inline enum afpa_reason commit(struct afpa_flow *flow, const struct segment *s,
					       const struct cached *cached, __u32 length, __u32 date, __u64 now,
					       bool several, struct commitment *c)
{
	__u32 clock = (__u32)(now / MILLISECOND_NS) + flow->ts_offset;
	__u64 version = cached->slot->version;
	enum afpa_reason reason;
	bool first = false;

	bpf_spin_lock(&flow->lock);
	reason = whose_turn(flow, s);
	if (reason == AFPA_ANSWERED) {
		first = !flow_has_offset(flow);
		c->seq = s->ack;
		c->ack = s->seq + s->length;
		c->kernel_seq = s->seq - flow->rx_offset;
		c->kernel_ack = flow->kernel_next;
		c->ack_up = flow->acked_to_kernel != flow->kernel_next;
		c->window = flow->window;
		c->ecn = flow->flags & AFPA_FLOW_ECN ? ECN_CAPABLE : 0;
		if (before(flow->ts_sent, clock))
			flow->ts_sent = clock;
		c->ts_value = flow->ts_sent;
		flow->ts_seen = s->ts_value;
		flow->owner = AFPA_OWNER_NONE;
		flow->rx_offset += s->length;
		flow->tx_offset += length;
		flow->client_next = c->ack;
		flow->snd_una = s->ack;
		measure_rtt(flow, now);
		flow->stale_below = flow->kernel_next;
		if (several) {
			flow->flags |= AFPA_FLOW_TRANSFER;
		} else {
			flow->acked_to_kernel = flow->kernel_next;
			c->arm_rtx = rtx_answer_sent(flow, rtx_clock(now));
		}
		if (s->flags & TCP_ECE && !several) /* several: `insert_transfer` */
			answer_mark((struct path *)flow->path);
		flow->request_seq = s->seq;
		flow->request_length = s->length;
		flow->answer_seq = c->seq;
		flow->answer_size = length;
		flow->answer_slot = cached->index;
		flow->answer_version = version;
		flow->answer_kind = cached->kind;
		flow->answer_date = date;
		flow->used_ns = now;
		flow->passed = 0;
	}
	bpf_spin_unlock(&flow->lock);
	if (first)
		bypass_invalidate(&s->key);
	return reason;
}

/* Does the answer fit the client's window and segment size? */
static __always_inline bool fits(const struct afpa_flow *flow, const struct segment *s, __u32 length)
{
	return length <= AFPA_ANSWER_MAX && length <= flow->mss &&
	       length <= (__u32)bpf_ntohs(s->window) << (flow->client_scale & 15);
}

/* Send `slot`'s answer as `out` says; its headers are in `work->frame`. */
static __always_inline bool send_answer(struct __sk_buff *skb, struct work *work, const struct segment *s,
					const struct afpa_slot *slot, enum afpa_kind kind, struct outgoing *out,
					const struct afpa_date *date, bool partial)
{
	__u32 max = kind == AFPA_KIND_NOT_MODIFIED ? sizeof(slot->not_modified_bytes) : sizeof(slot->bytes);
	const __u8 *bytes = kind == AFPA_KIND_NOT_MODIFIED ? slot->not_modified_bytes : slot->bytes;

	outgoing_answer(out, answer_of(slot, kind), bytes, kind == AFPA_KIND_HEAD, date);
	if (out->length > max || !make_packet(skb, work, s, out, partial))
		return false;
	if (kind == AFPA_KIND_NOT_MODIFIED) {
		out->bytes = slot->not_modified_bytes;
		return store_payload(skb, s, out, sizeof(slot->not_modified_bytes));
	}
	out->bytes = slot->bytes;
	return store_payload(skb, s, out, sizeof(slot->bytes));
}

/* What is left of an answered request for the kernel: the acknowledgement it carried. */
static __always_inline int send_ack_up(struct __sk_buff *skb, struct work *work, const struct segment *s,
					  const struct commitment *c, bool partial)
{
	struct outgoing out = {
		.seq = c->kernel_seq, .ack = c->kernel_ack, .ts_value = s->ts_value, .ts_echo = s->ts_echo,
		.window = s->window, .flags = TCP_ACK, .swap = true, /* the answer swapped them already */
	};

	return make_packet(skb, work, s, &out, partial) ? TCX_NEXT : TCX_DROP;
}

static __always_inline void report(const struct work *work, const struct segment *s, const struct afpa_flow *flow,
				   const struct cached *cached, __u32 length, __u32 date, bool head)
{
	__u32 every = shared.log_every;
	struct afpa_event *event;

	if (every == 0 || (every > 1 && bpf_get_prandom_u32() % every))
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event) {
		count(AFPA_EVENT_LOST);
		return;
	}
	event->flow = s->key;
	event->listener = flow->listener;
	event->site = cached->slot->site;
	event->date = date;
	event->version = cached->slot->version;
	event->length = length;
	event->kind = cached->kind;
	event->head = head;
	event->weight = every;
	event->block = work->request.entry;
	event->block_sequence = work->request.entry_sequence;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
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

/*
 * On to the program that tends flights; the segment and the time, in microseconds, go with it. Comes back
 * when it is missing.
 */
static __always_inline void to_transfer_program(struct __sk_buff *skb, struct work *work, const struct segment *s, __u64 now,
				      bool begins)
{
	*(struct segment *)work->segment = *s;
	work->sending.now = now;
	work->sending.begins = begins;
	bpf_tail_call(skb, &programs, AFPA_PROGRAM_TRANSFER);
}

/* A flight that begins, into the table, locked. False: no room, or none of ours. */
static __always_inline bool insert_transfer(struct __sk_buff *skb, struct work *work, const struct segment *s,
					 const struct afpa_flow *flow, const struct cached *cached, __u32 length,
					 __u32 date, __u64 now)
{
	__u32 window = (__u32)bpf_ntohs(s->window) << (flow->client_scale & 15);
	struct afpa_transfer *transfer = (struct afpa_transfer *)work->transfer;
	struct ethhdr *out = (struct ethhdr *)transfer->ethernet;

	if (!sender_begin(sender_of(transfer), now, length, unit_of(flow), window, (const void *)flow->path))
		return false;
	if (s->flags & TCP_ECE)
		sender_on_request_ece(sender_of(transfer));
	transfer->version = cached->slot->version;
	transfer->slot = cached->index;
	transfer->date = date;
	transfer->flow = s->key;
	transfer->lock = 1;
	transfer->at = s->ack;
	transfer->interface = skb->ifindex;
	__builtin_memcpy(out, work->frame + FRAME_AT, sizeof(*out));
	swap_ethernet(transfer->ethernet);
	transfer->send_pending = 1;
	transfer->place = s->place;
	return bpf_map_update_elem(&transfers, &s->key, transfer, BPF_NOEXIST) == 0;
}

/* What the segments of a flight that begins have in common, as it was committed to. */
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
 * An answer of several segments: entered, committed, and sent by the program that tends it. Should that be
 * missing, it is found when flights are looked after. GO_ON: as `answer`.
 */
static __always_inline int begin_transfer(struct __sk_buff *skb, struct work *work, const struct segment *s,
				  struct afpa_flow *flow, const struct cached *cached, __u32 length, __u32 date,
				  struct turn *turn)
{
	__u64 now = bpf_ktime_get_ns();
	struct afpa_transfer *transfer;
	struct commitment c = {};

	turn->reason = AFPA_PASS_TRANSFERS_FULL;
	if (!insert_transfer(skb, work, s, flow, cached, length, date, now / 1000))
		return GO_ON;
	turn->reason = commit(flow, s, cached, length, date, turn->now, true, &c);
	if (turn->reason != AFPA_ANSWERED) {
		bpf_map_delete_elem(&transfers, &s->key);
		return GO_ON;
	}
	shared.transfer_ns = now; /* behind the entry: who looks after flights sees it, or that this moved */
	count_at(s->place, AFPA_ANSWERED);
	count_at(s->place, AFPA_TRANSFER_BEGUN);
	count_site(cached->slot->site, false);
	report(work, s, flow, cached, length, date, false);
	number_first(&work->sending, flow, s, &c);
	to_transfer_program(skb, work, s, now / 1000, true);
	transfer = bpf_map_lookup_elem(&transfers, &s->key);
	if (transfer)
		transfer_unlock(transfer);
	count_at(s->place, AFPA_PASS_SEND);
	return TCX_DROP;
}

/* Send response: commit, build, redirect. GO_ON: nothing was done, `turn->reason` says why. */
static __always_inline int answer(struct __sk_buff *skb, struct work *work, const struct segment *s,
				  struct afpa_flow *flow, const struct cached *cached, const struct afpa_date *date,
				  struct turn *turn)
{
	__u32 length = answer_length(cached->slot, cached->kind), state = checksum_state(skb);
	struct outgoing out = { .flags = TCP_ACK | TCP_PSH, .swap = true, .ts_echo = s->ts_value };
	bool partial = state == CHECKSUM_PARTIAL, single = fits(flow, s, length);
	struct commitment c = {};

	turn->reason = AFPA_PASS_WINDOW;
	if (!single && !may_transfer(flow, s, cached, length))
		return GO_ON;
	turn->reason = AFPA_PASS_SEND;
	if (!save_headers(skb, work, s))
		return GO_ON;
	if (!checksum_holds(work, s, state, 0)) {
		count_at(s->place, AFPA_PASS_CHECKSUM); /* the kernel will see it too, and drop it */
		return TCX_NEXT;
	}
	if (!single)
		return begin_transfer(skb, work, s, flow, cached, length, date->second, turn);
	turn->reason = commit(flow, s, cached, length, date->second, turn->now, false, &c);
	if (turn->reason != AFPA_ANSWERED)
		return GO_ON;
	out.seq = c.seq;
	out.ack = c.ack;
	out.ts_value = c.ts_value;
	out.window = c.window;
	out.ecn = c.ecn;
	if (s->flags & TCP_ECE)
		out.flags |= TCP_CWR;
	if (c.arm_rtx) {
		afpa_rtx_arm(&s->key, (const void *)(work->frame + FRAME_AT), skb->ifindex, turn->now);
		count_at(s->place, AFPA_RTX_ARMED);
	}
	if (!send_answer(skb, work, s, cached->slot, cached->kind, &out, date, partial)) {
		count_at(s->place, AFPA_PASS_SEND); /* committed: the client repeats the request, and is answered again */
		return TCX_DROP;
	}
	count_at(s->place, cached->kind == AFPA_KIND_NOT_MODIFIED ? AFPA_ANSWERED_NOT_MODIFIED : AFPA_ANSWERED);
	count_site(cached->slot->site, cached->kind == AFPA_KIND_NOT_MODIFIED);
	report(work, s, flow, cached, length, date->second, turn->head_bits);
	if (!c.ack_up)
		return bpf_redirect(skb->ifindex, 0);
	bpf_clone_redirect(skb, skb->ifindex, 0);
	return send_ack_up(skb, work, s, &c, partial);
}

/* The version that was sent is gone, and no other may be mixed into the stream: end the connection. */
static __always_inline int reset(struct __sk_buff *skb, struct work *work, const struct segment *s,
				 const struct afpa_flow *flow, bool partial)
{
	struct outgoing out = {
		.seq = flow->client_next - flow->rx_offset, .ack = flow->kernel_next, .ts_value = s->ts_value,
		.ts_echo = s->ts_echo, .flags = TCP_RST | TCP_ACK,
	};

	count_at(s->place, AFPA_RESET_LOST_VERSION);
	if (!make_packet(skb, work, s, &out, partial))
		return TCX_DROP;
	flow_remove(&s->key); /* the client's next segment finds no socket, and is told so by the kernel */
	return TCX_NEXT;
}

/* No path takes less of an IPv6 packet's payload, with timestamps or without. */
#define PART 1208

/*
 * A longer answer in two segments: the first one leaves, the second is in the packet then. Neither acknowledges
 * the request, or the client would not ask again when the other one is lost (F4). Once it has both, the answer
 * to its next request does; or the kernel's TCP, to which it repeats this one.
 */
static __always_inline bool resend_in_two(struct __sk_buff *skb, struct work *work, const struct segment *s,
				       struct afpa_slot *slot, bool head_only, struct outgoing *out,
				       const struct afpa_date *date, bool partial)
{
	__u32 whole, rest, sum, begin = 0;

	outgoing_answer(out, &slot->whole, slot->bytes, head_only, date);
	whole = out->length;
	sum = out->sum;
	begin = bpf_csum_diff(0, 0, (__be32 *)slot->bytes, SUM_CHUNK, begin);
	begin = bpf_csum_diff(0, 0, (__be32 *)(slot->bytes + SUM_CHUNK), SUM_CHUNK, begin);
	begin = bpf_csum_diff(0, 0, (__be32 *)(slot->bytes + 2 * SUM_CHUNK), PART - 2 * SUM_CHUNK, begin);
	out->ack = s->seq;
	out->length = PART;
	out->sum = fold((__u64)begin + (slot->whole.date_offset & 1 ? date->sum_odd : date->sum_even));
	if (!make_packet(skb, work, s, out, partial) || !store_payload(skb, s, out, PART))
		return false;
	bpf_clone_redirect(skb, skb->ifindex, 0);
	rest = whole - PART;
	out->swap = false; /* they have been already */
	out->seq += PART;
	out->length = rest;
	out->sum = fold((__u64)sum + (__u16)~out->sum);
	opaque(rest);
	if (rest < 1 || rest > AFPA_ANSWER_MAX - PART || !make_packet(skb, work, s, out, partial))
		return false;
	return bpf_skb_store_bytes(skb, headers_out(s), slot->bytes + PART, rest, 0) == 0;
}

/*
 * The same answer again. It may have been lost because it is too long for a path that has changed: IPv4 lets
 * routers cut it, with IPv6 we do.
 */
static __always_inline bool resend_answer(struct __sk_buff *skb, struct work *work, const struct segment *s,
				       struct afpa_slot *slot, enum afpa_kind kind, struct outgoing *out,
				       const struct afpa_date *date, bool partial)
{
	bool head_only = kind == AFPA_KIND_HEAD;
	__u32 length = head_only ? slot->whole.head_length : slot->whole.length;

	if (s->ipv6 && kind != AFPA_KIND_NOT_MODIFIED && length > PART)
		return resend_in_two(skb, work, s, slot, head_only, out, date, partial);
	out->id = bpf_get_prandom_u32() | 1;
	return send_answer(skb, work, s, slot, kind, out, date, partial);
}

/* The client did not get our answer (or we did not get its word that it did): the same bytes again. */
static __always_inline int retransmit_on_request(struct __sk_buff *skb, struct work *work, const struct segment *s,
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
		return reset(skb, work, s, flow, partial);
	if (!resend_answer(skb, work, s, slot, kind, &out, date, partial))
		return TCX_DROP;
	count_at(s->place, AFPA_ANSWERED_RETRANSMISSION);
	return bpf_redirect(skb->ifindex, 0);
}

/*
 * Payload that begins within the request answered last, whose answer is not acknowledged: it was lost.
 * Stacks merge and split what they send again; the answer acknowledges the request alone, so that
 * whatever else there is will come by itself.
 */
static __always_inline bool is_request_retransmitted(const struct afpa_flow *flow, const struct segment *s)
{
	return s->length && s->seq - flow->request_seq < flow->request_length && answer_outstanding(flow) &&
	       before(s->ack, flow->answer_seq + flow->answer_size);
}

#endif
