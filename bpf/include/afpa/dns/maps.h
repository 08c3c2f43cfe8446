/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The maps of the programs that answer DNS. They share none with those that answer HTTP.
 */
#ifndef AFPA_DNS_MAPS_H
#define AFPA_DNS_MAPS_H

#include <afpa/kernel.h>
#include <afpa/dns/derive.h>

#define DNS_SEEN_SETS 8192    /* groups of questions that are remembered as seen */
#define DNS_SEEN_WAYS 8
#define DNS_SEEN_KEPT 8       /* one of so many takes the place of another one, where all of a group are young */
#define DNS_MOMENT_SHIFT 26   /* a moment is 67 ms */
#define DNS_TWICE 894         /* moments in a minute */
#define DNS_REPORTS_MOST 1024 /* reports in a moment: user mode asks for far fewer */
#define DNS_MARKS 4096        /* hashes of clients whose query was remembered */
#define DNS_MARK_SHIFT 28     /* their time is counted in 268 ms */
#define DNS_MARK_LIFE 8       /* of these: a later answer of the server is not compared */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_dns_config);
} dns_configs SEC(".maps");

/* Served addresses -> their numbers. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AFPA_DNS_SERVERS);
	__type(key, struct afpa_dns_address);
	__type(value, __u32);
} dns_servers SEC(".maps");

/* The secret of the hashes of questions. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_dns_seed);
} dns_seeds SEC(".maps");

/*
 * Places of pinned answers, each one word (DN3) behind the check of its key; those where a key may be lie side by side, in two lines
 * of memory. User mode gives a place to another key while a program may still read it, so the word has a mark of its key as well. Arrays
 * that may be mapped begin with a page, so the groups of places begin with a line.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, AFPA_DNS_SETS * AFPA_DNS_WAYS);
	__type(key, __u32);
	__type(value, struct afpa_dns_pin);
} dns_pins SEC(".maps");

/*
 * Of each place its patch, those of a group in one line of memory. It is fetched while the pins are: a tail of its own for each address
 * would be fetched after that, from memory that no cache holds when names are many.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, AFPA_DNS_SETS * AFPA_DNS_WAYS);
	__type(key, __u32);
	__type(value, struct afpa_dns_patch);
} dns_patches SEC(".maps");

/* User mode writes a tail before a key names it, and again only long after none does. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, AFPA_DNS_SHORT_TAILS);
	__type(key, __u32);
	__type(value, struct afpa_dns_short_tail);
} dns_short_tails SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, AFPA_DNS_LONG_TAILS);
	__type(key, __u32);
	__type(value, struct afpa_dns_tail);
} dns_tails SEC(".maps");

/* Number of a zone's edition -> monotonic ns until which its answers may be given; 0: it is over. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AFPA_DNS_ZONES);
	__type(key, __u32);
	__type(value, __u64);
} dns_zones SEC(".maps");

/* Clients -> the way by which the server answered them last. A client that is pushed out is the server's until it has answered. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AFPA_DNS_CLIENTS);
	__type(key, struct afpa_dns_client);
	__type(value, struct afpa_dns_way);
} dns_ways SEC(".maps");

/* Where clients need not be known: prefix of their addresses -> number of the next hop; 0: of no single one. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AFPA_DNS_ROUTES);
	__type(key, struct afpa_dns_prefix);
	__type(value, __u32);
} dns_routes SEC(".maps");

/* Prefixes of clients -> the time at which their budget is whole again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AFPA_DNS_CLIENTS);
	__type(key, struct afpa_dns_client);
	__type(value, __u64);
} dns_budgets SEC(".maps");

/* Queries that went up though their answer is pinned -> their questions: the server's answer is compared with the pinned one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AFPA_DNS_WATCHES);
	__type(key, struct afpa_dns_watch);
	__type(value, struct afpa_dns_watched);
} dns_watches SEC(".maps");

/* The part of a core: its numbers, and room for a message, for an answer's headers, and for a cookie in it: a stack has little. */
struct dns_core {
	__u64 counts[AFPA_DNS_COUNTS];
	struct dns_room room;
	__u64 frame[10];
	__u32 option[DNS_WHOLE_OPTION / 4];
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct dns_core);
} dns_cores SEC(".maps");

/*
 * When a query was last remembered of a client and port with this hash. Most queries that go up, and most answers, have to do with no
 * remembered one: they cost a look here, and none into a hash table of the kernel's.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DNS_MARKS);
	__type(key, __u32);
	__type(value, __u32);
} dns_marks SEC(".maps");

/* Questions that were seen lately and are not pinned, those of a group in one line of memory: 48 bits of the check, 16 of the time. */
struct dns_seen {
	__u64 entries[DNS_SEEN_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, DNS_SEEN_SETS);
	__type(key, __u32);
	__type(value, struct dns_seen);
} dns_seen_lately SEC(".maps");

/* Monotonic ns of the last sign that some zone has changed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} dns_noticed SEC(".maps");

/* Reports to user mode. When it is full, they are lost. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 524288);
} dns_reports SEC(".maps");

/* Answers for dnstap. When it is full, they are lost. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 262144);
} dns_samples SEC(".maps");

/* Only here so that BTF knows the layouts. */
struct afpa_dns_report *dns_report_layout __attribute__((unused));
struct afpa_dns_sample *dns_sample_layout __attribute__((unused));

static __always_inline struct dns_core *dns_core(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&dns_cores, &zero);
}

static __always_inline void dns_count(struct dns_core *core, enum afpa_dns_reason reason)
{
	core->counts[reason] += 1;
}

