/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interface between the programs that answer DNS and user mode: as abi.h, whose form it has, in a module of its own.
 */
#ifndef AFPA_DNS_ABI_H
#define AFPA_DNS_ABI_H

#define AFPA_DNS_NAME_MAX 255    /* longest name in wire form */
#define AFPA_DNS_NAME_ROOM 256   /* room for one; a multiple of 8 */
#define AFPA_DNS_NAME_WORDS 32   /* words of 8 bytes in that */
#define AFPA_DNS_SHORT_MAX 112   /* longest tail (the part of an answer behind its question) of those that lie in few lines */
#define AFPA_DNS_TAIL_MAX 1216   /* longest tail; a multiple of 64 */
#define AFPA_DNS_TAIL_ROOM 1264  /* room for one */
#define AFPA_DNS_ANSWER_MAX 1232 /* longest answer */
#define AFPA_DNS_QUERY_MAX 512   /* longest query that is looked at, with its UDP header */
#define AFPA_DNS_KEYS 65536      /* pinned keys */
#define AFPA_DNS_WAYS 8          /* places where a key may be pinned, side by side */
#define AFPA_DNS_SETS 16384      /* such groups of places */
#define AFPA_DNS_SHORT_TAILS 32768 /* pinned tails: many keys share one. Numbers below this are short ones */
#define AFPA_DNS_LONG_TAILS 8192
#define AFPA_DNS_ZONES 8192      /* numbers of zones; each edition of a zone has one of its own */
#define AFPA_DNS_SERVERS 64      /* addresses that are served */
#define AFPA_DNS_CLIENTS 65536   /* clients whose way is remembered, and prefixes that have a budget */
#define AFPA_DNS_ROUTES 8192     /* routes by prefix */
#define AFPA_DNS_WATCHES 4096    /* queries that went up though their answer is pinned */
#define AFPA_DNS_LEASE 400000000 /* ns for which a zone may be answered after a poll of it was sent */

/* A pinned answer in one word: these many bits, from the lowest. The rest is the mark of the key. */
#define AFPA_DNS_TAIL_BITS 20
#define AFPA_DNS_PATCHED 0x80000 /* one of them: the tail is a short one, which lacks an address */
#define AFPA_DNS_ZONE_BITS 14
#define AFPA_DNS_RULE_BITS 4

/* Numbers of a core: the reasons, and then answers by code (NOERROR, NXDOMAIN) and type. */
#define AFPA_DNS_REASON_PLACES 64
#define AFPA_DNS_TYPE_PLACES 128 /* types below that have a place of their own; 0: all others */
#define AFPA_DNS_TYPE_CAA 127    /* the place of CAA, whose number is 257 */
#define AFPA_DNS_COUNTS 320

/* Properties of a query, besides the name and its type, that the answer depends on. */
enum afpa_dns_bit {
	AFPA_DNS_EDNS = 1, /* there is an OPT record */
	AFPA_DNS_DO = 2,   /* its flag that asks for signatures */
	AFPA_DNS_CD = 4,
	AFPA_DNS_AD = 8,
	AFPA_DNS_RD = 16,
	AFPA_DNS_COOKIE = 32, /* EDNS has one option, a client's cookie (RFC 7873); with a server's only where its secret is known */
};

/* Bits of a pinned answer's rule. */
enum afpa_dns_rule {
	AFPA_DNS_FROM_512 = 0,      /* for clients with a buffer of so many bytes or more */
	AFPA_DNS_FROM_1232 = 1,
	AFPA_DNS_FROM_4096 = 2,
	AFPA_DNS_FROM_MASK = 3,
	AFPA_DNS_LOWER_ONLY = 4,    /* the server's answer depends on the case of the question */
};

/* The secret of keys' hashes, all of it random: three sums, whose first values depend on the name's words, with two factors a word. */
struct afpa_dns_seed {
	__u64 begin[3 * AFPA_DNS_NAME_WORDS];
	__u64 factors[6 * (AFPA_DNS_NAME_WORDS + 1)];
};

/* The hash of a question with everything that decides about its answer. */
struct afpa_dns_hash {
	__u64 check;
	__u32 set;                    /* the places where it may be pinned */
	__u32 mark;                   /* of the pinned word */
};

