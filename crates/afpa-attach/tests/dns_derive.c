/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The programs' derivation of DNS keys as an ordinary process: the same header over a few lines that stand in for the kernel.
 *
 * Standard input: the secret of hashes, and (length:u32 message)*, with the highest bit of the length if the secret of cookies is
 * known. Standard output, for each: reason:u32, buffer:u32, mixed:u32, type:u16 (network order), length of the name:u8, bits:u8, check:u64,
 * the pinned word with tail 5, zone 7 and rule 3; all but the reason are 0 if the server gets the query.
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

#define bpf_htonl __builtin_bswap32

#include <afpa/dns/derive.h>

static struct afpa_dns_seed seed;
static struct dns_room room;
static __u8 message[65536];

int main(void)
{
	__u32 length;

	if (fread(&seed, sizeof(seed), 1, stdin) != 1)
		return 1;
	while (fread(&length, sizeof(length), 1, stdin) == 1 && (length & 0x7fffffff) <= sizeof(message)) {
		struct dns_question q = { .knows_cookies = length >> 31 };
		__u32 answer[4] = { AFPA_DNS_REASON_PASS_LENGTH };
		__u64 hash[2] = {};

		length &= 0x7fffffff;
		if (length && fread(message, length, 1, stdin) != 1)
			return 1;
		if (length >= DNS_SMALLEST && length <= AFPA_DNS_QUERY_MAX - 8) {
			/* The bytes before it stay behind its end, as in the programs. */
			memcpy(room.message, message, length);
			answer[0] = dns_derive(&room, length, &q);
		}
		if (answer[0] == AFPA_DNS_REASON_ANSWERED) {
			dns_hash_question(&room, &q, 3, &seed);
			answer[1] = q.buffer;
			answer[2] = q.mixed;
			answer[3] = q.type | q.name_length << 16 | (__u32)q.bits << 24;
			hash[0] = room.hash.check;
			hash[1] = 5 | 7 << AFPA_DNS_TAIL_BITS | 3ULL << (AFPA_DNS_TAIL_BITS + AFPA_DNS_ZONE_BITS) |
				  (__u64)room.hash.mark << (AFPA_DNS_TAIL_BITS + AFPA_DNS_ZONE_BITS + AFPA_DNS_RULE_BITS);
			if (room.hash.set >= AFPA_DNS_SETS)
				return 2;
		}
		fwrite(answer, sizeof(answer), 1, stdout);
		fwrite(hash, sizeof(hash), 1, stdout);
		fwrite(&room.hash.set, sizeof(room.hash.set), 1, stdout);
		fflush(stdout);
	}
	return 0;
}
