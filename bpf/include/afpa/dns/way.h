/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The way to a client (DN5): that by which the server's own answer left within the last second. Netfilter, cgroup programs and routes
 * have let the client's query and the answer through then. Where the host says so, a client is known by its next hop as well: an answer to
 * any client behind the same gateway left then, and the query came from that gateway. As in conn/client_way.h, with an answer in place of a SYN-ACK.
 */
#ifndef AFPA_DNS_WAY_H
#define AFPA_DNS_WAY_H

#include <afpa/dns/maps.h>
#include <afpa/net/datagram.h>

static __always_inline void put_address(__u8 *to, const __u32 *from)
{
	for (int i = 0; i < 4; i++)
		((__u32 *)to)[i] = from[i];
}

/* From now on `whose` is answered by this way. */
static __always_inline void dns_show_way(const struct afpa_dns_client *whose, const struct afpa_dns_way *way)
{
	struct afpa_dns_way *known = bpf_map_lookup_elem(&dns_ways, whose);
	const __u32 *one = (const __u32 *)way->destination, *other;

	other = known ? (const __u32 *)known->destination : one;
	/* In place only if nothing but the time changes: a reader must not get a half of one way and a half of another. */
	if (known && known->interface == way->interface && one[0] == other[0] && one[1] == other[1] && one[2] == other[2])
		known->seen = way->seen;
	else
		bpf_map_update_elem(&dns_ways, whose, way, BPF_ANY);
}

/* Makes of a client all those behind its next hop, for the same address of the server. False: that is not sure. */
static __always_inline bool dns_next_hop(struct afpa_dns_client *client, bool ipv6, __u32 edition)
{
	struct afpa_dns_prefix prefix = { .bits = 32 + 128, .family = 6 };
	__u32 *from = (__u32 *)client->address, *to = (__u32 *)prefix.address, *number;

	if (ipv6) {
		put_address(prefix.address, from);
	} else {
		prefix.bits = 32 + 32;
		prefix.family = 4;
		to[0] = from[3];
	}
	number = bpf_map_lookup_elem(&dns_routes, &prefix);
	if (!number || !*number)
		return false;
	from[0] = from[1] = 0xffffffff; /* no client's address */
	from[2] = edition;
	from[3] = *number;
	return true;
}

/* The server's answer leaves to the client. The packet's first 12 bytes are the way. */
static __always_inline void dns_prove_way(struct __sk_buff *skb, const struct afpa_dns_client *client, bool ipv6, __u32 edition,
					  __u64 now)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct afpa_dns_way way = { .seen = now, .interface = skb->ifindex };
	const struct ethhdr *ethernet = data;
	struct afpa_dns_client hop = *client;

	if ((void *)(ethernet + 1) > end)
		return;
	__builtin_memcpy(way.destination, ethernet->destination, 6);
	__builtin_memcpy(way.source, ethernet->source, 6);
	dns_show_way(client, &way);
	if (edition && dns_next_hop(&hop, ipv6, edition))
		dns_show_way(&hop, &way);
}

/* The way that was shown to `whose` within the time that it is believed. */
static __always_inline bool dns_recall_way(const struct afpa_dns_client *whose, const struct afpa_dns_config *config, __u64 now,
					   struct afpa_dns_way *way)
{
	const struct afpa_dns_way *known = bpf_map_lookup_elem(&dns_ways, whose);

	if (!known)
		return false;
	*way = *known;
	return (__s64)(now - way->seen) <= (__s64)config->way_life;
}

/* May the client be answered? Then `way` is where to. */
static __always_inline enum afpa_dns_reason dns_find_way(struct __sk_buff *skb, const struct afpa_dns_client *client, bool ipv6,
							 const struct afpa_dns_config *config, __u64 now, struct afpa_dns_way *way)
{
	__u32 edition = *(volatile __u32 *)&config->next_hops;
	struct afpa_dns_client hop = *client;
	__u16 came[4] = {};

	if (dns_recall_way(client, config, now, way))
		return way->interface == skb->ifindex ? AFPA_DNS_REASON_ANSWERED : AFPA_DNS_REASON_PASS_OTHER_WAY;
	if (!edition || !dns_next_hop(&hop, ipv6, edition) || !dns_recall_way(&hop, config, now, way))
		return AFPA_DNS_REASON_PASS_NO_WAY;
	/* It must have come from that very gateway. */
	if (way->interface != skb->ifindex || bpf_skb_load_bytes(skb, 6, came, 6) ||
	    came[0] != ((__u16 *)way->destination)[0] || came[1] != ((__u16 *)way->destination)[1] ||
	    came[2] != ((__u16 *)way->destination)[2])
		return AFPA_DNS_REASON_PASS_OTHER_WAY;
	return AFPA_DNS_REASON_ANSWERED;
}

/*
 * DN6 Answers given here are not seen by the server's own rate limit, so prefixes have a budget: a /24 of IPv4, a /56 of IPv6.
 *      The excess is the server's, whose rate limit, slips and log decide.
 */
static __always_inline bool dns_within_budget(const struct afpa_dns_client *client, bool ipv6,
					      const struct afpa_dns_config *config, __u64 now)
{
	struct afpa_dns_client prefix = { .server = ipv6 };
	const __u32 *from = (const __u32 *)client->address;
	__u32 *to = (__u32 *)prefix.address;
	__u64 *whole, before, after;

	if (!config->cost)
		return true;
	to[0] = from[0];
	if (ipv6) {
		to[1] = from[1] & bpf_htonl(0xffffff00);
	} else {
		to[2] = from[2];
		to[3] = from[3] & bpf_htonl(0xffffff00);
	}
	whole = bpf_map_lookup_elem(&dns_budgets, &prefix);
	if (!whole) {
		after = now + config->cost;
		bpf_map_update_elem(&dns_budgets, &prefix, &after, BPF_ANY);
		return true;
	}
	before = *(volatile __u64 *)whole;
	after = ((__s64)(before - now) > 0 ? before : now) + config->cost;
	if ((__s64)(after - now) > (__s64)config->burst)
		return false;
	/* Two processors at one budget: the second one's query goes to the server. */
	return __sync_val_compare_and_swap(whole, before, after) == before;
}

#endif
