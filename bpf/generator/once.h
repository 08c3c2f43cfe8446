/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/*
 * One request a connection: the papers' clients, in TC. A part of generator.bpf.c.
 *
 * A slot is one connection after the other: SYN; the server's SYN is acknowledged and the request
 * follows in a packet of its own; the response is acknowledged as it comes; the server's FIN is
 * answered by ours, and at once by the SYN of the slot's next connection, from another port. The
 * kernel's TCP of the client never knows of any of them. User mode sends each slot's first SYN,
 * re-sends lost segments, and goes on where an error has stopped a slot.
 *
 * A port comes again after all others. The server may still have it in TIME_WAIT then; numbers and
 * timestamps that only grow with the clock let it accept the new connection (RFC 6191).
 */
#ifndef AFPA_GENERATOR_ONCE_H
#define AFPA_GENERATOR_ONCE_H

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set at load: the flow that each slot is at */
	__type(key, __u32);
	__type(value, __u32);
} slots SEC(".maps");

/* The flow that the slot uses after this one. */
static __always_inline struct flow *once_next(const struct settings *set, struct place *place)
{
	__u32 ports = set->ports ?: 1, number = set->slots ?: 1;
	__u32 ordinal = (place->index >> 16) * ports + (place->index & 0xffff) -
			set->first_port + number;
	__u32 slot = ordinal % number, *current = bpf_map_lookup_elem(&slots, &slot);

	if (ordinal >= set->total)
		ordinal -= set->total;
	place->index = ordinal / ports << 16 | (ordinal % ports + set->first_port);
	if (current)
		*current = place->index;
	return bpf_map_lookup_elem(&flows, &place->index);
}

/* Turns the packet into the SYN of the slot's next connection. */
static __always_inline int once_begin(struct __sk_buff *skb, const struct segment *segment,
				      __u32 cursor, struct place *place,
				      const struct settings *set, const bool swap)
{
	__u64 now = bpf_ktime_get_ns();
	struct segment stamped = *segment;
	struct flow *flow = once_next(set, place);
	struct outgoing out = {
		.from = place->source_first + (place->index >> 16),
		.from_port = place->index,
		.seq = now >> 10, /* a number each microsecond */
		.ts_value = now / 1000000,
		.payload = syn_options,
		.length = sizeof(syn_options),
		.sum = syn_options_sum(),
		.option_words = sizeof(syn_options) / 4,
		.flags = TCP_SYN,
	};

	if (!flow)
		return drop(COUNT_NO_PACKET);
	flow->state = FLOW_SYN_SENT;
	flow->sent_ns = now;
	flow->seq = out.seq + 1;
	flow->ack = 0;
	flow->got = 0;
	flow->cursor = cursor;
	flow->unacked = 0;
	flow->ts_recent = 0;
	flow->ts_offset = 0;
	stamped.stamped = true;
	count(COUNT_CONNECTIONS, 1);
	if (turn_round(skb, &stamped, &out, sizeof(syn_options), swap))
		return drop(COUNT_NO_PACKET);
	return bpf_redirect(skb->ifindex, 0);
}

/* Turns the packet into one without payload, with these flags. */
static __always_inline int once_turn(struct __sk_buff *skb, const struct segment *segment,
				     struct flow *flow, const struct place *place, __u32 seq,
				     __u8 flags)
{
	struct outgoing out = {
		.from = place->source_first + (place->index >> 16),
		.from_port = place->index,
		.seq = seq,
		.ack = flow->ack,
		.ts_value = bpf_ktime_get_ns() / 1000000,
		.ts_echo = flow->ts_recent,
		.flags = flags,
	};

	return turn_round(skb, segment, &out, REQUEST_MAX, true);
}

/* The server has accepted: acknowledge, then ask, as a client does that has to wake up first. */
static __always_inline int once_ask(struct __sk_buff *skb, const struct segment *segment,
				    struct flow *flow, const struct place *place,
				    const struct settings *set)
{
	__u64 begun = flow->sent_ns, now = bpf_ktime_get_ns();
	int verdict;

	flow->ack = segment->seq + 1;
	flow->ts_recent = segment->ts_value;
	flow->stamped = segment->stamped;
	flow->state = FLOW_ASKED;
	if (turn_to_ack(skb, segment, flow, place, now) || bpf_clone_redirect(skb, skb->ifindex, 0))
		return drop(COUNT_NO_PACKET);
	verdict = ask(skb, segment, flow, place, set, now, false);
	flow->sent_ns = begun;
	return verdict;
}

