/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bypass: segments that pass as they are, of connections that are not even looked up in `flows`.
 *
 * Each processor has a table of its own, addressed by a mix of the tuple and compared whole. An entry is believed
 * for as long as neither the pulse moves, which it does once a second, nor the epoch of its place.
 *
 * Two kinds of connections have entries: those without a sequence offset that user mode serves to their end, or that
 * were open before the programs came; and those in the middle of a long response, whose bare acknowledgements and
 * segments before its end pass. SYN, FIN and RST never bypass the rest.
 *
 *  B1 An entry is made of state that is read after its epoch was. Three events make it untrue, and then move the epoch
 *     (`afpa_bypass_invalidate`): the first answer on a connection, which gives it an offset; the end of a long
 *     response; and the server's SYN, with which another connection has the tuple. Both steps are full barriers.
 *  R1 On a connection that was left to user mode for good nothing is answered any more, so it never gets a
 *     sequence offset while it lasts.
 */
#ifndef AFPA_CONN_BYPASS_H
#define AFPA_CONN_BYPASS_H

#include <afpa/conn/flow.h>

#define BYPASS_ENTRIES 4096        /* entries; a power of two */
#define BYPASS_BITS 12
#define LONG_RESPONSE (1 << 18) /* an entry pays if this much of a response is to come */

struct bypass_entry {
	struct afpa_flow_key key;
	__u32 epoch;
	__u64 pulse;
	__u32 until;             /* kernel: end of the response, when the connection is not left to user mode */
	__u16 reason;            /* AFPA_PASS_..., when it is; else 0 */
	__u16 reserved[5];
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct bypass_entry) == 64, "an entry is one cache line");

/*
 * The tables of all processors, one behind the other; user mode sets how many. A map that can be mapped begins at a page,
 * so that an entry is one line of the caches, and is reached without a pointer of its own.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BYPASS_ENTRIES);
	__type(key, __u32);
	__type(value, struct bypass_entry);
} bypass_tables SEC(".maps");

/* One epoch for each place, which all processors share: it moves when an entry there may not be true any more. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BYPASS_ENTRIES);
	__type(key, __u32);
	__type(value, __u32);
} bypass_epochs SEC(".maps");

static __always_inline __u32 bypass_index(const struct afpa_flow_key *key)
{
	const __u32 *client = (const __u32 *)key->client;
	__u32 ports = (__u32)key->client_port << 16 | key->server_port;
	__u64 mixed = ((__u64)client[3] << 32 | ports) ^ ((__u64)client[1] << 32 | client[2]) ^ shared.hash_seed;

	mixed *= AFPA_HASH_PRIME;
	return (mixed ^ mixed << 23) >> (64 - BYPASS_BITS);
}

/* The entry of a place in this processor's table. Programs of one processor never interrupt each other here. */
static __always_inline struct bypass_entry *bypass_entry(__u32 place)
{
	place += bpf_get_smp_processor_id() * BYPASS_ENTRIES;
	return bpf_map_lookup_elem(&bypass_tables, &place);
}

/* The fields of a segment that decide whether it passes without more ado. */
struct bypassing {
	struct afpa_flow_key key __attribute__((aligned(8)));
	__u32 end;               /* sequence number behind its payload */
	__u32 length;            /* payload bytes */
};

/* The entry by which it passes as it is. It is no SYN, FIN or RST. NULL: there is none that holds. */
static __always_inline const struct bypass_entry *bypass_by(const struct bypassing *b, enum direction from)
{
	__u32 place = bypass_index(&b->key), *epoch;
	const struct bypass_entry *e;

	if (*(volatile __u32 *)&shared.notes_requests)
		return NULL; /* every request is looked at (V5) */
	e = bypass_entry(place);
	if (!e || !same_flow(&e->key, &b->key) || e->pulse != *(volatile __u64 *)&shared.pulse)
		return NULL;
	if (!e->reason && from == FROM_CLIENT && b->length)
		return NULL;
	if (!e->reason && from == FROM_SERVER && (b->length == 0 || !before(b->end, e->until)))
		return NULL;
	epoch = bpf_map_lookup_elem(&bypass_epochs, &place);
	return epoch && *(volatile __u32 *)epoch == e->epoch ? e : NULL;
}

/* Does a client's segment with a payload pass as it is? `bypass_up` has asked for segments without one. */
static __always_inline bool bypass_hit(const struct segment *s)
{
	struct bypassing b = { .key = s->key, .end = s->seq + s->length, .length = s->length };
	const struct bypass_entry *e;

	if (!s->length || s->flags & (TCP_SYN | TCP_FIN | TCP_RST))
		return false;
	e = bypass_by(&b, FROM_CLIENT);
	if (!e)
		return false;
	count_at(s->place, e->reason);
	return true;
}

/*
 * Take from a packet without IP options, extension headers and VLAN the fields that decide whether it passes, and no
 * others. Of a client's only a bare acknowledgement: a segment with payload may be a request, and must not wait for this.
 * False: it is of another kind, and the programs look further.
 */
