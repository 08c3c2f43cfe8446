/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The TCP segment in hand: parsed from its packet, its bytes in scratch, and whether its checksum is right.
 *
 * The kernel's TCP drops a segment whose checksum is wrong. The programs see a segment before that, so every
 * lasting effect of it (an answer, an acknowledgement) wants a sound segment.
 */
#ifndef AFPA_NET_SEGMENT_H
#define AFPA_NET_SEGMENT_H

#include <afpa/net/checksum.h>
#include <afpa/scratch.h>

#define FRAME_AT 2 /* where the Ethernet header stands in `work->frame`, so that IP and TCP are aligned */

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
	__u8 timestamps;          /* the timestamp option comes first, aligned as usual */
	__u8 plain_ip;            /* no IP options, not congestion-marked */
	__u8 place;               /* the interface's counters */
	__u8 plain_tcp;           /* no TCP options but that */
};

/* On to another program, with the segment. Returns only if that program is missing. */
static __always_inline void to_program(struct __sk_buff *skb, struct work *work, const struct segment *s,
				       enum afpa_program program)
{
	*(struct segment *)work->segment = *s;
	bpf_tail_call(skb, &programs, program);
}

/* The segment begins anew, as at the entry program. Returns a verdict if that is missing. */
static __always_inline int begin_anew(struct __sk_buff *skb)
{
	bpf_tail_call(skb, &alive, 0);
	bpf_tail_call(skb, &programs, AFPA_PROGRAM_INGRESS);
	return TCX_DROP;
}

#define NO_TCP (1U << 31) /* more than any packet has */
#define IPV4_PLAIN 0x45   /* version, and a header without options */

/*
 * Does the IPv4 header at `at` hold, options and all? The kernel drops a packet whose header does not, and computes the
 * sum itself: the card's result does not cover it.
 */
__noinline int afpa_ipv4_holds(struct __sk_buff *skb, __u32 at)
{
	__u32 header[15] = {}, length;
	__u8 first;

	if (bpf_skb_load_bytes(skb, at, &first, sizeof(first)) || first >> 4 != 4)
		return false;
	length = (first & 15) * 4;
	if (!is_within(&length, sizeof(struct iphdr), sizeof(header)) || bpf_skb_load_bytes(skb, at, header, length))
		return false;
	return fold(sum_words(header, sizeof(header) / 4)) == 0xffff;
}

/* IPv4. Returns how many bytes follow the header, or NO_TCP: another protocol, a fragment, or a header that does not hold. */
static __always_inline __u32 take_ipv4(struct __sk_buff *skb, struct cursor *c, struct segment *s, __u8 *source,
				       __u8 *destination, enum direction from)
{
	struct iphdr *ip = cursor_take(c, sizeof(*ip));
	__u32 header;

	if (!ip || ip->protocol != IPPROTO_TCP || ip->fragment & bpf_htons(IP_MORE_OR_OFFSET))
		return NO_TCP;
	header = (ip->version_ihl & 15) * 4;
	if (header < sizeof(*ip))
		return NO_TCP;
	if (from == FROM_CLIENT &&
	    !(ip->version_ihl == IPV4_PLAIN ? fold(sum_words(ip, sizeof(*ip) / 4)) == 0xffff : afpa_ipv4_holds(skb, s->ip_at)))
		return NO_TCP;
	c->at += header - sizeof(*ip);
	map_ipv4(source, ip->source);
	map_ipv4(destination, ip->destination);
	s->plain_ip = header == sizeof(*ip) && (ip->tos & ECN_MASK) != ECN_CONGESTED;
	return bpf_ntohs(ip->total_length) - header;
}

/*
 * A hop-by-hop header of the smallest size in front of TCP: the kernel puts it into segments of more than 64 KB, and
 * takes it out before they are cut into packets (BIG TCP). False: another one.
 */
static __always_inline bool take_jumbo(struct cursor *c)
{
	__u8 *header = cursor_take(c, EXTENSION_UNIT);

	return header && header[0] == IPPROTO_TCP && header[1] == 0;
}

/* IPv6 without extension headers, or with the one that the kernel itself puts there. */
static __always_inline __u32 take_ipv6(struct cursor *c, struct segment *s, __u8 *source, __u8 *destination,
				       enum direction from)
{
	struct ipv6hdr *ip = cursor_take(c, sizeof(*ip));

