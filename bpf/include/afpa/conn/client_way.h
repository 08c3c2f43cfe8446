/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The way to a client with which the server has no connection yet, and that its SYNs get through the kernel's own path.
 *
 *  N1 A SYN is answered here only if the kernel's own SYN-ACK to the same client, from the same address and port of the
 *     server, left lately: within three quarters of `firewall_interval`, or of a second. So netfilter, cgroup programs and
 *     routes have let a SYN of this client through, and the answer leaves as the kernel's left (E4). When that time is over,
 *     the next SYN is the kernel's, and shows it anew. An overwritten entry costs one handshake of the kernel's.
 *     A SYN-ACK of a listener that is not served ends it: another server answers from the address now, such as a transparent
 *     proxy.
 *     A SYN-ACK that connection tracking knows says nothing: rules may refuse a connection that does not begin with a SYN,
 *     and address translation takes an assigned segment from its listener (`nf_nat_ipv4_local_in` compares the ports of
 *     `skb->sk`, and a request socket that was just made has none).
 *  N10 Where the host says that everybody is let in (`admission`), a client is known by its next hop as well: the kernel's own
 *     SYN-ACK to any client behind the same gateway left lately, from the same address of the server, and this SYN came from
 *     that very gateway. User mode says
 *     which prefixes have one gateway, and only one, for packets of every sender: a prefix that is not sure has no number here.
 */
#ifndef AFPA_CONN_CLIENT_WAY_H
#define AFPA_CONN_CLIENT_WAY_H

#include <afpa/conn/admit.h>
#include <afpa/conn/served.h>
#include <afpa/conn/way.h>

#define CLIENT_WAY_LIFE 1024 /* rtx_clock: where the firewall is not asked, routes are, once a second */
#define WAY_LIFE 8192        /* rtx_clock: how long an open connection's way is believed */

static __always_inline __u64 hash_of_client(const struct afpa_flow_key *key)
{
	return mix(mix_addresses(shared.hash_seed, key), key->server_port);
}

static __always_inline __u64 proof_of_client(__u64 client, const struct afpa_way *way, __u32 seen)
{
	return mix(way_proof(client, way), seen);
}

/* The number of the gateway to the client; 0: none that is sure. */
__noinline int afpa_next_hop(const struct afpa_flow_key *key)
{
	const __u32 *client;
	struct afpa_prefix prefix = { .bits = 32 + 128, .family = 6 };
	__u32 *address = (__u32 *)prefix.address, *number;

	if (!key)
		return 0;
	client = (const __u32 *)key->client;
	if (!(client[0] | client[1]) && client[2] == bpf_htonl(0xffff)) {
		prefix.bits = 32 + 32;
		prefix.family = 4;
		address[0] = client[3];
	} else {
		address[0] = client[0];
		address[1] = client[1];
		address[2] = client[2];
		address[3] = client[3];
	}
	number = bpf_map_lookup_elem(&routes, &prefix);
	return number ? *number & (AFPA_NEXT_HOPS - 1) : 0;
}

/*
 * In a proof this stands for all clients behind the next hop that speak to the same address of the server, in this edition
 * of the routes. The address is part of it, because only an address of this host is ever the source of a SYN-ACK of the
 * kernel's: SYNs to another host, or to many, are not answered.
 */
static __always_inline __u64 hash_of_next_hop(__u32 number, const struct afpa_flow_key *key)
{
	const __u64 *server = (const __u64 *)key->server;
	__u64 hash = mix(shared.hash_seed, (__u64)*(volatile __u32 *)&shared.next_hops << 32 | number);

	return mix(mix(hash, server[0]), server[1]);
}

static __always_inline struct afpa_client_way *next_hop_way_entry(__u64 next_hop)
{
	__u32 place = next_hop >> 48 & (AFPA_NEXT_HOPS - 1);

	return bpf_map_lookup_elem(&next_hop_ways, &place);
}

static __always_inline struct afpa_client_way *client_way_entry(__u64 client)
{
	__u32 place = client >> 48 & (AFPA_WAYS - 1);

	return bpf_map_lookup_elem(&client_ways, &place);
}

/* From now on `entry` shows the way to whomever `whose` stands for; without a way, none. */
static __always_inline void show_way(struct afpa_client_way *entry, __u64 whose, const struct afpa_way *way, __u32 seen)
{
	if (!entry)
		return;
	entry->way = *way;
	entry->seen = seen;
	entry->proof = way->interface ? proof_of_client(whose, way, seen) : 0;
}

/* The listener that sent a SYN-ACK; that of one with a cookie of the kernel's own is not seen. */
enum listens { LISTENS_SERVED, LISTENS_OTHER, LISTENS_UNSEEN };

static __always_inline enum listens whose_syn_ack(struct __sk_buff *skb)
{
	struct bpf_sock *socket = (struct bpf_sock *)skb->sk;

	socket = socket ? bpf_get_listener_sock(socket) : NULL;
	if (!socket)
		return LISTENS_UNSEEN;
	return is_served(socket) ? LISTENS_SERVED : LISTENS_OTHER;
}

