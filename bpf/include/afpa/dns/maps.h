/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The maps of the programs that answer DNS. They share none with those that answer HTTP.
 */
#ifndef AFPA_DNS_MAPS_H
#define AFPA_DNS_MAPS_H

#include <afpa/kernel.h>
#include <afpa/dns/abi.h>
#include <afpa/dns/reasons.h>

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

/*
 * Questions -> pinned answers, each one word (DN3): the kernel gives an element to another key while a program may still read
 * it, so the word says by a fingerprint whose it is.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, AFPA_DNS_KEYS);
	__type(key, struct afpa_dns_key);
	__type(value, __u64);
} dns_keys SEC(".maps");

/* User mode writes a tail before a key names it, and again only long after none does. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AFPA_DNS_TAILS);
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

/* Queries that went up though their answer is pinned -> its key: the server's answer is compared with it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, AFPA_DNS_WATCHES);
	__type(key, struct afpa_dns_watch);
	__type(value, struct afpa_dns_key);
} dns_watches SEC(".maps");

/* Room for a query whose checksum is looked at. */
struct dns_room {
	__u8 bytes[AFPA_DNS_QUERY_MAX + 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct dns_room);
} dns_rooms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u64);
} dns_counters SEC(".maps");

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
	__uint(max_entries, 262144);
} dns_reports SEC(".maps");

/* Only here so that BTF knows the layout. */
struct afpa_dns_report *dns_report_layout __attribute__((unused));

static __always_inline void dns_count(enum afpa_dns_reason reason)
{
	__u32 key = reason;
	__u64 *value = bpf_map_lookup_elem(&dns_counters, &key);

	if (value)
		*value += 1;
}

static __always_inline void dns_tell(const struct afpa_dns_key *key, enum afpa_dns_event event)
{
	struct afpa_dns_report *report = bpf_ringbuf_reserve(&dns_reports, sizeof(*report), 0);

	if (!report) {
		dns_count(AFPA_DNS_REASON_REPORT_LOST);
		return;
	}
	report->key = *key;
	report->event = event;
	report->reserved = 0;
	bpf_ringbuf_submit(report, 0);
}

#endif