static __always_inline int once_finish(struct __sk_buff *skb, const struct segment *segment,
				       struct flow *flow, struct place *place,
				       const struct settings *set)
{
	__u32 cursor = flow->cursor;

	flow->state = FLOW_DONE;
	flow->seq++;
	if (once_turn(skb, segment, flow, place, flow->seq - 1, TCP_FIN | TCP_ACK))
		return drop(COUNT_NO_PACKET);
	if (!set->run)
		return bpf_redirect(skb->ifindex, 0);
	if (bpf_clone_redirect(skb, skb->ifindex, 0))
		return drop(COUNT_NO_PACKET);
	return once_begin(skb, segment, cursor, place, set, false);
}

/* An error stops the slot; user mode goes on with it after a while. */
static __always_inline int once_give_up(struct __sk_buff *skb, const struct segment *segment,
					struct flow *flow, const struct place *place)
{
	flow->state = FLOW_DONE;
	count(COUNT_CUT_SHORT, 1);
	if (once_turn(skb, segment, flow, place, flow->seq, TCP_RST | TCP_ACK))
		return drop(COUNT_NO_PACKET);
	return bpf_redirect(skb->ifindex, 0);
}

/* The response is counted when it is complete; the connection is over when the server's FIN comes. */
static __always_inline void once_receive(struct __sk_buff *skb, const struct segment *segment,
					 struct flow *flow, const struct target *target, __u32 old)
{
	receive(skb, segment, flow, target, old);
	if (flow->got >= flow->wanted && flow->state == FLOW_ASKED) {
		flow->state = FLOW_COMPLETE;
		count(COUNT_RESPONSES, 1);
		count_latency(bpf_ktime_get_ns() - flow->sent_ns);
		flow->responses++;
	}
}

static __always_inline int once_take(struct __sk_buff *skb, const struct segment *segment,
				     struct flow *flow, struct place *place,
				     const struct settings *set)
{
	const struct target *target = bpf_map_lookup_elem(&targets, &flow->target);
	bool fin = segment->flags & TCP_FIN;
	__u32 old = flow->ack - segment->seq;

	if (!target)
		return drop(COUNT_STRAY);
	if (segment->length == 0 && !fin && !(segment->flags & TCP_SYN))
		return drop(COUNT_PURE_ACKS_SEEN);
	if ((__s32)old < 0) {
		count(COUNT_GAPS, 1);
		return send_ack(skb, segment, flow, place, bpf_ktime_get_ns());
	}
	if (old >= segment->length + fin) {
		count(COUNT_DUPLICATES, 1);
		return send_ack(skb, segment, flow, place, bpf_ktime_get_ns());
	}
	if (old < segment->length)
		once_receive(skb, segment, flow, target, old);
	if (fin) {
		flow->ack++;
		if (flow->state == FLOW_COMPLETE)
			return once_finish(skb, segment, flow, place, set);
		return once_give_up(skb, segment, flow, place);
	}
	if (flow->unacked >= 2)
		return send_ack(skb, segment, flow, place, bpf_ktime_get_ns());
	return TC_ACT_SHOT;
}

static __always_inline int once_step(struct __sk_buff *skb, const struct segment *segment,
				     struct flow *flow, struct place *place,
				     const struct settings *set)
{
	if (segment->flags & TCP_RST) {
		bool complete = flow->state == FLOW_COMPLETE;

		if (flow->state == FLOW_DONE)
			return drop(COUNT_CLOSED);
		flow->state = FLOW_DONE;
		if (!complete)
			return drop(COUNT_CUT_SHORT);
		/* Not polite, but all of the response came before it. */
		count(COUNT_CLOSED, 1);
		if (!set->run)
			return TC_ACT_SHOT;
		return once_begin(skb, segment, flow->cursor, place, set, true);
	}
	if (flow->state == FLOW_DONE) {
		if (!(segment->flags & TCP_FIN))
			return drop(COUNT_PURE_ACKS_SEEN);
		/* It has not seen our FIN. */
		count(COUNT_DUPLICATES, 1);
		if (once_turn(skb, segment, flow, place, flow->seq - 1, TCP_FIN | TCP_ACK))
			return drop(COUNT_NO_PACKET);
		return bpf_redirect(skb->ifindex, 0);
	}
	if (flow->state != FLOW_SYN_SENT)
		return once_take(skb, segment, flow, place, set);
	if (segment->flags & TCP_SYN && segment->ack == flow->seq)
		return once_ask(skb, segment, flow, place, set);
	count(COUNT_STALE, 1);
	flow->state = FLOW_DONE;
	return once_begin(skb, segment, flow->cursor, place, set, true);
}

SEC("tc")
int generate_once(struct __sk_buff *skb)
{
	struct segment segment = {};
	struct place place = {};
	__u32 zero = 0;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct flow *flow = find_flow(skb, set, &segment, &place);

	if (!flow)
		return TC_ACT_OK;
	if (flow->state < FLOW_SYN_SENT) { /* the kernel's */
		learn(skb, &segment, flow);
		return TC_ACT_OK;
	}
	return once_step(skb, &segment, flow, &place, set);
}

#endif
