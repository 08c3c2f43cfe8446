/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bypass: segments that pass as they are, of connections that are not even looked up in `flows`.
 *
 * Each processor has a table of its own, addressed by a mix of the tuple and compared whole. An entry is believed
 * for as long as neither the pulse moves, which it does once a second, nor the epoch of its place.
 *
 * Two kinds of connections have entries: those without a sequence offset that user mode serves to their end, or that
 * were open before the programs came; and those in the middle of a long response, whose bare acknowledgements and
 * segments before its end pass. SYN, FIN and RST never bypass the rest.
 *
 *  B1 An entry is made of what is true after its epoch was read. Whoever makes that untrue moves the epoch
 *     afterwards (`afpa_bypass_invalidate`): the first answer on a connection, which gives it an offset; the end of a long
 *     response; and the server's SYN, with which another connection has the tuple. Both are full barriers.
 *  B2 On a connection that was left to user mode for good nothing is answered any more (R4), so it never gets a
 *     sequence offset while it lasts.
 */
#ifndef AFPA_CONN_BYPASS_H
#define AFPA_CONN_BYPASS_H

#include <afpa/conn/flow.h>

#define BYPASS_ENTRIES 4096        /* entries; a power of two */
#define BYPASS_BITS 12
#define LONG_RESPONSE (1 << 18) /* an entry pays if this much of a response is to come */

struct bypass_entry {
	struct afpa_flow_key key;
	__u32 epoch;
	__u64 pulse;
	__u32 until;             /* kernel: end of the response, when the connection is not left to user mode */
	__u16 reason;            /* AFPA_PASS_..., when it is; else 0 */
	__u16 reserved;
};

/* This processor's table. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BYPASS_ENTRIES);
	__type(key, __u32);
	__type(value, struct bypass_entry);
} bypass_table SEC(".maps");

/* One epoch for each place, which all processors share: it moves when an entry there may not be true any more. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BYPASS_ENTRIES);
	__type(key, __u32);
	__type(value, __u32);
} bypass_epochs SEC(".maps");

static __always_inline __u32 bypass_index(const struct afpa_flow_key *key)
{
	const __u32 *client = (const __u32 *)key->client;
	__u32 ports = (__u32)key->client_port << 16 | key->server_port;
	__u64 mixed = ((__u64)client[3] << 32 | ports) ^ ((__u64)client[1] << 32 | client[2]) ^ shared.hash_seed;

	mixed *= AFPA_HASH_PRIME;
	return (mixed ^ mixed << 23) >> (64 - BYPASS_BITS);
}

/* Does the segment pass as it is? */
static __always_inline bool bypass_hit(const struct segment *s, enum direction from)
{
	__u32 place = bypass_index(&s->key), *epoch;
	struct bypass_entry *b;

	if (s->flags & (TCP_SYN | TCP_FIN | TCP_RST))
		return false;
	if (*(volatile __u32 *)&shared.notes_requests)
		return false; /* every request is looked at (V5) */
	b = bpf_map_lookup_elem(&bypass_table, &place);
	if (!b || !same_flow(&b->key, &s->key) || b->pulse != *(volatile __u64 *)&shared.pulse)
		return false;
	if (!b->reason && from == FROM_CLIENT && s->length)
		return false;
	if (!b->reason && from == FROM_SERVER && (s->length == 0 || !before(s->seq + s->length, b->until)))
		return false;
	epoch = bpf_map_lookup_elem(&bypass_epochs, &place);
	if (!epoch || *(volatile __u32 *)epoch != b->epoch)
		return false;
	if (from == FROM_CLIENT)
		count_at(s->place, s->length && b->reason ? b->reason : AFPA_PASS_NO_PAYLOAD);
	return true;
}

/* The epoch of a connection's place, for an entry made of what is read from here on (B1). */
static __always_inline __u32 bypass_epoch(const struct afpa_flow_key *key)
{
	__u32 place = bypass_index(key), *epoch = bpf_map_lookup_elem(&bypass_epochs, &place);

	return epoch ? __sync_fetch_and_add(epoch, 0) : 0;
}

/* Enter the connection, unless another one has the place: that entry lapses within a second. */
static __always_inline void bypass_insert(const struct afpa_flow_key *key, __u32 epoch, __u32 until, enum afpa_reason reason)
{
	__u64 pulse = *(volatile __u64 *)&shared.pulse;
	__u32 place = bypass_index(key);
	struct bypass_entry *b = bpf_map_lookup_elem(&bypass_table, &place);

	if (!b || pulse == 0 || (b->pulse == pulse && !same_flow(&b->key, key)))
		return;
	b->key = *key;
	b->epoch = epoch;
	b->pulse = pulse;
	b->until = until;
	b->reason = reason;
}

/* What its entry says of the connection is not true any more (B1). A global function, verified once. */
__noinline int afpa_bypass_invalidate(const struct afpa_flow_key *key)
{
	__u32 place, *epoch;

	if (!key)
		return 0;
	place = bypass_index(key);
	epoch = bpf_map_lookup_elem(&bypass_epochs, &place);
	if (epoch)
		__sync_fetch_and_add(epoch, 1);
	return 0;
}

/* The connection is final: enter it, if nothing was ever answered on it (B2). */
static __noinline int bypass_insert_final(const struct afpa_flow_key *key)
{
	__u32 epoch = bypass_epoch(key);
	struct afpa_flow *flow = bpf_map_lookup_elem(&flows, key); /* behind the epoch: the tuple may have changed hands */

	if (flow && !flow_has_offset(flow) && flow_is_final(flow))
		bypass_insert(key, epoch, 0, flow->owner == AFPA_OWNER_BYPASSED ? AFPA_PASS_BYPASSED : AFPA_PASS_USER_FINAL);
	return 0;
}

#endif
