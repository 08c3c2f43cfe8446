/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SipHash-2-4 (Aumasson, Bernstein), word by word: for cookies of DNS, and for ids and tokens of QUIC. A text's last word has its
 * length in the upper byte.
 */
#ifndef AFPA_SIP_H
#define AFPA_SIP_H

struct sip {
	__u64 a, b, c, d;
};

static __always_inline __u64 sip_rotated(__u64 word, int by)
{
	return word << by | word >> (64 - by);
}

static __always_inline void sip_round(struct sip *s)
{
	s->a += s->b;
	s->b = sip_rotated(s->b, 13) ^ s->a;
	s->a = sip_rotated(s->a, 32);
	s->c += s->d;
	s->d = sip_rotated(s->d, 16) ^ s->c;
	s->a += s->d;
	s->d = sip_rotated(s->d, 21) ^ s->a;
	s->c += s->b;
	s->b = sip_rotated(s->b, 17) ^ s->c;
	s->c = sip_rotated(s->c, 32);
}

static __always_inline struct sip sip_begin(const __u64 *key)
{
	return (struct sip){
		key[0] ^ 0x736f6d6570736575ULL,
		key[1] ^ 0x646f72616e646f6dULL,
		key[0] ^ 0x6c7967656e657261ULL,
		key[1] ^ 0x7465646279746573ULL,
	};
}

static __always_inline void sip_take(struct sip *s, __u64 word)
{
	s->d ^= word;
	sip_round(s);
	sip_round(s);
	s->a ^= word;
}

static __always_inline __u64 sip_end(struct sip *s)
{
	s->c ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(s);
	return s->a ^ s->b ^ s->c ^ s->d;
}

#endif
