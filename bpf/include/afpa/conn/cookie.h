/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SYN cookies (RFC 4987, 3.6): nothing that is kept of a SYN is needed for its connection. Our first sequence number says what was
 * agreed on, and proves, when it comes back acknowledged, that the client got it.
 *
 *      31             16 15     8 7   6  5  4  3     0
 *     +-----------------+--------+-----+---+---+-------+
 *     |       MAC       |  tag   | MSS | T | S | scale |      T: timestamps, S: SACK
 *     +-----------------+--------+-----+---+---+-------+
 *
 * Both are bits of SipHash-2-4 under a secret of this process: the tag, of the tuple, the low eight bits and the period; the
 * MAC, of the same and the client's first number. Who did not get the cookie has to guess all 24. A cookie is valid in
 * the period in which it was made and in the next one: for 17 to 34 s, longer than a client takes for a handshake and
 * its first request on a path on which anything arrives.
 *
 * The tag alone tells what came before the first segment of its connection, which was lost: the kernel's TCP would reset it.
 */
#ifndef AFPA_CONN_COOKIE_H
#define AFPA_CONN_COOKIE_H

#include <afpa/conn/flow.h>

#define COOKIE_BITS 0xffu
#define COOKIE_MSS_SHIFT 6
#define COOKIE_TIMESTAMPS 0x20
#define COOKIE_SACK 0x10
#define COOKIE_SCALE 0x0f
#define COOKIE_NO_SCALE 15 /* no window scaling: shifts end at 14 (RFC 7323, 2.3) */
#define COOKIE_MSS_VALUES 4

/* The largest value that is not larger than what the client announced is kept. Linux keeps the same ones in its cookies. */
const volatile __u16 cookie_mss_ipv4[COOKIE_MSS_VALUES] = { 536, 1300, 1440, 1460 };
const volatile __u16 cookie_mss_ipv6[COOKIE_MSS_VALUES] = { 1220, 1360, 1420, 1440 };

static __always_inline __u32 cookie_mss(__u32 cookie, bool ipv6)
{
	__u32 index = cookie >> COOKIE_MSS_SHIFT & (COOKIE_MSS_VALUES - 1);

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

/* SipHash-2-4 of the words so far. What is hashed may go on. */
static __always_inline __u64 sip_end(const __u64 so_far[4], __u64 bytes)
{
	__u64 v[4] = { so_far[0], so_far[1], so_far[2], so_far[3] };

	sip_word(v, bytes << 56);
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* What both parts are made of: six words. */
static __always_inline void hash_tuple(__u64 v[4], const struct afpa_flow_key *key, __u32 period, __u32 bits)
{
	const __u64 *secret = shared.cookie_key, *addresses = (const __u64 *)key;

	v[0] = secret[0] ^ 0x736f6d6570736575ULL;
	v[1] = secret[1] ^ 0x646f72616e646f6dULL;
	v[2] = secret[0] ^ 0x6c7967656e657261ULL;
	v[3] = secret[1] ^ 0x7465646279746573ULL;
	for (int i = 0; i < 4; i++)
		sip_word(v, addresses[i]);
	sip_word(v, (__u32)key->client_port << 16 | key->server_port);
	sip_word(v, (__u64)period << 8 | (bits & COOKIE_BITS));
}

static __always_inline __u32 tag_of(const __u64 v[4])
{
	return (sip_end(v, 48) & 0xff) << 8;
}

static __always_inline __u32 mac_of(__u64 v[4], __u32 client_isn)
{
	sip_word(v, client_isn);
	return (__u32)sip_end(v, 56) << 16;
}

/* The cookie with these low bits. Global functions: verified once, and with a stack of their own. */
__noinline __u32 afpa_cookie(const struct afpa_flow_key *key, __u32 client_isn, __u32 period, __u32 bits)
{
	__u32 tag;
	__u64 v[4];

	if (!key)
		return 0;
	hash_tuple(v, key, period, bits);
	tag = tag_of(v);
	return mac_of(v, client_isn) | tag | (bits & COOKIE_BITS);
}

enum cookie_kind { COOKIE_NOT_OURS, COOKIE_OF_OTHER_ISN, COOKIE_VALID };

/* What is `server_isn` to a client that seems to have begun with `client_isn`? */
__noinline int afpa_cookie_kind(const struct afpa_flow_key *key, __u32 client_isn, __u32 period, __u32 server_isn)
{
	__u64 v[4];

	if (!key)
		return COOKIE_NOT_OURS;
	hash_tuple(v, key, period, server_isn);
	if (tag_of(v) != (server_isn & 0xff00))
		return COOKIE_NOT_OURS;
	return mac_of(v, client_isn) == (server_isn & 0xffff0000) ? COOKIE_VALID : COOKIE_OF_OTHER_ISN;
}

static __always_inline __u32 cookie_period(__u64 now)
{
	return now >> AFPA_COOKIE_SHIFT;
}

/* Was a SYN answered so lately that its cookie may be valid? Until then nothing is computed. */
static __always_inline bool cookies_may_be_valid(__u64 now)
{
	__u64 last = *(volatile __u64 *)&shared.cookie_ns;

	return last && now - last < 2ULL << AFPA_COOKIE_SHIFT;
}

/* What is the number that the segment acknowledges, if it is the client's first one? */
static __always_inline enum cookie_kind cookie_kind(const struct segment *s, __u64 now)
{
	__u32 period = cookie_period(now);
	enum cookie_kind kind, before;

	if (!(s->flags & TCP_ACK) || s->flags & (TCP_SYN | TCP_RST) || !cookies_may_be_valid(now))
		return COOKIE_NOT_OURS;
	kind = afpa_cookie_kind(&s->key, s->seq - 1, period, s->ack - 1);
	if (kind == COOKIE_VALID)
		return kind;
	before = afpa_cookie_kind(&s->key, s->seq - 1, period - 1, s->ack - 1);
	return before > kind ? before : kind;
}

#endif
