/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/*
 * Reading a TCP segment and turning it round.
 *
 * read_segment() accepts Ethernet with IPv4 (no options, no fragments) or IPv6 (no extension
 * headers) and TCP; anything else is NOT_OURS. turn_round() makes the same packet buffer into a
 * segment of the other direction, with a complete new TCP header. Both leave no pointer into the
 * packet behind: helpers that resize it would have made it stale.
 */
#ifndef AFPA_GENERATOR_PACKET_H
#define AFPA_GENERATOR_PACKET_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define NOT_OURS -1
#define HEADERS_MAX (ETH_HLEN + sizeof(struct ipv6hdr) + 60)
/* NOP, NOP, timestamp option (kind 8, length 10): how every Linux stack lays it out. */
#define TIMESTAMP_WORD bpf_htonl(0x0101080a)
#define TIMESTAMP_LENGTH 12

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10

struct segment {
	__u32 seq, ack;
	__u32 ts_value, ts_echo; /* zero without the option */
	__u32 to;                /* last 32 bits of the destination address, host byte order */
	__u32 payload;           /* offset of the payload in the frame */
	__u32 length;            /* bytes of payload */
	__u16 l4;                /* offset of the TCP header */
	__u16 from_port, to_port;
	__u8 flags;
	bool stamped;
};

struct outgoing {
	__u32 from;      /* last 32 bits of the source address, host byte order */
	__u16 from_port;
	__u32 seq, ack;
	__u32 ts_value, ts_echo;
	const __u8 *payload;
	__u32 length; /* at most the `limit` given to turn_round() */
	__u32 sum;    /* of the payload, folded */
	__u8 flags;
	__u8 option_words; /* so much of the payload is options, in units of 32 bits */
};

/* The one field of the kernel's packet that decides the content of the checksum field. */
struct sk_buff {
	__u8 ip_summed : 2;
} __attribute__((preserve_access_index));
#define CHECKSUM_PARTIAL 3

extern void *bpf_cast_to_kern_ctx(void *) __ksym;

static __always_inline bool checksum_is_partial(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	return kernel->ip_summed == CHECKSUM_PARTIAL;
}

static __always_inline __u32 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Behind the timestamps: MSS 1460, SACK permitted, window scale 7, three NOP. */
static const __u8 syn_options[] = { 2, 4, 0x05, 0xb4, 4, 2, 3, 3, 7, 1, 1, 1 };

static __always_inline __u32 syn_options_sum(void)
{
	__u32 sum = 0;

#pragma unroll
	for (int i = 0; i < sizeof(syn_options); i += 2)
		sum += syn_options[i] | syn_options[i + 1] << 8;
	return fold(sum);
}

/* Offset of the TCP header, or NOT_OURS. */
static __always_inline int read_network(void *data, void *end, __u32 *to)
{
	struct ethhdr *link = data;
	struct iphdr *v4 = data + ETH_HLEN;
	struct ipv6hdr *v6 = data + ETH_HLEN;

	if ((void *)(v4 + 1) > end)
		return NOT_OURS;
	if (link->h_proto == bpf_htons(ETH_P_IP)) {
		if (v4->ihl != 5 || v4->protocol != IPPROTO_TCP || v4->frag_off & bpf_htons(0x3fff))
			return NOT_OURS;
		*to = bpf_ntohl(v4->daddr);
		return ETH_HLEN + sizeof(*v4);
	}
	if (link->h_proto == bpf_htons(ETH_P_IPV6)) {
		if ((void *)(v6 + 1) > end || v6->nexthdr != IPPROTO_TCP)
			return NOT_OURS;
		*to = bpf_ntohl(v6->daddr.in6_u.u6_addr32[3]);
		return ETH_HLEN + sizeof(*v6);
	}
	return NOT_OURS;
}

static __always_inline int read_segment(struct __sk_buff *skb, struct segment *segment)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	int l4 = read_network(data, end, &segment->to);
	struct tcphdr *tcp = data + l4;
	__be32 *options = (void *)(tcp + 1);

	if (l4 < 0 || (void *)(tcp + 1) > end)
		return NOT_OURS;
	segment->l4 = l4;
	segment->from_port = bpf_ntohs(tcp->source);
	segment->to_port = bpf_ntohs(tcp->dest);
	segment->seq = bpf_ntohl(tcp->seq);
	segment->ack = bpf_ntohl(tcp->ack_seq);
	segment->flags = ((__u8 *)tcp)[13];
	segment->payload = l4 + tcp->doff * 4;
	if (skb->len < segment->payload)
		return NOT_OURS;
	segment->length = skb->len - segment->payload;

	segment->stamped = tcp->doff * 4 >= sizeof(*tcp) + TIMESTAMP_LENGTH &&
			   (void *)(options + 3) <= end && options[0] == TIMESTAMP_WORD;
	segment->ts_value = segment->stamped ? bpf_ntohl(options[1]) : 0;
	segment->ts_echo = segment->stamped ? bpf_ntohl(options[2]) : 0;
	/* In a SYN-ACK it stands behind the MSS and SACK permitted, or two NOPs. */
	if (segment->flags & TCP_SYN && (void *)(options + 4) <= end && tcp->doff * 4 >= sizeof(*tcp) + 16 &&
	    (options[1] & bpf_htonl(0xffff)) == bpf_htonl(0x080a)) {
		segment->stamped = true;
		segment->ts_value = bpf_ntohl(options[2]);
		segment->ts_echo = bpf_ntohl(options[3]);
	}
	return 0;
}