/* A hit, by its code and its type (network order). Their sum is the count of all. */
static __always_inline void dns_count_answer(struct dns_core *core, __be16 type, __be16 flags)
{
	__u32 number = bpf_ntohs(type), place;

	place = number < AFPA_DNS_TYPE_CAA ? number : number == 257 ? AFPA_DNS_TYPE_CAA : 0;
	place += flags & bpf_htons(3) ? AFPA_DNS_REASON_PLACES + AFPA_DNS_TYPE_PLACES : AFPA_DNS_REASON_PLACES;
	asm volatile("" : "+r"(place)); /* the verifier has to see the bounds that the compiler knows */
	if (place < AFPA_DNS_COUNTS)
		core->counts[place] += 1;
}

/* Reports the question in the room. Those that user mode may read a little later do not wake it. */
static __always_inline void dns_tell(struct dns_core *core, enum afpa_dns_event event)
{
	struct afpa_dns_report *report = bpf_ringbuf_reserve(&dns_reports, sizeof(*report), 0);
	struct dns_room *room = &core->room;

	if (!report) {
		dns_count(core, AFPA_DNS_REASON_REPORT_LOST);
		return;
	}
	__builtin_memcpy(report->name, room->message + DNS_HEADER, sizeof(report->name));
	report->type = room->type;
	report->name_length = room->name_length;
	report->bits = room->bits;
	report->server = room->server;
	report->event = event;
	report->reserved = 0;
	bpf_ringbuf_submit(report, event == AFPA_DNS_MISSED ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP);
}

/* The reports of this moment: the moment and their count in one word. Processors that write at once make a few more. */
static volatile __u64 dns_reports_now;

/* May a report be made in this moment? */
static __always_inline bool dns_may_report(__u64 moment)
{
	__u64 count = dns_reports_now;

	if (count >> 32 != moment)
		count = moment << 32;
	if ((__u32)count >= DNS_REPORTS_MOST)
		return false;
	dns_reports_now = count + 1;
	return true;
}

/*
 * The question in the room is not pinned (DN13). User mode hears of it when it comes for the second time within a minute, and then once
 * in a moment or two. So names that nobody asks for twice, of which there may be a flood, cost a look, and no report. In a flood one in
 * eight takes the place of another one: those that are asked for often find theirs all the same. A function by itself, because the
 * verifier then looks at it once.
 */
__attribute__((noinline)) int dns_tell_missed(struct dns_core *core, __u64 now)
{
	__u64 moment = now >> DNS_MOMENT_SHIFT & 0xffff, own, entry, age = 0;
	__u32 set, place = DNS_SEEN_WAYS, drawn;
	struct dns_seen *seen;
	bool known = false;

	if (!core)
		return 0;
	own = core->room.hash.check & ~0xffffULL;
	set = core->room.hash.mark & (DNS_SEEN_SETS - 1);
	seen = bpf_map_lookup_elem(&dns_seen_lately, &set);
	if (!seen)
		return 0;
	for (__u32 i = 0; i < DNS_SEEN_WAYS; i++) {
		entry = *(volatile __u64 *)&seen->entries[i];
		age = (moment - entry) & 0xffff;
		known = !((entry ^ own) >> 16);
		if (known || !entry || age > DNS_TWICE)
			place = i;
		if (known)
			break;
	}
	if (known && age < 2)
		return 0;
	if (place == DNS_SEEN_WAYS) {
		drawn = core->counts[AFPA_DNS_REASON_PASS_NOT_PINNED] * 0x9e3779b97f4a7c15ULL >> 58;
		if (drawn % DNS_SEEN_KEPT)
			return 0;
		place = drawn / DNS_SEEN_KEPT;
	}
	if (known && age <= DNS_TWICE) {
		if (!dns_may_report(moment))
			return 0;
		dns_tell(core, AFPA_DNS_MISSED);
	}
	asm volatile("" : "+r"(place)); /* the verifier has to see the bounds that the compiler knows */
	if (place < DNS_SEEN_WAYS)
		*(volatile __u64 *)&seen->entries[place] = own | moment;
	return 0;
}

/* The place of a client and port. */
static __always_inline __u32 *dns_mark_of(const __u8 *address, __be16 port)
{
	const __u32 *words = (const __u32 *)address;
	__u32 sum = words[0] + 3 * words[1] + 5 * words[2] + 7 * words[3] + ((__u32)port << 16 | port), place;

	place = sum * 0x9e3779b1 >> 20; /* DNS_MARKS */
	return bpf_map_lookup_elem(&dns_marks, &place);
}

/* Can a query of this client and port have been remembered, to which the server's answer has not come? */
static __always_inline bool dns_is_marked(const __u8 *address, __be16 port, __u64 now)
{
	const __u32 *mark = dns_mark_of(address, port);

	return mark && (__u32)(now >> DNS_MARK_SHIFT) - *(volatile __u32 *)mark <= DNS_MARK_LIFE;
}

/* The place where the question in the room is pinned, and its number. */
static __always_inline struct afpa_dns_pin *dns_find_pin(const struct afpa_dns_hash *hash, __u32 *number)
{
	__u32 place = hash->set * AFPA_DNS_WAYS;

#pragma unroll
	for (int i = 0; i < AFPA_DNS_WAYS; i++, place++) {
		struct afpa_dns_pin *pin = bpf_map_lookup_elem(&dns_pins, &place);

		if (pin && *(volatile __u64 *)&pin->check == hash->check) {
			*number = place;
			return pin;
		}
	}
	return NULL;
}

/* The word of a place that was found, if it is this question's. */
static __always_inline __u64 dns_pinned_word(const struct afpa_dns_pin *pin, const struct afpa_dns_hash *hash)
{
	__u64 word = *(volatile __u64 *)&pin->word;

	return word >> (AFPA_DNS_TAIL_BITS + AFPA_DNS_ZONE_BITS + AFPA_DNS_RULE_BITS) == hash->mark ? word : 0;
}

#endif
