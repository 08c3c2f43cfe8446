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
	struct afpa_dns_short_tail *brief; /* the tail: one of these */
	struct afpa_dns_tail *whole;
	__u32 sum;
	struct afpa_dns_patch patch; /* begins at 0: there is none */
	__u16 tail_length, takes_cookie, header[4];
	struct afpa_dns_way way;
	__u32 length; /* of UDP, with its header */
	__u16 option_sum; /* of the client's cookie, in the core's room */
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

/* The UDP and DNS headers, out of the query's. `pseudo`: the sum of both addresses, which are the same as before. */
static __always_inline void dns_turn_headers(struct udphdr *udp, struct dns_header *h, const struct dns_header *before_it,
					     const struct datagram *d, const struct dns_question *q, const struct dns_found *found,
					     __u64 pseudo, bool partial)
{
	bool odd = q->name_length & 1;
	__u64 before, after;
	__u16 check;

	/* The other counts were 0, and QDCOUNT stays. */
	before = (__u64)before_it->flags + before_it->additionals + 2 * (__u64)bpf_htons(d->length);
	before += odd ? swap_bytes(q->opt_sum) : q->opt_sum;
	udp->source = d->destination_port;
	udp->destination = d->source_port;
	udp->length = bpf_htons(found->length);
	h->id = before_it->id;
	h->flags = found->header[0] | bpf_htons(q->flags & DNS_RD);
	h->questions = bpf_htons(1);
	h->answers = found->header[1];
	h->authorities = found->header[2];
	h->additionals = found->header[3];
	if (partial) {
		udp->check = datagram_fold(pseudo + bpf_htons(IPPROTO_UDP) + udp->length);
		return;
	}
	after = (__u64)h->flags + h->answers + h->authorities + h->additionals + 2 * (__u64)udp->length +
		(odd ? swap_bytes(found->sum) : (__u16)found->sum);
	if (found->cookie)
		after += odd ^ (found->tail_length & 1) ? swap_bytes(found->option_sum) : found->option_sum;
	check = ~datagram_fold((__u64)(__u16)~d->check + after + (__u16)~datagram_fold(before));
	udp->check = check ? check : 0xffff;
}

/* From here on the packet is no query any more: an error drops it. All of its headers are written anew, in one piece. */
static __always_inline bool dns_turn_v4(struct __sk_buff *skb, struct dns_frame_v4 *frame, const struct dns_room *room,
					const struct datagram *d, const struct dns_question *q, const struct dns_found *found,
					bool partial)
{
	struct iphdr *ip = &frame->ip;

	dns_turn_ethernet(&frame->ethernet, &found->way);
	frame->ethernet.protocol = bpf_htons(ETH_P_IP);
	ip->version_ihl = 0x45;
	ip->tos = 0;
	ip->total_length = bpf_htons(IPV4_LENGTH + found->length);
	ip->id = 0;
	ip->fragment = bpf_htons(0x4000);
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->source = d->destination[3];
	ip->destination = d->source[3];
	ip->check = ~datagram_fold((__u64)ip->source + ip->destination + bpf_htons(0x4500) + ip->total_length +
				   bpf_htons(0x4000) + bpf_htons(64 << 8 | IPPROTO_UDP));
	dns_turn_headers(&frame->udp, &frame->dns, (const struct dns_header *)room->message, d, q, found,
			 (__u64)ip->source + ip->destination, partial);
	return !bpf_skb_store_bytes(skb, 0, &frame->ethernet, sizeof(*frame) - 2, 0);
}

static __always_inline bool dns_turn_v6(struct __sk_buff *skb, struct dns_frame_v6 *frame, const struct dns_room *room,
					const struct datagram *d, const struct dns_question *q, const struct dns_found *found,
					bool partial)
{
	struct ipv6hdr *ip = &frame->ip;
	__u64 pseudo = 0;

	/* The flow's label stays. */
	if (bpf_skb_load_bytes(skb, 0, &frame->ethernet, sizeof(*frame) - 2))
		return false;
	dns_turn_ethernet(&frame->ethernet, &found->way);
	for (int i = 0; i < 4; i++) {
		pseudo += (__u64)d->source[i] + d->destination[i];
		ip->source[i] = d->destination[i];
		ip->destination[i] = d->source[i];
	}
	ip->version_class = 0x60;
	ip->class_label &= 0x0f;
	ip->hop_limit = 64;
	ip->payload_length = bpf_htons(found->length);
	dns_turn_headers(&frame->udp, &frame->dns, (const struct dns_header *)room->message, d, q, found, pseudo, partial);
	return !bpf_skb_store_bytes(skb, 0, &frame->ethernet, sizeof(*frame) - 2, 0);
}

