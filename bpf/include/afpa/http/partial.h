/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The beginning of a request whose rest is in the client's next segment.
 */
#ifndef AFPA_HTTP_PARTIAL_H
#define AFPA_HTTP_PARTIAL_H

#include <afpa/conn/flow.h>

/* The part of this segment's request that earlier segments brought, to `work->head`. Its length, or 0. */
__noinline __u32 afpa_recall_part(struct work *work, const struct segment *s)
{
	struct afpa_partial *part;
	struct afpa_flow_key key; /* as in `afpa_flow_remove` */
	__u32 length;

	if (!work || !s)
		return 0;
	key = s->key;
	part = bpf_map_lookup_elem(&partials, &key);
	if (!part || part->next != s->seq)
		return 0;
	length = part->length;
	for (__u32 i = 0; i < AFPA_HEAD_MAX; i += 8) {
		if (i >= length)
			break;
		*(__u64 *)(work->head + i) = load8(part->bytes + i);
	}
	/* The entry may have become another connection's while it was copied: the table drops its oldest ones (P4). */
	load_fence();
	if (bpf_map_lookup_elem(&partials, &key) != part || *(volatile __u32 *)&part->next != s->seq)
		return 0;
	return length;
}

/* Keep the `length` bytes at `work->head` until the rest of their request comes. */
static __always_inline bool keep_part(struct work *work, const struct segment *s, __u32 length)
{
	struct work *own;
	__u32 zero = 0;

	if (length >= AFPA_HEAD_MAX)
		return false;
	own = bpf_map_lookup_elem(&ingress_work, &zero); /* `work` itself, but Linux 6.1 does not know */
	if (!own)
		return false;
	own->key = s->key;
	own->partial_length = length;
	own->partial_next = s->seq + s->length;
	return bpf_map_update_elem(&partials, &own->key, &own->partial_length, BPF_ANY) == 0;
}

#endif
