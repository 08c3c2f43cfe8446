/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/*
 * The types that the programs of this folder share with user mode. User mode reads the layout of every
 * struct and the names of every enum from the object's BTF, so this file is the only definition.
 */
#ifndef AFPA_GENERATOR_ABI_H
#define AFPA_GENERATOR_ABI_H

#include <linux/types.h>

/* TCP payload of the largest request: a 1,500 byte MTU less IPv6, TCP and timestamps. */
#define REQUEST_MAX 1408
/* An Age is counted in seconds: three years and more. */
#define AGE_DIGITS_MAX 8
/* The reflector's answer leaves at once: no more segments than the first window of a client takes. */
#define ANSWER_SEGMENTS 44
#define ANSWER_UNIT 1448
#define ANSWER_MAX (ANSWER_SEGMENTS * ANSWER_UNIT)

/* Latency histogram: HISTOGRAM_SUB buckets for each power of two of nanoseconds. */
#define HISTOGRAM_SUB_BITS 4
#define HISTOGRAM_SUB (1 << HISTOGRAM_SUB_BITS)
#define HISTOGRAM_BUCKETS (40 * HISTOGRAM_SUB)

enum flow_state {
	FLOW_KERNEL = 0, /* the client's TCP owns it: every packet passes */
	FLOW_LEARN = 1,  /* passes too, but numbers, timestamps and addresses are written down */
	FLOW_DRIVEN = 2, /* the generator owns it: no packet reaches the client's TCP */
	FLOW_CLOSED = 3, /* the server sent FIN or RST */
	/* one request a connection, all of it ours; see once.h */
	FLOW_SYN_SENT = 4,
	FLOW_ASKED = 5,
	FLOW_COMPLETE = 6, /* the response is; the server is to close */
	FLOW_DONE = 7,     /* closed, or given up */
};

struct flow {
	__u64 sent_ns;   /* when the outstanding request, or its connection's SYN, went out,
			    CLOCK_MONOTONIC; 0: none is */
	__u32 state;     /* enum flow_state */
	__u32 seq;       /* the next sequence number we send (SND.NXT) */
	__u32 ack;       /* the next we expect (RCV.NXT) */
	__u32 got;       /* bytes of the outstanding response so far */
	__u32 target;    /* index of the outstanding request */
	__u32 cursor;    /* position in the schedule */
	__u32 unacked;   /* segments received since our last packet */
	__u32 ts_recent; /* the server's latest TSval, to echo */
	__u32 ts_offset; /* our TSval = milliseconds of CLOCK_MONOTONIC + this */
	__u32 stamped;   /* 1: the connection uses TCP timestamps */
	__u32 responses; /* completed on this flow, modulo 2^32 */
	__u32 wanted;    /* bytes of the outstanding response, known with its first segment */
};

struct target {
	__u32 request_length;
	__u32 request_sum;     /* ones' complement sum of the request, folded to 16 bits */
	__u32 response_length; /* head and body */
	__u32 age_at;          /* offset of an Age's digits in the response, which then may be more or
				  fewer than they were; 0: every response has the same length */
	__u32 age_digits;      /* how many they were in response_length */
	__u8 status[4];        /* three digits that must follow "HTTP/1.1 ", and a blank */
	__u8 request[REQUEST_MAX];
};

struct settings {
	__u32 server_port;   /* host byte order */
	__u32 late_acks;     /* 1: a response is acknowledged by the next request on its flow */
	__u32 run;           /* 0: complete outstanding requests, ask for no more */
	__u32 schedule_mask; /* entries of the schedule less one; a power of two less one */
	__u32 source_first;  /* last 32 bits of the first client address, host byte order */
	__u32 sources;       /* consecutive client addresses in use */
	/* one request a connection, see once.h */
	__u32 first_port;
	__u32 ports;         /* of each address, from the first on */
	__u32 slots;         /* connections at once */
	__u32 total;         /* addresses times ports, rounded down to a multiple of slots */
};

/* Link addresses seen while learning, for the packets that user mode builds. */
struct peer {
	__u8 server[6];
	__u8 client[6];
};

struct answer {
	__u32 port;   /* host byte order */
	__u32 length; /* 1 or more */
	__u32 unit;   /* bytes of each segment but the last, at most ANSWER_UNIT */
	__u32 sums[ANSWER_SEGMENTS]; /* ones' complement sum of each segment's bytes, folded to 16 bits */
	__u8 bytes[ANSWER_MAX];
};

/* Everything that is counted; every exit other than "response complete" has its number here. */
enum counter {
	COUNT_RESPONSES,         /* complete responses */
	COUNT_RESPONSE_BYTES,    /* TCP payload received in order */
	COUNT_SEGMENTS,          /* in-order segments, a GSO packet counted as its segments */
	COUNT_REQUESTS,          /* requests sent, first transmissions */
	COUNT_ACKS,              /* pure acknowledgements sent */
	COUNT_PURE_ACKS_SEEN,    /* segments without payload */
	COUNT_STRAY,             /* not TCP of a known flow: passed on */
	COUNT_DUPLICATES,        /* segments with nothing new */
	COUNT_GAPS,              /* segments beyond the one expected */
	COUNT_RESENT,            /* requests sent again because the server repeated itself */
	COUNT_WRONG_STATUS,      /* error: a response began with another status */
	COUNT_TOO_LONG,          /* error: more bytes than the response has */
	COUNT_UNASKED,           /* error: data on a flow that has asked for none */
	COUNT_CLOSED,            /* the server closed a driven flow */
	COUNT_NO_PACKET,         /* error: the packet could not be resized */
	COUNT_CONNECTIONS,       /* once: SYNs sent */
	COUNT_CUT_SHORT,         /* error, once: the server closed before the response was complete */
	COUNT_STALE,             /* once: the server still knew that port; another was taken */
	COUNTERS,
};

#endif
