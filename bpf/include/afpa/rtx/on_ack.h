/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a client says to an answer on its way. Everything wants the flight's lock.
 */
#ifndef AFPA_HEAR_H
#define AFPA_HEAR_H

#include <afpa/rtx/timers.h>

/* Has somebody checked the segment's sum? Beside the entry programs. */
__noinline int afpa_is_sound(struct __sk_buff *skb, struct work *work, const struct segment *s);

/* Does the segment belong to the connection as it stands? */
static __always_inline bool belongs(const struct afpa_flow *flow, const struct segment *s)
{
	__s32 above = s->seq - (flow->answer_from - 1); /* a keep-alive probe stands one below */

	return s->flags & TCP_ACK && !(s->flags & TCP_SYN) && s->timestamps == !!(flow->flags & AFPA_FLOW_TIMESTAMPS) &&
	       above >= 0 && above < 1 << 24;
}

#define EARLIER (1u << 20) /* bytes below an answer that a duplicate of an earlier one may stand */

/* SACK blocks into offsets of the answer; what lies outside of it is made empty. */
static __always_inline void read_blocks(struct __sk_buff *skb, struct work *work, const struct segment *s,
					const struct afpa_flight *flight, struct ack *ack)
{
	__u32 length = other_options(s), whole = ((const struct sender *)flight->engine)->length, first;
	const __be32 *options = (const __be32 *)work->head;

	opaque(length);
	if (length < 12 || length > OPTIONS_MAX)
		return;
	__builtin_memset(work->head, 0, OPTIONS_MAX);
	if (bpf_skb_load_bytes(skb, s->payload_at - length, work->head, length))
		return;
	first = bpf_ntohl(options[0]);
	if (first >> 8 != SACK_LAYOUT)
		return;
	for (__u32 i = 0; i < SACK_EDGES / 2; i++) {
		__u32 from = bpf_ntohl(options[1 + 2 * i]) - flight->at, to = bpf_ntohl(options[2 + 2 * i]) - flight->at;

		if (8 * i + 10 > (first & 0xff))
			continue;
		if (i == 0 && -from - 1 < EARLIER)
			ack->earlier_dsack = 1;
		if (from >= whole)
			continue;
		ack->sack[i].from = from;
		ack->sack[i].to = to < whole ? to : whole;
	}
}

/* What the engine makes of the acknowledgement in `work->heard`: an `enum progress`. */
__noinline int afpa_hear(struct work *work, struct afpa_flight *flight)
{
	if (!work || !flight)
		return PROGRESS_IMPOSSIBLE;
	return sender_on_ack(engine_of(flight), work->sending.now, (struct ack *)work->heard);
}

/* The connection is as after any answer: what its path has shown is kept for the next one. */
static __always_inline void land(struct afpa_flow *flow, const struct afpa_flight *flight)
{
	const struct path *path = &((const struct sender *)flight->engine)->path;
	const __u64 *from = (const __u64 *)path;

	bpf_spin_lock(&flow->lock);
	flow->flags &= ~AFPA_FLOW_FLIGHT;
	for (int i = 0; i < AFPA_PATH_WORDS; i++)
		flow->path[i] = from[i];
	bpf_spin_unlock(&flow->lock);
}

/* The segment's own words, in those of the engine; without blocks. */
static __always_inline void take_words(struct ack *ack, const struct segment *s, const struct afpa_flow *flow,
				       const struct afpa_flight *flight)
{
	__builtin_memset(ack, 0, sizeof(*ack));
	ack->ack = s->ack - flight->at;
	ack->wnd = (__u32)bpf_ntohs(s->window) << (flow->client_scale & 15);
	ack->tsecr = s->ts_echo - flow->ts_offset;
	ack->has_tsecr = s->timestamps && s->ts_echo;
	ack->ece = flow->flags & AFPA_FLOW_ECN && s->flags & TCP_ECE;
}

/* The segment as an acknowledgement. An `enum progress`; PROGRESS_IMPOSSIBLE: it is none of ours. */
static __always_inline int hear(struct __sk_buff *skb, struct work *work, const struct segment *s,
				struct afpa_flow *flow, struct afpa_flight *flight)
{
	struct ack *ack = (struct ack *)work->heard;
	int progress;

	/* Behind everything that ever left, the server's FIN included; or of an answer before this one. */
	if (!belongs(flow, s) || before(flow->kernel_next + flow->given + 1, s->ack) || before(s->ack, flight->at) ||
	    !afpa_is_sound(skb, work, s))
		return PROGRESS_IMPOSSIBLE;
	take_words(ack, s, flow, flight);
	read_blocks(skb, work, s, flight, ack);
	progress = afpa_hear(work, flight);
	return progress == PROGRESS_GOING ? afpa_look_at_time(flight, work->sending.now) : progress;
}

/*
 * The usual end: a request that acknowledges all of the answer before it, and says nothing else. What the
 * flight's program would do, without the way there and back. False: nothing was done, and it has to.
 */
static __always_inline bool arrive(struct __sk_buff *skb, struct work *work, const struct segment *s,
				   struct afpa_flow *flow)
{
	struct ack *ack = (struct ack *)work->heard;
	struct afpa_flight *flight;

	if (s->length == 0 || !s->plain_tcp || s->flags & TCP_RST || s->ack != flow->answer_at + flow->answer_span ||
	    !belongs(flow, s) || !afpa_is_sound(skb, work, s))
		return false;
	flight = bpf_map_lookup_elem(&flights, &s->key);
	if (!flight || !flight_take(flight, &s->key))
		return false;
	take_words(ack, s, flow, flight);
	/* Not plain: what it acknowledges has not left, or some of it left twice. */
	if (!sender_ack_is_plain(engine_of(flight), ack) ||
	    sender_on_plain_ack(engine_of(flight), microseconds(), ack) != PROGRESS_DONE) {
		flight_release(flight);
		return false;
	}
	land(flow, flight);
	bpf_map_delete_elem(&flights, &s->key);
	count_at(s->place, AFPA_FLIGHT_HEARD);
	count_at(s->place, AFPA_FLIGHT_DONE);
	return true;
}

#endif