	if (!ip || ip->version_class >> 4 != 6 || (from == FROM_CLIENT && is_mapped(ip->source)))
		return NO_TCP;
	if (ip->next_header != IPPROTO_TCP &&
	    (from == FROM_CLIENT || ip->next_header != IPPROTO_HOPOPTS || !take_jumbo(c)))
		return NO_TCP;
	put_ipv6(source, ip->source);
	put_ipv6(destination, ip->destination);
	s->plain_ip = (ip->class_label >> 4 & ECN_MASK) != ECN_CONGESTED;
	return bpf_ntohs(ip->payload_length);
}

/*
 * A tag of VLAN 0 carries a priority and names no network: the kernel delivers the frame as if it had none. On the way
 * down a tag is another device's, whose hook has seen the packet.
 */
static __always_inline bool is_in_vlan(const struct __sk_buff *skb, enum direction from)
{
	return skb->vlan_present && (from == FROM_SERVER || skb->vlan_tci & VLAN_ID_MASK);
}

/* The timestamp option, where every stack puts it. Other options are for translate_options. */
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
 * Parse the frame into `s`. False: not a TCP segment, or not as usual: see net/unusual.h.
 * On ingress the IP header says how long the payload is, because short frames are padded; on egress the packet does,
 * because a BIG TCP packet has no length in its header.
 */