/* A place where a key may be pinned. */
struct afpa_dns_pin {
	__u64 check;                  /* of the key */
	__u64 word;                   /* 0: nothing is pinned here */
};

/* The part of an answer that follows its question, and the answer's header. */
struct afpa_dns_tail {
	__u32 sum;        /* of the bytes, as from an even place, folded to 16 bits */
	__u16 length;
	__u16 cookie;     /* 1: the option of a cookie follows, made for the client, which has sent one */
	__u16 header[4];  /* flags without RD, ANCOUNT, NSCOUNT, ARCOUNT, network order */
	__u8 bytes[AFPA_DNS_TAIL_ROOM];
};

/* The same, if it is short. */
struct afpa_dns_short_tail {
	__u32 sum;
	__u16 length, cookie, header[4];
	__u8 bytes[AFPA_DNS_SHORT_MAX];
};

/* The address of IPv4 that the tail of a pinned answer lacks: names of a zone mostly differ in that alone. In one word. */
struct afpa_dns_patch {
	__u32 address;                /* network order */
	__u32 at;                     /* where it begins in the tail, which has zeros there; even, and not 0 */
};

/* A served address. */
struct afpa_dns_address {
	__u8 address[16];
};

/* Whose way, or whose budget. */
struct afpa_dns_client {
	__u8 address[16];
	__u32 server;
};

/* The way by which the server's own answer left to a client. */
struct afpa_dns_way {
	__u64 seen;           /* coarse monotonic ns */
	__u32 interface;
	__u8 destination[6], source[6];
};

/* A query on its way to the server. */
struct afpa_dns_watch {
	__u8 address[16];
	__u32 server;
	__u16 port, id;       /* network order */
};

/* The question of such a query. */
struct afpa_dns_watched {
	struct afpa_dns_hash hash;
	__u16 type;           /* network order */
	__u8 name_length;
	__u8 bits;            /* enum afpa_dns_bit */
	__u32 since;          /* when it was remembered, as marks have it */
};

/* Orders of user mode; the one entry of a map. */
struct afpa_dns_config {
	__u64 until;          /* monotonic ns: nothing is answered after that */
	__u64 way_life;       /* ns for which a way is believed */
	__u64 cost;           /* ns of a prefix's budget that an answer takes; 0: no limit */
	__u64 burst;          /* ns of budget that a prefix may use ahead of time */
	__u64 cookie_secret[2]; /* of the server's cookies (RFC 9018) */
	__u64 wall;           /* monotonic ns and these are ns since 1970 */
	__u32 knows_cookies;  /* 1: that secret is known */
	__u32 port;           /* host order */
	__u32 next_hops;      /* edition of the routes; 0: clients are not known by their next hops */
	__u32 sampled;        /* answers for samples, in 2^32 */
	struct afpa_dns_address first[2]; /* the served addresses with the numbers 0 and 1, or zeros */
};

/* A prefix of clients. */
struct afpa_dns_prefix {
	__u32 bits;           /* 32 more than those of the address */
	__u32 family;         /* 4 or 6 */
	__u8 address[16];     /* an IPv4 address stands at the beginning */
};

/* Events that the programs tell user mode of. */
enum afpa_dns_event {
	AFPA_DNS_MISSED,      /* a key is not pinned */
	AFPA_DNS_DIFFERED,    /* the server's own answer is not what was pinned, which has been dropped */
	AFPA_DNS_NOTIFIED,    /* the server tells or has learnt that some zone has changed */
};

/* An answer with its question, for dnstap. */
struct afpa_dns_sample {
	__u8 client[16];
	__u32 server;         /* the number of the address that was asked */
	__u16 port;           /* the client's, network order */
	__u16 query_length, response_length, reserved;
	__u32 reserved_too;
	__u8 query[AFPA_DNS_QUERY_MAX];
	__u8 response[AFPA_DNS_TAIL_ROOM];
};

struct afpa_dns_report {
	__u8 name[AFPA_DNS_NAME_ROOM]; /* wire form, in the client's case; other bytes lie behind its end */
	__u16 type;           /* network order */
	__u8 name_length;
	__u8 bits;            /* enum afpa_dns_bit */
	__u32 server;         /* the number of the address that was asked */
	__u32 event;          /* enum afpa_dns_event */
	__u32 reserved;
};

#endif
