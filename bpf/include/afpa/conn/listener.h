/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The listener that a segment is addressed to: user mode says which addresses are served.
 */
#ifndef AFPA_CONN_LISTENER_H
#define AFPA_CONN_LISTENER_H

#include <afpa/net/segment.h>

/* Any address of a family; a dual-stack [::] is registered as both. */
static __always_inline void any_address(struct afpa_endpoint *endpoint, bool ipv6)
{
	__builtin_memset(endpoint->address, 0, 16);
	if (!ipv6)
		map_ipv4(endpoint->address, 0); /* 0.0.0.0 */
}

/* Is the segment's address served, and by which listener? A flow remembers it, until listeners or hosts change. */
static __always_inline bool find_listener(const struct segment *s, const struct afpa_flow *flow, __u32 generation,
					  struct afpa_listener *listener)
{
	struct afpa_endpoint endpoint = { .port = s->key.server_port };
	struct afpa_listener *found;

	if (flow && flow->generation == generation) {
		listener->id = flow->listener;
		listener->any_host_site = flow->any_host_site;
		return true;
	}
	__builtin_memcpy(endpoint.address, s->key.server, 16);
	found = bpf_map_lookup_elem(&listeners, &endpoint);
	if (!found) {
		any_address(&endpoint, s->ipv6);
		found = bpf_map_lookup_elem(&listeners, &endpoint);
	}
	if (!found)
		return false;
	*listener = *found;
	load_fence();
	return bpf_map_lookup_elem(&listeners, &endpoint) == found; /* it was not another address's meanwhile (P4) */
}

#endif
