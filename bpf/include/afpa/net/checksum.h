/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Internet checksums, RFC 1071: sums of native 16-bit words, unfolded while they are gathered.
 */
#ifndef AFPA_NET_CHECKSUM_H
#define AFPA_NET_CHECKSUM_H

#include <afpa/net/packet.h>

/* 2^16 == 1 modulo 65535, so wider words may be added just as well, and folded at the end. */
static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static __always_inline __u64 sum_words(const void *bytes, __u32 words)
{
	const __u32 *word = bytes;
	__u64 sum = 0;

	for (__u32 i = 0; i < words; i++)
		sum += word[i];
	return sum;
}

/* The kernel's knowledge of the checksum of a packet that came in. */
static __always_inline __u32 checksum_state(struct __sk_buff *skb)
{
	return skb_bits(skb, ip_summed);
}

/* Sum of `length` bytes by the kernel's own routine; zero padding to a multiple of 4 is the caller's. */
#define SUM_CHUNK 512 /* kernels before 6.13 take no more at a time */
static __always_inline __u32 sum_bytes(__u8 *bytes, __u32 length)
{
	__u32 sum = 0;

	for (int i = 0; i < AFPA_HEAD_MAX / SUM_CHUNK; i++) {
		__u32 rest = length - i * SUM_CHUNK;

		if (i * SUM_CHUNK >= length)
			break;
		rest = rest > SUM_CHUNK ? SUM_CHUNK : (rest + 3) & ~3;
		if (rest > SUM_CHUNK) /* never: for the verifier */
			break;
		sum = bpf_csum_diff(0, 0, (__be32 *)(bytes + i * SUM_CHUNK), rest, sum);
	}
	return sum;
}

#endif
