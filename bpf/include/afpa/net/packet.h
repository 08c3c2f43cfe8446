/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Cursor parsers: Ethernet, IPv4 or IPv6, TCP.
 *
 * Contract: a cursor stands at an offset from the start of the frame; every step checks the bounds
 * of what it reads and moves on, or says that the packet is none of ours. Packets are only read
 * here, never written: a direct write anywhere in a program makes the kernel copy every cloned
 * packet before it runs.
 */
#ifndef AFPA_PACKET_H
#define AFPA_PACKET_H

#include <afpa/abi.h>
#include <afpa/kernel.h>

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_URG 0x20
#define TCP_ECE 0x40
#define TCP_CWR 0x80

#define IPPROTO_ICMP 1
#define IPPROTO_ICMPV6 58
#define IP_MORE_OR_OFFSET 0x3fff /* fragment field without "don't fragment" */
#define ECN_MASK 3
#define ECN_CAPABLE 2 /* ECT(0) */
#define ECN_CONGESTED 3
#define TIMESTAMP_SIZE 12
#define TIMESTAMP_LAYOUT 0x0101080a /* NOP NOP kind 8 length 10: how every stack aligns the option */

/* Which side of the connection sent the packet. */
enum direction { FROM_CLIENT, FROM_SERVER };

/* The one TCP segment in hand, as parsed. */
struct segment {
	struct afpa_flow_key key __attribute__((aligned(8)));
	__u32 seq, ack;
	__u32 length;             /* payload bytes */
	__u32 ts_value, ts_echo;  /* valid with `timestamps` */
	__u16 ip_at, tcp_at, payload_at;
	__u16 window;             /* network order */
	__u8 flags;
	__u8 ipv6;
	__u8 timestamps;          /* the aligned timestamp option comes first */
	__u8 plain_ip;            /* no IP options, not congestion-marked */
	__u8 place;               /* the interface's counters */
	__u8 plain_tcp;           /* no TCP options but that */
};

/* Where the linear part lies. Reload after every helper that may move it. */
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
 * Two words as one: what is stored in the width in which it is read again soon, need not wait for the store.
 * Packets are read in words, since they are aligned to no more.
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
static __always_inline bool same_flow(const struct afpa_flow_key *a, const struct afpa_flow_key *b)
{
	const __u64 *one = (const __u64 *)a, *other = (const __u64 *)b;

	return !((one[0] ^ other[0]) | (one[1] ^ other[1]) | (one[2] ^ other[2]) | (one[3] ^ other[3])) &&
	       a->client_port == b->client_port && a->server_port == b->server_port;
}

/* IPv4. Gives the bytes that follow the header, or 0: not TCP, or a fragment. */
static __always_inline __u32 take_ipv4(struct cursor *c, struct segment *s, __u8 *source, __u8 *destination)
{
	struct iphdr *ip = cursor_take(c, sizeof(*ip));
	__u32 header;

	if (!ip || ip->protocol != IPPROTO_TCP || ip->fragment & bpf_htons(IP_MORE_OR_OFFSET))
		return 0;
	header = (ip->version_ihl & 15) * 4;
	if (header < sizeof(*ip))
		return 0;
	c->at += header - sizeof(*ip);
	map_ipv4(source, ip->source);
	map_ipv4(destination, ip->destination);
	s->plain_ip = header == sizeof(*ip) && (ip->tos & ECN_MASK) != ECN_CONGESTED;
	return bpf_ntohs(ip->total_length) - header;
}

/* IPv6 without extension headers. */
static __always_inline __u32 take_ipv6(struct cursor *c, struct segment *s, __u8 *source, __u8 *destination)
{
	struct ipv6hdr *ip = cursor_take(c, sizeof(*ip));

	if (!ip || ip->version_class >> 4 != 6 || ip->next_header != IPPROTO_TCP)
		return 0;
	put_ipv6(source, ip->source);
	put_ipv6(destination, ip->destination);
	s->plain_ip = (ip->class_label >> 4 & ECN_MASK) != ECN_CONGESTED;
	return bpf_ntohs(ip->payload_length);
}

/* The aligned timestamp option, where every stack puts it. Others are left for translate_options. */
static __always_inline void take_options(struct cursor *c, struct segment *s, __u32 size)
{
	__be32 *options = size >= TIMESTAMP_SIZE ? cursor_take(c, TIMESTAMP_SIZE) : NULL;

	s->timestamps = options && options[0] == bpf_htonl(TIMESTAMP_LAYOUT);
	s->plain_tcp = size == (s->timestamps ? TIMESTAMP_SIZE : 0);
	if (s->timestamps) {
		s->ts_value = bpf_ntohl(options[1]);
		s->ts_echo = bpf_ntohl(options[2]);
	}
}

/*
 * Parse the frame into `s`. False: not a TCP segment we could handle in any way; leave it alone.
 * The payload's length is the IP header's word on ingress (short frames are padded), the packet's on
 * egress (a BIG TCP packet has no length in its header).
 */
static __always_inline bool parse_segment(struct __sk_buff *skb, struct segment *s, enum direction from)
{
	struct cursor c = cursor_start(skb);
	__u8 *source = from == FROM_CLIENT ? s->key.client : s->key.server;
	__u8 *destination = from == FROM_CLIENT ? s->key.server : s->key.client;
	struct ethhdr *ethernet = cursor_take(&c, sizeof(*ethernet));
	struct tcphdr *tcp;
	__u32 after_ip, header;

	if (!ethernet || skb->vlan_present)
		return false;
	s->ip_at = c.at;
	s->ipv6 = ethernet->protocol == bpf_htons(ETH_P_IPV6);
	if (s->ipv6)
		after_ip = take_ipv6(&c, s, source, destination);
	else if (ethernet->protocol == bpf_htons(ETH_P_IP))
		after_ip = take_ipv4(&c, s, source, destination);
	else
		return false;
	s->tcp_at = c.at;
	tcp = cursor_take(&c, sizeof(*tcp));
	if (!tcp)
		return false;
	if (from == FROM_SERVER)
		after_ip = skb->len - s->tcp_at;
	header = (tcp->offset >> 4) * 4;
	if (after_ip > 0xffffff || header < sizeof(*tcp) || header > after_ip)
		return false;
	if (s->tcp_at + after_ip > skb->len)
		return false;
	put_ports(&s->key, bpf_ntohs(from == FROM_CLIENT ? tcp->source : tcp->destination),
		  bpf_ntohs(from == FROM_CLIENT ? tcp->destination : tcp->source));
	s->seq = bpf_ntohl(tcp->seq);
	s->ack = bpf_ntohl(tcp->ack);
	s->flags = tcp->flags;
	s->window = tcp->window;
	s->payload_at = s->tcp_at + header;
	s->length = after_ip - header;
	take_options(&c, s, header - sizeof(*tcp));
	return true;
}

/* Not a segment: the word of a router? */
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

/* Bytes of TCP options besides plain timestamps. */
static __always_inline __u32 other_options(const struct segment *s)
{
	return s->payload_at - s->tcp_at - sizeof(struct tcphdr) - (s->timestamps ? TIMESTAMP_SIZE : 0);
}

static __always_inline bool port_served(__u16 port)
{
	return shared.ports[port / 64] >> (port % 64) & 1;
}

/* Sequence arithmetic, RFC 9293 3.4. */
static __always_inline bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

#endif
