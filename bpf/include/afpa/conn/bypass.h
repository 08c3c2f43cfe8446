/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections that go by: nothing is done to their segments, and nothing kept of them, so that finding that out
 * is all they cost. Each processor has a table of its own, addressed by a mix of the key and compared whole; an
 * entry is believed as long as the pulse does not move, for a second, and the epoch of its place does not.
 *
 * Two kinds: connections that are left to user mode without drift, or were open before we came; and those in the
 * middle of a long response, where only bare acknowledgements and segments before its end go by. SYN, FIN and RST
 * never do.
 *
 *  B1 An entry is made of what is true after its epoch was read; who makes it untrue moves the epoch afterwards
 *     (`bypass_invalidate`): the first answer on a connection (drift begins), the end of a long response, and the
 *     server's SYN (another connection has the tuple). Both are whole barriers.
 *  B2 What was left to user mode is never answered again (R4), so its drift cannot begin while the connection lasts.
 */
#ifndef AFPA_CONN_BYPASS_H
#define AFPA_CONN_BYPASS_H

#include <afpa/conn/flow.h>

#define BYPASS_ENTRIES 4096        /* entries; a power of two */
#define BYPASS_BITS 12
#define LONG_RESPONSE (1 << 18) /* what is left of one, for an entry to be worth its while */

struct bypass_entry {
	struct afpa_flow_key key;
	__u32 epoch;
	__u64 pulse;
	__u32 until;             /* kernel: end of the response, when the connection is not left to user mode */
	__u16 reason;            /* why, when it is; or 0 */
	__u16 reserved;
};

/* Who goes by on this processor. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BYPASS_ENTRIES);
	__type(key, __u32);
	__type(value, struct bypass_entry);
} bypass_table SEC(".maps");

/* For each place, what moves when something in it, on whatever processor, is not true any more. */
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

/* Does the segment go by? */
static __always_inline bool bypass_hit(const struct segment *s, enum direction from)
{
	__u32 place = bypass_index(&s->key), *epoch;
	struct bypass_entry *b;

	if (s->flags & (TCP_SYN | TCP_FIN | TCP_RST))
		return false;
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

/* The epoch of a connection's place, for an entry that is made of what is read from here on (B1). */
static __always_inline __u32 bypass_epoch(const struct afpa_flow_key *key)
{
	__u32 place = bypass_index(key), *epoch = bpf_map_lookup_elem(&bypass_epochs, &place);

	return epoch ? __sync_fetch_and_add(epoch, 0) : 0;
}

/* Let the connection go by. Nobody makes room for it: in a second there is. */
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

/* What was said of the connection is true no more (B1). */
static __always_inline void bypass_invalidate(const struct afpa_flow_key *key)
{
	__u32 place = bypass_index(key), *epoch = bpf_map_lookup_elem(&bypass_epochs, &place);

	if (epoch)
		__sync_fetch_and_add(epoch, 1);
}

/* The connection is left to user mode: let it go by, if nothing was ever answered on it (B2). */
static __noinline int bypass_insert_final(const struct afpa_flow_key *key)
{
	__u32 epoch = bypass_epoch(key);
	struct afpa_flow *flow = bpf_map_lookup_elem(&flows, key); /* behind the epoch: the tuple may have changed hands */

	if (flow && !flow_has_offset(flow) && flow_is_final(flow))
		bypass_insert(key, epoch, 0, flow->owner == AFPA_OWNER_BYPASSED ? AFPA_PASS_BYPASSED : AFPA_PASS_USER_FINAL);
	return 0;
}

#endif
