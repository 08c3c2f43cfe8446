/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One connection: whose turn it is, the state of its path, and its entries in `flows` and `transfers`.
 *
 * Invariants (see abi.h for the fields):
 *  F1 `rx_offset` and `tx_offset` move only while nothing is with user mode: the client has acknowledged every
 *     kernel byte up to `kernel_next`, and every client byte up to `client_next` was answered, here or by user mode.
 *  F2 Client bytes at or after `client_next` reach the kernel only in requests that make user mode the owner, or
 *     when the owner is final: a later change of the offsets would tear them apart.
 *  F3 Kernel bytes below `stale_below` never leave again: they belong to older offsets, and the client has them.
 *     It follows the bytes that user mode sends at a distance (`keep_up`).
 *  F4 A request that was answered here is acknowledged by its answer and by nothing else. Until the client has
 *     acknowledged the answer, no segment of the kernel's TCP may acknowledge the request, or the client would not
 *     ask again when the answer is lost.
 *  F5 Owner, offsets and `kernel_next` change under the lock only, on both hooks.
 *  F6 While user mode is the owner, `responses_pending` is the number of requests that went up, less the final
 *     responses whose end is known: those that end below `response_start`, as far as the stream has been read.
 */
#ifndef AFPA_CONN_FLOW_H
#define AFPA_CONN_FLOW_H

#include <afpa/conn/client_count.h>
#include <afpa/clock.h>
#include <afpa/conn/way.h>
#include <afpa/net/segment.h>
#include <afpa/tcp/bitset.h>
#include <afpa/tcp/path.h>

_Static_assert(sizeof(struct path) == AFPA_PATH_WORDS * 8, "AFPA_PATH_WORDS");

/* Steps return a verdict, or this: the next step decides. */
#define GO_ON (-2)

/* --- questions --- */

/* Do the two sequence spaces differ? */
static __always_inline bool flow_has_offset(const struct afpa_flow *flow)
{
	return flow->rx_offset | flow->tx_offset;
}

/*
 * Is the connection user mode's for the rest of its life? Nothing is answered on it any more, so its offsets
 * do not change either, and may be read without the lock.
 */
static __always_inline bool flow_is_final(const struct afpa_flow *flow)
{
	return flow->owner == AFPA_OWNER_USER_FINAL || flow->owner == AFPA_OWNER_BYPASSED;
}

/* Was an answer given that the client has not acknowledged? (F4) */
static __always_inline bool answer_outstanding(const struct afpa_flow *flow)
{
	return flow->request_length && before(flow->snd_una, flow->answer_seq + flow->answer_size);
}

/*
 * Has user mode answered everything it was given, completely? Its responses have left up to the end of the last
 * one, and it has all bytes of the requests, which our next answer will acknowledge (docs/rules, H1 to H4).
 */
static __always_inline bool flow_quiet(const struct afpa_flow *flow)
{
	if (flow->owner != AFPA_OWNER_USER)
		return flow->owner == AFPA_OWNER_NONE;
	return flow->responses_pending == 0 && flow->phase == AFPA_PHASE_HEAD && !(flow->flags & AFPA_FLOW_PARTIAL) &&
	       flow->kernel_next == flow->response_start && flow->kernel_received + flow->rx_offset == flow->client_next;
}

/*
 * May the fast path answer this segment? AFPA_ANSWERED: yes; else why not. Asked once a segment, under the lock: by
 * `commit` before it is answered, or by `pass_up` to name the reason.
 */
static __always_inline enum afpa_reason whose_turn(const struct afpa_flow *flow, const struct segment *s)
{
	if (flow->owner == AFPA_OWNER_CLOSING)
		return AFPA_PASS_CLOSING;
	if (flow->owner == AFPA_OWNER_USER_FINAL)
		return AFPA_PASS_USER_FINAL;
	if (flow->owner == AFPA_OWNER_BYPASSED)
		return AFPA_PASS_BYPASSED;
	if (!flow_quiet(flow) || flow->flags & AFPA_FLOW_TRANSFER)
		return AFPA_PASS_USER_OWNS;
	if (s->seq != flow->client_next || s->ack != flow->kernel_next + flow->tx_offset)
		return AFPA_PASS_NOT_NEXT;
	return AFPA_ANSWERED;
}

/*
 * Does payload begin within the request that was answered last, while its answer is not acknowledged? Then the
 * answer was lost, or its acknowledgement was. Stacks merge and split the segments that they retransmit; the answer
 * acknowledges the request alone, so the client sends the bytes behind it by itself.
 */
static __always_inline bool is_request_retransmitted(const struct afpa_flow *flow, const struct segment *s)
{
	return s->length && s->seq - flow->request_seq < flow->request_length && answer_outstanding(flow) &&
	       before(s->ack, flow->answer_seq + flow->answer_size);
}

