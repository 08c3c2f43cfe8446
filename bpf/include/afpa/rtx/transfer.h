/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Answers of several segments on their way: entries of `flights`, and how the send engine is joined to
 * them. States, invariants (S1 to S8) and recovery are the engine's; here stands whose turn it is.
 *
 * Contract: whoever works on a flight has its lock, a word that is exchanged: what the engine does cannot
 * run under a spin lock of the kernel's. Nobody waits long for it: what comes meanwhile is dropped, and
 * TCP sends it again. An entry is removed by the holder of the lock, who does not release it: the next
 * owner of the memory does.
 */
#ifndef AFPA_FLIGHTS_H
#define AFPA_FLIGHTS_H

#include <afpa/tcp/ack.h>
#include <afpa/net/packet.h>
#include <afpa/scratch.h>

_Static_assert(sizeof(struct sender) == AFPA_SENDER_WORDS * 8, "AFPA_SENDER_WORDS");
_Static_assert(sizeof(struct path) == AFPA_PATH_WORDS * 8, "AFPA_PATH_WORDS");

#define UNIT_MAX 1460 /* no longer than AFPA_PAGE_REACH */
#define BURST 10      /* segments that leave in one interrupt: an initial window (RFC 6928) */
#define TURNS 64      /* how often a lock is tried */

static __always_inline struct sender *sender_of(struct afpa_transfer *transfer)
{
	return (struct sender *)transfer->sender;
}

static __always_inline __u64 microseconds(void)
{
	return bpf_ktime_get_ns() / 1000;
}

static __always_inline void transfer_unlock(struct afpa_transfer *transfer)
{
	__sync_lock_test_and_set(&transfer->lock, 0);
}

/* Take the lock of the entry of `key`. False: somebody has it, or the entry is another flow's by now. */
static __always_inline bool transfer_lock(struct afpa_transfer *transfer, const struct afpa_flow_key *key)
{
	__u32 busy = 1;

	for (__u32 i = 0; i < TURNS && busy; i++)
		busy = __sync_lock_test_and_set(&transfer->lock, 1);
	if (busy)
		return false;
	if (same_flow(&transfer->flow, key))
		return true;
	transfer_unlock(transfer);
	return false;
}

/*
 * Its flow goes: so does the flight. One that somebody works on stays; its flow is missed when it is
 * looked after next.
 */
__noinline int afpa_transfer_remove(const struct afpa_flow_key *key)
{
	struct afpa_transfer *transfer;

	if (!key)
		return 0;
	transfer = bpf_map_lookup_elem(&transfers, key);
	if (transfer && transfer_lock(transfer, key)) {
		bpf_map_delete_elem(&transfers, key);
		count(AFPA_TRANSFER_ENDED);
	}
	return 0;
}

/* The longest segment for the flow. */
static __always_inline __u32 unit_of(const struct afpa_flow *flow)
{
	return flow->mss > UNIT_MAX ? UNIT_MAX : flow->mss;
}

/* What the engine knows of a path that it has not seen: the handshake's round trip. */
static __always_inline void path_learn(struct afpa_flow *flow, __u32 round_trip)
{
	struct path *path = (struct path *)flow->path;

	path_init(path);
	if (round_trip)
		path_rtt_sample(path, round_trip);
}

#endif
