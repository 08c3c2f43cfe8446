/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is done for an answer on its way, whether an acknowledgement brought us here or its time has come.
 * Everything wants the flight's lock.
 */
#ifndef AFPA_TEND_H
#define AFPA_TEND_H

#include <afpa/rtx/segmenter.h>
#include <afpa/net/icmp.h>

/*
 * How long may a segment be? A path that has become narrower need not say so: after a time-out no longer than
 * what every path takes. When nothing of the answer had arrived by then, the connection's next ones begin so.
 */
static __always_inline void measure(struct afpa_flow *flow, const struct sender *f, struct sending *sending)
{
	__u32 narrow = payload_within(PMTU_SAFE, sending->ipv6, sending->timestamps);

	sending->payload_max = flow->mss;
	if (!f->mtu_blackhole || flow->mss <= narrow)
		return;
	sending->payload_max = narrow;
	if (!sender_any_delivered(f))
		flow->mss = narrow;
}

/* Take the numbers of the segments that are to leave. Called with the flow's lock held. */
static __always_inline void number(struct afpa_flow *flow, const struct afpa_transfer *transfer, struct sending *sending)
{
	__u32 clock = (__u32)(sending->now / 1000) + flow->ts_offset;

	measure(flow, (const struct sender *)transfer->sender, sending);
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

static __always_inline bool is_ipv6(const struct afpa_flow_key *key)
{
	const __be32 *client = (const __be32 *)key->client;

	return client[0] || client[1] || client[2] != bpf_htonl(0xffff);
}

static __always_inline void start_sending(struct sending *sending, const struct afpa_flow *flow,
					  const struct afpa_transfer *transfer)
{
	sending->ipv6 = is_ipv6(&transfer->flow);
	sending->timestamps = !!(flow->flags & AFPA_FLOW_TIMESTAMPS);
	sending->ecn = !!(flow->flags & AFPA_FLOW_ECN);
	sending->payload_max = flow->mss;
	sending->place = transfer->place;
}

/* What the engine makes of the time: an `enum progress`. */
__noinline int afpa_on_timer(struct afpa_transfer *transfer, __u64 now)
{
	return transfer ? sender_on_timer(sender_of(transfer), now) : PROGRESS_IMPOSSIBLE;
}

/* Something has left: when is the flight looked at again? */
__noinline int afpa_sent_now(struct afpa_transfer *transfer, __u64 now)
{
	if (transfer)
		sender_rearm_timer(sender_of(transfer), now);
	return 0;
}

/* Could more leave at once? */
__noinline int afpa_has_more(struct afpa_transfer *transfer)
{
	return transfer && sender_ready(sender_of(transfer)) != SENDER_NO_SEGMENT;
}

/* Send what may leave, BURST segments at most; the last one stays in the packet. An `enum built` of that one. */
static __always_inline int send_ready(struct __sk_buff *skb, struct work *work, struct afpa_transfer *transfer)
{
	int built = BUILT_NOT, turn;

	transfer->send_pending = 0;
	work->sending.sent = 0;
	work->sending.chosen = false;
	work->sending.rest = 0;
	bpf_for(turn, 0, 2 * BURST) { /* pieces, of so many segments */
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
	/* The next acknowledgement brings the rest, or whoever looks after flights. */
	if (work->sending.sent >= BURST && afpa_has_more(transfer))
		transfer->send_pending = 1;
	return built;
}

/* Empty segments of the connection: from us to the client, or as if from the client to the kernel. */
enum empty { RESET_DOWN, RESET_UP, ACK_UP };

/* The packet becomes that. False: it is spoilt. */
__noinline int afpa_make_empty(struct __sk_buff *skb, struct work *work, struct afpa_transfer *transfer, enum empty what)
{
	struct outgoing out = {};
	struct segment s = {};
	struct sending *sending;
	bool up = what != RESET_DOWN;

	if (!work || !transfer)
		return false;
	sending = &work->sending;
	out.seq = up ? sending->kernel_seq : sending->snd_una;
	out.ack = up ? sending->kernel_ack : sending->ack;
	out.ts_value = up ? sending->ts_echo : sending->ts_value;
	out.ts_echo = up ? sending->ts_value : sending->ts_echo;
	out.window = sending->window;
	out.flags = what == ACK_UP ? TCP_ACK : TCP_RST | TCP_ACK;
	out.swap = up;
	segment_of(&s, &transfer->flow, sending);
	build_headers(work, &s, transfer->ethernet);
	return make_packet(skb, work, &s, &out, sending->partial);
}

/*
 * End the connection on both sides: bytes that only we had are not to be had any more, or nobody wants
 * them. What is in the packet behind it is the kernel's reset. False: it could not be made.
 */
static __always_inline bool end_connection(struct __sk_buff *skb, struct work *work, struct afpa_transfer *transfer)
{
	if (afpa_make_empty(skb, work, transfer, RESET_DOWN))
		bpf_clone_redirect(skb, transfer->interface, 0);
	return afpa_make_empty(skb, work, transfer, RESET_UP);
}

/* Take the entries of a connection away that was ended. The flight's lock stays taken: see transfer.h. */
static __always_inline void remove_both(const struct afpa_flow_key *key)
{
	bpf_map_delete_elem(&transfers, key);
	flow_remove(key);
}

#endif
