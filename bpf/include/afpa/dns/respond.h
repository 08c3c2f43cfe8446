/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Derive cached response and send response, for DNS: the packet that held the query becomes the server's own answer.
 *
 *  DN4 The question stays where it is, so id, RD and the case of the name are the client's. The header, the lengths and what follows the
 *       question, the tail, are written. The checksum comes from the query's, by the difference: a query that was damaged gets an
 *       answer that is seen to be damaged.
 */
#ifndef AFPA_DNS_RESPOND_H
#define AFPA_DNS_RESPOND_H

#include <afpa/dns/cookie.h>
#include <afpa/dns/derive.h>
#include <afpa/dns/way.h>

#define DNS_CHECKSUM_PARTIAL CHECKSUM_PARTIAL

/* An answer that was found for a query. */
struct dns_found {
	struct afpa_dns_tail *tail;
	struct afpa_dns_way way;
	__u32 length; /* of UDP, with its header */
	__u32 option[DNS_WHOLE_OPTION / 4]; /* of the client's cookie */
	__u16 option_sum;
	bool cookie;  /* the option follows the tail */
};

/* The packet's headers, from the frame's start to the end of the DNS header. */
struct dns_frame_v4 {
	__u16 unused; /* so that all that follow are aligned */
	struct ethhdr ethernet;
	struct iphdr ip;
	struct udphdr udp;
	struct dns_header dns;
};

struct dns_frame_v6 {
	__u16 unused;
	struct ethhdr ethernet;
	struct ipv6hdr ip;
	struct udphdr udp;
	struct dns_header dns;
};

static __always_inline void dns_turn_ethernet(struct ethhdr *ethernet, const struct afpa_dns_way *way)
{
	__builtin_memcpy(ethernet->destination, way->destination, 6);
	__builtin_memcpy(ethernet->source, way->source, 6);
}

/* The UDP and DNS headers. `pseudo`: the sum of both addresses, which are the same as before. */
static __always_inline void dns_turn_headers(struct udphdr *udp, struct dns_header *h, const struct dns_question *q,
					     const struct dns_found *found, __u64 pseudo, bool partial)
{
	const struct afpa_dns_tail *tail = found->tail;
	bool odd = q->key.name_length & 1;
	__u64 before, after;
	__be16 port = udp->source;
	__u16 check;

	before = (__u64)h->flags + h->additionals + 2 * (__u64)udp->length; /* the other counts were 0, and QDCOUNT stays */
	before += odd ? swap_bytes(q->opt_sum) : q->opt_sum;
	udp->source = udp->destination;
	udp->destination = port;
	udp->length = bpf_htons(found->length);
	h->flags = tail->header[0] | bpf_htons(q->flags & DNS_RD);
	h->answers = tail->header[1];
	h->authorities = tail->header[2];
	h->additionals = tail->header[3];
	if (partial) {
		udp->check = datagram_fold(pseudo + bpf_htons(IPPROTO_UDP) + udp->length);
		return;
	}
	after = (__u64)h->flags + h->answers + h->authorities + h->additionals + 2 * (__u64)udp->length +
		(odd ? swap_bytes(tail->sum) : (__u16)tail->sum);
	if (found->cookie)
		after += odd ^ (tail->length & 1) ? swap_bytes(found->option_sum) : found->option_sum;
	check = ~datagram_fold((__u64)(__u16)~udp->check + after + (__u16)~datagram_fold(before));
	udp->check = check ? check : 0xffff;
}

/* From here on the packet is no query any more: an error drops it. */
static __always_inline bool dns_turn_v4(struct __sk_buff *skb, const struct dns_question *q, const struct dns_found *found,
					bool partial)
{
	struct dns_frame_v4 frame = {};
	struct iphdr *ip = &frame.ip;
	__be32 source;

	if (bpf_skb_load_bytes(skb, 0, &frame.ethernet, sizeof(frame) - 2))
		return false;
	dns_turn_ethernet(&frame.ethernet, &found->way);
	source = ip->source;
	ip->source = ip->destination;
	ip->destination = source;
	ip->tos = 0;
	ip->id = 0;
	ip->fragment = bpf_htons(0x4000);
	ip->ttl = 64;
	ip->total_length = bpf_htons(IPV4_LENGTH + found->length);
	ip->check = 0;
	ip->check = ~datagram_fold((__u64)ip->source + ip->destination + bpf_htons(0x4500) + ip->total_length +
				   bpf_htons(0x4000) + bpf_htons(64 << 8 | IPPROTO_UDP));
	dns_turn_headers(&frame.udp, &frame.dns, q, found, (__u64)ip->source + ip->destination, partial);
	return !bpf_skb_store_bytes(skb, 0, &frame.ethernet, sizeof(frame) - 2, 0);
}

