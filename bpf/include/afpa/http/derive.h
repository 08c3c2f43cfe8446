/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Derive request: its bytes out of segments, where one has more or less than one request, too. They are read by
 * http/request.h.
 */
#ifndef AFPA_HTTP_DERIVE_H
#define AFPA_HTTP_DERIVE_H

#include <afpa/conn/flow.h>
#include <afpa/http/notes.h>

/* One request more of those in the segment. */
__noinline int afpa_take_request(struct __sk_buff *skb, struct work *work)
{
	struct passing *p;
	__u32 there;

	if (!work)
		return TAKEN_UNSURE;
	p = &work->passing;
	there = p->length - p->at;
	if (there > AFPA_HEAD_MAX)
		there = AFPA_HEAD_MAX;
	if (p->at && load_bytes(skb, work, p->payload_at + p->at - p->have, there, 0) == 0)
		return TAKEN_UNSURE;
	if (*(volatile __u32 *)&shared.notes_requests)
		note_if_unsafe(work);
	return take_request(work, there);
}

/*
 * More or less than one plain request: what of it is certain enough for user mode to be waited for? `have`
 * bytes of earlier segments are in front of the head. The result stands in `work->passing`, too.
 */
__noinline int afpa_derive_others(struct __sk_buff *skb, struct work *work, const struct segment *s, __u32 have)
{
	int taken = TAKEN_ONE;
	struct passing *p;
	__u32 state;

	if (!work || !s)
		return REQUEST_UNSURE;
	p = &work->passing;
	state = checksum_state(skb);
	/* The kernel would drop a damaged segment, which we read wrongly. */
	if (state != CHECKSUM_PARTIAL && state != CHECKSUM_UNNECESSARY &&
	    (!s->plain_ip || !s->plain_tcp || s->length > AFPA_HEAD_MAX || !save_headers(skb, work, s) ||
	     !checksum_holds(work, s, state, have)))
		return REQUEST_UNSURE;
	p->payload_at = s->payload_at;
	p->have = have;
	p->length = have + s->length;
	p->requests = p->head_bits = 0;
	p->at = have ? 0 : empty_line(work, p->length);
	for (int i = 0; i < PIPELINED_MAX && taken == TAKEN_ONE; i++)
		taken = afpa_take_request(skb, work);
	if (taken == TAKEN_LAST)
		return REQUEST_ONE;
	if (taken != TAKEN_PART || work->head[0] < 'A' || work->head[0] > 'Z')
		return REQUEST_UNSURE;
	return keep_part(work, s, p->length - p->at) ? REQUEST_PART : REQUEST_UNSURE;
}

/* Derive request. `turn` gets its properties, and why it may not be answered. */
static __always_inline void derive(struct __sk_buff *skb, struct work *work, const struct segment *s,
				   const struct afpa_listener *listener, bool goes_on, struct turn *turn)
{
	__u32 have = goes_on ? afpa_recall_part(work, s) : 0, there;

	turn->reason = AFPA_PASS_HEAD_LENGTH;
	turn->requests = 1;
	turn->length = s->length;
	if (goes_on && have == 0)
		return;
	there = load_bytes(skb, work, s->payload_at, s->length, have);
	if (there == 0)
		return;
	if (there == have + s->length && there <= AFPA_HEAD_MAX) {
		turn->certainty = derive_request(work, there, listener, &turn->reason);
		turn->head_bits = work->request.head;
		turn->closes = turn->certainty != REQUEST_UNSURE && work->request.block.flags & AFPA_BLOCK_CLOSE;
	}
	if (turn->certainty == REQUEST_UNSURE) {
		work->passing.listener = listener->id;
		work->passing.any_host_site = listener->any_host_site;
		turn->certainty = afpa_derive_others(skb, work, s, have);
		turn->requests = work->passing.requests;
		turn->head_bits = work->passing.head_bits;
		if (turn->certainty == REQUEST_ONE)
			turn->length = work->passing.at - have;
	} else if (have) {
		turn->certainty = REQUEST_ONE; /* its beginning is with user mode */
	}
	if (have && turn->certainty != REQUEST_PART)
		bpf_map_delete_elem(&partials, &s->key);
	if (turn->certainty == REQUEST_PART || (have && turn->certainty == REQUEST_ONE))
		turn->reason = AFPA_PASS_IN_PARTS;
}

#endif
