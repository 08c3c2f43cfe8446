/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Once each way: which of the hooks that a packet passes is the one that works on it (E1, E2 in docs/rules).
 *
 * Devices lie on top of others: a macvlan beside its card, a bridge above its ports. A packet passes the hooks of all of
 * them. `tc_index`, of the packet's own memory, says whether one of ours has seen it. No device on the way clears it;
 * filters that accept a packet do.
 */
#ifndef AFPA_NET_ONCE_H
#define AFPA_NET_ONCE_H

#include <afpa/kernel.h>
#include <afpa/maps.h>

#define MARK_UP 0xaf11      /* has been translated for the kernel */
#define MARK_DOWN 0xaf12    /* has been seen on its way to the client */
#define MARK_ROUTE_ME 0xaf13 /* made here without a route, which `lo` wants: the egress hook asks for one */

/* --- the kernel's own structures --- */

/* May the packet be delivered by another device than the one that it came in by: a bridge, a macvlan, a bond? */
static __always_inline bool has_rx_handler(struct __sk_buff *skb)
{
	return skb_field(skb, dev, rx_handler);
}

/* Does connection tracking know the packet's connection? Below the address are three bits of its state. */
static __always_inline bool is_tracked(struct __sk_buff *skb)
{
	return bpf_core_field_exists(struct sk_buff, _nfct) && skb_field(skb, _nfct) & ~7UL;
}

/* The device that routing gave the packet to, by index; 0: it has no route any more. */
static __always_inline __u32 routed_to(struct __sk_buff *skb)
{
	struct dst_entry *route = (void *)(skb_field(skb, _skb_refdst) & ~1UL);

	return route ? BPF_CORE_READ(route, dev, ifindex) : 0;
}

/* The network namespace of the packet's device. */
static __always_inline __u64 namespace_of(struct __sk_buff *skb)
{
	return skb_field(skb, dev, nd_net.net, net_cookie);
}

/* --- which hook --- */

/* Has the interface programs of ours for this way? */
static __always_inline bool has_programs(__u32 interface, enum afpa_carried way)
{
	const __u32 *carried = bpf_map_lookup_elem(&carriers, &interface);

	return carried && *carried & way;
}

/* Is a packet that came in this device's, as the kernel's TCP sees it, and not translated yet? */
static __always_inline bool may_be_ours(const struct __sk_buff *skb)
{
	return skb->pkt_type == PACKET_HOST && skb->tc_index != MARK_UP;
}

/*
 * A packet made here is about to leave: the hooks below have nothing to do with it. Its ingress interface shows that, too,
 * but devices on the way may clear that (an ipvlan that routes).
 */
static __always_inline void mark_own(struct __sk_buff *skb)
{
	skb->tc_index = MARK_DOWN;
}

/* The packet goes up as the kernel is to see it. */
static __always_inline int deliver(struct __sk_buff *skb)
{
	skb->tc_index = MARK_UP;
	return TCX_NEXT;
}

/*
 * Has the hook of a device above this one seen what leaves here? Its mark may have been cleared, so the device that
 * routing chose is asked, too.
 */
static __always_inline bool seen_above(struct __sk_buff *skb)
{
	__u32 first = routed_to(skb);

	return first && first != skb->ifindex && has_programs(first, AFPA_CARRIED_DOWN);
}

#endif
