/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Derive request, for DNS: from the bytes of a query to its key.
 *
 *  DN1 No label is parsed. ARCOUNT says whether an OPT record ends the message, and its last bytes whether that has a cookie, so the name's
 *       length is what is left. The whole name is looked up: one that is malformed cannot equal a pinned one, and one that equals it
 *       ends where it was thought to end. Other options, compressed names, bytes behind the end and cut packets match nothing.
 *  DN2 What is not surely a plain query goes to the server: servers differ in what they answer to it.
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
#define DNS_COOKIE 12 /* an option with a client's cookie of 8 bytes */
#define DNS_WHOLE_COOKIE 24
#define DNS_WHOLE_OPTION (4 + DNS_WHOLE_COOKIE)
#define DNS_TYPE_CLASS 4
#define DNS_SMALLEST (DNS_HEADER + 1 + DNS_TYPE_CLASS)

struct dns_header {
	__u16 id, flags, questions, answers, authorities, additionals; /* network order */
};

/* The bytes behind the name: type and class, and then perhaps an OPT record, with zeros behind it. */
struct dns_end {
	__u16 type, class;                 /* network order */
	__u8 opt[DNS_OPT + DNS_WHOLE_OPTION + 1]; /* at an even place */
};

struct dns_question {
	struct afpa_dns_key key;
	__u32 buffer;   /* bytes that the client takes */
	__u16 flags;    /* host order */
	__u16 opt_sum;  /* of the OPT record, as from an even place, folded */
	__u8 opt_length;
	bool mixed;     /* the name was not in lower case */
	bool knows_cookies; /* set before: a cookie of the server's can be checked */
	bool proven;    /* it was, and is right */
	__u64 cookie[3]; /* the client's; version and time, hash of the server's */
};

/* Eight bytes to lower case at once. A label's length, at most 63, lies below 'A'. */
static __always_inline __u64 dns_lower(__u64 word)
{
	const __u64 ones = 0x0101010101010101ULL, high = ones << 7;
	__u64 low = word & ~high;
	__u64 above_z = low + ones * (0x7f - 'Z'), from_a = low + ones * (0x80 - 'A');

	return word | ((~word & high & (above_z ^ from_a)) >> 2);
}

