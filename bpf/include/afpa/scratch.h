/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Per-CPU scratch: a program's stack has 512 bytes, a request head needs more.
 *
 * Ingress, egress and what tends flights have one each, since an answer that is cloned out of the ingress program runs
 * the egress program inside it.
 */
#ifndef AFPA_WORK_H
#define AFPA_WORK_H

#include <afpa/maps.h>

#define FRAME_HEADERS_MAX 96 /* Ethernet 14, IPv6 40, TCP 32, rounded */

/* How sure the protocol module is of a request. */
enum certainty {
	REQUEST_UNSURE,     /* whatever it is, user mode keeps the connection */
	REQUEST_ONE,        /* one request, or several, for user mode */
	REQUEST_ANSWERABLE, /* one request, and a stored answer may be right */
	REQUEST_PART,       /* perhaps some, then the beginning of one, for user mode */
};

/* What is known so far about the client's segment in hand. Here, because the verifier need not follow its values. */
struct turn {
	__u64 now;                /* coarse monotonic */
	enum certainty certainty;
	enum afpa_reason reason;  /* why it is passed, when it is */
	__u32 length;             /* bytes of the requests and their content, from the segment's start */
	__u8 requests;            /* how many begin or end in the segment, a last partial one aside */
	__u16 head_bits;          /* which of them are HEAD */
	__u8 ask;                 /* it begins with a request, so `whose_turn` may be the reason */
	__u8 arm_rtx;             /* an answer of one segment left, and the connection has no rtx timer */
};

/* One line of a head, as http/line.h cuts it. */
struct line {
	__u64 name[5];               /* lower case, zero padded */
	__u32 name_length;
	__u32 value_at, value_length;
	__u32 next;                  /* start of the line that follows */
};

/* Where a scan of a head stands. */
struct scan {
	__u32 at, start, end;
	__u32 listener, any_host_site;
	__u32 generation;            /* of hosts and listeners, read before any of them was looked up */
	__u32 done;                  /* the blank line stands where it must */
	__u32 lengths;               /* Content-Length lines seen */
	__u32 chunked;               /* Transfer-Encoding: chunked was seen (responses) */
	__u32 framed;                /* requests with content may go on */
	__u64 content_length;
	__u32 size;                  /* of a response, or of its head */
	struct line line;
	struct afpa_block block;
};

/* A request as the protocol module derived it. */
struct request {
	__u64 path_hash;
	__u32 path_length;
	__u32 block_at, block_length;
	__u32 head;                  /* method is HEAD */
	__u32 entry, entry_sequence; /* where its block is remembered; a sequence of 0: nowhere */
	struct afpa_block block;
};

/* Requests of one segment, on their way to user mode. */
struct passing {
	__u32 payload_at;            /* of the segment, in the packet */
	__u32 have;                  /* bytes of earlier segments in front of it */
	__u32 length;                /* these and its payload */
	__u32 at;                    /* read so far; behind `length` when content follows */
	__u32 requests, head_bits;
	__u32 listener, any_host_site;
};

/*
 * What the segments of a flight have in common, and the one that leaves next. Here rather than on stacks:
 * the engine needs those, and the verifier follows every value of a counter that stands in a register.
 */
struct sending {
	__u64 now;                   /* microseconds */
	__u32 ack, ts_value, ts_echo;
	__u32 snd_una;                /* wire: what the client is known to expect */
	__u32 kernel_seq, kernel_ack; /* of what goes up, if anything does */
	__u16 window;                /* network order */
	__u8 ack_up;            /* it waits for an acknowledgement */
	__u8 ipv6, timestamps;
	__u8 partial;                /* the packet in hand leaves its sum to the device */
	__u8 place;
	__u8 retransmitted, last, markable, cwr;
	__u8 ecn;                    /* marks were negotiated */
	__u16 payload_max;                  /* bytes that the path takes at once */
	__u32 rest;                  /* of what the engine chose last, behind the piece at hand */
	__u8 chosen;                 /* something was to leave in this round */
	__u8 begins;                 /* the flight does, and is locked: the segment is its request */
	__u32 offset, length;        /* bytes of the answer */
	__u32 sent;                  /* segments of this round */
};

#define AFPA_SEGMENT_WORDS 9

struct work {
	struct turn turn;
	struct request request;
	struct scan scan;
	struct passing passing;
	__u64 fresh[sizeof(struct afpa_flow) / 8]; /* a flow on its way into the table; locks may not stand here */
	__u64 segment[AFPA_SEGMENT_WORDS]; /* struct segment of a client, while a flight is tended */
	struct sending sending;
	__u64 ack[6];              /* struct ack of the send engine */
	__u64 transfer[sizeof(struct afpa_transfer) / 8]; /* one on its way into the table */
	struct afpa_site_key site;
	__u8 frame[FRAME_HEADERS_MAX]; /* headers, Ethernet at 2 so that what follows is aligned; or TCP options, twice */
	__u32 partial_length, partial_next; /* with what follows a struct afpa_partial */
	__u8 head[2 * AFPA_HEAD_MAX + 64]; /* request or response head, 64 zero bytes behind it */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct work);
} ingress_work SEC(".maps"), egress_work SEC(".maps"), rtx_work SEC(".maps");

/* Eight bytes at any alignment. */
static __always_inline __u64 load8(const void *at)
{
	return *(const __u64 *)at;
}

/* Keep a bound that was just checked: the compiler must not look through it. */
#define opaque(variable) asm volatile("" : "+r"(variable))

/* Do the `length` bytes at `bytes` (readable to the next multiple of 8) equal the zero-padded text? */
static __always_inline bool equal_text(const __u8 *bytes, __u32 length, const __u8 *text, __u32 max)
{
	__u64 differ = 0;

	for (__u32 i = 0; i < max; i += 8) {
		__u64 word;

		if (i >= length)
			break;
		word = load8(bytes + i);
		if (length - i < 8)
			word &= (1ULL << (length - i) * 8) - 1;
		differ |= word ^ load8(text + i);
	}
	return differ == 0;
}

#endif