/* Is the answer one that the client's query surely gets? Its rule is `rule`. */
static __always_inline enum afpa_dns_reason dns_fits(const struct dns_question *q, struct dns_found *found, __u32 rule)
{
	if (rule & AFPA_DNS_LOWER_ONLY && q->mixed)
		return AFPA_DNS_REASON_PASS_CASE;
	found->cookie = q->opt_length > DNS_OPT && found->takes_cookie;
	if (q->proven && !found->cookie)
		return AFPA_DNS_REASON_PASS_COOKIE; /* the server was asked without its own cookie */
	found->length = UDP_LENGTH + DNS_HEADER + q->name_length + DNS_TYPE_CLASS + found->tail_length +
			(found->cookie ? DNS_WHOLE_OPTION : 0);
	if (found->length - UDP_LENGTH > q->buffer || found->length - UDP_LENGTH > AFPA_DNS_ANSWER_MAX ||
	    (q->opt_length && q->buffer < dns_least_buffer(rule)))
		return AFPA_DNS_REASON_PASS_BUFFER;
	return AFPA_DNS_REASON_ANSWERED;
}

/* Takes over all of a tail but its bytes; both kinds begin alike. */
#define DNS_TAKE_HEAD(found, tail)                                         \
	do {                                                                   \
		(found)->sum = (tail)->sum;                                        \
		(found)->tail_length = (tail)->length;                             \
		(found)->takes_cookie = (tail)->cookie;                            \
		__builtin_memcpy((found)->header, (tail)->header, 8);              \
	} while (0)

/* Nothing, but known only when `word` is: loads from an address with this in it are not done before that, on any processor. */
static __always_inline __u64 dns_nothing_of(__u64 word)
{
	asm volatile("%0 &= 0" : "+r"(word));
	return word;
}

/*
 * The patch of the place whose word is `word`. The place may be given to another key meanwhile, so the word is read again: user mode
 * takes it away, writes the patch, and writes the new one. Where it is the same, so is all but the address, which is the old or the new.
 */
static __always_inline bool dns_take_patch(const struct afpa_dns_pin *pin, __u32 place, __u64 word, struct dns_found *found)
{
	const volatile __u64 *patch;
	__u64 both;

	place += dns_nothing_of(word);
	patch = bpf_map_lookup_elem(&dns_patches, &place);
	if (!patch)
		return false;
	both = *patch;
	found->patch.address = both;
	found->patch.at = both >> 32;
	return *(volatile __u64 *)((void *)&pin->word + dns_nothing_of(both)) == word;
}

static __always_inline bool dns_find_tail(const struct afpa_dns_pin *pin, __u32 place, __u64 word, struct dns_found *found)
{
	__u32 number = word & ((1 << AFPA_DNS_TAIL_BITS) - 1);

	if (number & AFPA_DNS_PATCHED) {
		if (!dns_take_patch(pin, place, word, found))
			return false;
		number &= ~AFPA_DNS_PATCHED;
	}
	if (number < AFPA_DNS_SHORT_TAILS) {
		found->brief = bpf_map_lookup_elem(&dns_short_tails, &number);
		if (!found->brief)
			return false;
		DNS_TAKE_HEAD(found, found->brief);
		if (found->patch.at)
			found->sum = datagram_fold((__u64)found->sum + found->patch.address);
		return true;
	}
	number -= AFPA_DNS_SHORT_TAILS;
	found->whole = bpf_map_lookup_elem(&dns_tails, &number);
	if (!found->whole)
		return false;
	DNS_TAKE_HEAD(found, found->whole);
	return true;
}

/* The pinned answer to the question in the room, while its zone has a lease. */
static __always_inline enum afpa_dns_reason dns_look_up(const struct dns_room *room, struct dns_question *q, __u64 now,
							struct dns_found *found)
{
	__u32 place = room->hash.set * AFPA_DNS_WAYS, zone, zero = 0;
	__u64 word, *lease, *noticed;
	struct afpa_dns_pin *pin;

