/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Datagrams: Ethernet, IPv4 or IPv6, UDP. Beside segment.h, and as there packets are only read here.
 *
 * A packet that is not for the port costs a few direct reads, and is not counted. One that is for it, but not in the plain form that can
 * be answered, goes up with a reason.
 */
#ifndef AFPA_NET_DATAGRAM_H
#define AFPA_NET_DATAGRAM_H

#include <afpa/kernel.h>

#ifndef IPPROTO_UDP
#define IPPROTO_UDP 17
#endif
#define ETHERNET_LENGTH 14
#define IPV4_LENGTH 20
#define IPV6_LENGTH 40
#define UDP_LENGTH 8
#define UNFRAGMENTED 0x3fff /* more fragments, or an offset */

struct udphdr {
	__be16 source, destination, length;
	__u16 check;
};

/* Both ends of a datagram: addresses of 16 bytes, IPv4 as ::ffff:a.b.c.d; ports in network order. */
struct datagram {
	__u32 source[4], destination[4];
	__be16 source_port, destination_port;
	__u16 length;   /* of UDP, with its header */
	__u16 check;
	__u8 udp_at;    /* from the frame's start: 34 or 54 */
	bool ipv6;
	bool plain;     /* no IP options, no fragment, no tag, and the lengths agree */
};

static __always_inline void datagram_udp(struct datagram *d, const struct udphdr *udp)
{
	d->source_port = udp->source;
	d->destination_port = udp->destination;
	d->length = bpf_ntohs(udp->length);
	d->check = udp->check;
}

/* False: it is no datagram that could be looked at, or neither of its ports is `port` (network order; NULL: any). */
static __always_inline bool read_datagram(struct __sk_buff *skb, struct datagram *d, const __be16 *port)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *ethernet = data;
	struct udphdr *udp;

	if ((void *)(ethernet + 1) > end)
		return false;
	if (ethernet->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = (void *)(ethernet + 1);

		udp = (void *)(ip + 1);
		if ((void *)(udp + 1) > end || ip->protocol != IPPROTO_UDP ||
		    (port && udp->destination != *port && udp->source != *port))
			return false;
		d->source[2] = d->destination[2] = bpf_htonl(0xffff);
		d->source[3] = ip->source;
		d->destination[3] = ip->destination;
		d->udp_at = ETHERNET_LENGTH + IPV4_LENGTH;
		datagram_udp(d, udp);
		d->plain = ip->version_ihl == 0x45 && !(ip->fragment & bpf_htons(UNFRAGMENTED)) &&
			   bpf_ntohs(ip->total_length) == IPV4_LENGTH + d->length;
	} else if (ethernet->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = (void *)(ethernet + 1);

		udp = (void *)(ip + 1);
		if ((void *)(udp + 1) > end || ip->next_header != IPPROTO_UDP ||
		    (port && udp->destination != *port && udp->source != *port))
			return false;
		for (int i = 0; i < 4; i++) {
			d->source[i] = ip->source[i];
			d->destination[i] = ip->destination[i];
		}
		d->udp_at = ETHERNET_LENGTH + IPV6_LENGTH;
		d->ipv6 = true;
		datagram_udp(d, udp);
		/* An address of IPv4 in disguise is never on the wire; in keys it would be that one. */
		d->plain = bpf_ntohs(ip->payload_length) == d->length && (d->source[0] | d->source[1]);
	} else {
		return false;
	}
	d->plain = d->plain && !skb->vlan_present && skb->len >= d->udp_at + (__u32)d->length;
	return true;
}

/* The same for one datagram: several that the kernel has merged are not plain. */
static __always_inline bool parse_datagram(struct __sk_buff *skb, struct datagram *d, __be16 port)
{
	if (!read_datagram(skb, d, &port))
		return false;
	d->plain = d->plain && !skb->gso_size;
	return true;
}

/* Sums of native 16-bit words, unfolded while they are gathered (RFC 1071). */
static __always_inline __u16 datagram_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static __always_inline __u16 swap_bytes(__u16 value)
{
	return value << 8 | value >> 8;
}

#endif
