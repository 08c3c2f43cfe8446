/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SYN cookies (RFC 4987, 3.6): our first sequence number has the agreed options, and proves, when it comes back acknowledged,
 * that the client got it.
 *
 *      31             16 15     8 7   6  5  4  3     0
 *     +-----------------+--------+-----+---+---+-------+
 *     |       MAC       |   0    | MSS | T | S | scale |      T: timestamps, S: SACK
 *     +-----------------+--------+-----+---+---+-------+
 *                        xor 16 bits of the tuple's hash
 *
 * Both are of SipHash-2-4 under a secret of this process: the hash is of the tuple alone, the MAC of the tuple, the low eight
 * bits, the period, and the client's first number. So a sender that did not get the cookie knows none of its bits, not even
 * those of the SYN's options. A cookie is valid in the period in which it was made and in the next one: for 17 to 34 s, longer than
 * a client takes for a handshake and its first request on a path on which anything arrives.
 *
 *  N13 A connection opens only behind a SYN that was answered. Each answered SYN has a record: of its tuple, the client's first
 *     number, and the cookie. All 32 bits must be those of the record. The records stand in sets of one line of the caches, so
 *     that a flood fills nothing: where a set is full, the oldest one whose cookie has not come back is lost. Only while
 *     records get lost does a cookie count alone, by its MAC and the eight bits above the agreed ones, for a client whose way
 *     is known, and while hardly any segment acknowledges a wrong one.
 */
#ifndef AFPA_CONN_COOKIE_H
#define AFPA_CONN_COOKIE_H

#include <afpa/conn/flow.h>

#define COOKIE_BITS 0xffu
#define COOKIE_TAG 0xff00u
#define COOKIE_MAC 0xffff0000u
#define COOKIE_MSS_SHIFT 6
#define COOKIE_TIMESTAMPS 0x20
#define COOKIE_SACK 0x10
#define COOKIE_SCALE 0x0f
#define COOKIE_NO_SCALE 15 /* no window scaling: shifts end at 14 (RFC 7323, 2.3) */
#define COOKIE_MSS_VALUES 4

/* Bits of a cookie that are not compared. Tests set some, to count how often a stranger has to guess for the rest. */
const volatile __u32 cookie_ignored SEC(".rodata.cookie") = 0;

/* The largest value that is not larger than the client's MSS is kept. Linux keeps the same ones in its cookies. */
const volatile __u16 cookie_mss_ipv4[COOKIE_MSS_VALUES] = { 536, 1300, 1440, 1460 };
const volatile __u16 cookie_mss_ipv6[COOKIE_MSS_VALUES] = { 1220, 1360, 1420, 1440 };

static __always_inline __u32 cookie_mss(__u32 bits, bool ipv6)
{
	__u32 index = bits >> COOKIE_MSS_SHIFT & (COOKIE_MSS_VALUES - 1);

	return ipv6 ? cookie_mss_ipv6[index] : cookie_mss_ipv4[index];
}

/* The MSS in a cookie's bits, or COOKIE_MSS_VALUES: it is smaller than all, or would lose much. */
static __always_inline __u32 cookie_mss_bits(__u32 mss, bool ipv6)
{
	__u32 index = COOKIE_MSS_VALUES;

	for (__u32 i = 0; i < COOKIE_MSS_VALUES; i++)
		if (mss >= (ipv6 ? cookie_mss_ipv6[i] : cookie_mss_ipv4[i]))
			index = i;
	return index;
}

#define ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

