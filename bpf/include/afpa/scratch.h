/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Per-CPU scratch: a program's stack has 512 bytes, a request head needs more.
 *
 * Ingress, egress and the rtx timers have one each, because an answer that is cloned out of the ingress program runs the
 * egress program inside it.
 */
#ifndef AFPA_WORK_H
#define AFPA_WORK_H

#include <afpa/maps.h>

#define FRAME_HEADERS_MAX 96 /* Ethernet 14, IPv6 40, TCP 32, rounded */

/* How sure the protocol module is of a request. */
enum certainty {
	REQUEST_UNSURE,     /* user mode must serve the connection to its end */
	REQUEST_ONE,        /* one request, or several, for user mode */
	REQUEST_ANSWERABLE, /* one request, and a stored answer may be right */
	REQUEST_PART,       /* perhaps some, then the beginning of one, for user mode */
};

/* The state so far of the client's segment in hand. On the stack, the verifier would follow each value of it. */
struct turn {
	__u64 now;                /* coarse monotonic */
	enum certainty certainty;
	enum afpa_reason reason;  /* why it is passed, when it is */
	__u32 length;             /* bytes of the requests and their content, from the segment's start */
	__u8 requests;            /* how many begin or end in the segment, a last partial one aside */
	__u16 head_bits;          /* which of them are HEAD */
	__u8 ask;                 /* it begins with a request, so `whose_turn` may be the reason */
	__u8 arm_rtx;             /* an answer of one segment left, and the connection has no rtx timer */
	__u8 closes;              /* one request, which asks for the connection's end */
};

/* One line of a head, as http/line.h cuts it. */
struct line {
	__u64 name[5];               /* lower case, zero padded */
	__u32 name_length;
	__u32 value_at, value_length;
	__u32 next;                  /* start of the line that follows */
};

/* A walk over a list in a field's value: http/lists.h. */
struct list {
	__u64 name, before;          /* of the member in hand, in lower case: its last eight bytes, and those before them; the last in the lowest bits */
	__u64 parameter;             /* the bytes behind its ';', in the same way */
	__u32 at, length;            /* the value */
	__u32 name_length, parameter_length;
	__u32 options;               /* they are connection options, and not codings */
	__u16 weights[4];            /* of each coding that is named, by its number, in thousandths, and one more; 0: it is not */
	__u16 others;                /* of `*` */
	__u8 has_parameter, blank, odd;
	__u8 sure;                   /* every member was read, and is known */
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
	__u32 coding_at;             /* where the next coding of Accept-Encoding is read */
	__u32 options_at, options_length; /* a value of Connection that is read behind the block's end; 0: none */
	__u32 weights_at, weights_length; /* the same of Accept-Encoding */
	struct line line;
	struct list list;
	struct afpa_block block;
};

/* A request as the protocol module derived it. */
struct request {
	__u64 path_hash;
	__u32 path_length;
	__u32 block_at, block_length;
	__u32 head;                  /* method is HEAD */
	__u32 may_close;             /* the connection may be closed here: it has no socket */
	__u32 old;                   /* the version is HTTP/1.0 */
	__u32 absolute;              /* the target is in absolute form: it names a host */
	__u32 entry, entry_sequence; /* where its block is remembered; a sequence of 0: nowhere */
	struct afpa_block block;
};

/* The requests in one segment that goes up to user mode. */
struct passing {
	__u32 payload_at;            /* of the segment, in the packet */
	__u32 have;                  /* bytes of earlier segments in front of it */
	__u32 length;                /* these and its payload */
	__u32 at;                    /* read so far; behind `length` when content follows */
	__u32 requests, head_bits;
	__u32 listener, any_host_site;
};

/*
 * The values that the segments of a transfer share, and the one that leaves next. Here rather than on the stack, which
 * the TCP sender needs; and the verifier would follow every value of a counter in a register.
 */
struct sending {
	__u64 now;                   /* microseconds */
	__u32 ack, ts_value, ts_echo;
	__u32 snd_una;                /* wire: the client has all bytes below */
	__u32 kernel_seq, kernel_ack; /* of the acknowledgement or reset that goes up, if one does */
	__u16 window;                /* network order */
	__u8 ack_up;            /* the kernel waits for an acknowledgement */
	__u8 ipv6, timestamps;
	__u8 partial;                /* the packet in hand leaves its checksum to the device */
	__u8 place;
	__u8 retransmitted, last, markable, cwr;
	__u8 ecn;                    /* ECN was negotiated */
	__u8 closes;                 /* the last segment carries our FIN: the connection has no socket */
	__u16 payload_max;                  /* bytes of payload that the path takes in a packet */
	__u32 rest;                  /* bytes of the segment behind the piece in hand */
	__u8 chosen;                 /* the sender had something to send in this round */
	__u8 begins;                 /* the transfer does, and is locked: the segment is its request */
	__u32 offset, length;        /* bytes of the answer */
	__u32 from, bytes;           /* those of the piece in hand: the Date's place as a whole, or nothing of it */
	__u32 sent;                  /* segments of this round */
};

