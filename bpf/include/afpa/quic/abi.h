/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interface between the program for QUIC and user mode: as abi.h, whose form it has, in a module of its own.
 */
#ifndef AFPA_QUIC_ABI_H
#define AFPA_QUIC_ABI_H

#define AFPA_QUIC_LEAST 1200       /* bytes of the shortest datagram that has an Initial (RFC 9000, 14.1) */
#define AFPA_QUIC_SHORTEST 21      /* a shorter datagram is no packet (RFC 9000, 10.3.3) */
#define AFPA_QUIC_ID 8             /* bytes of an id of ours */
#define AFPA_QUIC_ID_MAX 20        /* of any id (RFC 9000, 17.2) */
#define AFPA_QUIC_PLACE_BITS 14    /* of a place: generation and worker; all above them are 0 in ids of ours */
#define AFPA_QUIC_TOKEN_KEYS 4     /* keys of tokens: of the period before, of now, of the next one; a power of two */
#define AFPA_QUIC_PERIOD_SHIFT 6   /* seconds since 1970, shifted by this, number the periods of keys */
#define AFPA_QUIC_TOKEN_LIFE 15    /* seconds: younger tokens hold */
#define AFPA_QUIC_TOKEN_MAX 65     /* bytes of the longest token */
#define AFPA_QUIC_ADDRESSES 4096   /* addresses that are served */
#define AFPA_QUIC_PREFIXES 524288  /* prefixes of clients with a rule */
#define AFPA_QUIC_WINDOW_SHIFT 27  /* ns: packets are counted for 134 ms */
#define AFPA_QUIC_TABLE 1024       /* words of the table of products */

/* quic_addresses: an address and port that is served. */
struct afpa_quic_address {
	__u8 address[16];              /* IPv4 as ::ffff:a.b.c.d */
	__u16 port;                    /* host order */
	__u16 reserved;
};

/* quic_rules: a prefix of clients. The kernel counts bits from `family` on. */
struct afpa_quic_prefix {
	__u32 bits;                    /* 32 more than those of the address */
	__u32 family;                  /* 4 or 6 */
	__u8 address[16];              /* an IPv4 address stands at the beginning */
};

/* The rule of a prefix. */
enum afpa_quic_rule {
	AFPA_QUIC_ALLOW = 1,
	AFPA_QUIC_DENY = 2,
};

/* A key of tokens, for those that were made in its period. */
struct afpa_quic_token_key {
	__u64 period;
	__u64 words[2];
};

/* Orders of user mode; the one entry of a map. */
struct afpa_quic_config {
	__u64 until;                   /* coarse monotonic ns: after that, all is user mode's */
	__u64 wall;                    /* monotonic ns and these are ns since 1970 */
	__u64 id_keys[4];              /* two keys of ids: ours, and that of the process before, or ours again */
	__u64 retry_key[2];            /* of ids that a Retry gives */
	struct afpa_quic_token_key token_keys[AFPA_QUIC_TOKEN_KEYS]; /* by the lowest bits of their periods */
	__u32 flood;                   /* so many Initials in a window, on a processor, are a flood; 0: never */
	__u32 known;                   /* of those without a token, so many to ids of ours go up in a window of a flood */
	__u32 early;                   /* of 0-RTT to ids that a Retry gave, so many */
	__u32 rules;                   /* 1: some prefix has a rule */
};

/* Products of half a byte at each of 32 places with the constant of RFC 9001, 5.8: two words each. */
struct afpa_quic_table {
	__u64 words[AFPA_QUIC_TABLE];
};

#endif
