/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Derive request, for DNS: from the bytes of a query to its key.
 *
 *  DNS1 No label is parsed. ARCOUNT says whether an OPT record of 11 bytes follows the question, so the name's length is what is left
 *       of the datagram. The whole name is looked up: one that is malformed cannot equal a pinned one. Options, compressed
 *       names, bytes behind the end and cut packets match nothing.
 *  DNS2 What is not surely a plain query goes to the server: servers differ in what they answer to it.
 *
 * Plain C without maps: a test runs it in user space against `derive` of `afpa-attach`.
 */
#ifndef AFPA_DNS_DERIVE_H
#define AFPA_DNS_DERIVE_H

#include <afpa/dns/abi.h>
#include <afpa/dns/reasons.h>

#define DNS_RD 0x0100
#define DNS_AD 0x0020
#define DNS_CD 0x0010
#define DNS_HEADER 12
#define DNS_OPT 11
#define DNS_TYPE_CLASS 4
#define DNS_SMALLEST (DNS_HEADER + 1 + DNS_TYPE_CLASS)

struct dns_header {
	__u16 id, flags, questions, answers, authorities, additionals; /* network order */
};

/* The bytes behind the name: type and class, and then perhaps an OPT record. */
struct dns_end {
	__u8 bytes[DNS_TYPE_CLASS + DNS_OPT];
	__u8 pad;
};

struct dns_question {
	struct afpa_dns_key key;
	__u32 buffer;   /* bytes that the client takes */
	__u16 flags;    /* host order */
	__u16 size;     /* of the OPT record: the buffer as it was said */
	bool edns, asks_signatures;
	bool mixed;     /* the name was not in lower case */
};

/* Eight bytes to lower case at once. A label's length, at most 63, lies below 'A'. */
static __always_inline __u64 dns_lower(__u64 word)
{
	const __u64 ones = 0x0101010101010101ULL, high = ones << 7;
	__u64 low = word & ~high;
	__u64 above_z = low + ones * (0x7f - 'Z'), from_a = low + ones * (0x80 - 'A');

	return word | ((~word & high & (above_z ^ from_a)) >> 2);
}

/*
 * The header of a message of `length` bytes. Fills in the flags, the bits and the length of the name, which may still be any
 * number. AFPA_DNS_REASON_ANSWERED: it is that of a plain query.
 */
static __always_inline enum afpa_dns_reason dns_derive_header(struct dns_question *q, const struct dns_header *h, __u32 length)
{
	__u32 name, flags = bpf_ntohs(h->flags);

	if (length < DNS_SMALLEST || length + 8 > AFPA_DNS_QUERY_MAX)
		return AFPA_DNS_REASON_PASS_LENGTH;
	if ((flags & ~(DNS_RD | DNS_AD | DNS_CD)) || h->questions != bpf_htons(1) || h->answers || h->authorities ||
	    (h->additionals & ~bpf_htons(1)))
		return AFPA_DNS_REASON_PASS_HEADER;
	q->flags = flags;
	q->edns = h->additionals != 0;
	name = length - DNS_HEADER - DNS_TYPE_CLASS;
	if (q->edns) {
		if (name < 1 + DNS_OPT)
			return AFPA_DNS_REASON_PASS_LENGTH;
		name -= DNS_OPT;
	}
	if (name > AFPA_DNS_NAME_MAX)
		return AFPA_DNS_REASON_PASS_NAME; /* or options of EDNS, or bytes behind the end */
	q->key.name_length = name;
	q->key.bits = (flags & DNS_RD ? AFPA_DNS_RD : 0) | (flags & DNS_AD ? AFPA_DNS_AD : 0) |
		      (flags & DNS_CD ? AFPA_DNS_CD : 0);
	return AFPA_DNS_REASON_ANSWERED;
}

