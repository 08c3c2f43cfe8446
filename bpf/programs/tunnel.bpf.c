/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tunnel: ingress of a device whose packets begin with the IP header, because an outer header was taken off them (IPIP, FOU,
 * GUE), or because a process puts them there (tun). Such a packet gets an Ethernet header, from nobody to nobody, and goes on to
 * the programs as from any other interface (E8 in docs/rules). The kernel removes that header with the length that it finds.
 *
 * Contract: every packet that the programs would read gets one; others, and those for ports that are not served, stay as they are.
 */
#include <afpa/net/unusual.h>

/* Is it of a port that is served? True too where the port cannot be seen at this place. */
static __always_inline bool may_be_served(struct __sk_buff *skb, __u32 tcp_at)
{
	__be16 port;

	if (bpf_skb_load_bytes(skb, tcp_at + offsetof(struct tcphdr, destination), &port, sizeof(port)))
		return true;
	return port_served(bpf_ntohs(port));
}

static __always_inline bool may_concern_ipv4(struct __sk_buff *skb)
{
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, 0, &ip, sizeof(ip)) || ip.version_ihl >> 4 != 4)
		return false;
	if (ip.protocol != IPPROTO_TCP)
		return ip.protocol == IPPROTO_ICMP || ip.protocol == IPPROTO_AH;
	return ip.version_ihl != IPV4_PLAIN || ip.fragment & bpf_htons(IP_MORE_OR_OFFSET) || may_be_served(skb, sizeof(ip));
}

static __always_inline bool may_concern_ipv6(struct __sk_buff *skb)
{
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, 0, &ip, sizeof(ip)) || ip.version_class >> 4 != 6)
		return false;
	if (ip.next_header == IPPROTO_TCP)
		return may_be_served(skb, sizeof(ip));
	return ip.next_header == IPPROTO_ICMPV6 || is_readable_extension(ip.next_header);
}

/* Gives the packet its Ethernet header. False: there is no memory for it. */
static __always_inline bool put_ethernet(struct __sk_buff *skb)
{
	__be16 protocol = skb->protocol;

	return !bpf_skb_change_head(skb, sizeof(struct ethhdr), 0) &&
	       !bpf_skb_store_bytes(skb, offsetof(struct ethhdr, protocol), &protocol, sizeof(protocol), 0);
}

/* The program that is attached there. */
SEC("tcx/ingress")
int afpa_tunnel(struct __sk_buff *skb)
{
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (!may_concern_ipv4(skb))
			return TCX_NEXT;
	} else if (skb->protocol != bpf_htons(ETH_P_IPV6) || !may_concern_ipv6(skb)) {
		return TCX_NEXT;
	}
	if (put_ethernet(skb))
		bpf_tail_call(skb, &programs, AFPA_PROGRAM_INGRESS);
	return TCX_DROP; /* it may be of a connection with an offset */
}
