/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The programs' derivation of DNS keys as an ordinary process: the same header over a few lines that stand in for the kernel.
 *
 * Standard input: (length:u32 message)*, with the highest bit of the length if the secret of cookies is known. Standard
 * output, for each: reason:u32, buffer:u32, mixed:u32, the pinned word with tail 5, zone 7,
 * rule 3 and seed 11 as two u32, the key; all but the reason are 0 if the server gets the query.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef unsigned long long __u64;

#undef __always_inline /* the C library has its own */
#define __always_inline inline __attribute__((always_inline))
#define bpf_htons __builtin_bswap16 /* this machine is little-endian, as those that run the test are */
#define bpf_ntohs __builtin_bswap16

struct __sk_buff {
	__u8 bytes[65536];
	__u32 length;
};

static long bpf_skb_load_bytes(const struct __sk_buff *skb, __u32 at, void *to, __u32 length)
{
	if (at > skb->length || length > skb->length - at)
		return -1;
	memcpy(to, skb->bytes + at, length);
	return 0;
}

#include <afpa/dns/derive.h>

static struct __sk_buff packet;

int main(void)
{
	__u32 length;

	while (fread(&length, sizeof(length), 1, stdin) == 1 && (length & 0x7fffffff) <= sizeof(packet.bytes)) {
		struct dns_question q = { .key.server = 3, .knows_cookies = length >> 31 };
		__u32 answer[5] = {};
		__u64 word;

		length &= 0x7fffffff;

		if (length && fread(packet.bytes, length, 1, stdin) != 1)
			return 1;
		packet.length = length;
		answer[0] = dns_derive(&packet, 0, length + 8, &q);
		if (answer[0] == AFPA_DNS_REASON_ANSWERED) {
			word = 5 | 7 << AFPA_DNS_TAIL_BITS | 3ULL << (AFPA_DNS_TAIL_BITS + AFPA_DNS_ZONE_BITS) |
			       dns_fingerprint(&q.key, 11) << (AFPA_DNS_TAIL_BITS + AFPA_DNS_ZONE_BITS + AFPA_DNS_RULE_BITS);
			answer[1] = q.buffer;
			answer[2] = q.mixed;
			memcpy(answer + 3, &word, sizeof(word));
		} else {
			memset(&q.key, 0, sizeof(q.key));
		}
		fwrite(answer, sizeof(answer), 1, stdout);
		fwrite(&q.key, sizeof(q.key), 1, stdout);
		fflush(stdout);
	}
	return 0;
}
