/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rtx timers: retransmission of answers that are not acknowledged (rtx/timers.h). Run by user mode, never attached.
 *
 * `afpa_rtx_due` names timers that are due in the table `rtx_due`. The first byte of its input says of which kinds
 * (`enum afpa_rtx_kinds`), the rest is ignored. It returns how many it named, and in the higher bits an
 * `enum afpa_rtx_state`. `afpa_rtx_timer` services one timer: its input is an Ethernet header and the entry, and
 * becomes the packet that is sent. It returns when the timer is to be serviced next, in units of `rtx_clock`; 0: no more, or
 * `afpa_rtx_due` will name it.
 */
#include <afpa/rtx/timers.h>
#include <afpa/rtx/transfer.h>
#include <afpa/tx/replay.h>

#define RTX_AT_ONCE 256 /* entries of the FIFO that one run takes out */

/* --- which timers are due --- */

struct due_search {
	__u64 now;       /* microseconds */
	__u32 transfers; /* all that are under way */
	__u32 named;
};

static long name_transfer(const void *map, const void *key, struct afpa_transfer *transfer,
			  struct due_search *search)
{
	struct sender *f = sender_of(transfer);
	__u32 at = search->named;
	struct afpa_rtx_timer *timer;

	search->transfers++;
	if (!transfer->send_pending && (f->timer == TIMER_NONE || search->now < f->deadline))
		return 0;
	if (at >= AFPA_RTX_DUE / 2)
		return 0; /* the next run names it */
	timer = bpf_map_lookup_elem(&rtx_due, &at);
	if (!timer)
		return 0;
	timer->flow = transfer->flow;
	timer->interface = transfer->interface;
	__builtin_memcpy(timer->ethernet, transfer->ethernet, sizeof(timer->ethernet));
	timer->kind = AFPA_RTX_TRANSFER;
	search->named++;
	return 0;
}

static __always_inline __u32 name_transfers(struct due_search *search)
{
	bpf_for_each_map_elem(&transfers, name_transfer, search, 0);
	return (search->transfers ? AFPA_RTX_TRANSFERS_LEFT : 0) |
	       (search->named >= AFPA_RTX_DUE / 2 ? AFPA_RTX_TRANSFERS_MORE : 0);
}

/*
 * An entry has waited in the FIFO. Is its answer to be retransmitted before it could wait there again? Then it is
 * named, and `due` says when. Else it is queued again, or dropped.
 */
static __always_inline bool expires_soon(struct afpa_rtx_timer *timer, __u32 now)
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

/* Where `name_answers` stands. */
struct fifo_search {
	__u32 now, named;
	__u32 state; /* enum afpa_rtx_state */
};

/* The first entry of the FIFO; stops (1) when it is not due, or there is none. */
static long name_answer(__u32 index, void *context)
{
	struct fifo_search *search = context;
	struct afpa_rtx_timer timer, *place;
	__u32 at = search->named;

	if (bpf_map_peek_elem(&rtx_timers, &timer)) {
		search->state = 0;
		return 1;
	}
	if ((__s32)(timer.due - search->now) > 0) {
		search->state = AFPA_RTX_ANSWERS_LEFT;
		return 1;
	}
	place = bpf_map_lookup_elem(&rtx_due, &at);
	if (!place)
		return 1;
	bpf_map_pop_elem(&rtx_timers, &timer); /* nobody else takes entries out */
	if (expires_soon(&timer, search->now)) {
		*place = timer;
		search->named++;
	}
	return 0;
}

static __always_inline __u32 name_answers(__u32 *named)
{
	struct fifo_search search = {
		.now = rtx_clock(bpf_ktime_get_coarse_ns()), .named = *named,
		.state = AFPA_RTX_ANSWERS_LEFT | AFPA_RTX_ANSWERS_MORE,
	};

	bpf_loop(RTX_AT_ONCE, name_answer, &search, 0);
	*named = search.named;
	return search.state;
}

SEC("tcx/ingress")
int afpa_rtx_due(struct __sk_buff *skb)
{
	struct due_search search = { .now = microseconds() };
	__u32 state = 0, named;
	__u8 kinds = 0;

	if (bpf_skb_load_bytes(skb, 0, &kinds, sizeof(kinds)))
		return 0;
	if (kinds & AFPA_RTX_TRANSFERS)
		state |= name_transfers(&search);
	named = search.named;
	if (kinds & AFPA_RTX_ANSWERS)
		state |= name_answers(&named);
	return state << 8 | (named & 255);
}

/* --- a transfer --- */

