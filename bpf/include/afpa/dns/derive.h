/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Derive request, for DNS: from the bytes of a query to its key.
 *
 *  DN1 No label is parsed. ARCOUNT says whether an OPT record ends the message, and its last bytes whether that has a cookie, so the name's
 *       length is what is left. The whole name is looked up, by a hash of 97 sure bits with a secret: one that is malformed cannot equal
 *       a pinned one, and one that equals it ends where it was thought to end. Other options, compressed names, bytes behind the end
 *       and cut packets match nothing.
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

/* Room for a message, and for the hash of its question. */
struct dns_room {
	struct afpa_dns_hash hash;
	__u16 type;                    /* network order */
	__u8 name_length;
	__u8 bits;                     /* enum afpa_dns_bit */
	__u32 server;                  /* the number of the address that was asked */
	__u32 gap;                     /* so that the name is aligned */
	__u8 message[AFPA_DNS_QUERY_MAX + 12];
};

struct dns_question {
	__u32 buffer;   /* bytes that the client takes */
	__u16 flags;    /* host order */
	__u16 opt_sum;  /* of the OPT record, as from an even place, folded */
	__u16 type;     /* network order */
	__u8 name_length;
	__u8 bits;      /* enum afpa_dns_bit */
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

/* One word into the three sums (multilinear hashing: strongly universal in the upper 33 bits of each). */
#define DNS_HASH_WORD(factors, word)                                       \
	do {                                                                   \
		__u64 low = (__u32)(word), high = (word) >> 32;                    \
		one += ((factors)[0] + low) * ((factors)[1] + high);               \
		two += ((factors)[2] + low) * ((factors)[3] + high);               \
		three += ((factors)[4] + low) * ((factors)[5] + high);             \
	} while (0)

/*
 * The hash of the question in the room: of the name in lower case, its length, type, bits and server. Returns whether the name has
 * capitals. No byte of the name is read twice, and a name costs as many steps as it has words. A function by itself, because the
 * verifier then looks at it once.
 */
__attribute__((noinline)) int dns_hash(struct dns_room *room, struct afpa_dns_seed *seed)
{
	__u64 one, two, three, word, lower, changed, *name, *factors;
	__u32 rest, last;

	if (!room || !seed)
		return 0;
	rest = (__u8)(room->name_length - 1);
	last = rest / 8;
	one = seed->begin[3 * last];
	two = seed->begin[3 * last + 1];
	three = seed->begin[3 * last + 2];
	name = (__u64 *)(room->message + DNS_HEADER);
	factors = seed->factors;
	word = room->type | (__u64)room->name_length << 16 | (__u64)room->bits << 24 | (__u64)room->server << 32;
	DNS_HASH_WORD(factors, word);
	changed = 0;
#ifdef __clang__
#pragma clang loop unroll(disable)
#endif
	for (__u32 i = 0; i < AFPA_DNS_NAME_WORDS - 1; i++) {
		if (i >= last)
			break;
		lower = dns_lower(name[i]);
		changed |= lower ^ name[i];
		DNS_HASH_WORD(factors + 6 * (i + 1), lower);
	}
	word = name[last] & ~0ULL >> (56 - 8 * (rest & 7));
	lower = dns_lower(word);
	changed |= lower ^ word;
	DNS_HASH_WORD(factors + 6 * (last + 1), lower);
	room->hash.check = (one & 0xffffffff00000000ULL) | two >> 32;
	room->hash.set = three >> 50; /* AFPA_DNS_SETS */
	room->hash.mark = three >> 24 & 0x3ffffff;
	return changed != 0;
}

/* Is it the header of a plain query? Fills in the flags and their bits. */
static __always_inline bool dns_derive_header(struct dns_question *q, const struct dns_header *h)
{
	__u32 flags = bpf_ntohs(h->flags);

	if ((flags & ~(DNS_RD | DNS_AD | DNS_CD)) || h->questions != bpf_htons(1) || h->answers || h->authorities ||
	    (h->additionals & ~bpf_htons(1)))
		return false;
	q->flags = flags;
	q->bits = (flags & DNS_RD ? AFPA_DNS_RD : 0) | (flags & DNS_AD ? AFPA_DNS_AD : 0) | (flags & DNS_CD ? AFPA_DNS_CD : 0) |
		  (h->additionals ? AFPA_DNS_EDNS : 0);
	return true;
}

/* Does an OPT record with so many bytes of options begin here? root, OPT, size, extended code, version, flags, length of the options */
static __always_inline bool dns_is_opt(const __u8 *opt, __u32 options)
{
	return (*(const __u32 *)opt & bpf_htonl(0xffffff00)) == bpf_htonl(41 << 8) && *(const __u16 *)(opt + 9) == bpf_htons(options);
}

/* The same, with one option: a cookie of so many bytes. */
static __always_inline bool dns_has_cookie(const __u8 *opt, __u32 cookie)
{
	return dns_is_opt(opt, 4 + cookie) && *(const __u32 *)(opt + DNS_OPT) == bpf_htonl(10 << 16 | cookie);
}

/* The OPT record at the end of a message of `length` bytes: its length; 0: it is none that is known here. */
static __always_inline __u32 dns_find_opt(const __u8 *message, __u32 length, bool knows_cookies)
{
	const __u8 *end = message + length;

	if (length >= DNS_SMALLEST + DNS_OPT && dns_is_opt(end - DNS_OPT, 0))
		return DNS_OPT;
	if (length >= DNS_SMALLEST + DNS_OPT + DNS_COOKIE && dns_has_cookie(end - DNS_OPT - DNS_COOKIE, 8))
		return DNS_OPT + DNS_COOKIE;
	if (knows_cookies && length >= DNS_SMALLEST + DNS_OPT + DNS_WHOLE_OPTION &&
	    dns_has_cookie(end - DNS_OPT - DNS_WHOLE_OPTION, DNS_WHOLE_COOKIE))
		return DNS_OPT + DNS_WHOLE_OPTION;
	return 0;
}

static __always_inline __u64 dns_halves(__u64 word)
{
	return (__u32)word + (word >> 32);
}

static __always_inline __u16 dns_folded(__u64 sum)
{
	sum = dns_halves(sum);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Size, flags and cookie of the OPT record. False: it is one for the server. */
static __always_inline bool dns_derive_opt(struct dns_question *q, const __u8 *opt)
{
	__u64 sum = dns_halves(*(const __u64 *)opt) + *(const __u16 *)(opt + 8) + opt[10], option;

	q->buffer = bpf_ntohs(*(const __u16 *)(opt + 3));
	if ((*(const __u32 *)(opt + 5) & bpf_htonl(0xffff7fff)) || q->buffer < 512)
		return false;
	q->bits |= opt[7] ? AFPA_DNS_DO : 0;
	if (q->opt_length > DNS_OPT) {
		q->bits |= AFPA_DNS_COOKIE;
		q->cookie[0] = *(const __u64 *)(opt + 15);
		option = *(const __u32 *)(opt + 11) + dns_halves(q->cookie[0]);
		if (q->opt_length > DNS_OPT + DNS_COOKIE) {
			q->cookie[1] = *(const __u64 *)(opt + 23);
			q->cookie[2] = *(const __u64 *)(opt + 31);
			option += dns_halves(q->cookie[1]) + dns_halves(q->cookie[2]);
		}
		option = dns_folded(option);
		sum += (option << 8 | option >> 8) & 0xffff; /* it begins at an odd place */
	}
	q->opt_sum = dns_folded(sum);
	return true;
}

/* From a message of `length` bytes in the room to the question; its hash is not made yet. */
static __always_inline enum afpa_dns_reason dns_derive(struct dns_room *room, __u32 length, struct dns_question *q)
{
	const __u8 *message = room->message;
	__u32 name, at;

	if (!dns_derive_header(q, (const struct dns_header *)message))
		return AFPA_DNS_REASON_PASS_HEADER;
	if (q->bits & AFPA_DNS_EDNS) {
		q->opt_length = dns_find_opt(message, length, q->knows_cookies);
		if (!q->opt_length)
			return AFPA_DNS_REASON_PASS_EDNS;
	}
	name = length - DNS_HEADER - DNS_TYPE_CLASS - q->opt_length;
	if (name > AFPA_DNS_NAME_MAX)
		return AFPA_DNS_REASON_PASS_NAME; /* or bytes behind the end */
	at = name;
	asm volatile("" : "+r"(at)); /* the verifier has to see the bounds that the compiler knows */
	if (at - 1 >= AFPA_DNS_NAME_MAX)
		return AFPA_DNS_REASON_PASS_LENGTH;
	message += DNS_HEADER + at;
	q->type = *(const __u16 *)message;
	if (*(const __u16 *)(message + 2) != bpf_htons(1) || q->type == bpf_htons(255) || q->type == bpf_htons(252) ||
	    q->type == bpf_htons(251))
		return AFPA_DNS_REASON_PASS_TYPE;
	q->buffer = 512;
	if (q->opt_length && !dns_derive_opt(q, message + DNS_TYPE_CLASS))
		return AFPA_DNS_REASON_PASS_EDNS;
	q->name_length = name;
	return AFPA_DNS_REASON_ANSWERED;
}

/* Hashes the question, sent to the address with this number. */
static __always_inline void dns_hash_question(struct dns_room *room, struct dns_question *q, __u32 server, struct afpa_dns_seed *seed)
{
	room->type = q->type;
	room->name_length = q->name_length;
	room->bits = q->bits;
	room->server = server;
	q->mixed = dns_hash(room, seed);
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
