/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Watch: answers of one segment that got lost come back in time (W1 to W4 in watch.h). Run by user mode.
 *
 * `afpa_due_answers` looks at the entries of the queue that are due, some at a time, and names those of connections that
 * lack their answer and will be due before they could wait in the queue again; its input is ignored. It returns how
 * many it named, and in the higher bits an `enum queue`. `afpa_retransmit_answer` is run for each of these in time: its input is
 * an Ethernet header and the entry, and becomes the answer. It returns when it is to be run again, 0: no more.
 */
#include <afpa/rtx/timers.h>
#include <afpa/rtx/transfer.h>
#include <afpa/tx/replay.h>

#define RTX_AT_ONCE 256

enum queue {
	QUEUE_EMPTY,
	QUEUE_WAITS,
	QUEUE_GOES_ON, /* more may be due */
};

static __always_inline bool counts(const struct afpa_flow *flow, const struct afpa_rtx_timer *timer)
{
	return (flow->rtx_stamp & ~RTX_RETRANSMITTED) == (timer->stamp & ~RTX_RETRANSMITTED);
}

/* An entry that is due. True: it is to be named, `due` says when it is to be looked at again. */
static __always_inline bool rtx_requeue(struct afpa_rtx_timer *timer, __u32 now)
{
	struct afpa_flow *flow = bpf_map_lookup_elem(&flows, &timer->flow);
	__s32 wait = RTX_OVER;

	if (!flow)
		return false;
	bpf_spin_lock(&flow->lock);
	if (flow->rtx_stamp == timer->stamp) {
		wait = rtx_wait(flow, now);
		flow->rtx_stamp = wait == RTX_OVER ? 0 : now;
	}
	bpf_spin_unlock(&flow->lock);
	if (wait == RTX_OVER)
		return false;
	timer->stamp = now;
	timer->due = now + wait;
	if (wait < RTX_QUEUED)
		return true;
	rtx_queue(timer);
	return false;
}

SEC("tcx/ingress")
int afpa_due_answers(struct __sk_buff *skb)
{
	__u32 now = rtx_clock(bpf_ktime_get_coarse_ns()), named = 0, turn;
	enum queue queue = QUEUE_GOES_ON;

	bpf_for(turn, 0, RTX_AT_ONCE) {
		struct afpa_rtx_timer timer, *place;
		__u32 at = named;

		if (bpf_map_peek_elem(&rtx_timers, &timer)) {
			queue = QUEUE_EMPTY;
			break;
		}
		if ((__s32)(timer.due - now) > 0) {
			queue = QUEUE_WAITS;
			break;
		}
		place = bpf_map_lookup_elem(&rtx_due, &at);
		if (!place)
			break;
		bpf_map_pop_elem(&rtx_timers, &timer); /* nobody else does */
		if (rtx_requeue(&timer, now)) {
			*place = timer;
			named++;
		}
	}
	return queue << 8 | (named & 255);
}

/* What leaves again, as it was under the lock. */
struct retransmission {
	struct outgoing out;
	__u64 version;
	__u32 slot, date;
	__u32 from;      /* wire: where the request began */
	__s32 wait;      /* until the next look, or RTX_OVER */
	__u8 kind;
	__u8 due;        /* it leaves now */
	__u8 given_up;
	__u8 pieces;     /* it may be too long for the path */
	__u8 tried;      /* it left again before */
};

/* The path is taken for crowded: less at once, and after a second loss in a row one segment, as in flights. */
static __always_inline void rtx_shrink(struct afpa_flow *flow)
{
	struct path *path = (struct path *)flow->path;

	if (flow->retransmits == 0)
		path_reduce_cwnd(path);
	else
		path->cwnd = 1;
}

