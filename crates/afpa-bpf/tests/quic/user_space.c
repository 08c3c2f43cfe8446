/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ids, tokens and tags of the program for QUIC as an ordinary process: the same headers over a few lines that stand in for the kernel.
 *
 * Standard input: the table of tags, then `struct asked` again and again. Standard output: a `struct answer` for each.
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
typedef __u16 __be16;

#undef __always_inline /* the C library has its own */
#define __always_inline inline __attribute__((always_inline))
#define bpf_htons __builtin_bswap16 /* this machine is little-endian, as those that run the test are */
#define bpf_ntohs __builtin_bswap16
#define bpf_htonl __builtin_bswap32
#define bpf_ntohl __builtin_bswap32
#define bpf_cpu_to_be64 __builtin_bswap64
#define bpf_be64_to_cpu __builtin_bswap64

#include <afpa/quic/tag.h>

struct asked {
	__u64 key[2], period, second, own, now;
	__u32 address[4], random, place, token_length, text_length;
	__u16 port;
	__u8 first_length, first[29], token[96], text[128];
};

struct answer {
	__u64 id;
	__u32 made_length, holds, place, of_retry;
	__u8 made[96], tag[16];
};

int main(void)
{
	static struct afpa_quic_table table;
	struct asked asked;

	if (fread(&table, sizeof(table), 1, stdin) != 1)
		return 1;
	while (fread(&asked, sizeof(asked), 1, stdin) == 1) {
		struct quic_client client = { .address = asked.address, .port = asked.port };
		struct afpa_quic_config config = {};
		struct afpa_quic_token_key *key = &config.token_keys[asked.period % AFPA_QUIC_TOKEN_KEYS];
		struct answer answer = {};
		__u8 room[QUIC_ROOM] = {};

		key->period = asked.period;
		memcpy(key->words, asked.key, sizeof(key->words));
		answer.made_length = quic_put_token(room, 40, &client, asked.first, asked.first_length, asked.second, asked.own,
						    asked.key) - 40;
		memcpy(answer.made, room + 40, answer.made_length);
		memset(room, 0xa5, sizeof(room));
		memcpy(room + 33, asked.token, sizeof(asked.token));
		answer.holds = quic_token_holds(&config, room, 33, asked.token_length, &client, asked.now);
		answer.id = quic_make_id(asked.key, asked.random, asked.place);
		answer.place = quic_place(asked.key, (__u8 *)&answer.id);
		answer.of_retry = quic_is_of_retry(asked.key, (__u8 *)&answer.id);
		memset(room, 0, sizeof(room));
		memcpy(room, asked.text, asked.text_length);
		quic_tag(&table, room, asked.text_length);
		memcpy(answer.tag, room + asked.text_length, sizeof(answer.tag));
		fwrite(&answer, sizeof(answer), 1, stdout);
		fflush(stdout);
	}
	return 0;
}
