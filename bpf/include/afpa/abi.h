/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interface between the programs and user mode: the layouts of map keys, values and events.
 *
 * The only header that C and Rust share, with reasons.h: the build script of `crates/afpa-abi` reads it, and
 * refuses syntax that it does not know. A test compares its layouts with the BTF of the built object. Plain types, no
 * implicit padding. Numbers are in host byte order
 * unless a comment says "network order"; addresses are 16 bytes, IPv4 as ::ffff:a.b.c.d.
 *
 * Sequence numbers are of two spaces. *Wire* numbers are those the client sees. *Kernel* numbers are those of the
 * server's own TCP, which never saw the requests answered here. The two differ by the sequence offsets:
 *     client side:  wire = kernel + rx_offset        server side:  wire = kernel + tx_offset
 */
#ifndef AFPA_ABI_H
#define AFPA_ABI_H

#define AFPA_PATH_MAX 128         /* longest request target of a pinned object; a multiple of 8 */
#define AFPA_HOST_MAX 64          /* longest Host value that selects a site; a multiple of 8 */
#define AFPA_ETAG_MAX 64          /* longest entity tag, quotes included; a multiple of 8 */
#define AFPA_DATE_LENGTH 29       /* IMF-fixdate */
#define AFPA_AGE_DIGITS 8         /* most digits of an Age that is written here: three years */
#define AFPA_TTL_DIGITS 10        /* most digits of the `ttl` of a Cache-Status that is written here */
#define AFPA_BEFORE_AGE 7         /* bytes between that and the Age, which is the next line: "\r\nAge: " */
#define AFPA_NOT_MODIFIED_MAX 384 /* longest 304 head */
#define AFPA_ANSWER_MAX 1460      /* longest single-segment answer: Ethernet, IPv4, no options */
#define AFPA_CODINGS 4            /* identity, gzip, br, zstd: the variants of one object */
#define AFPA_HEAD_MAX 2560        /* longest request head looked at; a multiple of 32 */
#define AFPA_CHECKED_MAX 2080     /* longest header block remembered; a multiple of 32 */
#define AFPA_DATES 256            /* seconds of Date values kept, for answers that are sent again */
#define AFPA_PATH_FILTER_BITS 65536
#define AFPA_INTERFACES 64        /* interfaces that are counted apart; a power of two */
#define AFPA_REASONS_MAX 128      /* room for reasons, an interface */
#define AFPA_FIELD_NAME_MAX 40    /* bytes for the name of a request field; a multiple of 8 */
#define AFPA_FIELD_UNKNOWN 0x80000000 /* class of the request fields that are not in `fields` */
#define AFPA_OTHER_TAG_WHOLE 0x40000000 /* rule of an object: If-None-Match with another tag gets the whole answer */
#define AFPA_TAG_WINS 0x20000000  /* rule of an object: If-None-Match decides alone, whatever If-Modified-Since says */
#define AFPA_WEIGHTS_AS_OURS 0x08000000 /* rule of an object: Accept-Encoding with weights chooses as user mode does */
#define AFPA_FIELD_HOP 0x04000000 /* class of Upgrade, and of connection options that name a field which no server here reads */
#define AFPA_TAG_WEAKLY 0x02000000 /* rule of an object: If-None-Match compares weakly; else a tag with W/ is for user mode */
#define AFPA_OLD_ALIKE 0x10000000 /* rule of an object: HTTP/1.0 gets the answer to a request that asks for the connection's end */
#define AFPA_PAGE 4096            /* bytes of a longer answer in one page; a power of two */
#define AFPA_PAGE_REACH 1472      /* bytes of the next page that a page repeats, so that no segment lies in two */
#define AFPA_PAGE_SUMS 4          /* checksums that a page remembers: of one segment beginning in each of its quarters */
#define AFPA_PAGES_MAX 17         /* pages of an answer */
#define AFPA_RTX_DUE 128          /* rtx timers that one run names: half of them of transfers at most */
#define AFPA_PATH_WORDS 4         /* of 8 bytes: the TCP sender's struct path */
#define AFPA_SENDER_WORDS 83      /* its struct sender */
#define AFPA_UNIT_MIN 512         /* shorter segments: user mode; the Date of a longer answer lies within the first one */
#define AFPA_TICK_SHIFT 20        /* times in 32 bits count 2^20 ns, about a millisecond */
#define AFPA_RTX_MAX 8            /* how often an answer of one segment is retransmitted */
#define AFPA_HASH_PRIME 0x9e3779b97f4a7c15ULL /* of the path and header hashes */
#define AFPA_SITES_COUNTED 1024   /* places where answers of sites are counted; a power of two */
#define AFPA_WAYS 65536           /* connections whose SYN-ACK is remembered, and clients; a power of two */
#define AFPA_SYN_SETS 16384       /* sets of answered SYNs; a power of two, no more than 65536 */
#define AFPA_SYN_WAYS 4           /* answered SYNs of a set; a power of two */
#define AFPA_WRONG_COOKIES 8      /* after so many wrong ones in a period none counts without its record, in this period and the next */
#define AFPA_CLIENTS_COUNTED 65536 /* clients whose connections without a socket are counted; a power of two */
#define AFPA_OPEN_WORDS 64        /* words behind those of clients, 64 bytes apart: all connections without a socket, counted for each processor; a power of two */
#define AFPA_OPEN_STRIDE 8        /* such words stand so many words apart: a line of the caches each */
#define AFPA_ROUTES 8192         /* routes by prefix, where clients are answered that are not known */
#define AFPA_NEXT_HOPS 256        /* next hops of these, from 1; a power of two */
#define AFPA_ASSIGNED_WAYS 8      /* assigned connections of a set */
#define AFPA_COOKIE_SHIFT 34      /* a cookie's period is 2^34 ns, about 17 seconds: it is valid in this one and in the next */
#define AFPA_FLOOD_SHIFT 27       /* SYNs are counted for 2^27 ns, 134 ms, before the count begins anew */
#define AFPA_POLICE_PREFIXES 524288 /* allowed and denied prefixes */
#define AFPA_POLICE_SETS 8192     /* sets of buckets for clients' connections, and as many for their requests; a power of two */
#define AFPA_POLICE_WAYS 4        /* buckets of a set */
#define AFPA_POLICE_TICK_SHIFT 4  /* the clock of buckets counts 2^4 ns */
#define AFPA_POLICE_TIME_BITS 44  /* bits of that clock in a bucket; a tag stands before them */
#define AFPA_POLICE_TRIES 8       /* how often a token is tried for, when others take one at the same moment */
#define AFPA_POLICE_EVERYBODY 1   /* tag of the buckets that all clients share */
#define AFPA_POLICE_CLASSES 16    /* classes of clients; the first has the clients of no other; a multiple of AFPA_POLICE_WAYS, and a power of two */
#define AFPA_POLICE_CLASS_PREFIXES 8192 /* their prefixes */

