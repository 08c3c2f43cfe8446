/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connections that were assigned and never reach their listener (N14). A rule that wants each connection to begin with a SYN drops
 * those of all clients; a ban drops those of one. Which one it is, the others tell: whether they arrive.
 */
#ifndef AFPA_CONN_LOSS_H
#define AFPA_CONN_LOSS_H

#include <afpa/clock.h>
#include <afpa/net/segment.h>

#define ARRIVAL_STEP 256 /* rtx_clock: arrivals are noted so often at most, as all processors share the word */

/* A socket was seen: assigned segments arrive, the last one up to a step later than noted. */
static __always_inline void note_arrival(__u32 clock)
{
	volatile __u32 *arrived = &shared.arrived_at;

	if (*arrived == 0 || clock - *arrived >= ARRIVAL_STEP)
		*arrived = clock ?: 1;
}

/* The client's prefix, a /24 or a /56, hashed. */
static __always_inline __u32 hash_prefix(const struct segment *s)
{
	__u64 prefix = 0;

	if (s->ipv6)
		__builtin_memcpy(&prefix, s->key.client, 7);
	else
		__builtin_memcpy(&prefix, s->key.client + 12, 3);
	return prefix * AFPA_HASH_PRIME >> 32;
}

/*
 * Does the loss of a connection that was assigned first at `since` tell that those of all clients are lost? Not if others have arrived
 * since: then user mode counts the prefixes. Else if none ever has, or if it is the second loss in a row, of another prefix or
 * of a connection that was assigned after the first loss: a client that is banned loses all that it has open.
 */
static __always_inline bool loses_all(const struct segment *s, __u32 since, __u32 clock)
{
	__u32 arrived = *(volatile __u32 *)&shared.arrived_at, lost = *(volatile __u32 *)&shared.lost_at;
	__u32 client = hash_prefix(s);

	if (arrived == 0)
		return true;
	if (before(since, arrived)) {
		*(volatile __u64 *)&shared.lost_clients |= 1ULL << (client >> 26);
		return false;
	}
	if (lost && before(arrived, lost) && (shared.lost_client != client || before(lost, since)))
		return true;
	*(volatile __u32 *)&shared.lost_client = client;
	*(volatile __u32 *)&shared.lost_at = clock ?: 1;
	return false;
}

#endif
