/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Watch: answers of one segment that got lost come back in time (W1 to W4 in watch.h). Run by user mode.
 *
 * `afpa_watch` looks at the entries of the queue that are due, some at a time, and names those of connections that
 * lack their answer and will be due before they could wait in the queue again; its input is ignored. It returns how
 * many it named, and in the higher bits an `enum queue`. `afpa_repeat` is run for each of these in time: its input is
 * an Ethernet header and the entry, and becomes the answer. It returns when it is to be run again, 0: no more.
 */
#include <afpa/rtx/timers.h>

#define WATCHES_AT_ONCE 256

enum queue {
	QUEUE_EMPTY,
	QUEUE_WAITS,
	QUEUE_GOES_ON, /* more may be due */
};

static __always_inline bool counts(const struct afpa_flow *flow, const struct afpa_watch *watch)
{
	return (flow->watched & ~WATCH_AGAIN) == (watch->stamp & ~WATCH_AGAIN);
}

/* An entry that is due. True: it is to be named, `due` says when it is to be looked at again. */
static __always_inline bool look_at_watch(struct afpa_watch *watch, __u32 now)
{
	struct afpa_flow *flow = bpf_map_lookup_elem(&flows, &watch->flow);
	__s32 wait = WATCH_OVER;

	if (!flow)
		return false;
	bpf_spin_lock(&flow->lock);
	if (flow->watched == watch->stamp) {
		wait = watch_wait(flow, now);
		flow->watched = wait == WATCH_OVER ? 0 : now;
	}
	bpf_spin_unlock(&flow->lock);
	if (wait == WATCH_OVER)
		return false;
	watch->stamp = now;
	watch->due = now + wait;
	if (wait < WATCH_SLICE)
		return true;
	watch_enter(watch);
	return false;
}

SEC("tcx/ingress")
int afpa_watch(struct __sk_buff *skb)
{
	__u32 now = watch_clock(bpf_ktime_get_coarse_ns()), named = 0, turn;
	enum queue queue = QUEUE_GOES_ON;

	bpf_for(turn, 0, WATCHES_AT_ONCE) {
		struct afpa_watch watch, *place;
		__u32 at = named;

		if (bpf_map_peek_elem(&watches, &watch)) {
			queue = QUEUE_EMPTY;
			break;
		}
		if ((__s32)(watch.due - now) > 0) {
			queue = QUEUE_WAITS;
			break;
		}
		place = bpf_map_lookup_elem(&overdues, &at);
		if (!place)
			break;
		bpf_map_pop_elem(&watches, &watch); /* nobody else does */
		if (look_at_watch(&watch, now)) {
			*place = watch;
			named++;
		}
	}
	return queue << 8 | (named & 255);
}

/* What leaves again, as it was under the lock. */
struct repetition {
	struct outgoing out;
	__u64 version;
	__u32 slot, date;
	__u32 from;      /* wire: where the request began */
	__s32 wait;      /* until the next look, or WATCH_OVER */
	__u8 kind;
	__u8 due;        /* it leaves now */
	__u8 given_up;
	__u8 pieces;     /* it may be too long for the path */
	__u8 tried;      /* it left again before */
};

/* The path is taken for crowded: less at once, and after a second loss in a row one segment, as in flights. */
static __always_inline void watch_shrink(struct afpa_flow *flow)
{
	struct path *path = (struct path *)flow->path;

	if (flow->tries == 0)
		path_reduce_cwnd(path);
	else
		path->cwnd = 1;
}

