/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ids and tokens that a program checks without state: SipHash-2-4 under keys that user mode has as well
 * (`crates/afpa-tls/src/quic/tokens.rs`, `crates/afpa-server/src/h3/steering/id.rs`).
 *
 *     id:     random (4) | SipHash(random) xor place (4)         place: 18 bits of 0, generation (4), worker (10)
 *     of a Retry: the same with place 0, under a key of its own
 *     token:  0 | 1 | client's address (16) | port (2) | length | first id | seconds since 1970 (8) | own id (8) | SipHash of all (8)
 *
 *  RT1 A token is bound to the client's address, port and time, and not to the id that its packet is sent to: the client's later
 *      Initials bear it, too, with an id of the server's (RFC 9000, 8.1.2).
 *  RT2 The time says which key made a token, so that each one holds for its whole life while keys change.
 *
 * The first part, up to the seconds, is the content of a Retry token as quinn has it. Addresses of IPv4 are always ::ffff:a.b.c.d.
 * Bytes stand in rooms of 256 bytes and some more, at places that are cut to eight bits.
 */
#ifndef AFPA_QUIC_TOKEN_H
#define AFPA_QUIC_TOKEN_H

#include <afpa/quic/abi.h>
#include <afpa/sip.h>

#define QUIC_ROOM 288        /* bytes of a room: 256, and what may be read or written from the last of them on */
#define QUIC_TOKEN_WORDS 8   /* of the longest text that is hashed, with its last one */
#define QUIC_TOKEN_BARE 45   /* bytes of a token without an id */

#ifdef __bpf__
/* Compilers leave out a mask that changes nothing; the verifier then misses it. */
#define quic_cut(at) asm volatile("%0 &= 255" : "+r"(at))
#else
#define quic_cut(at) ((at) &= 255)
#endif

static __always_inline __u8 *quic_at(__u8 *room, __u32 at)
{
	quic_cut(at);
	return room + at;
}

#define QUIC_U16(place) (*(__u16 *)(place))
#define QUIC_U32(place) (*(__u32 *)(place))
#define QUIC_U64(place) (*(__u64 *)(place))

/* The hash of less than 64 bytes of a room. Not inline, nor is the tag: their words need a stack of their own. */
static __attribute__((noinline)) __u64 quic_hash(const __u64 *key, __u8 *room, __u32 from, __u32 length)
{
	struct sip s = sip_begin(key);
	__u32 words = length / 8, rest = (length & 7) * 8;

	for (__u32 i = 0; i < QUIC_TOKEN_WORDS; i++) {
		__u64 word = QUIC_U64(quic_at(room, from + i * 8));

		if (i >= words)
			word = (rest ? word & ((1ULL << rest) - 1) : 0) | (__u64)length << 56;
		sip_take(&s, word);
		if (i >= words)
			break;
	}
	return sip_end(&s);
}

/* --- ids --- */

static __attribute__((noinline)) __u32 quic_mask(const __u64 *key, __u32 random)
{
	struct sip s = sip_begin(key);

	sip_take(&s, random | 4ULL << 56);
	return sip_end(&s);
}

/* The place that an id names under a key. Only of ids of ours it is one: all its upper bits are 0. */
static __always_inline __u32 quic_place(const __u64 *key, const __u8 *id)
{
	return bpf_ntohl(QUIC_U32(id + 4)) ^ quic_mask(key, bpf_ntohl(QUIC_U32(id)));
}

static __always_inline bool quic_is_place(__u32 place)
{
	return !(place >> AFPA_QUIC_PLACE_BITS);
}

/*
 * Is it an id that a Retry gave? Its client can change the place in it, so these have a key of their own: under the key of ids,
 * bytes that are made of one are no more than bytes by chance, and a place that is not 0 is none of a Retry.
 */
static __always_inline bool quic_is_of_retry(const __u64 *key, const __u8 *id)
{
	return !quic_place(key, id);
}

/* An id of this place, as it stands in a packet. */
static __always_inline __u64 quic_make_id(const __u64 *key, __u32 random, __u32 place)
{
	return bpf_htonl(random) | (__u64)bpf_htonl(quic_mask(key, random) ^ place) << 32;
}

/* --- tokens --- */

/* The client that a token is for: 16 bytes of address, and the port, both as in packets. */
struct quic_client {
	const __u32 *address;
	__be16 port;
};

/* The place of the key of tokens that were made at this second. */
static __always_inline const struct afpa_quic_token_key *quic_token_key(const struct afpa_quic_config *config, __u64 second)
{
	return &config->token_keys[second >> AFPA_QUIC_PERIOD_SHIFT & (AFPA_QUIC_TOKEN_KEYS - 1)];
}

/* Is it there? */
static __always_inline bool quic_has_token_key(const struct afpa_quic_config *config, __u64 second)
{
	return *(volatile const __u64 *)&quic_token_key(config, second)->period == second >> AFPA_QUIC_PERIOD_SHIFT;
}

/* Writes an id of at most 20 bytes, of which four more are written. */
static __always_inline void quic_put_id(__u8 *to, const __u8 *id)
{
	QUIC_U64(to) = QUIC_U64(id);
	QUIC_U64(to + 8) = QUIC_U64(id + 8);
	QUIC_U64(to + 16) = QUIC_U64(id + 16);
}

/* Writes the token for a client that has sent its first packet to `first`. Returns the place behind it. */
static __always_inline __u32 quic_put_token(__u8 *room, __u32 at, const struct quic_client *client, const __u8 *first,
					    __u32 first_length, __u64 second, __u64 own, const __u64 *key)
{
	__u32 begin = at;
	__u64 hash;

	QUIC_U16(quic_at(room, at)) = bpf_htons(1);
	for (int i = 0; i < 4; i++)
		QUIC_U32(quic_at(room, at + 2 + 4 * i)) = client->address[i];
	QUIC_U16(quic_at(room, at + 18)) = client->port;
	*quic_at(room, at + 20) = first_length;
	quic_put_id(quic_at(room, at + 21), first);
	at += 21 + first_length;
	QUIC_U64(quic_at(room, at)) = bpf_cpu_to_be64(second);
	QUIC_U64(quic_at(room, at + 8)) = own;
	at += 16;
	hash = quic_hash(key, room, begin, at - begin);
	QUIC_U64(quic_at(room, at)) = hash;
	return at + 8;
}

/* Is it a token of ours for this client, and young enough? (RT1, RT2) */
static __always_inline bool quic_token_holds(const struct afpa_quic_config *config, __u8 *room, __u32 at, __u32 length,
					     const struct quic_client *client, __u64 now)
{
	__u64 second;
	__u32 first;

	if (length < QUIC_TOKEN_BARE || length > AFPA_QUIC_TOKEN_MAX)
		return false;
	first = length - QUIC_TOKEN_BARE;
	if (QUIC_U16(quic_at(room, at)) != bpf_htons(1) || QUIC_U16(quic_at(room, at + 18)) != client->port ||
	    *quic_at(room, at + 20) != first)
		return false;
	for (int i = 0; i < 4; i++)
		if (QUIC_U32(quic_at(room, at + 2 + 4 * i)) != client->address[i])
			return false;
	second = bpf_be64_to_cpu(QUIC_U64(quic_at(room, at + length - 24)));
	if (second > now || now - second >= AFPA_QUIC_TOKEN_LIFE)
		return false;
	return quic_has_token_key(config, second) &&
	       quic_hash(quic_token_key(config, second)->words, room, at, length - 8) == QUIC_U64(quic_at(room, at + length - 8));
}

#endif
