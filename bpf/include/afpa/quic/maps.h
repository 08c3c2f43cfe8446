/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The maps of the program for QUIC. It shares none with others.
 */
#ifndef AFPA_QUIC_MAPS_H
#define AFPA_QUIC_MAPS_H

#include <afpa/net/datagram.h>
#include <afpa/quic/reasons.h>
#include <afpa/quic/token.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_quic_config);
} quic_configs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct afpa_quic_table);
} quic_tables SEC(".maps");

/* Addresses that this host has and serves. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AFPA_QUIC_ADDRESSES);
	__type(key, struct afpa_quic_address);
	__type(value, __u32);
} quic_addresses SEC(".maps");

/* Our sockets: they have an entry. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} quic_sockets SEC(".maps");

/* Allowed and denied prefixes of clients. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AFPA_QUIC_PREFIXES);
	__type(key, struct afpa_quic_prefix);
	__type(value, __u32);
} quic_rules SEC(".maps");

/* Counts of a processor. */
struct quic_load {
	__u64 window; /* number of the time in which was counted */
	__u64 until;  /* coarse monotonic ns: there is a flood until then */
	__u32 count, known, early;
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct quic_load);
} quic_loads SEC(".maps");

/* The headers of a packet, with a hole so that all that follow are aligned. */
struct quic_frame_v4 {
	__u16 unused;
	struct ethhdr ethernet;
	struct iphdr ip;
	struct udphdr udp;
};

struct quic_frame_v6 {
	__u16 unused;
	struct ethhdr ethernet;
	struct ipv6hdr ip;
	struct udphdr udp;
};

/* An answer in `work->out`. */
struct quic_answer {
	__u32 at, length;
};

/* Rooms for the beginning of a packet and for its answer, and what has no room on the stack. */
struct quic_work {
	__u8 in[QUIC_ROOM], out[QUIC_ROOM];
	struct quic_answer answer;
	struct quic_frame_v4 v4;
	struct quic_frame_v6 v6;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct quic_work);
} quic_works SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 32);
	__type(key, __u32);
	__type(value, __u64);
} quic_counters SEC(".maps");

static __always_inline void quic_count(enum afpa_quic_reason reason)
{
	__u32 key = reason;
	__u64 *value = bpf_map_lookup_elem(&quic_counters, &key);

	if (value)
		*value += 1;
}

#endif
