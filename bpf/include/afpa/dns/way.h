/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The way to a client (DN5): that by which the server's own answer left within the last second. Netfilter, cgroup programs and routes
 * have let the client's query and the answer through then. As in conn/client_way.h, with an answer in place of a SYN-ACK.
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

/* The server's answer leaves to the client. The packet's first 12 bytes are the way. */
static __always_inline void dns_prove_way(struct __sk_buff *skb, const struct afpa_dns_client *client)
{
	struct afpa_dns_way new = { .seen = bpf_ktime_get_coarse_ns(), .interface = skb->ifindex }, *known;
	const __u32 *one, *other;

	if (bpf_skb_load_bytes(skb, 0, new.destination, 12))
		return;
	known = bpf_map_lookup_elem(&dns_ways, client);
	one = (const __u32 *)new.destination;
	other = known ? (const __u32 *)known->destination : one;
	/* In place only if nothing but the time changes: a reader must not get a half of one way and a half of another. */
	if (known && known->interface == new.interface && one[0] == other[0] && one[1] == other[1] && one[2] == other[2])
		known->seen = new.seen;
	else
		bpf_map_update_elem(&dns_ways, client, &new, BPF_ANY);
}

/* May the client be answered? Then `way` is where to. `came` has the Ethernet addresses of its query. */
static __always_inline enum afpa_dns_reason dns_find_way(struct __sk_buff *skb, const struct afpa_dns_client *client,
							 const struct afpa_dns_config *config, __u64 now, struct afpa_dns_way *way)
{
	const struct afpa_dns_way *known = bpf_map_lookup_elem(&dns_ways, client);

	if (!known)
		return AFPA_DNS_REASON_PASS_NO_WAY;
	*way = *known;
	if ((__s64)(now - way->seen) > (__s64)config->way_life)
		return AFPA_DNS_REASON_PASS_NO_WAY;
	return way->interface == skb->ifindex ? AFPA_DNS_REASON_ANSWERED : AFPA_DNS_REASON_PASS_OTHER_WAY;
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