static __always_inline __u16 dns_u16(const __u8 *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

/* The bytes behind the name. */
static __always_inline enum afpa_dns_reason dns_derive_end(struct dns_question *q, const struct dns_end *end)
{
	const __u8 *opt = end->bytes + DNS_TYPE_CLASS;
	__u32 type = dns_u16(end->bytes);

	if (dns_u16(end->bytes + 2) != 1 || type == 255 || type == 252 || type == 251)
		return AFPA_DNS_REASON_PASS_TYPE;
	q->key.type = bpf_htons(type);
	q->buffer = 512;
	if (!q->edns)
		return AFPA_DNS_REASON_ANSWERED;
	/* root, OPT, size, extended code, version, flags, length of the options */
	q->size = dns_u16(opt + 3);
	if (opt[0] || dns_u16(opt + 1) != 41 || opt[5] || opt[6] || (dns_u16(opt + 7) & ~0x8000) || dns_u16(opt + 9) ||
	    q->size < 512)
		return AFPA_DNS_REASON_PASS_EDNS;
	q->buffer = q->size;
	q->asks_signatures = opt[7] != 0;
	q->key.bits |= AFPA_DNS_EDNS | (q->asks_signatures ? AFPA_DNS_DO : 0);
	return AFPA_DNS_REASON_ANSWERED;
}

/* The name, which has been copied into the key, with zeros behind it. */
static __always_inline void dns_derive_name(struct dns_question *q)
{
	__u64 *words = (__u64 *)q->key.name, changed = 0;

	for (int i = 0; i < AFPA_DNS_NAME_MAX / 8; i++) {
		__u64 lower = dns_lower(words[i]);

		changed |= lower ^ words[i];
		words[i] = lower;
	}
	q->mixed = changed;
}

/* From a message at `at`, in a datagram of `udp_length` bytes with its UDP header, to the question. */
static __always_inline enum afpa_dns_reason dns_derive(struct __sk_buff *skb, __u32 at, __u32 udp_length, struct dns_question *q)
{
	enum afpa_dns_reason reason;
	struct dns_header header;
	struct dns_end end = {};
	__u32 name;

	if (udp_length < 8 + DNS_SMALLEST || bpf_skb_load_bytes(skb, at, &header, sizeof(header)))
		return AFPA_DNS_REASON_PASS_LENGTH;
	reason = dns_derive_header(q, &header, udp_length - 8);
	if (reason != AFPA_DNS_REASON_ANSWERED)
		return reason;
	name = q->key.name_length;
	asm volatile("" : "+r"(name)); /* the verifier has to see the bounds that the compiler knows */
	at += DNS_HEADER;
	if (name - 1 >= AFPA_DNS_NAME_MAX || bpf_skb_load_bytes(skb, at, q->key.name, name))
		return AFPA_DNS_REASON_PASS_LENGTH;
	if (bpf_skb_load_bytes(skb, at + name, &end, q->edns ? DNS_TYPE_CLASS + DNS_OPT : DNS_TYPE_CLASS))
		return AFPA_DNS_REASON_PASS_LENGTH;
	reason = dns_derive_end(q, &end);
	if (reason == AFPA_DNS_REASON_ANSWERED)
		dns_derive_name(q);
	return reason;
}

/* A number that two keys hardly have in common. */
static __always_inline __u64 dns_fingerprint(const struct afpa_dns_key *key, __u64 seed)
{
	const __u64 *words = (const __u64 *)key;
	__u64 hash = seed;

	for (int i = 0; i < AFPA_DNS_KEY_WORDS; i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
	}
	return hash >> (AFPA_DNS_TAIL_BITS + AFPA_DNS_ZONE_BITS + AFPA_DNS_RULE_BITS);
}

/* The smallest buffer for which a pinned answer was seen to be the server's. */
static __always_inline __u32 dns_least_buffer(__u32 rule)
{
	switch (rule & AFPA_DNS_FROM_MASK) {
	case AFPA_DNS_FROM_512: return 512;
	case AFPA_DNS_FROM_1232: return 1232;
	default: return 4096;
	}
}

#endif