static __always_inline void sip_round(__u64 v[4])
{
	v[0] += v[1];
	v[1] = ROTATE(v[1], 13) ^ v[0];
	v[0] = ROTATE(v[0], 32);
	v[2] += v[3];
	v[3] = ROTATE(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = ROTATE(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = ROTATE(v[1], 17) ^ v[2];
	v[2] = ROTATE(v[2], 32);
}

static __always_inline void sip_word(__u64 v[4], __u64 word)
{
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
}

/* SipHash-2-4 of the words so far. More words may be added afterwards. */
static __always_inline __u64 sip_end(const __u64 so_far[4], __u64 bytes)
{
	__u64 v[4] = { so_far[0], so_far[1], so_far[2], so_far[3] };

	sip_word(v, bytes << 56);
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The state of the hash behind the tuple: five words. */
static __always_inline void hash_tuple(__u64 v[4], const struct afpa_flow_key *key)
{
	const __u64 *secret = shared.cookie_key, *addresses = (const __u64 *)key;

	v[0] = secret[0] ^ 0x736f6d6570736575ULL;
	v[1] = secret[1] ^ 0x646f72616e646f6dULL;
	v[2] = secret[0] ^ 0x6c7967656e657261ULL;
	v[3] = secret[1] ^ 0x7465646279746573ULL;
	for (int i = 0; i < 4; i++)
		sip_word(v, addresses[i]);
	sip_word(v, (__u32)key->client_port << 16 | key->server_port);
}

/* The tuple's hash: 16 bits hide the low half of a cookie, 32 more prove whose record one is, and the highest name its set. */
static __always_inline __u64 tuple_hash(const __u64 v[4])
{
	return sip_end(v, 40);
}

/* Times are of `rtx_clock`, of which periods are the upper bits. */
#define PERIOD_SHIFT (AFPA_COOKIE_SHIFT - AFPA_TICK_SHIFT)
#define PERIOD_MASK ((1u << (32 - PERIOD_SHIFT)) - 1)

static __always_inline __u32 period_of(__u32 clock)
{
	return clock >> PERIOD_SHIFT;
}

/* Is it this period still, or the next one? */
static __always_inline bool is_valid_at(__u32 clock, __u32 made)
{
	return ((period_of(clock) - period_of(made)) & PERIOD_MASK) <= 1;
}

static __always_inline __u32 mac_of(const __u64 so_far[4], __u32 bits, __u32 period, __u32 client_isn)
{
	__u64 v[4] = { so_far[0], so_far[1], so_far[2], so_far[3] };

	sip_word(v, (__u64)(period & PERIOD_MASK) << 8 | bits);
	sip_word(v, client_isn);
	return (__u32)sip_end(v, 56) << 16;
}

static __always_inline bool same_cookie(__u32 one, __u32 other, __u32 bits)
{
	return !((one ^ other) & bits & ~cookie_ignored);
}

/* --- the records --- */

/* A map that can be mapped begins at a page, so that a set is one line. It is kept with the flows, as their secret is. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, AFPA_SYN_SETS);
	__type(key, __u32);
	__type(value, struct afpa_syn_set);
} syn_answers SEC(".maps");

_Static_assert(sizeof(struct afpa_syn_set) == 64, "a set is one cache line");

/* When a record was lost last, and how many wrong cookies were acknowledged meanwhile. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_cookie_guard);
} cookie_guard SEC(".maps");

#define SYN_REPEATED 4096 /* rtx_clock: clients send a SYN again after one second, and after three (RFC 6298, 2.1) */
#define SYN_CAME_BACK 1u  /* lowest bit of `seen`: the cookie has come back, and its record may give way to another */

static __always_inline struct afpa_syn_set *syn_set(__u64 hash)
{
	__u32 place = hash >> 48 & (AFPA_SYN_SETS - 1);

	return bpf_map_lookup_elem(&syn_answers, &place);
}

/* The proof of a record. It does not hold where a reader got a half of one record and a half of another. */
static __always_inline __u32 proof_of_syn(__u64 hash, __u32 client_isn, __u32 cookie)
{
	return (__u32)(hash >> 16) ^ client_isn * 0x9e3779b1u ^ (cookie << 16 | cookie >> 16);
}

/* By which of its numbers a record is looked for. A tuple may have several, because anybody may send SYNs of it. */
enum syn_number { BY_CLIENT_ISN, BY_COOKIE };

/* The record of the tuple that has this number, if it counts still. */
static __always_inline struct afpa_syn_answer *syn_record(struct afpa_syn_set *set, __u64 hash, __u32 clock, __u32 number,
							  enum syn_number by)
{
	for (int i = 0; set && i < AFPA_SYN_WAYS; i++) {
		volatile struct afpa_syn_answer *one = &set->ways[i];
		__u32 client_isn = one->client_isn, cookie = one->cookie;

		if (one->proof == proof_of_syn(hash, client_isn, cookie) && is_valid_at(clock, one->seen) &&
		    (by == BY_COOKIE ? same_cookie(cookie, number, ~0u) : client_isn == number))
			return &set->ways[i];
	}
	return NULL;
}

static __always_inline struct afpa_cookie_guard *guard_of_cookies(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cookie_guard, &zero);
}

/* How readily a record gives way: one that counts no more, then one whose cookie has come back, then the oldest. */
static __always_inline __u32 gives_way(__u32 seen, __u32 clock)
{
	if (!is_valid_at(clock, seen))
		return 1u << 31;
	return (seen & SYN_CAME_BACK ? 1u << 30 : 0) + 1 + clock - seen;
}

/*
 * A SYN is answered by this cookie; `one` is the record that it has already. Each proof is exchanged for the one before
 * it, so that no record is overwritten unnoticed by two processors at once.
 */
static __always_inline void record_syn(struct afpa_syn_set *set, struct afpa_syn_answer *one, __u64 hash, __u32 client_isn,
				       __u32 cookie, __u32 clock)
{
	__u32 most = 0, was;
	bool lost;

	for (int i = 0; !one && i < AFPA_SYN_WAYS; i++)
		most = gives_way(set->ways[i].seen, clock) > gives_way(set->ways[most & (AFPA_SYN_WAYS - 1)].seen, clock) ? i : most;
	if (!one)
		one = &set->ways[most & (AFPA_SYN_WAYS - 1)];
	was = one->proof;
	lost = gives_way(one->seen, clock) < 1u << 30;
	if (__sync_lock_test_and_set(&one->proof, proof_of_syn(hash, client_isn, cookie)) != was || lost) {
		struct afpa_cookie_guard *guard = guard_of_cookies();

		if (guard)
			guard->lost = clock | 1;
	}
	one->client_isn = client_isn;
	one->cookie = cookie;
	one->seen = clock & ~SYN_CAME_BACK;
}

/* --- cookies --- */

/*
 * The cookie by which a SYN is answered at `clock`. A repeated SYN is answered by the same, and its time is not
 * lengthened. Global functions: verified once, and with a stack of their own.
 */
__noinline __u32 afpa_cookie(const struct afpa_flow_key *key, __u32 client_isn, __u32 bits, __u32 clock)
{
	struct afpa_syn_answer *one;
	struct afpa_syn_set *set;
	__u32 cookie;
	__u64 v[4], hash;

	if (!key)
		return 0;
	hash_tuple(v, key);
	hash = tuple_hash(v);
	set = syn_set(hash);
	one = syn_record(set, hash, clock, client_isn, BY_CLIENT_ISN);
	if (one && ((one->cookie ^ (__u32)hash) & COOKIE_BITS) == bits)
		return one->cookie;
	cookie = mac_of(v, bits, period_of(clock), client_isn) | ((hash & (COOKIE_TAG | COOKIE_BITS)) ^ (bits & COOKIE_BITS));
	if (set)
		record_syn(set, one, hash, client_isn, cookie, clock);
	return cookie;
}

/*
 * Was this very SYN answered lately? Then it is again, whether its client is still known or not: the kernel's TCP would answer
 * by another number, and reset the client that acknowledges ours.
 */
__noinline int afpa_is_syn_repeated(const struct afpa_flow_key *key, __u32 client_isn, __u32 clock)
{
	const struct afpa_syn_answer *one;
	__u64 v[4], hash;

	if (!key)
		return false;
	hash_tuple(v, key);
	hash = tuple_hash(v);
	one = syn_record(syn_set(hash), hash, clock, client_isn, BY_CLIENT_ISN);
	return one && clock - one->seen < SYN_REPEATED;
}

enum cookie_kind {
	COOKIE_NOT_OURS,
	COOKIE_EARLY,   /* it is the tuple's, but the segment is not its connection's first one */
	COOKIE_GUESSED, /* it looks like one of a record that got lost, and is none */
	COOKIE_ALONE,   /* it holds, but of its record nothing is known */
	COOKIE_VALID,
};

#define COOKIE_KIND 0xff /* and above it, the agreed options */
#define COOKIE_AGREED_SHIFT 8

/* Does a cookie count alone? Not if no record got lost lately, nor when wrong ones come: they would be guessed. */
static __always_inline bool counts_alone(__u32 clock)
{
	const volatile struct afpa_cookie_guard *guard = guard_of_cookies();

	if (!guard || !guard->lost || !is_valid_at(clock, guard->lost))
		return false;
	return guard->wrong < AFPA_WRONG_COOKIES || !is_valid_at(clock, guard->counted);
}

/* A wrong one came. They are counted for a period; the processors count together. */
static __always_inline void count_wrong_cookie(__u32 clock)
{
	struct afpa_cookie_guard *guard = guard_of_cookies();

	if (!guard)
		return;
	if (period_of(guard->counted) != period_of(clock)) {
		guard->counted = clock;
		guard->wrong = 0;
	}
	__sync_fetch_and_add(&guard->wrong, 1);
}

/* What is `server_isn` to a client that seems to have begun with `client_isn`? */
__noinline int afpa_cookie_kind(const struct afpa_flow_key *key, __u32 client_isn, __u32 server_isn, __u32 clock)
{
	struct afpa_syn_answer *one;
	struct afpa_syn_set *set;
	__u64 v[4], hash;
	__u32 bits, seen;

	if (!key)
		return COOKIE_NOT_OURS;
	hash_tuple(v, key);
	hash = tuple_hash(v);
	bits = (server_isn ^ (__u32)hash) & COOKIE_BITS;
	set = syn_set(hash);
	one = syn_record(set, hash, clock, server_isn, BY_COOKIE);
	if (one) {
		if (one->client_isn != client_isn)
			return COOKIE_EARLY;
		seen = one->seen;
		if (!(seen & SYN_CAME_BACK))
			__sync_val_compare_and_swap(&one->seen, seen, seen | SYN_CAME_BACK);
		return COOKIE_VALID | ((one->cookie ^ (__u32)hash) & COOKIE_BITS) << COOKIE_AGREED_SHIFT;
	}
	if (!counts_alone(clock) || !same_cookie(server_isn, (__u32)hash, COOKIE_TAG) ||
	    syn_record(set, hash, clock, client_isn, BY_CLIENT_ISN))
		return COOKIE_NOT_OURS;
	if (same_cookie(mac_of(v, bits, period_of(clock), client_isn), server_isn, COOKIE_MAC) ||
	    same_cookie(mac_of(v, bits, period_of(clock) - 1, client_isn), server_isn, COOKIE_MAC))
		return COOKIE_ALONE | bits << COOKIE_AGREED_SHIFT;
	return COOKIE_GUESSED;
}

/* Was a SYN answered so lately that its cookie may be valid? Until then nothing is computed. */
static __always_inline bool cookies_may_be_valid(__u64 now)
{
	__u64 last = *(volatile __u64 *)&shared.cookie_ns;

	return last && now - last < 2ULL << AFPA_COOKIE_SHIFT;
}

/* What is the number that the segment acknowledges, if it is the client's first one, and what was agreed on by it? */
static __always_inline __u32 cookie_kind(const struct segment *s, __u64 now)
{
	if (!(s->flags & TCP_ACK) || s->flags & (TCP_SYN | TCP_RST) || !cookies_may_be_valid(now))
		return COOKIE_NOT_OURS;
	return afpa_cookie_kind(&s->key, s->seq - 1, s->ack - 1, rtx_clock(now));
}

#endif
