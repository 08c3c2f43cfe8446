/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whether SYNs come in a flood, which the kernel's TCP would answer at five times the price.
 *
 *  N12 Where the host says so (`admission`), the SYN of a client that is not known is answered while such SYNs come faster than a
 *      rate (`flood_syns`) on this processor, if its way is: shown by itself or by its next hop, as in N10. It gets a SYN-ACK and
 *      nothing else: no request of its connection is answered before the kernel's own path has let one through (P5), and so
 *      the first one is assigned to the kernel's TCP. Answers go on for a while after the flood, longer than a client takes to
 *      send its SYN again: that one gets the same number.
 *
 * Each processor counts for itself, and only SYNs that would be the kernel's: those of known clients are no flood.
 */
#ifndef AFPA_CONN_SYN_FLOOD_H
#define AFPA_CONN_SYN_FLOOD_H

#include <afpa/scratch.h>

#define FLOOD_LINGERS (5ULL << 30) /* ns: 5.4 s, more than SYN_REPEATED */

struct syn_flood {
	__u64 window; /* number of the time in which `count` was counted */
	__u64 until;  /* coarse monotonic ns: there is a flood until then */
	__u32 count;
	__u32 limit;  /* that they were counted against: with another one, all begins anew */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct syn_flood);
} syn_floods SEC(".maps");

/* One more SYN of a client that is not known: is it one of a flood? A flood begins at the rate, and lasts until half of it. */
static __always_inline bool is_flood(__u64 now)
{
	__u32 limit = *(volatile __u32 *)&shared.flood_syns, zero = 0;
	struct syn_flood *flood;
	bool lasts;

	if (!limit)
		return false;
	flood = bpf_map_lookup_elem(&syn_floods, &zero);
	if (!flood)
		return false;
	if (flood->limit != limit)
		*flood = (struct syn_flood){ .limit = limit };
	if (flood->window != now >> AFPA_FLOOD_SHIFT) {
		flood->window = now >> AFPA_FLOOD_SHIFT;
		flood->count = 0;
	}
	flood->count++;
	lasts = now < flood->until;
	if (flood->count < (lasts ? limit - limit / 2 : limit))
		return lasts;
	flood->until = now + FLOOD_LINGERS;
	return true;
}

#endif