/* The edition of an answer: a version in a slot, and the Unix second of its Date, or its Age. */
struct edition {
	__u64 version;
	__u32 date;
};

#define AFPA_SEGMENT_WORDS 9

/* A walk over the bytes of a target: http/unsafe.h. */
struct target_walk {
	__u32 at;            /* where it began */
	__u32 last;          /* the bytes before the one in hand, the nearest in the lowest bits */
	__u32 found;         /* the result, when it has stopped */
	__u32 authority;     /* "://" was seen */
};

/* A segment that goes up, as it was seen under its connection's lock. As for `struct turn`: not on the stack. */
struct rising {
	__u8 damaged;              /* its checksum does not hold */
	__u8 standing;             /* an `enum standing` */
	__u8 reset;                /* it is a reset that counts */
	__u8 ended;                /* and a transfer ended with it */
	__u8 final, bypassed;      /* the connection: before the segment, and after it */
	__u8 has_offset;           /* the two sides' numbers differ */
	__u8 absorbed;             /* the kernel is not told of it */
	__u8 taken;                /* the kernel is */
};

/* A segment that leaves, likewise. */
struct leaving {
	__u8 has_offset;           /* the two sides' numbers differ */
	__u8 within;               /* a response of known length was under way */
	__u8 ended;                /* and it left to its end */
	__u8 heard;                /* the server acknowledges something new */
	__u8 stale;                /* bytes that the client cannot place any more */
	__u16 reason, found;       /* two of `enum afpa_reason`: of the segment, and of the responses in it */
};

struct work {
	struct turn turn;
	struct rising rising;
	struct leaving leaving;
	struct request request;
	struct scan scan;
	struct passing passing;
	__u64 fresh[sizeof(struct afpa_flow) / 8]; /* a flow that is being entered into the table; a lock may not stand here */
	__u64 segment[AFPA_SEGMENT_WORDS]; /* struct segment of the client, for the program of transfers */
	struct sending sending;
	__u64 commitment[8];         /* struct commitment, of the answer that is about to leave */
	struct edition edition;    /* of the answer of one segment that leaves */
	struct afpa_date age;      /* the Age of the answer in hand, as the Date of a second that is as many */
	struct afpa_way way;       /* of the answer in hand, or of the segment that leaves */
	__u32 unsafe_at;              /* as the flow's: of the client's segment in hand */
	__u32 begins_safe;         /* it begins with a request that is safe */
	__u32 agreed;              /* of a cookie that came back: its low bits */
	struct target_walk walk;
	__u64 way_wanted;          /* an answer is to be sent again, and the way back is not known */
	__u64 ack[6];              /* the TCP sender's struct ack */
	__u64 transfer[sizeof(struct afpa_transfer) / 8]; /* one that is being entered into the table */
	struct afpa_site_key site;
	struct afpa_flow_key key;    /* of an entry that is being written */
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

/*
 * Memory that others write while it is read. A reader compares its identity (a version, a sequence, a key) before and
 * behind the copy, with a fence at both ends. x86 keeps loads in their order by itself; user mode sets this constant
 * when it loads the programs, and the fence is then one for the compiler alone.
 */
const volatile __u32 loads_are_ordered SEC(".rodata.order") = 0;

static __always_inline void load_fence(void)
{
	volatile __u64 none = 0;
	__u64 was;

	barrier();
	if (loads_are_ordered)
		return;
	was = __sync_fetch_and_add(&none, 0); /* a full barrier, on a word that nobody shares */
	asm volatile("" : : "r"(was) : "memory");
}

/* Eight bytes at any alignment. */
static __always_inline __u64 load8(const void *at)
{
	return *(const __u64 *)at;
}

/* One step of the hashes of headers and connections; their first value is `shared.hash_seed`. */
static __always_inline __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * AFPA_HASH_PRIME;
	return hash ^ hash >> 32;
}

/* Keep the compiler from optimizing away a check of `variable` that only the verifier needs. */
#define opaque(variable) asm volatile("" : "+r"(variable))

/*
 * Is `*n`, which a helper gets as a length, from `least` to `most`? All verifiers understand an addition to a value that
 * is bounded above. Verifiers before Linux 6.13 learn no lower bound when the compiler has made one comparison of two,
 * and those before 6.8 learn nothing from a comparison with 0.
 */
static __always_inline bool is_within(__u32 *n, __u32 least, __u32 most)
{
	__u32 above = *n - least;

	opaque(above);
	if (above > most - least)
		return false;
	*n = above + least;
	return true;
}

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