#define AFPA_UNSAFE_BITS 16
#define AFPA_UNSAFE_ANY 65536     /* where those are noted that may be for any target: 2^AFPA_UNSAFE_BITS */
#define AFPA_UNSAFE_MARKS 65537   /* places where unsafe requests are noted */

/* Entries of the map `programs`: programs that others call at their end. */
enum afpa_program {
	AFPA_PROGRAM_TRANSFER,           /* sends answers of several segments */
	AFPA_PROGRAM_INGRESS,          /* takes packets that come in */
	AFPA_PROGRAM_ICMP,            /* reads routers' reports of a path MTU */
	AFPA_PROGRAM_UNUSUAL,         /* reads fragments, extension headers and the like */
	AFPA_PROGRAM_HANDSHAKE,       /* answers SYNs, and opens connections without a socket */
	AFPA_PROGRAM_SOCKETLESS,      /* handles segments of connections without a socket that are no hits */
};

/* The packets of an interface that programs translate, as bits. */
enum afpa_carried {
	AFPA_CARRIED_UP = 1,          /* those that come in */
	AFPA_CARRIED_DOWN = 2,        /* those that leave */
};

/* Unix seconds of the pulse are split over `pulse` and `dates`: see clock.h. */
struct afpa_date {
	__u64 second;                 /* Unix time this entry stands for */
	__u8 text[32];                /* IMF-fixdate, zero padded */
	__u32 sum_even, sum_odd;      /* sum of `text` as stored at an even or odd offset */
	__u64 reserved[2];
};

/* Parts of the police that are configured; bits of the shared word. */
enum afpa_police_part {
	AFPA_POLICE_RULES = 1,        /* prefixes are allowed or denied */
	AFPA_POLICE_CONNECTIONS = 2,  /* new connections are limited */
	AFPA_POLICE_REQUESTS = 4,     /* requests are limited */
	AFPA_POLICE_SHARES = 8,       /* classes have shares of the new connections */
};