static __always_inline bool parse_segment(struct __sk_buff *skb, struct segment *s, enum direction from)
{
	struct cursor c = cursor_start(skb);
	__u8 *source = from == FROM_CLIENT ? s->key.client : s->key.server;
	__u8 *destination = from == FROM_CLIENT ? s->key.server : s->key.client;
	struct ethhdr *ethernet = cursor_take(&c, sizeof(*ethernet));
	struct tcphdr *tcp;
	__u32 after_ip, header;

	if (!ethernet || is_in_vlan(skb, from))
		return false;
	s->ip_at = c.at;
	s->ipv6 = ethernet->protocol == bpf_htons(ETH_P_IPV6);
	if (s->ipv6)
		after_ip = take_ipv6(&c, s, source, destination, from);
	else if (ethernet->protocol == bpf_htons(ETH_P_IP))
		after_ip = take_ipv4(skb, &c, s, source, destination, from);
	else
		return false;
	s->tcp_at = c.at;
	tcp = after_ip == NO_TCP ? NULL : cursor_take(&c, sizeof(*tcp));
	if (!tcp)
		return false;
	if (skb->vlan_present)
		s->plain_ip = false; /* no answer is made of it */
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

/* Bytes of TCP options besides plain timestamps. */
static __always_inline __u32 other_options(const struct segment *s)
{
	return s->payload_at - s->tcp_at - sizeof(struct tcphdr) - (s->timestamps ? TIMESTAMP_SIZE : 0);
}

/* Pseudo-header of a segment between the two ends of `key`; mapping prefixes are not on the wire. */
static __always_inline __u64 sum_pseudo(const struct segment *s, __u32 tcp_length)
{
	const __u32 *client = (const __u32 *)s->key.client, *server = (const __u32 *)s->key.server;
	__u64 sum = bpf_htons(IPPROTO_TCP) + (__u64)bpf_htons(tcp_length);

	sum += (__u64)client[3] + server[3];
	if (s->ipv6)
		sum += (__u64)client[0] + client[1] + client[2] + server[0] + server[1] + server[2];
	return sum;
}

/* Bytes of headers with no IP options, and of the TCP options only timestamps: those of all that leaves. */
static __always_inline __u32 plain_headers(const struct segment *s)
{
	return s->tcp_at + sizeof(struct tcphdr) + (s->timestamps ? TIMESTAMP_SIZE : 0);
}

/* The headers into `work->frame`, the model for the answer. Needs `plain_ip`. False: they are too long. */
static __always_inline bool save_headers(struct __sk_buff *skb, struct work *work, const struct segment *s)
{
	__u32 headers = plain_headers(s);

	if (!is_within(&headers, 54, 86))
		return false;
	return bpf_skb_load_bytes(skb, 0, work->frame + FRAME_AT, headers) == 0;
}

/*
 * Copy `length` bytes of the packet, from `at` on, behind the first `have` bytes of `work->head`, and 64 zero bytes
 * behind them. Returns how many bytes are in `work->head` then, or 0.
 */
static __always_inline __u32 load_bytes(struct __sk_buff *skb, struct work *work, __u32 at, __u32 length, __u32 have)
{
	if (length > AFPA_HEAD_MAX)
		length = AFPA_HEAD_MAX;
	opaque(have);
	if (have > AFPA_HEAD_MAX)
		return 0;
	if (!is_within(&length, 1, AFPA_HEAD_MAX) || bpf_skb_load_bytes(skb, at, work->head + have, length))
		return 0;
	for (int i = 0; i < 8; i++)
		*(__u64 *)(work->head + have + length + i * 8) = 0;
	return have + length;
}

/*
 * Is the checksum right, by the device's word or by our own sum? Headers are in `work->frame`, the payload in
 * `work->head` behind `have` other bytes.
 */
static __always_inline bool checksum_holds(struct work *work, const struct segment *s, __u32 state, __u32 have)
{
	void *tcp = work->frame + FRAME_AT + s->tcp_at;
	__u64 sum = sum_pseudo(s, s->payload_at - s->tcp_at + s->length);

	if (state == CHECKSUM_PARTIAL || state == CHECKSUM_UNNECESSARY)
		return true;
	if (s->tcp_at != 34 && s->tcp_at != 54)
		return false;
	tcp = work->frame + FRAME_AT + (s->tcp_at == 34 ? 34 : 54);
	sum += sum_words(tcp, sizeof(struct tcphdr) / 4);
	if (s->timestamps)
		sum += sum_words(tcp + sizeof(struct tcphdr), TIMESTAMP_SIZE / 4);
	opaque(have);
	if (have > AFPA_HEAD_MAX)
		return false;
	return fold(sum + sum_bytes(work->head + have, s->length)) == 0xffff;
}

/* The sum over bytes of the packet for which scratch has no room, and how far it is. */
struct summing {
	struct __sk_buff *skb;
	struct work *work;
	__u32 at, end;
	__u32 sum;
};

/* One piece more; stops (1) behind the last one. A function for `bpf_loop`: a plain loop has too many states. */
static long sum_chunk(__u32 index, void *context)
{
	struct summing *c = context;
	__u32 length = c->end - c->at;

	if (length > SUM_CHUNK)
		length = SUM_CHUNK;
	if (!is_within(&length, 1, SUM_CHUNK) || bpf_skb_load_bytes(c->skb, c->at, c->work->head, length))
		return 1;
	*(__u32 *)(c->work->head + length) = 0;
	c->sum = bpf_csum_diff(0, 0, (__be32 *)c->work->head, (length + 3) & ~3, c->sum);
	c->at += length;
	return c->at >= c->end;
}

#define SUM_CHUNKS 1024 /* more than the longest packet has */

/* Is `sum` and that of the packet's bytes that of a checksum that holds? Overwrites `work->head`. */
static __always_inline bool sums_up(struct __sk_buff *skb, struct work *work, __u32 at, __u32 length, __u64 sum)
{
	struct summing c = { .skb = skb, .work = work, .at = at, .end = at + length };

	bpf_loop(SUM_CHUNKS, sum_chunk, &c, 0);
	return c.at == c.end && fold(sum + c.sum) == 0xffff;
}

/*
 * The same of a segment that is not in scratch yet, however long it is; overwrites `work->head`. An acknowledgement that
 * is believed wrongly costs the client bytes.
 */
__noinline int afpa_is_sound(struct __sk_buff *skb, struct work *work, const struct segment *s)
{
	__u32 length, state, have;

	if (!work || !s)
		return false;
	length = s->payload_at - s->tcp_at + s->length;
	state = checksum_state(skb);
	if (state == CHECKSUM_PARTIAL || state == CHECKSUM_UNNECESSARY)
		return true;
	if (length > AFPA_HEAD_MAX)
		return sums_up(skb, work, s->tcp_at, length, sum_pseudo(s, length));
	have = load_bytes(skb, work, s->tcp_at, length, 0);
	if (!is_within(&have, sizeof(struct tcphdr), AFPA_HEAD_MAX))
		return false;
	return fold(sum_pseudo(s, length) + sum_bytes(work->head, have)) == 0xffff;
}

#endif
