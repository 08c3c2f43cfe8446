/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Self-check: one in many answers is copied as it leaves, with the request that it answers. User mode asks the server
 * the same, and compares (crates/afpa-self-check).
 */
#ifndef AFPA_TX_SAMPLE_H
#define AFPA_TX_SAMPLE_H

#include <afpa/conn/handover.h>

/*
 * Is this answer sampled? A secret mix of where the answer begins decides, which costs a multiplication; a random
 * number or a count would cost a hit more.
 */
static __always_inline bool is_sampled(const struct commitment *c)
{
	__u32 every = shared.sample_every;

	return every && !((((c->seq ^ c->ack) + shared.hash_seed) * AFPA_HASH_PRIME >> 40) & (every - 1));
}

/* The request, which stands in `work->head`. */
static __always_inline void copy_request(struct afpa_sample *sample, const struct work *work, __u32 length)
{
	for (__u32 i = 0; i < AFPA_HEAD_MAX; i += 8) {
		if (i >= length)
			break;
		*(__u64 *)(sample->request + i) = load8(work->head + i);
	}
}

/* The packet is the answer, and about to leave. */
static __noinline int sample_answer(struct __sk_buff *skb, struct work *work, const struct segment *s,
				    const struct commitment *c, const struct afpa_slot *slot)
{
	struct afpa_sample *sample;
	__u32 length = c->length;

	if (s->length > AFPA_HEAD_MAX || !is_within(&length, 1, AFPA_ANSWER_MAX))
		return 0;
	sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);
	if (!sample)
		return 0;
	sample->flow = s->key;
	sample->site = slot->site;
	sample->codings = slot->codings;
	sample->version = c->version;
	sample->date = c->second;
	sample->kind = c->kind;
	sample->request_length = s->length;
	sample->answer_length = length;
	copy_request(sample, work, s->length);
	if (bpf_skb_load_bytes(skb, plain_headers(s), sample->answer, length))
		bpf_ringbuf_discard(sample, BPF_RB_NO_WAKEUP);
	else
		bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
