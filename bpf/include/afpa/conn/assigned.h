/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The connections that were assigned to the kernel's TCP: while their cookies are valid, nothing may open them a second time
 * (N5). Each is a hash, under a secret, of its tuple and its client's first number. The hashes stand in sets of one line
 * of the caches, the latest one first; a set that is full forgets its oldest.
 */
#ifndef AFPA_CONN_ASSIGNED_H
#define AFPA_CONN_ASSIGNED_H

#include <afpa/conn/way.h>

/* A map that can be mapped begins at a page, so that a set is one line. It is kept with the flows. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_assigned_set);
} assigned SEC(".maps");

_Static_assert(sizeof(struct afpa_assigned_set) == 64, "a set is one cache line");

/* Never 0. The secret is the cookies', which outlives this process as the map does. */
static __always_inline __u64 hash_of_assigned(const struct afpa_flow_key *key, __u32 client_isn)
{
	return mix(mix_tuple(shared.cookie_key[0], key), client_isn) | 1;
}

static __always_inline struct afpa_assigned_set *assigned_set(__u64 hash)
{
	__u32 place = (hash >> 32) * shared.assigned_sets >> 32;

	return bpf_map_lookup_elem(&assigned, &place);
}

/* Was a connection of the tuple, with this first number of its client, assigned before? */
static __always_inline bool was_assigned(const struct afpa_flow_key *key, __u32 client_isn)
{
	__u64 hash = hash_of_assigned(key, client_isn);
	const struct afpa_assigned_set *set = assigned_set(hash);

	for (int i = 0; set && i < AFPA_ASSIGNED_WAYS; i++)
		if (*(volatile __u64 *)&set->hashes[i] == hash)
			return true;
	return false;
}

/* It is assigned now. Each hash is exchanged for the one before it, so that no other processor's gets lost. */
static __always_inline void remember_assigned(const struct afpa_flow_key *key, __u32 client_isn)
{
	__u64 hash = hash_of_assigned(key, client_isn);
	struct afpa_assigned_set *set = assigned_set(hash);

	if (!set || was_assigned(key, client_isn))
		return;
	for (int i = 0; i < AFPA_ASSIGNED_WAYS; i++)
		hash = __sync_lock_test_and_set(&set->hashes[i], hash);
}

#endif
