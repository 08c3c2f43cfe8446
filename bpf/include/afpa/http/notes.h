/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Unsafe requests (RFC 9110, 9.2.1) to an attached server whose answers are kept: no answer for their target is given here
 * until the server was asked again (RFC 9111, 4.4); and requests for targets without a kept answer, which are reported.
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
#include <afpa/conn/cookie.h>
#include <afpa/conn/socket.h>
#include <afpa/http/partial.h>
#include <afpa/http/unsafe.h>

#define UNSAFE_HOLD_NS (10 * SECOND_NS) /* for a response that will not be known when it comes */
#define UNSAFE_TRIES 4

/* No answer that was asked for before `when` is given at the place from now on. */
static __always_inline void note_unsafe(__u32 unsafe, __u64 when)
{
	__u32 place = unsafe - 1;
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
static __always_inline void note_target(struct work *work, __u32 unsafe)
{
	if (unsafe == TARGET_NONE || unsafe == TARGET_CUT)
		return;
	if (work->unsafe_at && work->unsafe_at != unsafe)
		note_unsafe(work->unsafe_at, bpf_ktime_get_ns() + UNSAFE_HOLD_NS);
	work->unsafe_at = unsafe;
	note_unsafe(unsafe, bpf_ktime_get_ns());
}

/* A request that is read behind others. */
static __always_inline void note_if_unsafe(struct work *work)
{
	note_target(work, afpa_unsafe_target(work));
}

/*
 * Of a connection without a flow: does the kernel's TCP know it, or will it now? A request that a stranger makes up reaches no server, and
 * must not end answers (P1).
 */
static __always_inline bool is_known_to_kernel(struct __sk_buff *skb, const struct segment *s)
{
	struct bpf_sock *found = find_socket(skb, s);
	struct tcp_request_sock *request;
	bool known = true;

	if (!found)
		return false;
	if (found->state == TCP_LISTEN) {
		known = is_cookie_of_kernel(skb, s, found) || (cookie_kind(s, bpf_ktime_get_coarse_ns()) & COOKIE_KIND) >= COOKIE_ALONE;
	} else if (found->state == TCP_NEW_SYN_RECV) {
		request = bpf_skc_to_tcp_request_sock(found);
		known = request && request->snt_isn + 1 == s->ack;
	}
	bpf_sk_release(found);
	return known;
}

/*
 * Note the unsafe request at the beginning of a client's segment, behind the part that the segment before ended with, where
 * requests are not read one by one. The note of an earlier segment is forgotten. Returns the target.
 */
__noinline __u32 afpa_note_segment(struct __sk_buff *skb, const struct segment *s)
{
	__u32 zero = 0, have = 0, there, unsafe;
	struct afpa_flow *flow;
	struct work *work;

	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work || !s)
		return TARGET_NONE;
	work->unsafe_at = work->begins_safe = 0;
	work->key = s->key;
	flow = bpf_map_lookup_elem(&flows, &work->key);
	if (!flow || flow_is_final(flow))
		have = afpa_recall_part(work, s);
	if (have > UNSAFE_READ || (have && afpa_unsafe_target(work) != TARGET_CUT))
		have = 0; /* it was kept for another reason, and this begins behind it */
	work->begins_safe = false;
	there = load_bytes(skb, work, s->payload_at, s->length < UNSAFE_READ ? s->length : UNSAFE_READ, have);
	unsafe = there ? afpa_unsafe_target(work) : TARGET_NONE;
	if (unsafe == TARGET_CUT && there >= UNSAFE_READ)
		unsafe = TARGET_ANY; /* longer than any that is pinned, but nobody knows what it is in short */
	if (unsafe == TARGET_NONE || (!flow && !is_known_to_kernel(skb, s)))
		return TARGET_NONE;
	if (unsafe == TARGET_CUT && (!flow || flow_is_final(flow)))
		keep_part(work, s, there);
	note_target(work, unsafe);
	return unsafe;
}

/* Has every response to what the connection was asked left? */
static __always_inline bool is_quiet(const struct afpa_flow *flow)
{
	return flow->owner == AFPA_OWNER_NONE || (flow->owner == AFPA_OWNER_USER && flow->responses_pending == 0);
}

/* The segment's note becomes the connection's, before the segment goes on: the response will be known by it. */
static __always_inline void note_on_flow(struct afpa_flow *flow)
{
	struct work *work;
	__u32 zero = 0, at;

	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work || flow->unsafe_at == work->unsafe_at || (!work->unsafe_at && !work->begins_safe))
		return;
	at = work->unsafe_at;
	if (flow->unsafe_at && !is_quiet(flow)) {
		if (flow->owner == AFPA_OWNER_USER)
			at = at ? TARGET_ANY : flow->unsafe_at; /* its content looks like a request, or one is behind it */
		else
			note_unsafe(flow->unsafe_at, bpf_ktime_get_ns() + UNSAFE_HOLD_NS);
	}
	flow->unsafe_at = at;
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
__noinline int afpa_report_miss(struct work *work, const struct segment *s)
{
	struct afpa_miss *miss;
	__u32 target;

	if (!work || !s || !work->request.block.site || work->request.path_length > AFPA_PATH_MAX)
		return 0;
	miss = bpf_ringbuf_reserve(&misses, sizeof(*miss), 0);
	if (!miss)
		return 0;
	miss->site = work->request.block.site;
	miss->path_length = work->request.path_length;
	__builtin_memcpy(miss->client, s->key.client, sizeof(miss->client));
	target = work->request.head ? 5 : 4;
	for (__u32 i = 0; i < AFPA_PATH_MAX; i += 8)
		*(__u64 *)(miss->path + i) = load8(work->head + target + i);
	bpf_ringbuf_submit(miss, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