/* A rate, in ticks of the buckets' clock. */
struct afpa_pace {
	__u64 interval;               /* between two tokens; 0: no limit */
	__u64 tolerance;              /* until an empty bucket is full */
};

/* One mapped region, written by user mode, read by every packet. */
struct afpa_shared {
	__u64 pulse;                  /* monotonic ns at which the current second began; low 8 bits: its index in `dates`; 0: never beaten */
	__u64 hash_seed;              /* secret of the path and header hashes */
	__u64 refresh_ns;             /* pass a request at least this often on each connection, so that a server's idle timer sees it; 0: never */
	__u32 generation;             /* moves when sites or listeners change: remembered header blocks lapse */
	__u32 log_every;              /* log one in this many answers; 0: none */
	__u32 checked_mask;           /* entries of the `checked` map, less one (a power of two) */
	__u32 bypass_after;             /* consecutive passes after which a connection is bypassed; 0: never; at most 65535 */
	__u32 pins;                   /* moves when a path is pinned that was not: requests that were passed may be answered now */
	__u32 answer_max;             /* longest answer that may be given; no more than AFPA_ANSWER_MAX: one segment */
	__u32 bypass_time;              /* in units of `rtx_clock`: least time that these passes must span */
	__u32 firewall_interval;      /* in units of `rtx_clock`: clients are answered for so long after they got through the kernel's own path; 0: for ever */
	__u32 paused;                 /* not 0: nothing new is answered, whether user mode lives or not */
	__u32 notes_requests;         /* not 0: requests for targets that are not pinned are reported, and unsafe ones noted: http/notes.h */
	__u64 not_first;              /* bit set: on the interfaces with this index, modulo 64, another program stands before ours */
	struct afpa_date dates[AFPA_DATES];
	__u64 ports[65536 / 64];      /* bit set: a listener has, or flows still have, this local port */
	__u64 paths[AFPA_PATH_FILTER_BITS / 64]; /* bit set: some pinned object's path hashes here */
	__u32 interfaces[AFPA_INTERFACES]; /* index of the interface counted in this place, which is the index modulo AFPA_INTERFACES; 0: none */
	__u64 namespace;              /* cookie of the network namespace of the connections, where the first SYN-ACK was seen; written by the programs */
	__u64 transfer_ns;            /* monotonic time at which a transfer began last */
	__u64 rtx_ns;               /* coarse monotonic time at which a timer was last put into `rtx_timers` */
	__u32 sample_every;           /* copy one in this many answers for the self-check, a power of two; 0: none */
	__u32 fields_matter;        /* answers may depend on request fields, so these are looked up in `fields`; 0: on none that the parser leaves aside */
	__u64 cookie_key[2];          /* secret of the cookies */
	__u64 cookie_ns;              /* coarse monotonic time at which a SYN was answered last; written by the programs; 0: never */
	__u32 handshake;              /* enum afpa_handshake; 0: all SYNs are the kernel's */
	__u32 window_scale;           /* shift of the window that is announced: the one that the kernel's TCP would announce here */
	__u32 assigned_sets;          /* entries of the `assigned` map */
	__u32 old_kept;               /* written by the programs: HTTP/1.0 that keeps its connection has asked for a pinned object, and there was no answer for it */

	/* Police: conn/police.h. */
	__u32 police;                 /* bits of enum afpa_police_part; 0: no client is refused */
	__u32 next_hops;              /* edition of `routes`: clients are known by their next hop as well; 0: only by themselves */
	__u64 police_masks[4];        /* which bits of an address make a client: two words for IPv4, as it stands in keys, and two for IPv6 */
	struct afpa_pace connection_paces[2]; /* new connections: of a client, of all */
	struct afpa_pace request_paces[2]; /* requests: of a client, of all */
	struct afpa_pace class_paces[AFPA_POLICE_CLASSES]; /* new connections that each class gets, however many the others open; 0: none */

	__u32 client_connections;     /* as many connections without a socket a client may have; 0: any number, and those of a client are not counted */
	__u32 flood_syns;             /* from so many SYNs of clients that are not known on, on one processor in 2^AFPA_FLOOD_SHIFT ns, there is a flood, and these are answered, too; 0: never */