/* Has its connection gone, or another answer of the connection taken its place? */
static __always_inline bool is_orphan(const struct afpa_flow *flow, const struct afpa_transfer *transfer)
{
	return !flow || !(*(volatile __u8 *)&flow->flags & AFPA_FLOW_TRANSFER) || flow->answer_seq != transfer->at;
}

static __always_inline void on_timer(struct __sk_buff *skb, struct work *work, struct afpa_flow *flow,
				     struct afpa_transfer *transfer, const struct afpa_flow_key *key)
{
	int progress, built = BUILT_GONE;
	bool reset, known;
	__u32 interface;

	work->sending.now = microseconds();
	start_sending(&work->sending, flow, transfer);
	work->sending.partial = false;
	progress = afpa_on_timer(transfer, work->sending.now);
	bpf_spin_lock(&flow->lock);
	number(flow, transfer, &work->sending);
	known = way_of_transfer(flow, transfer);
	bpf_spin_unlock(&flow->lock);
	if (!known && progress != PROGRESS_GIVEN_UP) { /* the client's next segment asks for it */
		transfer->send_pending = 1;
		transfer_unlock(transfer);
		return;
	}
	interface = transfer->interface;
	if (progress != PROGRESS_GIVEN_UP)
		built = send_ready(skb, work, transfer);
	if (built != BUILT_GONE) {
		if (built == BUILT)
			bpf_clone_redirect(skb, interface, 0);
		transfer_unlock(transfer);
		return;
	}
	count_at(transfer->place, progress == PROGRESS_GIVEN_UP ? AFPA_TRANSFER_GIVEN_UP : AFPA_TRANSFER_LOST);
	reset = end_connection(skb, work, transfer);
	remove_both(key);
	if (!reset)
		return;
	skb->tc_index = interface == LOOPBACK_IFINDEX ? MARK_ROUTE_ME : MARK_UP;
	bpf_clone_redirect(skb, interface, interface == LOOPBACK_IFINDEX ? 0 : BPF_F_INGRESS);
}

static __always_inline int service_transfer(struct __sk_buff *skb, struct work *work,
					    const struct afpa_flow_key *key)
{
	struct afpa_transfer *transfer = bpf_map_lookup_elem(&transfers, key);
	struct afpa_flow *flow = bpf_map_lookup_elem(&flows, key);

	if (!transfer || !transfer_lock(transfer, key))
		return 0;
	count_at(transfer->place, AFPA_TRANSFER_ON_TIMER);
	if (is_orphan(flow, transfer)) {
		bpf_map_delete_elem(&transfers, key);
		count(AFPA_TRANSFER_ENDED);
	} else {
		on_timer(skb, work, flow, transfer, key);
	}
	return 0;
}

/* --- an answer of one segment --- */

/* The work to do, as it was decided under the lock. */
struct retransmission {
	struct outgoing out;
	__u64 version;
	__u32 slot, date;
	__u32 request_seq;
	__s32 wait;      /* until the timer is serviced next, or RTX_OVER */
	__u8 kind;
	__u8 due;        /* the answer leaves now */
	__u8 given_up;
	__u8 may_be_long; /* the path may take less than the answer by now */
};

/* Does the entry count, whether its answer was retransmitted before or not? (W1) */
static __always_inline bool counts(const struct afpa_flow *flow, const struct afpa_rtx_timer *timer)
{
	return (flow->rtx_stamp & ~RTX_RETRANSMITTED) == (timer->stamp & ~RTX_RETRANSMITTED);
}

/* The path is congested: the window is reduced, and after a second loss in a row to one segment, as in transfers. */
static __always_inline void reduce_window(struct afpa_flow *flow)
{
	struct path *path = (struct path *)flow->path;

	if (flow->retransmits == 0)
		path_reduce_cwnd(path);
	else
		path->cwnd = 1;
}

/* The answer leaves again: its numbers, and the next time-out. Called with the lock held. */
static __always_inline void take_retransmission(struct afpa_flow *flow, struct retransmission *r, __u32 now,
						__u64 milliseconds)
{
	__u32 clock = (__u32)milliseconds + flow->ts_offset;

	if (before(flow->ts_sent, clock))
		flow->ts_sent = clock;
	reduce_window(flow);
	r->may_be_long = flow->retransmits > 0 || flow->answer_size > flow->mss;
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
	r->request_seq = flow->request_seq;
	r->wait = rtx_timeout(flow);
	r->out.flags = TCP_ACK | TCP_PSH | (flow->socketless == AFPA_SOCKETLESS_FIN_WAIT ? TCP_FIN : 0);
}

