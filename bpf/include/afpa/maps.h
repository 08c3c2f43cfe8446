/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every map, with a line of purpose each. `max_entries` of 1 is a placeholder: settings size it.
 */
#ifndef AFPA_MAPS_H
#define AFPA_MAPS_H

#include <afpa/abi.h>
#include <afpa/reasons.h>

/* Clock, port and path filters, settings: one region, mapped by user mode, read by the programs at fixed addresses. */
struct afpa_shared shared SEC(".data.shared") = {};

/* Served local addresses. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct afpa_endpoint);
	__type(value, struct afpa_listener);
} listeners SEC(".maps");

/* Host values of a listener set -> site (the papers' request set), and the number of the host. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct afpa_site_key);
	__type(value, struct afpa_site);
} sites SEC(".maps");

/* Request fields by name -> their classes. Empty unless answers may depend on them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct afpa_field_name);
	__type(value, __u32);
} fields SEC(".maps");

/* Site and path -> the current variants. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct afpa_object_key);
	__type(value, struct afpa_object);
} objects SEC(".maps");

/* Complete responses: those that have their memory from the start on. Entry 0 is never used. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_slot);
} slots SEC(".maps");

/* Further ones, by the numbers behind those: an entry takes its memory when it is filled. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_slot);
} more_slots SEC(".maps");

/* Bytes of answers that are longer than a slot, as `slots` and `more_slots`. Entry 0 is never used. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_page);
} pages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_page);
} more_pages SEC(".maps");

/* Connections. A plain hash: nothing is evicted, a full table leaves new connections to user mode. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct afpa_flow_key);
	__type(value, struct afpa_flow);
} flows SEC(".maps");

/* Ways of new connections, until their first request comes. An overwritten way is learnt with the first response. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AFPA_WAYS);
	__type(key, __u32);
	__type(value, struct afpa_proven_way);
} ways SEC(".maps");

/* Ways to clients by whose address the kernel's own SYN-ACK left lately. An overwritten way is learnt with the next one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AFPA_WAYS);
	__type(key, __u32);
	__type(value, struct afpa_client_way);
} client_ways SEC(".maps");

/* Where clients need not be known: prefix of their addresses -> number of the next hop; 0: of no single one. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AFPA_ROUTES);
	__type(key, struct afpa_prefix);
	__type(value, __u32);
} routes SEC(".maps");

/* Ways by which the kernel's own SYN-ACKs to clients behind a next hop left lately, from an address of the server's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AFPA_NEXT_HOPS);
	__type(key, __u32);
	__type(value, struct afpa_client_way);
} next_hop_ways SEC(".maps");

/* Interfaces that have programs, by index: bits of `enum afpa_carried`. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} carriers SEC(".maps");

/* Answers of several segments on their way, each with its timer. A full table leaves further ones to user mode. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct afpa_flow_key);
	__type(value, struct afpa_transfer);
} transfers SEC(".maps");

/* Timers of answers of one segment, first in, first out. A full queue leaves losses to the client. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, struct afpa_rtx_timer);
} rtx_timers SEC(".maps");

/* Timers of both kinds that are due, as `afpa_rtx_due` named them last. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AFPA_RTX_DUE);
	__type(key, __u32);
	__type(value, struct afpa_rtx_timer);
} rtx_due SEC(".maps");

/*
 * Beginnings of requests whose rest is to come. When it is full, the oldest are dropped, and user mode serves their
 * connections to the end.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct afpa_flow_key);
	__type(value, struct afpa_partial);
} partials SEC(".maps");

/* Header blocks that were read once, addressed by a hash of a sample of their bytes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_checked);
} checked SEC(".maps");

/* One count per reason: first those of no interface, then AFPA_REASONS_MAX counts for each interface. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AFPA_REASONS_MAX * (1 + AFPA_INTERFACES));
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* Answers of each site. User mode numbers sites so that no two share a place that matters to it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AFPA_SITES_COUNTED);
	__type(key, __u32);
	__type(value, struct afpa_site_count);
} site_counts SEC(".maps");

/* Answered requests on their way to the access log. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

/* Some answers, whole, on their way to the self-check. When it is full, answers are not sampled. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} samples SEC(".maps");

/* Requests for targets that are not pinned, on their way to user mode. When it is full, they are lost. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} misses SEC(".maps");

/* By the hash of a target: monotonic ns of the last moment at which an unsafe request for it, or its response, passed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, AFPA_UNSAFE_MARKS);
	__type(key, __u32);
	__type(value, __u64);
} unsafe_marks SEC(".maps");

/* Only here so that BTF knows the layouts: ring buffers have no value type. */
struct afpa_event *event_layout __attribute__((unused));
struct afpa_sample *sample_layout __attribute__((unused));
struct afpa_miss *miss_layout __attribute__((unused));

/*
 * The program that answers. The kernel empties a program array when no process holds it any more, so
 * the end of user mode, however it comes, ends the answering with it; the entry program stays.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} alive SEC(".maps");

/* Programs that ingress reaches by tail calls (enum in rtx/transfer.h), without user mode if connections are kept. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 8);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

/* The slot, or NULL. One of `slots` costs no more than if there were no others. */
static __always_inline struct afpa_slot *slot_at(const __u32 *index)
{
	struct afpa_slot *slot = bpf_map_lookup_elem(&slots, index);

	return slot ?: bpf_map_lookup_elem(&more_slots, index);
}

/* The page, or NULL. */
static __always_inline struct afpa_page *page_at(const __u32 *index)
{
	struct afpa_page *page = bpf_map_lookup_elem(&pages, index);

	return page ?: bpf_map_lookup_elem(&more_pages, index);
}

static __always_inline void count_at(__u32 place, enum afpa_reason reason)
{
	__u32 key = place * AFPA_REASONS_MAX + reason;
	__u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value)
		*value += 1;
}

/* Count an event that belongs to no interface. */
static __always_inline void count(enum afpa_reason reason)
{
	count_at(0, reason);
}

/* Count an answer of a site. */
static __always_inline void count_site(__u32 site, bool not_modified)
{
	__u32 place = site & (AFPA_SITES_COUNTED - 1);
	struct afpa_site_count *counts = bpf_map_lookup_elem(&site_counts, &place);

	if (!counts)
		return;
	if (not_modified)
		counts->not_modified += 1;
	else
		counts->whole += 1;
}

/* Where an interface is counted. Interfaces beyond AFPA_INTERFACES are counted with those of no interface. */
static __always_inline __u32 place_of(__u32 ifindex)
{
	__u32 place = ifindex & (AFPA_INTERFACES - 1);

	return shared.interfaces[place] == ifindex ? place + 1 : 0;
}

#endif