static __always_inline __u16 dns_u16(const __u8 *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

/* Is it the header of a plain query? Fills in the flags and their bits. */
static __always_inline bool dns_derive_header(struct dns_question *q, const struct dns_header *h)
{
	__u32 flags = bpf_ntohs(h->flags);

	if ((flags & ~(DNS_RD | DNS_AD | DNS_CD)) || h->questions != bpf_htons(1) || h->answers || h->authorities ||
	    (h->additionals & ~bpf_htons(1)))
		return false;
	q->flags = flags;
	q->key.bits = (flags & DNS_RD ? AFPA_DNS_RD : 0) | (flags & DNS_AD ? AFPA_DNS_AD : 0) |
		      (flags & DNS_CD ? AFPA_DNS_CD : 0) | (h->additionals ? AFPA_DNS_EDNS : 0);
	return true;
}

/* Does an OPT record with so many bytes of options begin here? root, OPT, size, extended code, version, flags, length of the options */
static __always_inline bool dns_is_opt(const __u8 *opt, __u32 options)
{
	return !opt[0] && dns_u16(opt + 1) == 41 && dns_u16(opt + 9) == options;
}

/* The OPT record at the end of a message of `length` bytes that ends at `end`: its length; 0: it is none that is known here. */
static __always_inline __u32 dns_find_opt(struct __sk_buff *skb, __u32 end, __u32 length, __u8 *opt, bool knows_cookies)
{
	if (length >= DNS_SMALLEST + DNS_OPT && !bpf_skb_load_bytes(skb, end - DNS_OPT, opt, DNS_OPT) && dns_is_opt(opt, 0))
		return DNS_OPT;
	if (length >= DNS_SMALLEST + DNS_OPT + DNS_COOKIE &&
	    !bpf_skb_load_bytes(skb, end - DNS_OPT - DNS_COOKIE, opt, DNS_OPT + DNS_COOKIE) && dns_is_opt(opt, DNS_COOKIE) &&
	    dns_u16(opt + 11) == 10 && dns_u16(opt + 13) == 8)
		return DNS_OPT + DNS_COOKIE;
	if (knows_cookies && length >= DNS_SMALLEST + DNS_OPT + DNS_WHOLE_OPTION &&
	    !bpf_skb_load_bytes(skb, end - DNS_OPT - DNS_WHOLE_OPTION, opt, DNS_OPT + DNS_WHOLE_OPTION) &&
	    dns_is_opt(opt, DNS_WHOLE_OPTION) && dns_u16(opt + 11) == 10 && dns_u16(opt + 13) == DNS_WHOLE_COOKIE)
		return DNS_OPT + DNS_WHOLE_OPTION;
	return 0;
}

/* Type, class and OPT record. */
static __always_inline enum afpa_dns_reason dns_derive_end(struct dns_question *q, const struct dns_end *end)
{
	const __u16 *words = (const __u16 *)end->opt;
	__u32 type = bpf_ntohs(end->type), sum = 0;

	if (end->class != bpf_htons(1) || type == 255 || type == 252 || type == 251)
		return AFPA_DNS_REASON_PASS_TYPE;
	q->key.type = end->type;
	q->buffer = 512;
	if (!q->opt_length)
		return AFPA_DNS_REASON_ANSWERED;
	q->buffer = dns_u16(end->opt + 3);
	if (end->opt[5] || end->opt[6] || (dns_u16(end->opt + 7) & ~0x8000) || q->buffer < 512)
		return AFPA_DNS_REASON_PASS_EDNS;
	q->key.bits |= (end->opt[7] ? AFPA_DNS_DO : 0) | (q->opt_length > DNS_OPT ? AFPA_DNS_COOKIE : 0);
	if (q->opt_length > DNS_OPT)
		__builtin_memcpy(q->cookie, end->opt + DNS_OPT + 4, sizeof(q->cookie)); /* zeros behind a client's alone */
	for (int i = 0; i < (DNS_OPT + DNS_WHOLE_OPTION + 1) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	q->opt_sum = (sum & 0xffff) + (sum >> 16);
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
	__u32 length = udp_length - 8, name;
	enum afpa_dns_reason reason;
	struct dns_header header;
	struct dns_end end = {};

	if (udp_length < 8 + DNS_SMALLEST || udp_length > AFPA_DNS_QUERY_MAX ||
	    bpf_skb_load_bytes(skb, at, &header, sizeof(header)))
		return AFPA_DNS_REASON_PASS_LENGTH;
	if (!dns_derive_header(q, &header))
		return AFPA_DNS_REASON_PASS_HEADER;
	if (q->key.bits & AFPA_DNS_EDNS) {
		q->opt_length = dns_find_opt(skb, at + length, length, end.opt, q->knows_cookies);
		if (!q->opt_length)
			return AFPA_DNS_REASON_PASS_EDNS;
	}
	name = length - DNS_HEADER - DNS_TYPE_CLASS - q->opt_length;
	if (name > AFPA_DNS_NAME_MAX)
		return AFPA_DNS_REASON_PASS_NAME; /* or bytes behind the end */
	q->key.name_length = name;
	asm volatile("" : "+r"(name)); /* the verifier has to see the bounds that the compiler knows */
	at += DNS_HEADER;
	if (name - 1 >= AFPA_DNS_NAME_MAX || bpf_skb_load_bytes(skb, at, q->key.name, name))
		return AFPA_DNS_REASON_PASS_LENGTH;
	if (bpf_skb_load_bytes(skb, at + name, &end.type, DNS_TYPE_CLASS))
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
