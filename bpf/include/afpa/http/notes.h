/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Unsafe requests (RFC 9110, 9.2.1) to an attached server whose answers are kept: no answer for their target is given here
 * until the server was asked again (RFC 9111, 4.4); and requests for what is not kept yet, which are reported.
 *
 *  V5 An answer of an attached server is given only if the server was asked for it after the last unsafe request for its
 *     target, and after the last segment of the response to that. Both are noted before they go on: the request before the
 *     server gets it, the response before the client does.
 *
 * A note is a time, at a place that the target's hash names. Targets that share a place share the note: it can only be too
 * late for one of them, which costs a question. A request is found where a segment begins with it, on every connection; and
 * wherever requests are read one by one (http/derive.h), behind others and in pieces as well. Responses are known by their
 * connection. Where that cannot be, the note is of a moment that is yet to come.
 */
#ifndef AFPA_HTTP_NOTES_H
#define AFPA_HTTP_NOTES_H

#include <afpa/clock.h>
#include <afpa/conn/flow.h>
#include <afpa/http/unsafe.h>

#define UNSAFE_HOLD_NS (10 * SECOND_NS) /* for a response that will not be known when it comes */
#define UNSAFE_TRIES 4

/* No answer that was asked for before `when` is given at the place from now on. */
static __always_inline void note_unsafe(__u32 unsafe, __u64 when)
{
	__u32 place = (unsafe - 1) & (AFPA_UNSAFE_MARKS - 1);
	__u64 *mark = bpf_map_lookup_elem(&unsafe_marks, &place), seen;

	if (!mark)
		return;
	for (int i = 0; i < UNSAFE_TRIES; i++) {
		seen = *(volatile __u64 *)mark;
		if (seen >= when || __sync_val_compare_and_swap(mark, seen, when) == seen)
			return;
	}
	*(volatile __u64 *)mark = when + UNSAFE_HOLD_NS; /* beyond what others note at this moment */
}

/* The request that begins at `work->head`: is it an unsafe one? Then it is noted, and `work->unsafe_at` tells where. */
static __always_inline void note_if_unsafe(struct work *work)
{
	__u32 unsafe = afpa_unsafe_target(work);

	if (unsafe == 0)
		return;
	if (work->unsafe_at && work->unsafe_at != unsafe)
		note_unsafe(work->unsafe_at, bpf_ktime_get_ns() + UNSAFE_HOLD_NS);
	work->unsafe_at = unsafe;
	note_unsafe(unsafe, bpf_ktime_get_ns());
}

/* The same of what a client's segment begins with. Whatever was known of an earlier segment is forgotten. */
__noinline int afpa_note_segment(struct __sk_buff *skb, const struct segment *s)
{
	struct work *work;
	__u32 zero = 0;

	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work || !s)
		return 0;
	work->unsafe_at = 0;
	work->begins_safe = false;
	if (load_bytes(skb, work, s->payload_at, s->length < UNSAFE_READ ? s->length : UNSAFE_READ, 0))
		note_if_unsafe(work);
	return 0;
}

/* Has every response to what the connection was asked left? */
static __always_inline bool is_quiet(const struct afpa_flow *flow)
{
	return flow->owner == AFPA_OWNER_NONE || (flow->owner == AFPA_OWNER_USER && flow->responses_pending == 0);
}

/* What the segment brought is the connection's, before the segment goes on: its response will be known by it. */
static __always_inline void note_on_flow(struct afpa_flow *flow)
{
	struct work *work;
	__u32 zero = 0;

	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work || flow->unsafe_at == work->unsafe_at || (!work->unsafe_at && !work->begins_safe))
		return;
	if (flow->unsafe_at && !is_quiet(flow))
		note_unsafe(flow->unsafe_at, bpf_ktime_get_ns() + UNSAFE_HOLD_NS);
	flow->unsafe_at = work->unsafe_at;
}

/* The segment goes on, and nothing is known of its connection. */
static __always_inline void note_without_flow(void)
{
	struct work *work;
	__u32 zero = 0;

	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (work && work->unsafe_at)
		note_unsafe(work->unsafe_at, bpf_ktime_get_ns() + UNSAFE_HOLD_NS);
}

/* The request of the segment in hand is for a target that is not pinned. */
__noinline int afpa_report_miss(struct work *work)
{
	struct afpa_miss *miss;
	__u32 target;

	if (!work || !work->request.block.site || work->request.path_length > AFPA_PATH_MAX)
		return 0;
	miss = bpf_ringbuf_reserve(&misses, sizeof(*miss), 0);
	if (!miss)
		return 0;
	miss->site = work->request.block.site;
	miss->path_length = work->request.path_length;
	target = work->request.head ? 5 : 4;
	for (__u32 i = 0; i < AFPA_PATH_MAX; i += 8)
		*(__u64 *)(miss->path + i) = load8(work->head + target + i);
	bpf_ringbuf_submit(miss, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