static __always_inline bool dns_turn_v6(struct __sk_buff *skb, const struct dns_question *q, const struct dns_found *found,
					bool partial)
{
	struct dns_frame_v6 frame = {};
	struct ipv6hdr *ip = &frame.ip;
	__u64 pseudo = 0;

	if (bpf_skb_load_bytes(skb, 0, &frame.ethernet, sizeof(frame) - 2))
		return false;
	dns_turn_ethernet(&frame.ethernet, &found->way);
	for (int i = 0; i < 4; i++) {
		__be32 source = ip->source[i];

		pseudo += (__u64)source + ip->destination[i];
		ip->source[i] = ip->destination[i];
		ip->destination[i] = source;
	}
	ip->version_class = 0x60;
	ip->class_label &= 0x0f;
	ip->hop_limit = 64;
	ip->payload_length = bpf_htons(found->length);
	dns_turn_headers(&frame.udp, &frame.dns, q, found, pseudo, partial);
	return !bpf_skb_store_bytes(skb, 0, &frame.ethernet, sizeof(frame) - 2, 0);
}

/* Is the answer one that the client's query surely gets? Its rule is `rule`. */
static __always_inline enum afpa_dns_reason dns_fits(const struct dns_question *q, struct dns_found *found, __u32 rule)
{
	if (rule & AFPA_DNS_LOWER_ONLY && q->mixed)
		return AFPA_DNS_REASON_PASS_CASE;
	found->cookie = q->opt_length > DNS_OPT && found->tail->cookie;
	if (q->proven && !found->cookie)
		return AFPA_DNS_REASON_PASS_COOKIE; /* the server was asked without its own cookie */
	found->length = UDP_LENGTH + DNS_HEADER + q->key.name_length + DNS_TYPE_CLASS + found->tail->length +
			(found->cookie ? DNS_WHOLE_OPTION : 0);
	if (found->length - UDP_LENGTH > q->buffer || found->length - UDP_LENGTH > AFPA_DNS_ANSWER_MAX ||
	    (q->opt_length && q->buffer < dns_least_buffer(rule)))
		return AFPA_DNS_REASON_PASS_BUFFER;
	return AFPA_DNS_REASON_ANSWERED;
}

/* The pinned answer to the question, while its zone has a lease. */
static __always_inline enum afpa_dns_reason dns_look_up(struct dns_question *q, const struct afpa_dns_config *config,
							__u64 now, struct dns_found *found)
{
	__u32 number, zone, zero = 0;
	__u64 *value, word, *lease, *noticed;

	value = bpf_map_lookup_elem(&dns_keys, &q->key);
	if (!value)
		return AFPA_DNS_REASON_PASS_NOT_PINNED;
	word = *(volatile __u64 *)value;
	if (word >> (AFPA_DNS_TAIL_BITS + AFPA_DNS_ZONE_BITS + AFPA_DNS_RULE_BITS) != dns_fingerprint(&q->key, config->seed))
		return AFPA_DNS_REASON_PASS_LEASE; /* the element is another key's by now */
	number = word & ((1 << AFPA_DNS_TAIL_BITS) - 1);
	zone = word >> AFPA_DNS_TAIL_BITS & ((1 << AFPA_DNS_ZONE_BITS) - 1);
	lease = bpf_map_lookup_elem(&dns_zones, &zone);
	noticed = bpf_map_lookup_elem(&dns_noticed, &zero);
	if (!lease || !noticed)
		return AFPA_DNS_REASON_PASS_LEASE;
	/* DN7 The lease must be younger than any sign of a change. */
	word = word >> (AFPA_DNS_TAIL_BITS + AFPA_DNS_ZONE_BITS) & ((1 << AFPA_DNS_RULE_BITS) - 1);
	if (now >= *(volatile __u64 *)lease || *(volatile __u64 *)lease < *(volatile __u64 *)noticed + AFPA_DNS_LEASE)
		return AFPA_DNS_REASON_PASS_LEASE;
	found->tail = bpf_map_lookup_elem(&dns_tails, &number);
	if (!found->tail)
		return AFPA_DNS_REASON_PASS_LEASE;
	return dns_fits(q, found, word);
}

/* Turns the packet round. TCX_NEXT: it is as it was, and goes up. */
static __always_inline int dns_send(struct __sk_buff *skb, const struct datagram *d, const struct dns_question *q,
				    const struct dns_found *found)
{
	bool partial = skb_bits(skb, ip_summed) == DNS_CHECKSUM_PARTIAL;
	__u32 tail = found->tail->length, at;

	at = d->udp_at + UDP_LENGTH + DNS_HEADER + q->key.name_length + DNS_TYPE_CLASS;
	if (bpf_skb_change_tail(skb, d->udp_at + found->length, 0)) {
		dns_count(AFPA_DNS_REASON_PASS_SEND);
		return TCX_NEXT;
	}
	if (!(d->ipv6 ? dns_turn_v6(skb, q, found, partial) : dns_turn_v4(skb, q, found, partial)) ||
	    tail > AFPA_DNS_TAIL_MAX)
		goto failed;
	if (tail && bpf_skb_store_bytes(skb, at, found->tail->bytes, tail, 0))
		goto failed;
	if (found->cookie && bpf_skb_store_bytes(skb, at + tail, found->option, DNS_WHOLE_OPTION, 0))
		goto failed;
	dns_count(AFPA_DNS_REASON_ANSWERED);
	return bpf_redirect(skb->ifindex, 0);
failed:
	dns_count(AFPA_DNS_REASON_DROP_SEND);
	return TCX_DROP;
}

#endif