	/* Assigned connections that do not arrive: conn/loss.h. Times are of `rtx_clock`; written by the programs. */
	__u32 arrived_at;             /* the socket of one was seen last, or up to a step later; 0: never */
	__u32 lost_at;                /* one was lost, and none had arrived since it was assigned; 0: never */
	__u32 lost_client;            /* the prefix of its client, hashed */
	__u32 spare;
	__u64 lost_clients;           /* prefixes of clients, a bit each, that lost some while those of others arrived; user mode begins it anew */
};

/* Options of the SYN-ACKs, as this host's settings of TCP allow. */
enum afpa_handshake {
	AFPA_HANDSHAKE_ON = 1,
	AFPA_HANDSHAKE_TIMESTAMPS = 2,
	AFPA_HANDSHAKE_SACK = 4,
	AFPA_HANDSHAKE_SCALING = 8,
	AFPA_HANDSHAKE_FULL = 16, /* there are as many connections as there may be, or nearly all need a socket: new ones are the kernel's */
};

/* assigned: one set of hashes of connections; 0: none. */
struct afpa_assigned_set {
	__u64 hashes[AFPA_ASSIGNED_WAYS];
};

/* police_prefixes: a prefix of addresses. The kernel counts bits from `family` on. */
struct afpa_prefix {
	__u32 bits;                   /* 32 more than those of the address */
	__u32 family;                 /* 4 or 6 */
	__u8 address[16];             /* an IPv4 address stands at the beginning */
};

/* The rule of a prefix. */
enum afpa_police_rule {
	AFPA_POLICE_ALLOW = 1,
	AFPA_POLICE_DENY = 2,
};

/* police_buckets: one set. A bucket is the time at which it will be full, behind the tag of its client. */
struct afpa_police_set {
	__u64 words[AFPA_POLICE_WAYS];
};

/* listeners: a local address and port that is served. */
struct afpa_endpoint {
	__u8 address[16];             /* :: or ::ffff:0.0.0.0: any address of that family */
	__u16 port;
	__u16 reserved;
};

struct afpa_listener {
	__u32 id;                     /* the listener set, from 1: addresses with the same number have the same hosts */
	__u32 any_host_site;          /* site of requests whose Host names none; 0: user mode answers them */
};

/* served_survey: where `afpa_served` looks for sockets that listen. */
struct afpa_survey {
	__u32 network;                /* inode of the network namespace */
	__u32 port;
};

/* A listening socket that `afpa_served` has found, once for each process and descriptor. */
struct afpa_listening {
	__u64 inode;                  /* of the socket */
	__u32 process;                /* that has it open */
	__u32 device;                 /* index of the interface that it is bound to; 0: none */
	struct afpa_endpoint endpoint; /* where it listens */
	__u8 only_ipv6;               /* of `::`: it takes no IPv4 */
	__u8 multipath;               /* MPTCP: its connections are other sockets' */
	__u8 marked;                  /* it is served */
	__u8 reserved;
};

/* sites: the Host value in lower case, zero padded. The same host may be another site on another set. */
struct afpa_site_key {
	__u32 listener;
	__u32 host_length;
	__u8 host[AFPA_HOST_MAX];
};

/* The site that a Host value selects. Read and written as one word. */
struct afpa_site {
	__u32 site;                   /* 0: user mode answers */
	__u32 host;                   /* under this number servers' answers for exactly this value are pinned; 0: none are */
};

/* objects: the current object of a path of a site, or of a host for answers of servers. Replaced or deleted whole. */
struct afpa_object_key {
	__u64 path_hash;
	__u32 site;
	__u16 path_length;
	__u16 codings;                /* of a server's answer that varies by Accept-Encoding: `codings` of the blocks that get it; 0: of all others */
};

struct afpa_object {
	__u32 slot[AFPA_CODINGS];     /* index of the variant in `slots`; 0: not stored in this coding */
	__u32 closing[AFPA_CODINGS];  /* the same of the answers to requests that ask for the connection's end */
	__u32 old_kept[AFPA_CODINGS]; /* the same of the answers to HTTP/1.0 that keeps its connection: they say so, too */
	__u32 fields;                 /* classes of request fields that do not matter to it, and the two rules */
	__u32 reserved;
};

/* fields: the name of a request field -> bit set of its classes; 0: it matters to no answer. */
struct afpa_field_name {
	__u8 name[AFPA_FIELD_NAME_MAX]; /* lower case, zero padded */
};

