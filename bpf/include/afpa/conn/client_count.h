/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How many connections without a socket each client has, so that user mode's limit holds for these, too.
 *
 *  N11 A client that has as many connections without a socket as it may have at all opens no more of them: its SYN is
 *      the kernel's, and a connection that it has opened meanwhile is assigned at its first request. User mode, which counts its own
 *      connections, asks for this count as well. A client is an IPv4 address, or an IPv6 /64.
 *
 * A word is a tag and a count. A client that finds the connections of another one in its place is not counted.
 */
#ifndef AFPA_CONN_CLIENT_COUNT_H
#define AFPA_CONN_CLIENT_COUNT_H

#include <afpa/scratch.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, AFPA_CLIENTS_COUNTED + AFPA_OPEN_WORDS * AFPA_OPEN_STRIDE);
	__type(key, __u32);
	__type(value, __u64);
} client_connections SEC(".maps");

#define COUNT_TRIES 8

static __always_inline __u64 *count_of_client(const struct afpa_flow_key *key, __u64 *tag)
{
	const __u64 *client = (const __u64 *)key->client;
	__u64 hash = mix(mix(shared.hash_seed, client[0]), client[0] ? 0 : client[1]);
	__u32 place = hash & (AFPA_CLIENTS_COUNTED - 1);

	*tag = hash >> 32 | 1; /* no client's word is 0 */
	return bpf_map_lookup_elem(&client_connections, &place);
}

/* There are `change` connections without a socket more. Each processor has a word of its own, so none of them waits. */
static __always_inline void count_open(int change)
{
	__u32 processor = bpf_get_smp_processor_id() & (AFPA_OPEN_WORDS - 1);
	__u32 place = AFPA_CLIENTS_COUNTED + processor * AFPA_OPEN_STRIDE;
	__u64 *word = bpf_map_lookup_elem(&client_connections, &place);

	if (word)
		__sync_fetch_and_add(word, (__u64)(__s64)change);
}

/* Has user mode as many connections as it may have, those without a socket among them? */
static __always_inline bool is_full(void)
{
	return *(volatile __u32 *)&shared.handshake & AFPA_HANDSHAKE_FULL;
}

/* The client has `change` connections more. Global: verified once. */
__noinline int afpa_count_client(const struct afpa_flow_key *key, int change)
{
	__u64 tag, *word;

	if (!key)
		return 0;
	count_open(change);
	if (!shared.client_connections)
		return 0;
	word = count_of_client(key, &tag);
	for (int i = 0; word && i < COUNT_TRIES; i++) {
		__u64 seen = *(volatile __u64 *)word;
		__u32 count = seen >> 32 == tag ? (__u32)seen : 0;

		if ((seen >> 32 != tag && (__u32)seen) || (change < 0 && !count))
			return 0;
		if (__sync_val_compare_and_swap(word, seen, tag << 32 | (count + change)) == seen)
			return 0;
	}
	return 0;
}

/* Has the client as many as it may have? */
static __always_inline bool has_too_many(const struct afpa_flow_key *key)
{
	__u32 most = *(volatile __u32 *)&shared.client_connections;
	__u64 tag, *word, seen;

	if (!most)
		return false;
	word = count_of_client(key, &tag);
	if (!word)
		return false;
	seen = *(volatile __u64 *)word;
	return seen >> 32 == tag && (__u32)seen >= most;
}

#endif
