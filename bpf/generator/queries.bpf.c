// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
/*
 * Closed-loop DNS client in TC ingress on the client's interface: an answer that is the right one becomes the next
 * query, in the same packet buffer.
 *
 * A query is a template but for its id and for the number in its first label, so that 32,768 names take no memory
 * here, and no cache. User mode sends the first query of each slot from a socket, and again when no answer came.
 * IPv4 only.
 */
#include "packet.h"
#include "queries.h"
#include <linux/udp.h>

#define HEADERS (ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr))
#define MESSAGE_HEADER 12

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct question);
} questions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set at load */
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tally);
} tallies SEC(".maps");

/* Numbers that were not asked before are above all names of a zone. */
#define ABSENT 0x80000000

static __always_inline __u32 next_number(struct slot *slot, const struct question *what)
{
	slot->seed = slot->seed * 1664525 + 1013904223;
	if (!what->names)
		return slot->seed | ABSENT;
	if (what->random)
		return what->first + ((__u64)slot->seed * what->names >> 32);
	return slot->number + 1 < what->first + what->names ? slot->number + 1 : what->first;
}

/* Eight digits, the highest first. */
static __always_inline __u64 hexadecimal(__u32 number)
{
	__u64 x = number, letters;

	x = (x | x << 16) & 0x0000ffff0000ffff;
	x = (x | x << 8) & 0x00ff00ff00ff00ff;
	x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
	letters = (x + 0x0606060606060606) >> 4 & 0x0101010101010101;
	return __builtin_bswap64(x + 0x3030303030303030 + letters * ('a' - '0' - 10));
}

static __always_inline void check(struct __sk_buff *skb, const struct slot *slot,
				  const struct question *what, __u16 flags, struct tally *tally)
{
	__u32 address = 0;

	tally->answers++;
	tally->bytes += skb->len - HEADERS;
	if (flags != what->flags)
		tally->wrong_flags++;
	else if (skb->len - HEADERS != what->answer_length)
		tally->wrong_length++;
	else if (what->address_at &&
		 (bpf_skb_load_bytes(skb, HEADERS + what->address_at, &address, sizeof(address)) ||
		  address != bpf_htonl(0x0a000000 + slot->number)))
		tally->wrong_address++;
}

/* The packet, which came from the server, as the slot's query. */
static __always_inline int turn(struct __sk_buff *skb, const struct slot *slot,
				const struct question *what, __u16 client_port)
{
	__u32 length = *(volatile const __u32 *)&what->length;
	__u64 digits = hexadecimal(slot->number), sum;
	struct iphdr *ip;
	struct udphdr *udp;
	void *data, *end;
	__be32 server;

	if (length < DIGITS_AT + DIGITS || length > QUERY_MAX ||
	    bpf_skb_change_tail(skb, HEADERS + length, 0) ||
	    bpf_skb_store_bytes(skb, HEADERS, what->bytes, length, 0))
		return NOT_OURS;
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	if (data + HEADERS + DIGITS_AT + DIGITS > end)
		return NOT_OURS;
	ip = data + ETH_HLEN;
	udp = (void *)(ip + 1);
	*(__u16 *)(udp + 1) = bpf_htons(slot->id);
	__builtin_memcpy((void *)(udp + 1) + DIGITS_AT, &digits, sizeof(digits));
	swap_link(data);
	server = ip->saddr;
	ip->saddr = ip->daddr;
	ip->daddr = server;
	ip->tos = 0;
	ip->id = 0; /* atomic datagram, RFC 6864 section 4.1 */
	ip->frag_off = bpf_htons(0x4000);
	ip->ttl = 64;
	ip->tot_len = bpf_htons(sizeof(*ip) + sizeof(*udp) + length);
	ip->check = 0;
	sum = 0;
#pragma unroll
	for (int i = 0; i < 5; i++)
		sum += ((__u32 *)ip)[i];
	ip->check = ~fold(sum);
	udp->source = bpf_htons(client_port);
	udp->dest = bpf_htons(what->server_port);
	udp->len = bpf_htons(sizeof(*udp) + length);
	sum = (__u64)ip->saddr + ip->daddr + bpf_htons(IPPROTO_UDP) + udp->len;
	if (checksum_is_partial(skb)) {
		udp->check = fold(sum);
		return 0;
	}
	sum += (__u64)udp->source + udp->dest + udp->len + what->sum + bpf_htons(slot->id);
	sum += (digits >> 32) + (__u32)digits;
	udp->check = ~fold(sum);
	if (!udp->check)
		udp->check = 0xffff;
	return 0;
}

SEC("tc")
int ask(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + ETH_HLEN;
	struct udphdr *udp = (void *)(ip + 1);
	__u16 *message = (void *)(udp + 1);
	__u32 zero = 0, place;
	struct question *what = bpf_map_lookup_elem(&questions, &zero);
	struct tally *tally = bpf_map_lookup_elem(&tallies, &zero);
	struct slot *slot;

	if (!what || !tally || (void *)message + MESSAGE_HEADER > end ||
	    ((struct ethhdr *)data)->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 ||
	    ip->protocol != IPPROTO_UDP || udp->source != bpf_htons(what->server_port))
		return TC_ACT_OK;
	place = (__u32)bpf_ntohs(udp->dest) - what->first_port;
	slot = place < what->slots ? bpf_map_lookup_elem(&slots, &place) : NULL;
	if (!slot)
		return TC_ACT_OK;
	if (!slot->sent_ns || message[0] != bpf_htons(slot->id)) {
		tally->stale++;
		return TC_ACT_SHOT;
	}
	check(skb, slot, what, message[1], tally);
	slot->sent_ns = 0;
	if (!what->run)
		return TC_ACT_SHOT;
	slot->number = next_number(slot, what);
	slot->id = (__u16)(slot->id + 1);
	if (turn(skb, slot, what, what->first_port + place)) {
		tally->no_packet++;
		return TC_ACT_SHOT;
	}
	slot->sent_ns = bpf_ktime_get_coarse_ns();
	return bpf_redirect(skb->ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