/* A complete response whose Date, or Age and `ttl`, is patched in as it leaves (AFPA's mutable header data). */
struct afpa_answer {
	__u32 length;                 /* head and body; 0: too long for the fast path */
	__u16 head_length;
	__u16 date_offset;            /* of the Date, or of the Age, or of the `ttl` before it */
	__u32 sum;                    /* unfolded sum of all `length` bytes with that zeroed; 0 when they lie in pages */
	__u32 head_sum;               /* the same of the head alone */
};

/* slots: one variant of one version of an object. Not rewritten while a flow may have to send it again. */
struct afpa_slot {
	__u64 version;                /* unique for ever; 0: vacant */
	struct afpa_answer whole;     /* in `bytes`; or in pages, and only its head in `bytes` */
	struct afpa_answer not_modified; /* in `not_modified_bytes` */
	__u16 path_length, etag_length;
	__u32 site;
	__u32 pages[AFPA_PAGES_MAX];  /* of the whole answer, in order, when it is longer than `bytes`; 0: none */
	__u16 age_digits;             /* of a server's answer: not its Date is patched in, but its Age, which has so many digits; 0: the Date */
	__u16 ttl_digits;             /* and the `ttl` of the Cache-Status before it, which has so many; 0: it has none */
	__u64 born;                   /* of a server's answer: ns since boot at which its age was 0, which may be before the clock began */
	__u32 fresh_for;              /* of a server's answer: it is given while its age is less */
	__u32 codings;                /* as in its key */
	__u64 asked;                  /* of an answer of an attached server: monotonic ns before the server was asked; 0: of any other */
	__u32 used;                   /* and whether it was given since; written by the programs */
	__u32 lifetime;               /* of an answer with a `ttl`: that is its rest; no less than `fresh_for` */
	__u8 path[AFPA_PATH_MAX];     /* zero padded, as are all texts here */
	__u8 etag[AFPA_ETAG_MAX];
	__u8 last_modified[32];
	__u8 not_modified_bytes[AFPA_NOT_MODIFIED_MAX];
	__u8 bytes[AFPA_ANSWER_MAX + 4];
};

/*
 * pages: bytes of longer answers. Page i of an answer holds those from i * AFPA_PAGE on, the first of the
 * next one again, and zeros behind the last. Entry 0 is never used.
 */
struct afpa_page {
	__u8 bytes[AFPA_PAGE + AFPA_PAGE_REACH];
	__u64 sums[AFPA_PAGE_SUMS];   /* written by the programs only, see `afpa_sum_remembered`; 0: none */
};

/* How the kernel's own segments of a connection leave: conn/way.h. */
struct afpa_way {
	__u8 destination[6], source[6]; /* of the Ethernet header */
	__u32 interface;              /* 0: not known */
};

/* ways: where the SYN-ACK of a connection left, at a place that its tuple's hash names. */
struct afpa_proven_way {
	__u64 proof;                  /* hash of the tuple and the way: another connection's entry is not taken for this one's */
	struct afpa_way way;
};

/* client_ways: where the last SYN-ACK of the kernel's to a client left, at a place that a hash of both addresses names. */
struct afpa_client_way {
	__u64 proof;                  /* hash of the addresses, the way and the time */
	struct afpa_way way;
	__u32 seen;                   /* `rtx_clock` at which it left */
	__u32 reserved;
};

/* syn_answers: one SYN that was answered by a cookie. */
struct afpa_syn_answer {
	__u32 proof;                  /* of its tuple, by the secret of the cookies, and of the two numbers */
	__u32 client_isn;             /* the client's first number */
	__u32 cookie;                 /* ours */
	__u32 seen;                   /* `rtx_clock` at which it was answered first; lowest bit: the cookie has come back */
};

/* ... and a set of them. */
struct afpa_syn_set {
	struct afpa_syn_answer ways[AFPA_SYN_WAYS];
};

/* cookie_guard: whether a cookie may count without its record. Times are of `rtx_clock`. */
struct afpa_cookie_guard {
	__u32 lost;                   /* when the record of a SYN whose cookie had not come back was overwritten last; 0: never */
	__u32 counted;                /* in the period of this time were acknowledged ... */
	__u32 wrong;                  /* ... so many cookies that are none */
	__u32 reserved;
};

/* flows: one established connection of a listener. */
struct afpa_flow_key {
	__u8 client[16], server[16];
	__u16 client_port, server_port;
};