/* The answer leaves again: take its numbers. Called with the lock held. */
static __always_inline void take_retransmission(struct afpa_flow *flow, struct retransmission *r, __u32 now,
					    __u64 milliseconds)
{
	__u32 clock = (__u32)milliseconds + flow->ts_offset;

	if (before(flow->ts_sent, clock))
		flow->ts_sent = clock;
	rtx_shrink(flow);
	r->pieces = flow->retransmits > 0 || flow->answer_size > flow->mss;
	flow->retransmits++;
	rtx_restart(flow, now);
	flow->rtx_stamp ^= flow->retransmits == 1 ? RTX_RETRANSMITTED : 0;
	r->out.seq = flow->answer_seq;
	r->out.ack = flow->request_seq + flow->request_length;
	r->out.ts_value = flow->ts_sent;
	r->out.ts_echo = flow->ts_seen;
	r->out.window = flow->window;
	r->version = flow->answer_version;
	r->slot = flow->answer_slot;
	r->date = flow->answer_date;
	r->kind = flow->answer_kind;
	r->from = flow->request_seq;
	r->wait = rtx_timeout(flow);
}

/* What is to be done for the entry now. */
static __always_inline void decide(struct afpa_flow *flow, struct afpa_rtx_timer *timer, struct retransmission *r)
{
	__u64 coarse = bpf_ktime_get_coarse_ns();
	__u32 now = rtx_clock(coarse);
	bool queues = false;

	r->wait = RTX_OVER;
	bpf_spin_lock(&flow->lock);
	if (counts(flow, timer)) {
		r->wait = rtx_wait(flow, now);
		r->due = r->wait == 0 && flow->retransmits < AFPA_RTX_MAX;
		r->given_up = r->wait == 0 && !r->due;
		queues = r->wait >= RTX_QUEUED && flow->retransmits == 0;
		if (r->due)
			take_retransmission(flow, r, now, coarse / MILLISECOND_NS);
		else if (r->wait <= 0)
			flow->rtx_stamp = 0;
		else if (queues)
			flow->rtx_stamp = now;
	}
	bpf_spin_unlock(&flow->lock);
	if (!queues)
		return;
	timer->stamp = now;
	rtx_queue(timer);
	r->wait = RTX_OVER;
}

/* The packet becomes the answer. False: its bytes are gone, or the packet is spoilt. */
static __always_inline bool build_retransmission(struct __sk_buff *skb, struct work *work, const struct afpa_rtx_timer *timer,
					     struct retransmission *r)
{
	struct afpa_slot *slot = bpf_map_lookup_elem(&slots, &r->slot);
	struct afpa_date *date = date_entry(r->date);
	struct segment s = {};
	bool built;

	if (!slot || slot->version != r->version || date->second != r->date ||
	    (r->kind == AFPA_KIND_WHOLE && slot->pages[0])) /* the flight has landed, and its client says so soon */
		return false;
	segment_of(&s, &timer->flow, &work->sending);
	s.seq = r->from;
	build_headers(work, &s, timer->ethernet);
	r->out.flags = TCP_ACK | TCP_PSH;
	if (r->pieces)
		built = rebuild_answer(skb, work, &s, slot, r->kind, &r->out, date, false);
	else
		built = build_answer(skb, work, &s, slot, r->kind, &r->out, date, false);
	/* Were these the bytes of this version still, when they were copied? */
	return built && *(volatile __u64 *)&slot->version == r->version;
}

SEC("tcx/ingress")
int afpa_retransmit_answer(struct __sk_buff *skb)
{
	struct retransmission r = {};
	struct afpa_rtx_timer timer;
	struct afpa_flow *flow;
	struct work *work;
	__u32 zero = 0;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &timer, sizeof(timer)))
		return 0;
	flow = bpf_map_lookup_elem(&flows, &timer.flow);
	work = bpf_map_lookup_elem(&rtx_work, &zero);
	if (!flow || !work)
		return 0;
	decide(flow, &timer, &r);
	work->sending.place = place_of(timer.interface);
	work->sending.ipv6 = is_ipv6(&timer.flow);
	work->sending.timestamps = !!(flow->flags & AFPA_FLOW_TIMESTAMPS);
	if (r.due && build_retransmission(skb, work, &timer, &r)) {
		bpf_clone_redirect(skb, timer.interface, 0);
		count_at(work->sending.place, AFPA_RTX_RETRANSMITTED);
	} else if (r.due || r.given_up) {
		flow->rtx_stamp = 0;
		count_at(work->sending.place, AFPA_RTX_GIVEN_UP);
		return 0;
	}
	return r.wait > 0 ? r.wait : 0;
}
