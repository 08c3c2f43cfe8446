/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SYN cookies (RFC 4987, 3.6): a SYN is answered without keeping anything of it. Our first sequence number says what was
 * agreed on, and proves, when it comes back acknowledged, that the client got it.
 *
 *      31                     8 7   6  5  4  3     0
 *     +------------------------+-----+---+---+-------+
 *     |          MAC           | MSS | T | S | scale |      T: timestamps, S: SACK
 *     +------------------------+-----+---+---+-------+
 *
 * The MAC is 24 bits of SipHash-2-4, under a secret of this process, of the tuple, the client's first number, the low
 * eight bits and the period. A cookie is valid in the period in which it was made and in the next one: for 17 to 34 s,
 * longer than a client takes for a handshake and its first request on a path on which anything arrives.
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

/* SipHash-2-4 of six words. */
static __always_inline __u64 sip_hash(const __u64 key[2], const __u64 words[6])
{
	__u64 v[4] = {
		key[0] ^ 0x736f6d6570736575ULL, key[1] ^ 0x646f72616e646f6dULL,
		key[0] ^ 0x6c7967656e657261ULL, key[1] ^ 0x7465646279746573ULL,
	};

	for (int i = 0; i < 6; i++)
		sip_word(v, words[i]);
	sip_word(v, 48ULL << 56); /* the length in bytes */
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The cookie with these low bits. */
static __always_inline __u32 make_cookie(const struct afpa_flow_key *key, __u32 client_isn, __u32 period, __u32 bits)
{
	const __u64 *addresses = (const __u64 *)key;
	__u64 words[6] = {
		addresses[0], addresses[1], addresses[2], addresses[3],
		(__u64)client_isn << 32 | (__u32)key->client_port << 16 | key->server_port,
		(__u64)period << 8 | (bits & COOKIE_BITS),
	};

	return (__u32)sip_hash(shared.cookie_key, words) << 8 | (bits & COOKIE_BITS);
}

/* Global functions: verified once, and with a stack of their own. */
__noinline __u32 afpa_cookie(const struct afpa_flow_key *key, __u32 client_isn, __u32 period, __u32 bits)
{
	return key ? make_cookie(key, client_isn, period, bits) : 0;
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

/* Is `server_isn` a valid cookie for a client that began with `client_isn`? */
static __always_inline bool is_cookie_valid(const struct afpa_flow_key *key, __u32 client_isn, __u32 server_isn, __u64 now)
{
	__u32 period = cookie_period(now);

	return afpa_cookie(key, client_isn, period, server_isn) == server_isn ||
	       afpa_cookie(key, client_isn, period - 1, server_isn) == server_isn;
}

/* May the segment be the client's first after our SYN-ACK? */
static __always_inline bool has_valid_cookie(const struct segment *s, __u64 now)
{
	return s->flags & TCP_ACK && !(s->flags & (TCP_SYN | TCP_RST)) && cookies_may_be_valid(now) &&
	       is_cookie_valid(&s->key, s->seq - 1, s->ack - 1, now);
}

#endif