enum afpa_owner {
	AFPA_OWNER_NONE = 0,          /* nothing is pending: the fast path may answer */
	AFPA_OWNER_USER = 1,          /* requests are with user mode, and their responses are pending */
	AFPA_OWNER_USER_FINAL = 2,          /* user mode serves the connection to its end */
	AFPA_OWNER_CLOSING = 3,       /* a FIN or RST was seen: translate only */
	AFPA_OWNER_BYPASSED = 4,       /* as USER_FINAL, after `bypass_after` consecutive passes */
};

/* A connection without a socket: `socketless` of its flow. */
enum afpa_socketless {
	AFPA_SOCKETLESS_NOT = 0,      /* the kernel's TCP has a socket for it */
	AFPA_SOCKETLESS_OPEN,
	AFPA_SOCKETLESS_CLOSING,      /* the answer under way is the last one, and our FIN leaves with it */
	AFPA_SOCKETLESS_FIN_WAIT,     /* our FIN left; the client's is to come */
	AFPA_SOCKETLESS_LAST_ACK,     /* the client's FIN was answered by ours, which is to be acknowledged */
	AFPA_SOCKETLESS_ASSIGNED,  /* to the kernel's TCP; whether it has made the socket is not known yet */
};

enum afpa_flow_flags {
	AFPA_FLOW_TIMESTAMPS = 1,     /* RFC 7323 timestamps were negotiated */
	AFPA_FLOW_PARTIAL = 2,           /* user mode has the beginning of a request, and the rest is to come */
	AFPA_FLOW_REQUEST_SOCK = 4,         /* the server defers accepting, so only a request socket exists: its parameters are learnt later */
	AFPA_FLOW_CLIENT_FIN = 8,
	AFPA_FLOW_SERVER_FIN = 16,
	AFPA_FLOW_MULTI_SEGMENT = 32,       /* transfers are possible: SACK was negotiated */
	AFPA_FLOW_TRANSFER = 64,        /* a transfer is on its way, see `transfers` */
	AFPA_FLOW_ECN = 128,          /* ECN was negotiated (RFC 3168) */
};

struct afpa_flow {
	struct bpf_spin_lock lock;    /* 4 bytes; orders ingress and egress of one connection */
	__u8 owner, flags;
	__u8 client_scale;            /* shift of the client's window field */
	__u8 answer_kind;             /* enum afpa_kind of the last answer */
	__u16 window;                 /* window field of the server's last segment, network order */
	__u16 mss;                    /* largest payload for this client */
	__u32 rx_offset, tx_offset;           /* the sequence offsets, see above */
	__u32 client_next;            /* wire: where the client's next request begins; request content before it goes up unread */
	__u32 kernel_next;            /* kernel: next byte the server's TCP will send */
	__u32 stale_below;            /* kernel: the client has all bytes below, and they may not leave any more */
	__u32 acked_to_kernel;           /* kernel: highest acknowledgement that went up */
	__u32 response_start;         /* kernel: next byte of user mode's responses that the programs read */
	__u32 kernel_received;        /* kernel: highest acknowledgement of the server's TCP */
	__u32 ts_sent, ts_seen;       /* newest TSval sent to, and received from, the client */
	__u32 ts_offset;              /* of the server's timestamp clock */
	__u32 listener;
	__u32 request_seq, request_length, answer_seq; /* of the last answer. Wire: where its request began, the request's length, where the answer began */
	__u32 answer_size;            /* its length */
	__u32 answer_slot, answer_date; /* to send the same again: slot, and Date as Unix second, or Age */
	__u32 snd_una;           /* wire: highest acknowledgement from the client */
	__u64 answer_version;
	__u64 used_ns, user_ns;       /* coarse monotonic time of the last segment, and of the last request that was passed */
	__u8 responses_pending;                    /* responses whose end has not been read yet (F6) */
	__u8 phase;                   /* enum afpa_phase: the part of a response that begins at `response_start` */
	__u16 head_bits;                  /* bit set: the response is to a HEAD; bit 0 is the next response */
	__u32 chunk;                  /* bytes of the chunk whose size is being read */
	__u16 passed;                 /* consecutive passes that count towards `bypass_after` */
	__u16 pins;                   /* low half of the shared word `pins` at the last of them */
	__u32 passing_since;          /* `rtx_clock` of the first of them */
	__u64 path[AFPA_PATH_WORDS];  /* the TCP sender's struct path: round trips and window */
	__u32 any_host_site;          /* of the listener */
	__u32 generation;             /* the shared word when `listener` and this were found; if that has moved, they are looked up anew */
	__u32 rtx_stamp;                /* `rtx_clock` stamp of the entry in `rtx_timers` that counts, see rtx/timers.h */
	__u32 answer_sent;               /* `rtx_clock`: when the last answer left, or left again */
	__u8 retransmits;                   /* how often its timer retransmitted it */
	__u8 rtt_wanted;                   /* it left once, and its acknowledgement is to be measured as a round trip */
	__u8 came_from[6];            /* MAC address that sent us the last request */
	__u32 came_by;                /* interface that it came in by */
	struct afpa_way way;          /* how the kernel's segments left last */
	__u8 way_stale;               /* and may not leave any more */
	__u8 way_doubted;             /* the kernel was asked, because the last answer was lost again and again */
	__u8 server_scale;            /* shift of the server's window field */
	__u8 socketless;              /* enum afpa_socketless */
	__u32 challenged;             /* `rtx_clock` of the last challenge acknowledgement on a connection without a socket, or of its first assignment */
	__u32 assigned_cookie;          /* our first number, once it was assigned */
	__u16 processor;              /* the one that assigned it */
	__u8 agreed;                  /* the options of a handshake without a socket: the low bits of its cookie, as conn/cookie.h has them */
	__u8 assigned_again;          /* 1: it was assigned again, because it had not arrived */
	__u32 way_known;              /* `rtx_clock` at which the way of a connection without a socket was true */
	__u32 unsafe_at;                 /* one more than the place where the last unsafe request is noted; 0: there was none since the last safe one */
	__u32 answered;               /* `rtx_clock` of the last answer: the server may think that the connection is idle */
};