static __always_inline bool take_bypassing(const struct __sk_buff *skb, enum direction from, struct bypassing *b)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u8 *source = from == FROM_CLIENT ? b->key.client : b->key.server;
	__u8 *destination = from == FROM_CLIENT ? b->key.server : b->key.client;
	struct ethhdr *ethernet = data;
	struct iphdr *ipv4 = data + sizeof(*ethernet);
	struct ipv6hdr *ipv6 = data + sizeof(*ethernet);
	bool is_ipv4 = false;
	__u32 headers, after_ip;
	struct tcphdr *tcp;

	if ((void *)(ipv4 + 1) + sizeof(*tcp) > end || skb->vlan_present)
		return false;
	if (ethernet->protocol == bpf_htons(ETH_P_IP)) {
		if (ipv4->version_ihl != 0x45 || ipv4->protocol != IPPROTO_TCP || ipv4->fragment & bpf_htons(IP_MORE_OR_OFFSET))
			return false;
		is_ipv4 = true;
		tcp = (void *)(ipv4 + 1);
		after_ip = bpf_ntohs(ipv4->total_length) - sizeof(*ipv4);
	} else {
		if (ethernet->protocol != bpf_htons(ETH_P_IPV6) || (void *)(ipv6 + 1) + sizeof(*tcp) > end)
			return false;
		if (ipv6->version_class >> 4 != 6 || ipv6->next_header != IPPROTO_TCP)
			return false;
		tcp = (void *)(ipv6 + 1);
		after_ip = bpf_ntohs(ipv6->payload_length);
	}
	if (from == FROM_SERVER)
		after_ip = skb->len - (__u32)((void *)tcp - data); /* BIG TCP has no length in its header */
	headers = (tcp->offset >> 4) * 4;
	if (tcp->flags & (TCP_SYN | TCP_FIN | TCP_RST) || headers < sizeof(*tcp) || headers > after_ip)
		return false;
	b->length = after_ip - headers;
	if (from == FROM_CLIENT && b->length)
		return false;
	b->end = bpf_ntohl(tcp->seq) + b->length;
	put_ports(&b->key, bpf_ntohs(from == FROM_CLIENT ? tcp->source : tcp->destination),
		  bpf_ntohs(from == FROM_CLIENT ? tcp->destination : tcp->source));
	if (is_ipv4) {
		map_ipv4(source, ipv4->source);
		map_ipv4(destination, ipv4->destination);
	} else {
		put_ipv6(source, ipv6->source);
		put_ipv6(destination, ipv6->destination);
	}
	return true;
}

/*
 * Does a packet of the server's pass as it is? Asked before it is parsed: in the middle of a download its headers and
 * three lines of memory are all that is touched.
 */
static __always_inline bool bypass_down(const struct __sk_buff *skb)
{
	struct bypassing b;

	return take_bypassing(skb, FROM_SERVER, &b) && bypass_by(&b, FROM_SERVER);
}

/* Is it a bare acknowledgement of a client, and passes as it is? Asked before the program that answers is even reached. */
static __always_inline bool bypass_up(const struct __sk_buff *skb)
{
	struct bypassing b;

	if (!may_be_ours(skb) || !take_bypassing(skb, FROM_CLIENT, &b) || !bypass_by(&b, FROM_CLIENT))
		return false;
	count_at(place_of(skb->ifindex), AFPA_PASS_NO_PAYLOAD);
	return true;
}

/* The epoch of a connection's place, for an entry made of state that is read from here on (B1). */
static __always_inline __u32 bypass_epoch(const struct afpa_flow_key *key)
{
	__u32 place = bypass_index(key), *epoch = bpf_map_lookup_elem(&bypass_epochs, &place);

	return epoch ? __sync_fetch_and_add(epoch, 0) : 0;
}

/* Enter the connection, unless another one has the place: that entry lapses within a second. */
static __always_inline void bypass_insert(const struct afpa_flow_key *key, __u32 epoch, __u32 until, enum afpa_reason reason)
{
	__u64 pulse = *(volatile __u64 *)&shared.pulse;
	__u32 place = bypass_index(key);
	struct bypass_entry *b = bypass_entry(place);

	if (!b || pulse == 0 || (b->pulse == pulse && !same_flow(&b->key, key)))
		return;
	b->key = *key;
	b->epoch = epoch;
	b->pulse = pulse;
	b->until = until;
	b->reason = reason;
}

/* The connection's entry is not true any more (B1). A global function, verified once. */
__noinline int afpa_bypass_invalidate(const struct afpa_flow_key *key)
{
	__u32 place, *epoch;

	if (!key)
		return 0;
	place = bypass_index(key);
	epoch = bpf_map_lookup_elem(&bypass_epochs, &place);
	if (epoch)
		__sync_fetch_and_add(epoch, 1);
	return 0;
}

/* The connection is final: enter it, if nothing was ever answered on it (B3). */
static __noinline int bypass_insert_final(const struct afpa_flow_key *key)
{
	__u32 epoch = bypass_epoch(key);
	struct afpa_flow *flow = bpf_map_lookup_elem(&flows, key); /* behind the epoch: the tuple may have changed hands */

	if (flow && !flow_has_offset(flow) && flow_is_final(flow))
		bypass_insert(key, epoch, 0, flow->owner == AFPA_OWNER_BYPASSED ? AFPA_PASS_BYPASSED : AFPA_PASS_USER_FINAL);
	return 0;
}

#endif
