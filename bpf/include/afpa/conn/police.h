/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The police: which clients are let in, and how often they may come. `crates/afpa-police` decides by the same rules.
 *
 *  L1 The longest of the prefixes that contain a client's address decides. An allowed client is never refused, and
 *     takes no token.
 *  L2 A bucket is one word: the time at which it will be full again (the generic cell rate algorithm), behind a tag of
 *     its client. A token is taken by a compare-and-swap of the word, so a rate holds however many processors count. A
 *     client's bucket is asked before that of all.
 *  L3 Nothing is counted twice: a connection is counted at its SYN, a request where it is answered, so one that goes up
 *     gives its token back (`police_return`) and user mode takes one from the same bucket.
 *  L4 Connections over `lo` are the machine's own, AFPA's questions among them: user mode counts those.
 *  L5 Of the connections of all clients, each class gets its share whatever the others do: its own bucket is asked first,
 *     and its tokens are charged to the bucket of all, which may owe. Tokens that a class does not use are in the bucket of
 *     all, for the next client of any class.
 *
 * Where nothing is configured, this costs the test of one shared word.
 */
#ifndef AFPA_CONN_POLICE_H
#define AFPA_CONN_POLICE_H

#include <afpa/conn/listener.h>
#include <afpa/net/once.h>

#define POLICE_SECOND (1000000000ULL >> AFPA_POLICE_TICK_SHIFT)
#define POLICE_UNUSED (64 - AFPA_POLICE_TIME_BITS)
#define POLICE_TIME (~0ULL >> POLICE_UNUSED)

/* The use of a token: it selects a half of the sets. */
enum police_what { POLICE_CONNECTION, POLICE_REQUEST };

/* Allowed and denied prefixes. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AFPA_POLICE_PREFIXES);
	__type(key, struct afpa_prefix);
	__type(value, __u32);
} police_prefixes SEC(".maps");

/* Prefixes of classes, and their numbers, from 1. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AFPA_POLICE_CLASS_PREFIXES);
	__type(key, struct afpa_prefix);
	__type(value, __u32);
} police_classes SEC(".maps");

/* Addresses of listeners whose clients are of a class, where no prefix says which. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct afpa_endpoint);
	__type(value, __u32);
} police_listeners SEC(".maps");

/*
 * Buckets: the sets of connections, those of requests, one with the two buckets of all clients, those of the classes; and how
 * often each class was refused.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * AFPA_POLICE_SETS + 1 + 2 * AFPA_POLICE_CLASSES / AFPA_POLICE_WAYS);
	__type(key, __u32);
	__type(value, struct afpa_police_set);
} police_buckets SEC(".maps");

/* A bit set of enum afpa_police_part; 0: there is nothing to ask. */
static __always_inline __u32 police_parts(void)
{
	return *(volatile __u32 *)&shared.police;
}

/* The client's address as the longest of all prefixes. */
static __always_inline void longest_prefix(const struct segment *s, struct afpa_prefix *key)
{
	const __u32 *client = (const __u32 *)s->key.client;
	__u32 *address = (__u32 *)key->address;

	__builtin_memset(key, 0, sizeof(*key));
	if (!s->ipv6) {
		key->bits = 32 + 32;
		key->family = 4;
		address[0] = client[3];
	} else {
		key->bits = 32 + 128;
		key->family = 6;
		address[0] = client[0];
		address[1] = client[1];
		address[2] = client[2];
		address[3] = client[3];
	}
}

/* The rule of the client's longest prefix (L1); 0: there is none. */
static __always_inline __u32 police_rule(const struct segment *s)
{
	struct afpa_prefix key;
	__u32 *rule;

	longest_prefix(s, &key);
	rule = bpf_map_lookup_elem(&police_prefixes, &key);
	return rule ? *rule : 0;
}