/* transfers: an answer of several segments on its way. Which flow's, which bytes; then how far it is. */
struct afpa_transfer {
	__u64 version;                /* of the slot */
	__u32 slot;
	__u32 date;                   /* Unix second, or Age */
	struct afpa_flow_key flow;    /* entries are used anew, so the holder of the lock compares this */
	__u32 lock;                   /* 1: held, see `transfer_lock` */
	__u32 at;                     /* wire: the answer's first byte */
	__u32 interface;              /* where it leaves */
	__u8 ethernet[14];            /* header of the packet that leaves */
	__u8 send_pending;                    /* something may be sent, but no program could: due at the next tick */
	__u8 place;                   /* where the interface is counted */
	__u64 sender[AFPA_SENDER_WORDS]; /* the TCP sender's state */
};

/* misses: a request for a target that is not pinned. */
struct afpa_miss {
	__u32 site;
	__u32 path_length;
	__u8 client[16];              /* its address, as in keys */
	__u8 path[AFPA_PATH_MAX];     /* the bytes behind it have no meaning */
};

/* The kinds of answers that have an rtx timer. */
enum afpa_rtx_kind {
	AFPA_RTX_ANSWER = 0,          /* the last answer of a connection, of one segment */
	AFPA_RTX_TRANSFER = 1,
};

/* rtx_timers, rtx_due: a timer of retransmission, see rtx/timers.h. */
struct afpa_rtx_timer {
	struct afpa_flow_key flow;
	__u32 interface;              /* where the answer leaves */
	__u8 ethernet[14];            /* header of the packet that leaves */
	__u8 kind;                    /* enum afpa_rtx_kind */
	__u8 reserved;
	__u32 stamp;                  /* of an answer: the flow's `rtx_stamp`, while the entry counts */
	__u32 due;                    /* of an answer: when it is serviced, in the unit of the flow */
};

/* Which timers `afpa_rtx_due` looks at. */
enum afpa_rtx_kinds {
	AFPA_RTX_TRANSFERS = 1,
	AFPA_RTX_ANSWERS = 2,
};

/* The report of `afpa_rtx_due` on the timers that it did not name. */
enum afpa_rtx_state {
	AFPA_RTX_TRANSFERS_LEFT = 1,  /* transfers are under way */
	AFPA_RTX_TRANSFERS_MORE = 2,  /* more of them may be due */
	AFPA_RTX_ANSWERS_LEFT = 4,    /* the FIFO has entries */
	AFPA_RTX_ANSWERS_MORE = 8,    /* more of them may be due */
};

#define AFPA_RESPONSES_PENDING_MAX 15