/* Another server answers the client: `entry` shows no way, and keeps that until a served listener has answered it. */
static __always_inline void disown(struct afpa_client_way *entry, __u64 client, __u32 seen)
{
	struct afpa_way none = {};

	if (!entry)
		return;
	show_way(entry, client, &none, seen);
	entry->proof = proof_of_client(client, &none, seen);
}

static __always_inline bool is_disowned(const struct afpa_client_way *entry, __u64 client)
{
	struct afpa_way none = {};

	return entry && !entry->way.interface && entry->proof == proof_of_client(client, &none, entry->seen);
}

/* A SYN-ACK of the kernel's leaves to the client. */
__noinline int afpa_client_way_prove(struct __sk_buff *skb, const struct afpa_flow_key *key)
{
	__u32 seen = rtx_clock(bpf_ktime_get_coarse_ns()), number = 0;
	__u64 client, next_hop;
	enum listens listens = whose_syn_ack(skb);
	struct afpa_client_way *entry;
	struct afpa_way way = {};

	if (!key)
		return 0;
	client = hash_of_client(key);
	entry = client_way_entry(client);
	if (listens == LISTENS_OTHER)
		disown(entry, client, seen);
	if (listens == LISTENS_OTHER || (listens == LISTENS_UNSEEN && is_disowned(entry, client)))
		return 0;
	if (is_tracked(skb))
		count_at(place_of(skb->ifindex), AFPA_SOCKETLESS_TRACKED);
	else if (!way_of(skb, &way))
		return 0;
	show_way(entry, client, &way, seen);
	if (shared.next_hops)
		number = afpa_next_hop(key);
	if (number) {
		next_hop = hash_of_next_hop(number, key);
		show_way(next_hop_way_entry(next_hop), next_hop, &way, seen);
	}
	return 0;
}

/* How long a SYN-ACK shows the way for other SYNs. */
static __always_inline __u32 client_way_life(void)
{
	__u32 interval = shared.firewall_interval;

	if (!interval || interval > CLIENT_WAY_LIFE)
		interval = CLIENT_WAY_LIFE;
	return interval - interval / 4;
}

/* How long before now a SYN-ACK may have left whose way a new connection still takes. */
#define CLIENT_WAY_OF_COOKIE (2u << (AFPA_COOKIE_SHIFT - AFPA_TICK_SHIFT))

/* How a client is known. */
enum known { KNOWN_NOT, KNOWN_ITSELF, KNOWN_BY_NEXT_HOP };

/* Is that enough for an answer at any time? Not a next hop, where only those of a flood are answered by it (N12). */
static __always_inline bool suffices(int known)
{
	return known == KNOWN_ITSELF || (known == KNOWN_BY_NEXT_HOP && !*(volatile __u32 *)&shared.flood_syns);
}

/* The way that `entry` has shown to whomever `whose` stands for, within `life`. */
static __always_inline bool recall_way(struct afpa_client_way *entry, __u64 whose, struct afpa_way *way, __u32 life)
{
	__u32 now = rtx_clock(bpf_ktime_get_coarse_ns()), seen;

	if (!entry)
		return false;
	*way = entry->way;
	seen = *(volatile __u32 *)&entry->seen;
	return way->interface && now - seen < life && *(volatile __u64 *)&entry->proof == proof_of_client(whose, way, seen);
}

/*
 * The way to a client that got a SYN-ACK of the kernel's within `life`, in units of `rtx_clock`, or whose next hop did. Returns
 * enum known. If it is not known, `way` has no meaning.
 */
__noinline int afpa_client_way_recall(const struct afpa_flow_key *key, struct afpa_way *way, __u32 life)
{
	__u64 client, next_hop;
	__u32 number;

	if (!key || !way)
		return KNOWN_NOT;
	client = hash_of_client(key);
	if (recall_way(client_way_entry(client), client, way, life))
		return KNOWN_ITSELF;
	number = shared.next_hops ? afpa_next_hop(key) : 0;
	if (number) {
		next_hop = hash_of_next_hop(number, key);
		if (recall_way(next_hop_way_entry(next_hop), next_hop, way, life))
			return KNOWN_BY_NEXT_HOP;
	}
	way->interface = 0;
	return KNOWN_NOT;
}

/*
 * Is the way of a connection without a socket still the kernel's? No segment of the kernel's leaves on it, so when its way was
 * last known too long ago, another SYN-ACK to the same client must have shown one since. Then the answer takes that.
 */
static __always_inline bool renew_way(struct afpa_flow *flow, const struct afpa_flow_key *key, struct afpa_way *way, __u64 now)
{
	__u32 clock = rtx_clock(now);

	if (clock - flow->way_known < WAY_LIFE)
		return true;
	if (!suffices(afpa_client_way_recall(key, way, client_way_life())))
		return false;
	bpf_spin_lock(&flow->lock);
	learn_way(flow, way);
	flow->way_known = clock;
	bpf_spin_unlock(&flow->lock);
	return true;
}

#endif
