/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The tag of a Retry (RFC 9001, 5.8). It is AES-GCM's of no content under a constant key and nonce, which all know: GHASH of the
 * pseudo-packet, xor a constant. So no AES is needed. User mode makes the table of GHASH (`crates/afpa-bpf/src/quic/table.rs`).
 */
#ifndef AFPA_QUIC_TAG_H
#define AFPA_QUIC_TAG_H

#include <afpa/quic/token.h>

/* AES under the constant key of the constant nonce with a counter of 1. */
#define QUIC_TAG_HIGH 0x555e4b7493556eeaULL
#define QUIC_TAG_LOW 0xaf75d35bd7fba5d8ULL
#define QUIC_TAG_BLOCKS 9    /* of the longest pseudo-packet, with the block of its length */
#define QUIC_TAG_TEXT_MAX 128

/* The tag of `length` bytes of a room, from its beginning. 16 bytes of 0 follow them, and it takes their place. */
static __attribute__((noinline)) int quic_tag(const struct afpa_quic_table *table, __u8 *room, __u32 length)
{
	__u64 high = 0, low = 0;
	__u32 blocks = (length + 15) / 16;

	for (__u32 i = 0; i < QUIC_TAG_BLOCKS; i++) {
		__u64 x = 0, y = 0;

		if (i < blocks) {
			high ^= bpf_be64_to_cpu(QUIC_U64(quic_at(room, i * 16)));
			low ^= bpf_be64_to_cpu(QUIC_U64(quic_at(room, i * 16 + 8)));
		} else {
			high ^= (__u64)length * 8; /* all of it is only signed */
		}
#ifdef __bpf__
#pragma unroll
#endif
		for (int k = 0; k < 16; k++) {
			__u32 u = high >> (60 - 4 * k) & 15, v = low >> (60 - 4 * k) & 15;

			asm volatile("" : "+r"(high), "+r"(low)); /* one after another: all at once need much stack */
			x ^= table->words[(k * 16 + u) * 2] ^ table->words[((k + 16) * 16 + v) * 2];
			y ^= table->words[(k * 16 + u) * 2 + 1] ^ table->words[((k + 16) * 16 + v) * 2 + 1];
		}
		high = x;
		low = y;
		if (i >= blocks)
			break;
	}
	QUIC_U64(quic_at(room, length)) = bpf_cpu_to_be64(high ^ QUIC_TAG_HIGH);
	QUIC_U64(quic_at(room, length + 8)) = bpf_cpu_to_be64(low ^ QUIC_TAG_LOW);
	return 0;
}

#endif