static __always_inline bool is_ipv6(const struct afpa_flow_key *key)
{
	const __be32 *client = (const __be32 *)key->client;

	return client[0] || client[1] || client[2] != bpf_htonl(0xffff);
}

/* --- the path --- */

/* The handshake's round trip, in microseconds, is all that is known of a new path; 0: not even that. */
static __always_inline void path_learn(struct afpa_flow *flow, __u32 rtt)
{
	struct path *path = (struct path *)flow->path;

	path_init(path);
	if (rtt)
		path_rtt_sample(path, rtt);
}

/*
 * The client has acknowledged something. If that is all of an answer that left once (Karn's algorithm), its round
 * trip is measured. Called with the lock held.
 */
static __always_inline void measure_rtt(struct afpa_flow *flow, __u64 now)
{
	if (!flow->rtt_wanted || answer_outstanding(flow))
		return;
	flow->rtt_wanted = false;
	path_rtt_sample((struct path *)flow->path, ((__u64)(rtx_clock(now) - flow->answer_sent) << AFPA_TICK_SHIFT) / 1000);
}

/* --- the rtx timer of a hit: see rtx/timers.h, W1 to W4 --- */

#define RTX_LAPSE 2000 /* rtx_clock: longer than an entry waits, unless it is lost or its path is slow */

/* Would measuring the path make its time-out shorter? Until then it is guessed from the handshake's round trip. */
static __always_inline bool is_rtt_guessed(const struct path *path)
{
	return path->rttvar > RTO_MIN / 4;
}

/*
 * An answer of one segment leaves. True: the connection has no rtx timer, and one is to be armed; nearly every hit
 * finds one. Called with the lock held.
 */
static __always_inline bool rtx_answer_sent(struct afpa_flow *flow, __u32 now)
{
	flow->answer_sent = now;
	flow->retransmits = 0;
	if (now - flow->rtx_stamp <= RTX_LAPSE)
		return false;
	flow->rtx_stamp = now;
	flow->rtt_wanted = is_rtt_guessed((const struct path *)flow->path);
	return true;
}

/* --- entries of `transfers` and `flows` --- */

/*
 * A program that works on a transfer holds its lock, a word that is exchanged: the TCP sender's work is too much for a
 * spin lock of the kernel's. No program waits long for it: a segment that finds it taken is dropped, and TCP sends it
 * again. The holder of its lock removes an entry, and does not release the lock: the next owner of the memory does.
 */
#define TRANSFER_LOCK_TRIES 64

static __always_inline void transfer_unlock(struct afpa_transfer *transfer)
{
	__sync_lock_test_and_set(&transfer->lock, 0);
}

/* False: another program holds the lock, or the entry is another flow's by now. */
static __always_inline bool transfer_lock(struct afpa_transfer *transfer, const struct afpa_flow_key *key)
{
	__u32 busy = 1;

	for (__u32 i = 0; i < TRANSFER_LOCK_TRIES && busy; i++)
		busy = __sync_lock_test_and_set(&transfer->lock, 1);
	if (busy)
		return false;
	if (same_flow(&transfer->flow, key))
		return true;
	transfer_unlock(transfer);
	return false;
}

/*
 * Remove the transfer of a connection that ends. One that is locked stays: when its timer is serviced next, it is
 * found to have no flow, and removed.
 */
static __always_inline void remove_transfer(const struct afpa_flow_key *key)
{
	struct afpa_transfer *transfer = bpf_map_lookup_elem(&transfers, key);

	if (transfer && transfer_lock(transfer, key)) {
		bpf_map_delete_elem(&transfers, key);
		count(AFPA_TRANSFER_ENDED);
	}
}

/* Global functions, verified once. Linux 6.1 takes none of their arguments for a key of a map, so they copy it. */
__noinline int afpa_transfer_remove(const struct afpa_flow_key *key)
{
	struct afpa_flow_key own;

	if (!key)
		return 0;
	own = *key;
	remove_transfer(&own);
	return 0;
}

__noinline int afpa_flow_remove(const struct afpa_flow_key *key)
{
	struct afpa_flow_key own;
	struct afpa_flow *flow;
	bool counted;

	if (!key)
		return 0;
	own = *key;
	flow = bpf_map_lookup_elem(&flows, &own);
	counted = flow && flow->socketless && flow->socketless != AFPA_SOCKETLESS_ASSIGNED;
	if (bpf_map_delete_elem(&flows, &own) == 0) {
		count(AFPA_FLOW_CLOSED);
		if (counted)
			afpa_count_client(&own, -1);
	}
	remove_transfer(&own);
	return 0;
}

static __always_inline void flow_remove(const struct afpa_flow_key *key)
{
	afpa_flow_remove(key);
}

#endif