/* The class of the client: that of its longest prefix, else that of the listener, else the first. */
static __always_inline __u32 police_class(const struct segment *s)
{
	struct afpa_endpoint endpoint = { .port = s->key.server_port };
	struct afpa_prefix key;
	__u32 *number;

	longest_prefix(s, &key);
	number = bpf_map_lookup_elem(&police_classes, &key);
	if (!number) {
		__builtin_memcpy(endpoint.address, s->key.server, 16);
		number = bpf_map_lookup_elem(&police_listeners, &endpoint);
	}
	if (!number) {
		any_address(&endpoint, s->ipv6);
		number = bpf_map_lookup_elem(&police_listeners, &endpoint);
	}
	return number ? *number & (AFPA_POLICE_CLASSES - 1) : 0;
}

/* --- one bucket --- */

static __always_inline __u64 police_clock(void)
{
	return bpf_ktime_get_boot_ns() >> AFPA_POLICE_TICK_SHIFT; /* as user mode's steady time */
}

/* The most that a bucket may lack when it was charged more than it had (L5): twice its size, and a second for rounding. */
static __always_inline __u64 bucket_debt(const struct afpa_pace *pace)
{
	return 2 * pace->tolerance + POLICE_SECOND;
}

/* Ticks until the bucket is full. A time later than the rate allows is not from this round of the clock. */
static __always_inline __u64 bucket_missing(__u64 word, __u64 now, const struct afpa_pace *pace)
{
	__s64 missing = (__s64)((word - now) << POLICE_UNUSED) >> POLICE_UNUSED;

	if (missing < 0 || missing > (__s64)bucket_debt(pace))
		return 0;
	return missing;
}

static __always_inline __u64 bucket_full_at(__u64 tag, __u64 time)
{
	return tag << AFPA_POLICE_TIME_BITS | (time & POLICE_TIME);
}

/* Take a token out of the bucket of `tag` (L2). A bucket of another tag there is replaced. */
static __always_inline bool bucket_take(__u64 *word, __u64 tag, __u64 now, const struct afpa_pace *pace)
{
	for (int i = 0; i < AFPA_POLICE_TRIES; i++) {
		__u64 seen = *(volatile __u64 *)word, missing = 0;

		if (seen >> AFPA_POLICE_TIME_BITS == tag)
			missing = bucket_missing(seen, now, pace);
		if (missing + pace->interval > pace->tolerance)
			return false;
		if (__sync_val_compare_and_swap(word, seen, bucket_full_at(tag, now + missing + pace->interval)) == seen)
			return true;
	}
	return false; /* so many take at once that there cannot be enough for all */
}

/* Charge a token that the bucket may lack (L5). When others take at the same moment, it may stay uncharged. */
static __always_inline void bucket_charge(__u64 *word, __u64 tag, __u64 now, const struct afpa_pace *pace)
{
	for (int i = 0; i < AFPA_POLICE_TRIES; i++) {
		__u64 seen = *(volatile __u64 *)word, missing = 0;

		if (seen >> AFPA_POLICE_TIME_BITS == tag)
			missing = bucket_missing(seen, now, pace);
		missing += pace->interval;
		if (missing > bucket_debt(pace))
			return;
		if (__sync_val_compare_and_swap(word, seen, bucket_full_at(tag, now + missing)) == seen)
			return;
	}
}

/* Give it back, if the bucket is still that of `tag`. When others take at the same moment, it may stay taken. */
static __always_inline void bucket_return(__u64 *word, __u64 tag, __u64 now, const struct afpa_pace *pace)
{
	__u64 seen = *(volatile __u64 *)word, missing = bucket_missing(seen, now, pace);

	missing -= missing < pace->interval ? missing : pace->interval; /* some time has passed since */
	if (seen >> AFPA_POLICE_TIME_BITS == tag)
		__sync_val_compare_and_swap(word, seen, bucket_full_at(tag, now + missing));
}

/* --- all of them --- */