static __always_inline void swap_link(struct ethhdr *link)
{
	__u8 to[ETH_ALEN];

	__builtin_memcpy(to, link->h_dest, ETH_ALEN);
	__builtin_memcpy(link->h_dest, link->h_source, ETH_ALEN);
	__builtin_memcpy(link->h_source, to, ETH_ALEN);
}

/* Each of the two gives back the sum of the pseudo-header. */
static __always_inline __u64 rewrite_v4(struct iphdr *ip, __u32 from, __u32 tcp_length, bool swap)
{
	__u32 *words = (void *)ip;

	if (swap)
		ip->daddr = ip->saddr;
	ip->saddr = bpf_htonl(from);
	ip->tos = 0;
	ip->tot_len = bpf_htons(sizeof(*ip) + tcp_length);
	ip->id = 0; /* atomic datagram, RFC 6864 section 4.1 */
	ip->frag_off = bpf_htons(0x4000);
	ip->ttl = 64;
	ip->check = 0;
	ip->check = ~fold((__u64)words[0] + words[1] + words[2] + words[3] + words[4]);
	return (__u64)ip->saddr + ip->daddr + bpf_htons(IPPROTO_TCP) + bpf_htons(tcp_length);
}

static __always_inline __u64 rewrite_v6(struct ipv6hdr *ip, __u32 from, __u32 tcp_length, bool swap)
{
	__u64 sum = bpf_htons(IPPROTO_TCP) + bpf_htons(tcp_length);
	__be32 *source = ip->saddr.in6_u.u6_addr32, *target = ip->daddr.in6_u.u6_addr32;

#pragma unroll
	for (int i = 0; i < 4; i++) {
		__be32 word = source[i];

		if (swap) {
			source[i] = target[i];
			target[i] = word;
		}
		if (i == 3)
			source[i] = bpf_htonl(from);
		sum += (__u64)source[i] + target[i];
	}
	ip->payload_len = bpf_htons(tcp_length);
	ip->hop_limit = 64;
	return sum;
}

/* Writes the TCP header, options included, but for the checksum; gives back its sum. */
static __always_inline __u64 rewrite_tcp(struct tcphdr *tcp, const struct outgoing *out,
					 __u16 to_port, bool stamped)
{
	__u32 *words = (void *)tcp;
	__u64 sum = 0;

	tcp->source = bpf_htons(out->from_port);
	tcp->dest = bpf_htons(to_port);
	tcp->seq = bpf_htonl(out->seq);
	tcp->ack_seq = bpf_htonl(out->ack);
	words[3] = 0;
	tcp->doff = (stamped ? 8 : 5) + out->option_words;
	((__u8 *)tcp)[13] = out->flags;
	tcp->window = 0xffff;
	words[4] = 0; /* checksum, urgent pointer */
	if (stamped) {
		words[5] = TIMESTAMP_WORD;
		words[6] = bpf_htonl(out->ts_value);
		words[7] = bpf_htonl(out->ts_echo);
		sum = (__u64)words[5] + words[6] + words[7];
	}
	return sum + words[0] + words[1] + words[2] + words[3];
}

/*
 * Makes the packet that `segment` was read from into `out`, in the other direction: `swap` is
 * true, unless an earlier call has turned it already. `limit` is the size of the map value behind
 * out->payload, known to the verifier. 0, or negative when the kernel could not resize the packet:
 * then it must be dropped.
 */
static __always_inline int turn_round(struct __sk_buff *skb, const struct segment *segment,
				      const struct outgoing *out, const __u32 limit, const bool swap)
{
	__u32 header = sizeof(struct tcphdr) + (segment->stamped ? TIMESTAMP_LENGTH : 0);
	bool v6 = segment->l4 != ETH_HLEN + sizeof(struct iphdr);
	__u32 l4 = v6 ? ETH_HLEN + sizeof(struct ipv6hdr) : ETH_HLEN + sizeof(struct iphdr);
	__u32 length = *(volatile const __u32 *)&out->length;
	__u64 pseudo, sum;
	struct tcphdr *tcp;
	void *data, *end;

	if (bpf_skb_change_tail(skb, l4 + header + length, 0))
		return NOT_OURS;
	if (length > 0 && length <= limit &&
	    bpf_skb_store_bytes(skb, l4 + header, out->payload, length, 0))
		return NOT_OURS;

	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	tcp = data + l4;
	if (data + l4 + sizeof(*tcp) + TIMESTAMP_LENGTH > end &&
	    (segment->stamped || data + l4 + sizeof(*tcp) > end))
		return NOT_OURS;
	if (swap)
		swap_link(data);
	if (v6)
		pseudo = rewrite_v6(data + ETH_HLEN, out->from, header + length, swap);
	else
		pseudo = rewrite_v4(data + ETH_HLEN, out->from, header + length, swap);
	sum = pseudo + rewrite_tcp(tcp, out, segment->from_port, segment->stamped) + out->sum;
	tcp->check = checksum_is_partial(skb) ? fold(pseudo) : ~fold(sum);
	return 0;
}

#endif
