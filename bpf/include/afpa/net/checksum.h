/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Internet checksums, RFC 1071: sums of native 16-bit words, unfolded while they are gathered.
 */
#ifndef AFPA_CHECKSUM_H
#define AFPA_CHECKSUM_H

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

/* Pseudo-header of a segment between the two ends of `key`; mapping prefixes are not on the wire. */
static __always_inline __u64 sum_pseudo(const struct segment *s, __u32 tcp_length)
{
	const __u32 *client = (const __u32 *)s->key.client, *server = (const __u32 *)s->key.server;
	__u64 sum = bpf_htons(IPPROTO_TCP) + (__u64)bpf_htons(tcp_length);

	sum += (__u64)client[3] + server[3];
	if (s->ipv6)
		sum += (__u64)client[0] + client[1] + client[2] + server[0] + server[1] + server[2];
	return sum;
}

/* What the kernel knows about the checksum of a packet that came in. */
static __always_inline __u32 checksum_state(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	return BPF_CORE_READ_BITFIELD(kernel, ip_summed);
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