/* A hash of the bits of an address that make the client. */
static __always_inline __u64 police_hash(const struct segment *s)
{
	const __u64 *client = (const __u64 *)s->key.client;
	__u32 at = s->ipv6 ? 2 : 0;

	return mix(mix(shared.hash_seed, client[0] & shared.police_masks[at]), client[1] & shared.police_masks[at + 1]);
}

static __always_inline __u64 police_tag(__u64 hash)
{
	return hash >> AFPA_POLICE_TIME_BITS | 1;
}

/* The client's word: that with its tag, else the first of the fullest of its set. */
static __always_inline __u64 *own_bucket(enum police_what what, __u64 hash, __u64 now, const struct afpa_pace *pace)
{
	__u32 place = what * AFPA_POLICE_SETS + (hash & (AFPA_POLICE_SETS - 1)), fullest = 0;
	struct afpa_police_set *set = bpf_map_lookup_elem(&police_buckets, &place);
	__u64 least = ~0ULL;

	if (!set)
		return NULL;
	for (__u32 i = 0; i < AFPA_POLICE_WAYS; i++) {
		__u64 word = *(volatile __u64 *)&set->words[i], missing;

		if (word >> AFPA_POLICE_TIME_BITS == police_tag(hash)) {
			fullest = i;
			break;
		}
		missing = bucket_missing(word, now, pace);
		if (missing < least) {
			least = missing;
			fullest = i;
		}
	}
	opaque(fullest);
	return &set->words[fullest & (AFPA_POLICE_WAYS - 1)];
}

/* One of the words behind those of clients: first come those of all clients. */
static __always_inline __u64 *word_behind(__u32 at)
{
	__u32 place = 2 * AFPA_POLICE_SETS + at / AFPA_POLICE_WAYS;
	struct afpa_police_set *set = bpf_map_lookup_elem(&police_buckets, &place);

	return set ? &set->words[at & (AFPA_POLICE_WAYS - 1)] : NULL;
}

static __always_inline __u64 *bucket_of_all(enum police_what what)
{
	return word_behind(what);
}

static __always_inline __u64 *bucket_of_class(__u32 class)
{
	return word_behind(AFPA_POLICE_WAYS + class);
}

static __always_inline void count_refused(__u32 class)
{
	__u64 *word = word_behind(AFPA_POLICE_WAYS + AFPA_POLICE_CLASSES + class);

	if (word)
		__sync_fetch_and_add(word, 1);
}

/* The pace of a rate, read once: user mode may write it. */
static __always_inline struct afpa_pace read_pace(const struct afpa_pace *pace)
{
	struct afpa_pace read = {
		.interval = *(volatile __u64 *)&pace->interval,
		.tolerance = *(volatile __u64 *)&pace->tolerance,
	};

	return read;
}

/* Take a token of the class's own share, and charge it to all (L5). False: it has none left. */
static __always_inline bool share_take(__u32 class, __u64 now, __u64 *of_all, const struct afpa_pace *all)
{
	struct afpa_pace share = read_pace(&shared.class_paces[class & (AFPA_POLICE_CLASSES - 1)]);
	__u64 *word = share.interval ? bucket_of_class(class) : NULL;

	if (!word || !bucket_take(word, AFPA_POLICE_EVERYBODY, now, &share))
		return false;
	bucket_charge(of_all, AFPA_POLICE_EVERYBODY, now, all);
	return true;
}

/* Take a token of all clients', by the class of this one. */
static __always_inline bool all_take(const struct segment *s, enum police_what what, __u64 now, const struct afpa_pace *all)
{
	bool shares = what == POLICE_CONNECTION && police_parts() & AFPA_POLICE_SHARES;
	__u64 *word = bucket_of_all(what);
	__u32 class;

	if (!word)
		return true;
	if (!shares)
		return bucket_take(word, AFPA_POLICE_EVERYBODY, now, all);
	class = police_class(s);
	if (share_take(class, now, word, all) || bucket_take(word, AFPA_POLICE_EVERYBODY, now, all))
		return true;
	count_refused(class);
	return false;
}