	lease = bpf_map_lookup_elem(&dns_patches, &place);
	if (lease)
		(void)*(volatile __u64 *)lease; /* it is on its way from here on */
	pin = dns_find_pin(&room->hash, &place);
	if (!pin)
		return AFPA_DNS_REASON_PASS_NOT_PINNED;
	word = dns_pinned_word(pin, &room->hash);
	if (!word)
		return AFPA_DNS_REASON_PASS_NOT_PINNED; /* nothing any more, or another key's by now */
	zone = word >> AFPA_DNS_TAIL_BITS & ((1 << AFPA_DNS_ZONE_BITS) - 1);
	lease = bpf_map_lookup_elem(&dns_zones, &zone);
	noticed = bpf_map_lookup_elem(&dns_noticed, &zero);
	if (!lease || !noticed)
		return AFPA_DNS_REASON_PASS_LEASE;
	/* DN7 The lease must be younger than any sign of a change. */
	if (now >= *(volatile __u64 *)lease || *(volatile __u64 *)lease < *(volatile __u64 *)noticed + AFPA_DNS_LEASE)
		return AFPA_DNS_REASON_PASS_LEASE;
	if (!dns_find_tail(pin, place, word, found))
		return AFPA_DNS_REASON_PASS_NOT_PINNED;
	return dns_fits(q, found, word >> (AFPA_DNS_TAIL_BITS + AFPA_DNS_ZONE_BITS) & ((1 << AFPA_DNS_RULE_BITS) - 1));
}

static __always_inline bool dns_put_tail(struct __sk_buff *skb, __u32 at, const struct dns_found *found)
{
	__u32 length = found->tail_length;

	if (!length)
		return true;
	asm volatile("" : "+r"(length)); /* the verifier has to see the bounds that the compiler knows */
	if (found->brief) {
		if (length - 1 >= AFPA_DNS_SHORT_MAX || bpf_skb_store_bytes(skb, at, found->brief->bytes, length, 0))
			return false;
		return !found->patch.at || !bpf_skb_store_bytes(skb, at + found->patch.at, &found->patch.address, 4, 0);
	}
	return found->whole && length - 1 < AFPA_DNS_TAIL_MAX && !bpf_skb_store_bytes(skb, at, found->whole->bytes, length, 0);
}

/* The answer, which is in the packet, and the question, which is in the room, for dnstap. */
static __noinline int dns_take_sample(struct __sk_buff *skb, struct dns_room *room, struct afpa_dns_client *client, __u64 lengths)
{
	__u32 udp_at = lengths >> 48, query = lengths & 0xffff, response = lengths >> 16 & 0xffff;
	struct afpa_dns_sample *sample = bpf_ringbuf_reserve(&dns_samples, sizeof(*sample), 0);

	if (!sample)
		return 0;
	if (query - 1 >= AFPA_DNS_QUERY_MAX || response - 1 >= AFPA_DNS_TAIL_ROOM ||
	    bpf_probe_read_kernel(sample->query, query, room->message) ||
	    bpf_skb_load_bytes(skb, udp_at + UDP_LENGTH, sample->response, response)) {
		bpf_ringbuf_discard(sample, BPF_RB_NO_WAKEUP);
		return 0;
	}
	__builtin_memcpy(sample->client, client->address, 16);
	sample->server = client->server;
	sample->port = lengths >> 32;
	sample->query_length = query;
	sample->response_length = response;
	bpf_ringbuf_submit(sample, 0);
	return 1;
}

/* Turns the packet round. TCX_NEXT: it is as it was, and goes up. */
static __always_inline int dns_send(struct __sk_buff *skb, struct dns_core *core, const struct datagram *d,
				    const struct dns_question *q, const struct dns_found *found,
				    const struct afpa_dns_config *config, struct afpa_dns_client *client)
{
	bool partial = skb_bits(skb, ip_summed) == DNS_CHECKSUM_PARTIAL;
	const struct dns_room *room = &core->room;
	void *frame = core->frame;
	__u32 at;

	at = d->udp_at + UDP_LENGTH + DNS_HEADER + q->name_length + DNS_TYPE_CLASS;
	if (bpf_skb_change_tail(skb, d->udp_at + found->length, 0)) {
		dns_count(core, AFPA_DNS_REASON_PASS_SEND);
		return TCX_NEXT;
	}
	if (!(d->ipv6 ? dns_turn_v6(skb, frame, room, d, q, found, partial) :
			dns_turn_v4(skb, frame, room, d, q, found, partial)) ||
	    !dns_put_tail(skb, at, found))
		goto failed;
	if (found->cookie && bpf_skb_store_bytes(skb, at + found->tail_length, core->option, DNS_WHOLE_OPTION, 0))
		goto failed;
	dns_count_answer(core, q->type, found->header[0]);
	if (config->sampled && bpf_get_prandom_u32() < config->sampled)
		dns_take_sample(skb, &core->room, client,
				(__u64)d->udp_at << 48 | (__u64)d->source_port << 32 |
					(__u64)(found->length - UDP_LENGTH) << 16 | (__u16)(d->length - UDP_LENGTH));
	return bpf_redirect(skb->ifindex, 0);
failed:
	dns_count(core, AFPA_DNS_REASON_DROP_SEND);
	return TCX_DROP;
}

#endif