/* The next part where user mode's responses are read; all but the first are within chunked content. */
enum afpa_phase {
	AFPA_PHASE_HEAD = 0,
	AFPA_PHASE_SIZE,              /* first digit of a chunk's size */
	AFPA_PHASE_DIGITS,            /* further ones, or the end of the size */
	AFPA_PHASE_EXTENSION,         /* to the end of the line */
	AFPA_PHASE_SIZE_END,          /* its line feed */
	AFPA_PHASE_DATA_CR, AFPA_PHASE_DATA_LF, /* behind the data */
	AFPA_PHASE_TRAILER,           /* a trailer line or the blank one begins */
	AFPA_PHASE_TRAILER_LINE, AFPA_PHASE_TRAILER_END,
	AFPA_PHASE_LAST,              /* line feed of the blank line */
};

enum afpa_kind {
	AFPA_KIND_WHOLE = 0,
	AFPA_KIND_HEAD = 1,
	AFPA_KIND_NOT_MODIFIED = 2,
};

/* checked: a header block and its meaning, so that its next copy is only compared. */
enum afpa_verdict_flags {
	AFPA_BLOCK_ONE_REQUEST = 1,   /* certainly one request without a body; the connection stays, or AFPA_BLOCK_CLOSE says that it does not */
	AFPA_BLOCK_ANSWERABLE = 2,    /* and no field asks for anything that only user mode does */
	AFPA_BLOCK_CODING_UNSURE = 4, /* Accept-Encoding with weights, wildcards, unknown codings or several lines */
	AFPA_BLOCK_MATCH_UNSURE = 8,  /* conditions other than one plain validator */
	AFPA_BLOCK_HOST = 16,         /* exactly one Host line so far */
	AFPA_BLOCK_CLOSE = 32,        /* Connection: close */
	AFPA_BLOCK_KEEP = 64,         /* Connection: keep-alive */
	AFPA_BLOCK_CODING_WEIGHED = 128, /* and yet `choices` has user mode's choice */
};

struct afpa_block {
	__u32 flags;
	__u32 codings;                /* bit set: coding accepted; bit 0, identity, always; bits 4 and 5, deflate and identity, are named */
	__u32 site;                   /* 0: no site */
	__u16 none_match_at, none_match_length;       /* If-None-Match value, from the block's start; 0: none */
	__u16 modified_since_at, modified_since_length;
	__u32 fields;                 /* classes of the fields that are not read here */
	__u32 host;                   /* as in struct afpa_site */
	__u32 choices;                /* of weights: two bits for each set of stored codings (gzip 1, br 2, zstd 4), the number of the best */
};

struct afpa_checked {
	__u32 sequence;               /* odd while being written */
	__u32 generation;
	__u32 listener;
	__u32 length;                 /* of the block, final blank line included; 0: vacant */
	struct afpa_block block;
	__u8 bytes[AFPA_CHECKED_MAX];
};

/* partials: the beginning of a request, which is with user mode already. */
struct afpa_partial {
	__u32 length;
	__u32 next;                   /* wire: where the rest begins */
	__u8 bytes[AFPA_HEAD_MAX];
};

/* events: one answered request, for the access log. */
struct afpa_event {
	struct afpa_flow_key flow;
	__u32 listener, site;
	__u32 date;                   /* Unix second, as in the answer's Date */
	__u64 version;                /* of the slot: user mode finds path and headers by it */
	__u32 length;                 /* bytes sent, head and body */
	__u32 weight;                 /* how many answers this event stands for */
	__u8 kind;                    /* enum afpa_kind */
	__u8 head;                    /* the method was HEAD */
	__u8 old;                     /* the version was HTTP/1.0 */
	__u8 reserved;
	__u32 block, block_sequence;  /* entry of `checked` with the request's header block, and its sequence then; 0: not remembered */
	__u32 spare;
};

/* samples: an answer of one segment as it left, and the request that it answers, for the self-check. */
struct afpa_sample {
	struct afpa_flow_key flow;
	__u32 site;                   /* of the slot: a site, or a host */
	__u64 version;                /* of the slot */
	__u32 date;                   /* Unix second at which it left */
	__u16 request_length, answer_length;
	__u8 kind;                    /* enum afpa_kind */
	__u8 reserved;
	__u16 codings;                /* of the slot */
	__u32 spare;
	__u8 request[AFPA_HEAD_MAX];
	__u8 answer[AFPA_ANSWER_MAX + 4];
};

/* site_counts: answers of the sites whose number is this place, modulo AFPA_SITES_COUNTED. */
struct afpa_site_count {
	__u64 whole, not_modified;
};

#endif
