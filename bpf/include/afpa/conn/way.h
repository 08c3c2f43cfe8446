/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The way back (E4 in docs/rules): answers leave where the kernel's own segments leave, and only once the egress hook
 * has seen that they do.
 *
 * A way is an interface and an Ethernet header. It is learnt from the connection's SYN-ACK, which leaves before there is
 * a flow: a table of fixed size keeps it until the first request comes, with a hash of tuple and way as the proof that
 * it is this connection's. An overwritten way is learnt from the response to that request. Where a client's request
 * comes another way than the one before, the kernel's route may have changed with it: the request is passed, and its
 * response shows the way.
 */
#ifndef AFPA_CONN_WAY_H
#define AFPA_CONN_WAY_H

#include <afpa/net/once.h>
#include <afpa/net/segment.h>

#define ETHERNET_ADDRESSES 12
#define WAY_DOUBTED_AFTER 2 /* retransmissions */

_Static_assert(sizeof(struct afpa_way) == 16, "hashed as two words");

static __always_inline __u64 mix_addresses(__u64 hash, const struct afpa_flow_key *key)
{
	const __u64 *words = (const __u64 *)key;

	for (int i = 0; i < 4; i++)
		hash = mix(hash, words[i]);
	return hash;
}

static __always_inline __u64 mix_tuple(__u64 hash, const struct afpa_flow_key *key)
{
	return mix(mix_addresses(hash, key), (__u64)key->client_port << 16 | key->server_port);
}

static __always_inline __u64 way_hash_tuple(const struct afpa_flow_key *key)
{
	return mix_tuple(shared.hash_seed, key);
}

static __always_inline __u64 way_proof(__u64 tuple, const struct afpa_way *way)
{
	const __u32 *words = (const __u32 *)way;

	return mix(mix(tuple, join_words(words[0], words[1])), join_words(words[2], words[3]));
}

static __always_inline struct afpa_proven_way *way_entry(__u64 tuple)
{
	__u32 place = tuple >> 48 & (AFPA_WAYS - 1);

	return bpf_map_lookup_elem(&ways, &place);
}

/* How a packet leaves that is at an egress hook. */
static __always_inline bool way_of(struct __sk_buff *skb, struct afpa_way *way)
{
	way->interface = skb->ifindex;
	return bpf_skb_load_bytes(skb, 0, way, ETHERNET_ADDRESSES) == 0;
}

/*
 * Does the packet leave in the network namespace of the connections, for which the guard looks? That is the first one in
 * which a segment of theirs left. An interface keeps its programs when it is moved to another one, where others' servers
 * may use the same port.
 */
static __always_inline bool is_in_namespace(struct __sk_buff *skb)
{
	__u64 namespace = namespace_of(skb);

	if (!shared.namespace)
		shared.namespace = namespace;
	return shared.namespace == namespace;
}

/* A SYN-ACK leaves. The proof does not hold where a reader gets a half of one entry and a half of another. */
__noinline int afpa_way_prove(struct __sk_buff *skb, const struct afpa_flow_key *key)
{
	struct afpa_way way = {};
	struct afpa_proven_way *entry;
	__u64 tuple;

	if (!key || !is_in_namespace(skb) || !way_of(skb, &way))
		return 0;
	tuple = way_hash_tuple(key);
	entry = way_entry(tuple);
	if (!entry)
		return 0;
	entry->way = way;
	entry->proof = way_proof(tuple, &way);
	return 0;
}

/* The way of a connection whose SYN-ACK was seen. False: not known; `way` has no meaning then. */
__noinline int afpa_way_recall(const struct afpa_flow_key *key, struct afpa_way *way)
{
	struct afpa_proven_way *entry;
	__u64 tuple;

	if (!key || !way)
		return false;
	tuple = way_hash_tuple(key);
	entry = way_entry(tuple);
	if (entry) {
		*way = entry->way;
		if (way->interface && *(volatile __u64 *)&entry->proof == way_proof(tuple, way))
			return true;
	}
	way->interface = 0;
	return false;
}

static __always_inline bool same_mac(const __u8 *a, const __u8 *b)
{
	const __u16 *one = (const __u16 *)a, *other = (const __u16 *)b;

	return !((one[0] ^ other[0]) | (one[1] ^ other[1]) | (one[2] ^ other[2]));
}

static __always_inline void put_mac(__u8 *to, const __u8 *from)
{
	for (int i = 0; i < 3; i++)
		((__u16 *)to)[i] = ((const __u16 *)from)[i];
}

/*
 * The client's segment came in by `interface` from `mac`: as the last request did? If not, the known way back may not be
 * true any more. Called with the lock held.
 */
static __always_inline bool comes_as_before(struct afpa_flow *flow, __u32 interface, const __u8 *mac)
{
	if (flow->came_by == interface && same_mac(flow->came_from, mac))
		return true;
	flow->came_by = interface;
	put_mac(flow->came_from, mac);
	flow->way_stale = true;
	return false;
}

/* Is the way back known? Called with the lock held. */
static __always_inline bool knows_way(const struct afpa_flow *flow)
{
	return flow->way.interface && !flow->way_stale;
}

/*
 * May an answer that has left leave again, or the rest of it? A connection without a socket has no kernel that could be asked
 * for another way: it takes the one that was known. Its next request is the kernel's. Called with the lock held.
 */
static __always_inline bool may_repeat(const struct afpa_flow *flow)
{
	return flow->way.interface && (!flow->way_stale || flow->socketless);
}

/*
 * Does a connection's segment that came in by `interface`, where another device may take over, belong to that interface
 * (E1)? Its earlier requests came in there, or its responses leave there.
 */
static __always_inline bool is_at_home(const struct afpa_flow *flow, __u32 interface)
{
	return flow->came_by == interface || flow->way.interface == interface;
}

/*
 * The last answer is lost again and again: perhaps the kernel sends by another way by now, though the client's segments
 * come as before. The next time it is asked; once for each answer. Called with the lock held.
 */
static __always_inline void doubt_way(struct afpa_flow *flow)
{
	if (flow->retransmits < WAY_DOUBTED_AFTER || flow->way_doubted)
		return;
	flow->way_doubted = true;
	flow->way_stale = true;
}

/* A segment that leaves shows the way. Called with the lock held. */
static __always_inline void learn_way(struct afpa_flow *flow, const struct afpa_way *way)
{
	flow->way_stale = false;
	if (flow->way.interface == way->interface && same_mac(flow->way.destination, way->destination) &&
	    same_mac(flow->way.source, way->source))
		return;
	flow->way = *way;
}

/* The Ethernet header of a client's segment as if it had come by the way back: the answer made of it leaves that way. */
static __always_inline void put_way(__u8 *ethernet, const struct afpa_way *way)
{
	put_mac(ethernet, way->source);
	put_mac(ethernet + 6, way->destination);
}

/* The Ethernet header of a packet that leaves. */
static __always_inline void put_way_out(__u8 *ethernet, const struct afpa_way *way)
{
	put_mac(ethernet, way->destination);
	put_mac(ethernet + 6, way->source);
}

#endif