/* The answer leaves again: take its numbers. Called with the lock held. */
static __always_inline void take_repetition(struct afpa_flow *flow, struct repetition *r, __u32 now,
					    __u64 milliseconds)
{
	__u32 clock = (__u32)milliseconds + flow->ts_offset;

	if (before(flow->ts_sent, clock))
		flow->ts_sent = clock;
	watch_shrink(flow);
	r->pieces = flow->tries > 0 || flow->answer_span > flow->mss;
	flow->tries++;
	watch_repeated(flow, now);
	flow->watched ^= flow->tries == 1 ? WATCH_AGAIN : 0;
	r->out.seq = flow->answer_at;
	r->out.ack = flow->answer_from + flow->answer_length;
	r->out.ts_value = flow->ts_sent;
	r->out.ts_echo = flow->ts_seen;
	r->out.window = flow->window;
	r->version = flow->answer_version;
	r->slot = flow->answer_slot;
	r->date = flow->answer_date;
	r->kind = flow->answer_kind;
	r->from = flow->answer_from;
	r->wait = watch_patience(flow);
}

/* What is to be done for the entry now. */
static __always_inline void decide(struct afpa_flow *flow, struct afpa_watch *watch, struct repetition *r)
{
	__u64 coarse = bpf_ktime_get_coarse_ns();
	__u32 now = watch_clock(coarse);
	bool queues = false;

	r->wait = WATCH_OVER;
	bpf_spin_lock(&flow->lock);
	if (counts(flow, watch)) {
		r->wait = watch_wait(flow, now);
		r->due = r->wait == 0 && flow->tries < WATCH_TRIES;
		r->given_up = r->wait == 0 && !r->due;
		queues = r->wait >= WATCH_SLICE && flow->tries == 0;
		if (r->due)
			take_repetition(flow, r, now, coarse / MILLISECOND_NS);
		else if (r->wait <= 0)
			flow->watched = 0;
		else if (queues)
			flow->watched = now;
	}
	bpf_spin_unlock(&flow->lock);
	if (!queues)
		return;
	watch->stamp = now;
	watch_enter(watch);
	r->wait = WATCH_OVER;
}

/* The packet becomes the answer. False: its bytes are gone, or the packet is spoilt. */
static __always_inline bool build_repetition(struct __sk_buff *skb, struct work *work, const struct afpa_watch *watch,
					     struct repetition *r)
{
	struct afpa_slot *slot = bpf_map_lookup_elem(&slots, &r->slot);
	struct afpa_date *date = date_entry(r->date);
	struct segment s = {};
	bool built;

	if (!slot || slot->version != r->version || date->second != r->date ||
	    (r->kind == AFPA_KIND_WHOLE && slot->pages[0])) /* the flight has landed, and its client says so soon */
		return false;
	segment_of(&s, &watch->flow, &work->sending);
	s.seq = r->from;
	lay_headers(work, &s, watch->ethernet);
	r->out.flags = TCP_ACK | TCP_PSH;
	if (r->pieces)
		built = send_again(skb, work, &s, slot, r->kind, &r->out, date, false);
	else
		built = send_answer(skb, work, &s, slot, r->kind, &r->out, date, false);
	/* Were these the bytes of this version still, when they were copied? */
	return built && *(volatile __u64 *)&slot->version == r->version;
}

SEC("tcx/ingress")
int afpa_repeat(struct __sk_buff *skb)
{
	struct repetition r = {};
	struct afpa_watch watch;
	struct afpa_flow *flow;
	struct work *work;
	__u32 zero = 0;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &watch, sizeof(watch)))
		return 0;
	flow = bpf_map_lookup_elem(&flows, &watch.flow);
	work = bpf_map_lookup_elem(&tend_work, &zero);
	if (!flow || !work)
		return 0;
	decide(flow, &watch, &r);
	work->sending.place = place_of(watch.interface);
	work->sending.ipv6 = is_ipv6(&watch.flow);
	work->sending.timestamps = !!(flow->flags & AFPA_FLOW_TIMESTAMPS);
	if (r.due && build_repetition(skb, work, &watch, &r)) {
		bpf_clone_redirect(skb, watch.interface, 0);
		count_at(work->sending.place, AFPA_WATCH_SENT_AGAIN);
	} else if (r.due || r.given_up) {
		flow->watched = 0;
		count_at(work->sending.place, AFPA_WATCH_LEFT);
		return 0;
	}
	return r.wait > 0 ? r.wait : 0;
}
