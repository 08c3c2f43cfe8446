/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The programs' cookies as an ordinary process: the same header over a few lines that stand in for the kernel.
 *
 * Standard input: (secret:16 cookie:24 address:16 now:u32 ipv6:u32)*. Standard output, for each: proves:u32, and the option of the answer.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef int32_t __s32;
typedef unsigned long long __u64;

#undef __always_inline /* the C library has its own */
#define __always_inline inline __attribute__((always_inline))
#define bpf_htons __builtin_bswap16 /* this machine is little-endian, as those that run the test are */
#define bpf_ntohs __builtin_bswap16
#define bpf_htonl __builtin_bswap32
#define bpf_ntohl __builtin_bswap32

#include <afpa/dns/cookie.h>

struct asked {
	__u64 secret[2], cookie[3];
	__u32 address[4], now, ipv6;
};

int main(void)
{
	struct asked asked;

	while (fread(&asked, sizeof(asked), 1, stdin) == 1) {
		struct dns_question q = {};
		__u32 option[DNS_WHOLE_OPTION / 4], proves;

		memcpy(q.cookie, asked.cookie, sizeof(q.cookie));
		q.proven = dns_cookie_proves(&q, asked.secret, asked.now, asked.address, asked.ipv6);
		proves = q.proven;
		dns_make_cookie(&q, asked.secret, asked.now, asked.address, asked.ipv6, option);
		fwrite(&proves, sizeof(proves), 1, stdout);
		fwrite(option, sizeof(option), 1, stdout);
		fflush(stdout);
	}
	return 0;
}
