/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Cursor parsers: Ethernet, IPv4 or IPv6, TCP.
 *
 * Contract: a cursor stands at an offset from the start of the frame; every step checks the bounds
 * of its bytes and moves on, or returns that the packet is not for us. Packets are only read
 * here, never written: a direct write anywhere in a program makes the kernel copy every cloned
 * packet before it runs.
 */
#ifndef AFPA_NET_PACKET_H
#define AFPA_NET_PACKET_H

#include <afpa/kernel.h>
#include <afpa/maps.h>

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_URG 0x20
#define TCP_ECE 0x40
#define TCP_CWR 0x80

#define IPPROTO_HOPOPTS 0
#define IPPROTO_ICMP 1
#define IPPROTO_ROUTING 43
#define IPPROTO_FRAGMENT 44
#define IPPROTO_AH 51
#define IPPROTO_DSTOPTS 60
#define EXTENSION_UNIT 8 /* bytes of the smallest extension header of IPv6 */
#define IPPROTO_ICMPV6 58
#define IP_MORE_OR_OFFSET 0x3fff /* fragment field without "don't fragment" */
#define ECN_MASK 3
#define ECN_CAPABLE 2 /* ECT(0) */
#define ECN_CONGESTED 3
#define OPTIONS_MAX 40    /* bytes of TCP options */
#define OPTION_NOP 1
#define TIMESTAMP_SIZE 12
#define TIMESTAMP_LAYOUT 0x0101080a /* NOP NOP kind 8 length 10: how every stack aligns the option */

/* A place in the linear part of the packet. To be made anew after every helper that may move that part. */
struct cursor {
	void *data, *end;
	__u32 at;
};

static __always_inline struct cursor cursor_start(struct __sk_buff *skb)
{
	return (struct cursor){ .data = (void *)(long)skb->data, .end = (void *)(long)skb->data_end };
}

/* The next `size` bytes, or NULL when the linear part is shorter. */
#define cursor_take(cursor, size)                                                              \
	({                                                                                         \
		void *here = (cursor)->data + (cursor)->at;                                            \
		void *taken_ = NULL;                                                                   \
		if (here + (size) <= (cursor)->end) {                                                  \
			taken_ = here;                                                                     \
			(cursor)->at += (size);                                                            \
		}                                                                                      \
		taken_;                                                                                \
	})

/*
 * Two 32-bit words as one. Packets are read in 32-bit words, since they are aligned to no more. A load that is wider
 * than the store before it would have to wait for that store, so keys are written in the width in which they are read.
 */
static __always_inline __u64 join_words(__u32 first, __u32 second)
{
	return (__u64)second << 32 | first;
}

static __always_inline void map_ipv4(__u8 *to, __be32 address)
{
	((__u64 *)to)[0] = 0;
	((__u64 *)to)[1] = join_words(bpf_htonl(0xffff), address);
}

/*
 * Is an address of IPv6 one of IPv4 in disguise? In keys it would be that one. The kernel drops packets from such an address,
 * since it is never on the wire.
 */
static __always_inline bool is_mapped(const __be32 *address)
{
	return !(address[0] | address[1] | (address[2] ^ bpf_htonl(0xffff)));
}

static __always_inline void put_ipv6(__u8 *to, const __be32 *from)
{
	((__u64 *)to)[0] = join_words(from[0], from[1]);
	((__u64 *)to)[1] = join_words(from[2], from[3]);
}

static __always_inline void copy_address(__u8 *to, const __be32 *from)
{
	for (int i = 0; i < 4; i++)
		((__u32 *)to)[i] = from[i];
}

static __always_inline void put_ports(struct afpa_flow_key *key, __u16 client, __u16 server)
{
	*(__u32 *)&key->client_port = (__u32)server << 16 | client;
}

/* Both lie at multiples of eight. */
/* Does the client's address mean something on its link alone (RFC 4291, 2.5.6)? Another link may have the same tuple. */
static __always_inline bool is_link_local(const struct afpa_flow_key *key)
{
	return (*(const __be32 *)key->client & bpf_htonl(0xffc00000)) == bpf_htonl(0xfe800000);
}

static __always_inline bool same_flow(const struct afpa_flow_key *a, const struct afpa_flow_key *b)
{
	const __u64 *one = (const __u64 *)a, *other = (const __u64 *)b;

	return !((one[0] ^ other[0]) | (one[1] ^ other[1]) | (one[2] ^ other[2]) | (one[3] ^ other[3])) &&
	       a->client_port == b->client_port && a->server_port == b->server_port;
}

/* Is it an ICMP packet, whatever it says? */
static __always_inline bool is_icmp(struct __sk_buff *skb)
{
	struct cursor c = cursor_start(skb);
	struct ethhdr *ethernet = cursor_take(&c, sizeof(*ethernet));

	if (ethernet && ethernet->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = cursor_take(&c, sizeof(*ip));

		return ip && ip->protocol == IPPROTO_ICMP;
	}
	if (ethernet && ethernet->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = cursor_take(&c, sizeof(*ip));

		return ip && ip->next_header == IPPROTO_ICMPV6;
	}
	return false;
}

/*
 * On `lo`: can a packet that we make by ourselves be given a route? Own IPv4 addresses are routed by the interfaces that
 * have them, 127.0.0.0/8 and IPv6 addresses by `lo`.
 */
static __always_inline bool has_loopback_route(const struct afpa_flow_key *key)
{
	const __u8 *server = key->server;
	const __be32 *words = (const __be32 *)server;

	return words[0] || words[1] || words[2] != bpf_htonl(0xffff) || server[12] == 127;
}

static __always_inline bool port_served(__u16 port)
{
	return shared.ports[port / 64] >> (port % 64) & 1;
}

#endif
