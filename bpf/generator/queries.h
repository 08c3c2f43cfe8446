/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/*
 * The types that the generator of DNS queries shares with user mode, which reads their layouts from the object's BTF.
 */
#ifndef AFPA_GENERATOR_QUERIES_H
#define AFPA_GENERATOR_QUERIES_H

#include <linux/types.h>

#define QUERY_MAX 128
/* Each name begins with a label of nine bytes: 'h', and these digits of its number. */
#define DIGITS 8
/* Where they lie in the message: behind the header, the label's length and the 'h'. Even, so that they sum up as they are. */
#define DIGITS_AT 14

/* The queries, and the answers that they must have. */
struct question {
	__u32 length;        /* of the message */
	__u32 sum;           /* ones' complement sum of it, folded, while its id and its digits are zero */
	__u32 first;         /* number of the first name */
	__u32 names;         /* so many in turn; 0: a number that was not asked before */
	__u32 random;        /* 1: drawn among them */
	__u32 run;           /* 0: answers end it, and no query follows them */
	__u32 server_port;   /* host byte order */
	__u32 first_port;    /* the client's: one for each query that is outstanding */
	__u32 slots;
	__u32 flags;         /* of the answer: bytes 2 and 3, network byte order */
	__u32 answer_length;
	__u32 address_at;    /* offset in the answer of an address that is 10.0.0.0 plus the name's number; 0: of none */
	__u8 bytes[QUERY_MAX];
};

/* A query that is outstanding. Its client port is the first one plus its place. */
struct slot {
	__u64 sent_ns; /* coarse CLOCK_MONOTONIC; 0: none is */
	__u32 number;  /* of the name */
	__u32 seed;    /* of what is drawn */
	__u32 id;      /* of the message; 16 bits */
	__u32 unused;
};

struct tally {
	__u64 answers;
	__u64 bytes;         /* of messages */
	__u64 stale;         /* an answer to what is not outstanding: dropped */
	__u64 wrong_flags;   /* errors: */
	__u64 wrong_length;
	__u64 wrong_address;
	__u64 no_packet;     /* it could not be resized */
};

#endif
