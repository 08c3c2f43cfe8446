/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Path MTU discovery (RFC 1191, RFC 8201): a router's quote of a segment that is too long for it. Cursor functions. */
#ifndef AFPA_NET_ICMP_H
#define AFPA_NET_ICMP_H

#include <afpa/net/segment.h>

#define ICMP_UNREACHABLE 3
#define ICMP_TOO_LONG 4    /* code: fragmentation needed */
#define ICMPV6_TOO_BIG 2

/* Of both versions; in version 4 the MTU is the low half of `mtu`. */
struct icmphdr {
	__u8 type, code;
	__u16 check;
	__be32 mtu;
};

/* The quoted segment's beginning. */
struct quoted_tcp {
	__be16 source, destination;
	__be32 seq;
};

struct pmtu {
	struct afpa_flow_key key __attribute__((aligned(8)));
	__u32 icmp_at, tcp_at;
	__u32 length;                 /* of the ICMP message */
	__u32 mtu;
	__u64 pseudo;                 /* sum of the pseudo-header that its checksum covers */
	__be32 seq;
	bool ipv6;
};

/* The IPv4 header at `at`. Returns where it ends, or 0: of another protocol, or a fragment. */
static __always_inline __u32 load_ipv4(struct __sk_buff *skb, __u32 at, struct iphdr *ip, __u8 protocol)
{
	if (bpf_skb_load_bytes(skb, at, ip, sizeof(*ip)) || ip->version_ihl >> 4 != 4 || ip->protocol != protocol ||
	    ip->fragment & bpf_htons(IP_MORE_OR_OFFSET))
		return 0;
	return at + (ip->version_ihl & 15) * 4;
}

/* The same of IPv6, without extension headers. */
static __always_inline __u32 load_ipv6(struct __sk_buff *skb, __u32 at, struct ipv6hdr *ip, __u8 protocol)
{
	if (bpf_skb_load_bytes(skb, at, ip, sizeof(*ip)) || ip->version_class >> 4 != 6 || ip->next_header != protocol)
		return 0;
	return at + sizeof(*ip);
}

static __always_inline bool read_pmtu_ipv4(struct __sk_buff *skb, struct pmtu *q)
{
	struct icmphdr icmp;
	struct iphdr ip;

	if (!afpa_ipv4_holds(skb, sizeof(struct ethhdr)))
		return false;
	q->icmp_at = load_ipv4(skb, sizeof(struct ethhdr), &ip, IPPROTO_ICMP);
	q->length = bpf_ntohs(ip.total_length) + sizeof(struct ethhdr) - q->icmp_at;
	if (!q->icmp_at || bpf_skb_load_bytes(skb, q->icmp_at, &icmp, sizeof(icmp)) ||
	    icmp.type != ICMP_UNREACHABLE || icmp.code != ICMP_TOO_LONG)
		return false;
	q->mtu = bpf_ntohl(icmp.mtu) & 0xffff;
	q->tcp_at = load_ipv4(skb, q->icmp_at + sizeof(icmp), &ip, IPPROTO_TCP);
	map_ipv4(q->key.server, ip.source);
	map_ipv4(q->key.client, ip.destination);
	return q->tcp_at;
}

static __always_inline bool read_pmtu_ipv6(struct __sk_buff *skb, struct pmtu *q)
{
	struct icmphdr icmp;
	struct ipv6hdr ip;

	q->icmp_at = load_ipv6(skb, sizeof(struct ethhdr), &ip, IPPROTO_ICMPV6);
	q->length = bpf_ntohs(ip.payload_length);
	q->pseudo = sum_words(ip.source, 8) + bpf_htons(IPPROTO_ICMPV6) + ip.payload_length;
	if (!q->icmp_at || bpf_skb_load_bytes(skb, q->icmp_at, &icmp, sizeof(icmp)) || icmp.type != ICMPV6_TOO_BIG)
		return false;
	q->mtu = bpf_ntohl(icmp.mtu);
	q->tcp_at = load_ipv6(skb, q->icmp_at + sizeof(icmp), &ip, IPPROTO_TCP);
	copy_address(q->key.server, ip.source);
	copy_address(q->key.client, ip.destination);
	q->ipv6 = true;
	return q->tcp_at;
}

/* Does a router report a segment that left from a served port? Then `q` says which one, and the MTU. */
static __always_inline bool read_pmtu(struct __sk_buff *skb, struct pmtu *q)
{
	struct quoted_tcp tcp;
	bool read = false;

	if (skb->protocol == bpf_htons(ETH_P_IP))
		read = read_pmtu_ipv4(skb, q);
	else if (skb->protocol == bpf_htons(ETH_P_IPV6))
		read = read_pmtu_ipv6(skb, q);
	if (!read || bpf_skb_load_bytes(skb, q->tcp_at, &tcp, sizeof(tcp)))
		return false;
	q->key.server_port = bpf_ntohs(tcp.source);
	q->key.client_port = bpf_ntohs(tcp.destination);
	q->seq = tcp.seq;
	return port_served(q->key.server_port);
}

/* Does the message's checksum hold, by the device or by our own sum? A message that the kernel drops must change nothing here. */
static __always_inline bool is_pmtu_sound(struct __sk_buff *skb, const struct pmtu *q)
{
	__u32 state = checksum_state(skb), zero = 0;
	struct work *work = bpf_map_lookup_elem(&ingress_work, &zero);

	if (state == CHECKSUM_PARTIAL || state == CHECKSUM_UNNECESSARY)
		return true;
	return work && q->length <= 0xffff && sums_up(skb, work, q->icmp_at, q->length, q->pseudo);
}

/* Bytes of payload that a packet of `mtu` bytes has room for. */
static __always_inline __u32 payload_within(__u32 mtu, bool ipv6, bool timestamps)
{
	return mtu - (ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) - sizeof(struct tcphdr) -
	       (timestamps ? TIMESTAMP_SIZE : 0);
}

/* The MTU that every path takes: the least of IPv6, and with IPv4 true of all but tunnels in tunnels. */
#define PMTU_SAFE 1280
#define PMTU_MIN_IPV4 576 /* a router that says less is not believed */

#endif