/* Take a token of the client's, then one of all clients'. AFPA_ANSWERED: there were; else which there was not. */
static __always_inline enum afpa_reason police_take(const struct segment *s, enum police_what what,
						    const struct afpa_pace paces[2])
{
	struct afpa_pace own = read_pace(&paces[0]), all = read_pace(&paces[1]);
	__u64 hash = police_hash(s), now = police_clock(), *word;

	word = own.interval ? own_bucket(what, hash, now, &own) : NULL;
	if (word && !bucket_take(word, police_tag(hash), now, &own))
		return what == POLICE_CONNECTION ? AFPA_DROP_CLIENT_RATE : AFPA_PASS_CLIENT_RATE;
	if (all.interval && !all_take(s, what, now, &all))
		return what == POLICE_CONNECTION ? AFPA_DROP_TOTAL_RATE : AFPA_PASS_TOTAL_RATE;
	return AFPA_ANSWERED;
}

/* The decision of the prefixes, and where they have none, of the rates. AFPA_ANSWERED, or the reason. */
static __always_inline enum afpa_reason police_ask(const struct segment *s, enum police_what what, enum afpa_police_part limited,
						   const struct afpa_pace paces[2], enum afpa_reason denied)
{
	__u32 parts = police_parts(), rule = parts & AFPA_POLICE_RULES ? police_rule(s) : 0;

	if (rule)
		return rule == AFPA_POLICE_DENY ? denied : AFPA_ANSWERED;
	return parts & limited ? police_take(s, what, paces) : AFPA_ANSWERED;
}

/* May a connection begin? AFPA_ANSWERED, or the reason why its SYN is dropped. */
__noinline int afpa_police_connection(const struct segment *s)
{
	return !s ? AFPA_ANSWERED :
		    police_ask(s, POLICE_CONNECTION, AFPA_POLICE_CONNECTIONS, shared.connection_paces, AFPA_DROP_DENIED);
}

/* May a request be answered? AFPA_ANSWERED, and its token is taken, or the reason why it goes up. */
__noinline int afpa_police_request(const struct segment *s)
{
	return !s ? AFPA_ANSWERED :
		    police_ask(s, POLICE_REQUEST, AFPA_POLICE_REQUESTS, shared.request_paces, AFPA_PASS_DENIED);
}

/* It went up all the same: its tokens are user mode's to take (L3). */
__noinline int afpa_police_return(const struct segment *s)
{
	struct afpa_pace own = read_pace(&shared.request_paces[0]), all = read_pace(&shared.request_paces[1]);
	__u32 parts = police_parts();
	__u64 hash, now, *word;

	if (!s || !(parts & AFPA_POLICE_REQUESTS) || (parts & AFPA_POLICE_RULES && police_rule(s)))
		return 0;
	hash = police_hash(s);
	now = police_clock();
	word = own.interval ? own_bucket(POLICE_REQUEST, hash, now, &own) : NULL;
	if (word)
		bucket_return(word, police_tag(hash), now, &own);
	word = all.interval ? bucket_of_all(POLICE_REQUEST) : NULL;
	if (word)
		bucket_return(word, AFPA_POLICE_EVERYBODY, now, &all);
	return 0;
}

/* The SYN of a client: TCX_DROP, counted, if no connection may begin to an address that is served. */
static __always_inline int police_syn(struct __sk_buff *skb, const struct segment *s)
{
	struct afpa_listener listener;
	enum afpa_reason reason;

	if (!police_parts() || s->flags & TCP_ACK || skb->ifindex == LOOPBACK_IFINDEX)
		return TCX_NEXT;
	if (!find_listener(s, NULL, 0, &listener))
		return TCX_NEXT;
	reason = afpa_police_connection(s);
	if (reason == AFPA_ANSWERED) {
		skb->tc_index = MARK_UP; /* the hook of a device above this one does not count it again */
		return TCX_NEXT;
	}
	count_at(place_of(skb->ifindex), reason);
	return TCX_DROP;
}

#endif