/* Decide what the timer does now, and the way that its packet would take (`work->way`). */
static __always_inline void decide(struct work *work, struct afpa_flow *flow, const struct afpa_rtx_timer *timer,
				   struct retransmission *r)
{
	struct afpa_rtx_timer again;
	__u64 coarse = bpf_ktime_get_coarse_ns();
	__u32 now = rtx_clock(coarse);
	bool queued = false;

	r->wait = RTX_OVER;
	bpf_spin_lock(&flow->lock);
	if (counts(flow, timer)) {
		work->way = flow->way;
		r->wait = may_repeat(flow) ? rtx_wait(flow, now) : RTX_QUEUED;
		r->due = r->wait == 0 && flow->retransmits < AFPA_RTX_MAX;
		r->given_up = r->wait == 0 && !r->due;
		queued = r->wait >= RTX_QUEUED && flow->retransmits == 0;
		if (r->due)
			take_retransmission(flow, r, now, coarse / MILLISECOND_NS);
		else if (r->wait <= 0)
			flow->rtx_stamp = 0;
		else if (queued)
			flow->rtx_stamp = now;
	}
	bpf_spin_unlock(&flow->lock);
	if (!queued)
		return;
	again = *timer; /* as in `afpa_flow_remove` */
	again.stamp = now;
	rtx_queue(&again);
	r->wait = RTX_OVER;
}

/* The packet becomes the answer. False: its bytes are gone, or the packet is spoilt. */
static __always_inline bool build_retransmission(struct __sk_buff *skb, struct work *work,
						 const struct afpa_rtx_timer *timer, struct retransmission *r)
{
	struct afpa_slot *slot = slot_at(&r->slot);
	const struct afpa_date *date;
	struct segment s = {};

	if (!slot || slot_version(slot) != r->version ||
	    (r->kind == AFPA_KIND_WHOLE && slot->pages[0])) /* a transfer that is complete, as the client says soon */
		return false;
	date = date_or_age(work, slot, r->date);
	if (date->second != r->date)
		return false;
	work->edition.version = r->version;
	work->edition.date = r->date;
	segment_of(&s, &timer->flow, &work->sending);
	s.seq = r->request_seq;
	build_headers(work, &s, timer->ethernet);
	put_way_out(work->frame + FRAME_AT, &work->way);
	if (r->may_be_long)
		return rebuild_answer(skb, work, &s, slot, r->kind, &r->out, date, false);
	return build_answer(skb, work, &s, slot, r->kind, &r->out, date, false);
}

/* A function of its own, so that the verifier gives it a stack of its own. */
__noinline int afpa_service_answer(struct __sk_buff *skb, struct work *work, struct afpa_rtx_timer *timer)
{
	struct retransmission r = {};
	struct afpa_flow *flow;
	struct work *own;
	__u32 zero = 0;

	own = bpf_map_lookup_elem(&rtx_work, &zero); /* `work` itself, but Linux 6.1 does not know */
	if (!own || !work || !timer)
		return 0;
	own->key = timer->flow;
	flow = bpf_map_lookup_elem(&flows, &own->key);
	if (!flow)
		return 0;
	decide(work, flow, timer, &r);
	work->sending.place = place_of(timer->interface);
	work->sending.ipv6 = is_ipv6(&timer->flow);
	work->sending.timestamps = !!(flow->flags & AFPA_FLOW_TIMESTAMPS);
	if (r.due && build_retransmission(skb, work, timer, &r)) {
		bpf_clone_redirect(skb, work->way.interface, 0);
		count_at(work->sending.place, AFPA_RTX_RETRANSMITTED);
	} else if (r.due || r.given_up) {
		flow->rtx_stamp = 0;
		count_at(work->sending.place, AFPA_RTX_GIVEN_UP);
		return 0;
	}
	return r.wait > 0 ? r.wait : 0;
}

SEC("tcx/ingress")
int afpa_rtx_timer(struct __sk_buff *skb)
{
	struct afpa_rtx_timer timer __attribute__((aligned(8)));
	struct work *work;
	__u32 zero = 0;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &timer, sizeof(timer)))
		return 0;
	work = bpf_map_lookup_elem(&rtx_work, &zero);
	if (!work)
		return 0;
	skb->tc_index = MARK_ROUTE_ME;
	if (timer.kind == AFPA_RTX_TRANSFER)
		return service_transfer(skb, work, &timer.flow);
	return afpa_service_answer(skb, work, &timer);
}
