/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TCP segments that `parse_segment` does not know: cut into fragments, behind extension headers of IPv6, merged into more
 * than 64 KB, or with headers outside of the packet's linear part. They are read by copying, which reaches every byte.
 *
 * Contract: every packet with the ports of a connection is recognised, so that it is translated, or never goes on (E3).
 */
#ifndef AFPA_NET_UNUSUAL_H
#define AFPA_NET_UNUSUAL_H

#include <afpa/net/segment.h>

#define EXTENSIONS_MAX 8
#define IPV6_MORE_FRAGMENTS 1
#define IPV6_OFFSET 0xfff8

/* The special properties of such a segment. */
struct shape {
	__u32 length;       /* bytes behind the IP headers */
	__u8 protocol;
	__u8 first;         /* it is the first fragment of a packet: not all bytes are there */
	__u8 headless;      /* it ends before the numbers do */
	__u8 wrapped;       /* authenticated: changing it would break it */
};

/* A header of IPv6 behind which TCP is looked for. */
static __always_inline bool is_readable_extension(__u8 header)
{
	return header == IPPROTO_HOPOPTS || header == IPPROTO_ROUTING || header == IPPROTO_FRAGMENT ||
	       header == IPPROTO_DSTOPTS || header == IPPROTO_AH;
}

/* Could the packet hold a TCP segment? Reads one byte, since most packets that are not plain TCP are not TCP at all. */
static __always_inline bool may_be_unusual(struct __sk_buff *skb)
{
	__u8 protocol = 0;

	if (is_in_vlan(skb, FROM_CLIENT))
		return false;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return !bpf_skb_load_bytes(skb, sizeof(struct ethhdr) + offsetof(struct iphdr, protocol), &protocol, 1) &&
		       (protocol == IPPROTO_TCP || protocol == IPPROTO_AH);
	if (skb->protocol != bpf_htons(ETH_P_IPV6))
		return false;
	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr) + offsetof(struct ipv6hdr, next_header), &protocol, 1))
		return false;
	return protocol == IPPROTO_TCP || is_readable_extension(protocol);
}

/* An authentication header (RFC 4302): its length counts words of four bytes, less two. */
static __always_inline bool skip_authentication(struct __sk_buff *skb, struct segment *s, struct shape *shape)
{
	__u8 header[2];
	__u32 length;

	if (bpf_skb_load_bytes(skb, s->tcp_at, header, sizeof(header)))
		return false;
	length = (header[1] + 2) * 4;
	shape->protocol = header[0];
	shape->wrapped = true;
	shape->length -= length;
	s->tcp_at += length;
	return true;
}

static __always_inline bool read_ipv4(struct __sk_buff *skb, struct segment *s, struct shape *shape)
{
	struct iphdr ip;
	__u32 header;

	if (!afpa_ipv4_holds(skb, s->ip_at) || bpf_skb_load_bytes(skb, s->ip_at, &ip, sizeof(ip)) ||
	    ip.fragment & bpf_htons(0x1fff))
		return false;
	header = (ip.version_ihl & 15) * 4;
	if (header < sizeof(ip))
		return false;
	map_ipv4(s->key.client, ip.source);
	map_ipv4(s->key.server, ip.destination);
	shape->first = !!(ip.fragment & bpf_htons(0x2000));
	shape->protocol = ip.protocol;
	/* Merged segments of more than 64 KB say 0. */
	shape->length = (ip.total_length || !skb->gso_size ? bpf_ntohs(ip.total_length) : skb->len - s->ip_at) - header;
	s->tcp_at = s->ip_at + header;
	return true;
}

