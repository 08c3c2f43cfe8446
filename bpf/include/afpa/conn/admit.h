/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The firewall speaks: whether the kernel's own path takes a client's packets.
 *
 * Answers leave before netfilter, cgroup programs and routes have seen the request. So they are asked again and again:
 *
 *  P5 A client is answered only if its packets got through the kernel's own path within `firewall_interval`, to the same
 *     address and port of the server. Two signs of the kernel's TCP show that: an acknowledgement number of the
 *     server's that moved, and left by our egress hook; or a fresh connection, whose handshake was completed that
 *     recently. Segments that the kernel sends of itself do not count, and neither do segments that the programs
 *     make.
 *
 * A request of a client that was not confirmed goes up, and the response to it confirms the client. When three quarters
 * of the interval are over, one request is chosen to do so, while others are still answered. A word that is
 * overwritten by that of another client costs a pass.
 */
#ifndef AFPA_CONN_ADMIT_H
#define AFPA_CONN_ADMIT_H

#include <afpa/clock.h>
#include <afpa/net/packet.h>
#include <afpa/scratch.h>

#define ADMITTED_BITS 16
#define ADMITTED_RENEWING 1u /* lowest bit of the time: a request went up to confirm the client anew */
#define ADMITTED_SPARE 16    /* rtx_clock: a word is not written again so soon */
#define CLOCK_LAG 32         /* rtx_clock: more than a tick of the coarse clock, at 100 Hz or more */

/* Of each client and served address: a tag that tells it from others, and the `rtx_clock` of its last confirmation. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << ADMITTED_BITS);
	__type(key, __u32);
	__type(value, __u64);
} admitted SEC(".maps");

/* Which word is that of the connection's client, and how it begins. */
struct admission {
	__u64 *word;
	__u64 tag;
};

static __always_inline struct admission admission_of(const struct afpa_flow_key *key)
{
	const __u64 *client = (const __u64 *)key->client, *server = (const __u64 *)key->server;
	__u64 hash = mix(mix(shared.hash_seed, client[0]), client[1]);
	struct admission admission = {};
	__u32 place;

	hash = mix(hash, server[0] ^ (server[1] + key->server_port));
	place = hash & ((1 << ADMITTED_BITS) - 1);
	admission.tag = hash >> 32 | 1; /* no client's word is 0 */
	admission.word = bpf_map_lookup_elem(&admitted, &place);
	return admission;
}

/* The client's packets got through at this `rtx_clock`. A global function, verified once. */
__noinline int afpa_admit(const struct afpa_flow_key *key, __u32 clock)
{
	__u64 fresh, known;
	struct admission a;

	if (!key || !shared.firewall_interval)
		return 0;
	a = admission_of(key);
	if (!a.word)
		return 0;
	known = *(volatile __u64 *)a.word;
	fresh = a.tag << 32 | (clock & ~ADMITTED_RENEWING);
	if (known >> 32 == a.tag && !(known & ADMITTED_RENEWING) && (__s32)(clock - (__u32)known) < ADMITTED_SPARE)
		return 0;
	*(volatile __u64 *)a.word = fresh;
	return 0;
}

/* May the client be answered without asking the firewall? Not if this is the request that is chosen to ask it. */
static __always_inline bool is_admitted(const struct afpa_flow_key *key, __u64 now)
{
	__u32 interval = shared.firewall_interval;
	struct admission a;
	__u64 known;
	__s32 age;

	if (!interval)
		return true;
	a = admission_of(key);
	if (!a.word)
		return false;
	known = *(volatile __u64 *)a.word;
	/* A handshake's time is of a finer clock than `now`, which may stand some milliseconds behind it. */
	age = rtx_clock(now) - (__u32)known;
	if (age < 0 && age > -CLOCK_LAG)
		age = 0;
	if (known >> 32 != a.tag || age < 0 || age > (__s32)interval)
		return false;
	return age < (__s32)(interval - interval / 4) || known & ADMITTED_RENEWING ||
	       __sync_val_compare_and_swap(a.word, known, known | ADMITTED_RENEWING) != known;
}

#endif