/* One extension header. False: there is none, or the bytes behind it cannot be seen. */
static __always_inline bool skip_extension(struct __sk_buff *skb, struct segment *s, struct shape *shape)
{
	__u8 header[EXTENSION_UNIT];
	__u32 length = EXTENSION_UNIT;
	__u16 fragment;

	if (shape->protocol != IPPROTO_HOPOPTS && shape->protocol != IPPROTO_ROUTING &&
	    shape->protocol != IPPROTO_DSTOPTS && shape->protocol != IPPROTO_FRAGMENT)
		return false;
	if (bpf_skb_load_bytes(skb, s->tcp_at, header, sizeof(header)))
		return false;
	if (shape->protocol == IPPROTO_FRAGMENT) {
		fragment = (__u16)header[2] << 8 | header[3];
		if (fragment & IPV6_OFFSET) {
			shape->protocol = 0xff; /* a later one has no ports */
			return false;
		}
		shape->first = fragment & IPV6_MORE_FRAGMENTS;
	} else {
		length += header[1] * EXTENSION_UNIT;
	}
	shape->protocol = header[0];
	shape->length -= length;
	s->tcp_at += length;
	return true;
}

static __always_inline bool read_ipv6(struct __sk_buff *skb, struct segment *s, struct shape *shape)
{
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, s->ip_at, &ip, sizeof(ip)) || ip.version_class >> 4 != 6 || is_mapped(ip.source))
		return false;
	put_ipv6(s->key.client, ip.source);
	put_ipv6(s->key.server, ip.destination);
	s->ipv6 = true;
	shape->protocol = ip.next_header;
	s->tcp_at = s->ip_at + sizeof(ip);
	shape->length = ip.payload_length ? bpf_ntohs(ip.payload_length) : skb->len - s->tcp_at; /* a jumbogram */
	for (int i = 0; i < EXTENSIONS_MAX; i++)
		if (!skip_extension(skb, s, shape))
			break;
	return true;
}

/* The timestamp option of a header that has `size` bytes of options. */
static __always_inline void read_timestamps(struct __sk_buff *skb, struct segment *s, __u32 size)
{
	__be32 options[3] = {};

	if (size >= TIMESTAMP_SIZE && bpf_skb_load_bytes(skb, s->tcp_at + sizeof(struct tcphdr), options, sizeof(options)))
		return;
	s->timestamps = options[0] == bpf_htonl(TIMESTAMP_LAYOUT);
	s->plain_tcp = size == (s->timestamps ? TIMESTAMP_SIZE : 0);
	s->ts_value = bpf_ntohl(options[1]);
	s->ts_echo = bpf_ntohl(options[2]);
}

/* The TCP header. Where the packet ends within it, only the ports are valid. */
static __always_inline bool read_tcp(struct __sk_buff *skb, struct segment *s, struct shape *shape)
{
	struct tcphdr tcp = {};
	__u32 header;

	if (bpf_skb_load_bytes(skb, s->tcp_at, &tcp, 4))
		return false;
	put_ports(&s->key, bpf_ntohs(tcp.source), bpf_ntohs(tcp.destination));
	shape->headless = true;
	if (shape->wrapped || bpf_skb_load_bytes(skb, s->tcp_at, &tcp, sizeof(tcp)))
		return true;
	header = (tcp.offset >> 4) * 4;
	if (shape->length > 0xffffff || header < sizeof(tcp) || header > shape->length ||
	    s->tcp_at + shape->length > skb->len)
		return true;
	shape->headless = false;
	s->seq = bpf_ntohl(tcp.seq);
	s->ack = bpf_ntohl(tcp.ack);
	s->flags = tcp.flags;
	s->window = tcp.window;
	s->payload_at = s->tcp_at + header;
	s->length = shape->length - header;
	read_timestamps(skb, s, header - sizeof(tcp));
	return true;
}

/* A segment of a client that `parse_segment` refused. False: no ports are to be seen. */
__noinline int afpa_read_unusual(struct __sk_buff *skb, struct segment *s, struct shape *shape)
{
	bool read;

	if (!s || !shape)
		return false;
	s->ip_at = sizeof(struct ethhdr);
	read = skb->protocol == bpf_htons(ETH_P_IP) ? read_ipv4(skb, s, shape) : read_ipv6(skb, s, shape);
	if (read && shape->protocol == IPPROTO_AH)
		read = skip_authentication(skb, s, shape);
	return read && shape->protocol == IPPROTO_TCP && read_tcp(skb, s, shape);
}

#endif
