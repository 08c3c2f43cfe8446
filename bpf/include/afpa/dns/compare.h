/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The server's own answers, as they leave.
 *
 *  DN8 A query that goes up though its answer is pinned is remembered, and the server's answer to it compared. A difference drops the
 *       pinned one at once, and the programs report it. Anybody can send two queries with one id, of which the server answers only one:
 *       so queries whose checksum is wrong are not remembered, the next one from there is forgotten about, and an answer is compared
 *       only if it has the question that was remembered. A cut answer says nothing: the server's rate limit cuts any.
 *  DN7 A NOTIFY that leaves (a primary has reloaded), and a NOTIFY or UPDATE that the server accepts, end all leases until the next poll.
 */
#ifndef AFPA_DNS_COMPARE_H
#define AFPA_DNS_COMPARE_H

#include <afpa/dns/derive.h>
#include <afpa/dns/way.h>

#define DNS_QR 0x8000
#define DNS_TC 0x0200
#define DNS_OPCODE 0x7800
#define DNS_NOTIFY 0x2000
#define DNS_UPDATE 0x2800
#define DNS_RCODE 0x000f

/* Some zone has changed, or may have. */
static __always_inline void dns_notice(void)
{
	__u64 *noticed, now = bpf_ktime_get_ns();
	struct afpa_dns_key none = {};
	__u32 zero = 0;

	noticed = bpf_map_lookup_elem(&dns_noticed, &zero);
	if (noticed)
		*(volatile __u64 *)noticed = now;
	dns_count(AFPA_DNS_REASON_NOTIFIED);
	dns_tell(&none, AFPA_DNS_NOTIFIED);
}

struct dns_comparison {
	struct __sk_buff *skb;
	struct afpa_dns_tail *tail;
	__u32 from, at;
	bool differs;
};

/* The next 64 bytes; zeros lie behind the pinned ones. */
static long dns_compare_some(__u32 index, struct dns_comparison *c)
{
	__u64 bytes[8] = {}, different = 0, *pinned;
	__u32 at = c->at, left = c->tail->length - at;

	if (c->tail->length <= at || at > AFPA_DNS_TAIL_ROOM - 64)
		return 1;
	if (left > 64)
		left = 64;
	pinned = (__u64 *)(c->tail->bytes + at);
	if (bpf_skb_load_bytes(c->skb, c->from + at, bytes, ((left - 1) & 63) + 1)) {
		c->differs = true;
		return 1;
	}
	for (int i = 0; i < 8; i++)
		different |= bytes[i] ^ pinned[i];
	c->differs |= different != 0;
	c->at = at + 64;
	return different != 0;
}

/* Is the checksum of the query right? A datagram with a wrong one does not reach the server. */
static __always_inline bool dns_is_sound(struct __sk_buff *skb, const struct datagram *d)
{
	__u32 zero = 0, length = d->length;
	struct dns_room *room = bpf_map_lookup_elem(&dns_rooms, &zero);
	__u64 pseudo = (__u64)bpf_htons(IPPROTO_UDP) + bpf_htons(d->length);
	__s64 sum;

	if (skb_bits(skb, ip_summed) == CHECKSUM_PARTIAL)
		return true; /* it never was on a wire */
	asm volatile("" : "+r"(length)); /* the verifier has to see the bounds that the compiler knows */
	if (!room || length - 1 >= AFPA_DNS_QUERY_MAX)
		return false;
	__builtin_memset(room, 0, sizeof(*room));
	if (bpf_skb_load_bytes(skb, d->udp_at, room->bytes, length))
		return false;
	for (int i = d->ipv6 ? 0 : 3; i < 4; i++)
		pseudo += (__u64)d->source[i] + d->destination[i];
	sum = bpf_csum_diff(0, 0, (__be32 *)room->bytes, (length + 3) & ~3, 0);
	return sum >= 0 && datagram_fold((__u64)sum + pseudo) == 0xffff;
}

/* Is this the question of the key? */
static __always_inline bool dns_has_question(struct __sk_buff *skb, __u32 at, const struct dns_header *h, const struct afpa_dns_key *key)
{
	__u64 name[AFPA_DNS_NAME_MAX / 8] = {}, different = 0;
	const __u64 *own = (const __u64 *)key->name;
	__u32 length = key->name_length;
	__u16 end[2];

	asm volatile("" : "+r"(length));
	if (h->questions != bpf_htons(1) || !!(h->flags & bpf_htons(DNS_RD)) != !!(key->bits & AFPA_DNS_RD) ||
	    length - 1 >= AFPA_DNS_NAME_MAX || bpf_skb_load_bytes(skb, at, name, length) ||
	    bpf_skb_load_bytes(skb, at + length, end, sizeof(end)))
		return false;
	for (int i = 0; i < AFPA_DNS_NAME_MAX / 8; i++)
		different |= dns_lower(name[i]) ^ own[i];
	return !different && end[0] == key->type && end[1] == bpf_htons(1);
}

static __always_inline void dns_compare(struct __sk_buff *skb, const struct datagram *d, const struct dns_header *h,
					const struct afpa_dns_watch *watch)
{
	struct dns_comparison c = { .skb = skb };
	struct afpa_dns_key *found = bpf_map_lookup_elem(&dns_watches, watch), key;
	__u32 number, at;
	__u64 *value;

	if (!found)
		return;
	key = *found;
	if ((h->flags & bpf_htons(DNS_TC)) || !dns_has_question(skb, d->udp_at + UDP_LENGTH + DNS_HEADER, h, &key))
		return;
	bpf_map_delete_elem(&dns_watches, watch);
	value = bpf_map_lookup_elem(&dns_keys, &key);
	number = value ? *value & ((1 << AFPA_DNS_TAIL_BITS) - 1) : 0;
	c.tail = value ? bpf_map_lookup_elem(&dns_tails, &number) : NULL;
	if (!c.tail)
		return;
	at = UDP_LENGTH + DNS_HEADER + key.name_length + DNS_TYPE_CLASS;
	c.from = d->udp_at + at;
	if (c.tail->cookie && (key.bits & AFPA_DNS_COOKIE))
		at += DNS_WHOLE_OPTION; /* another one for each client, which the server makes as the programs do */
	c.differs = d->length != at + c.tail->length || ((h->flags ^ c.tail->header[0]) & ~bpf_htons(DNS_RD)) ||
		    h->answers != c.tail->header[1] || h->authorities != c.tail->header[2] ||
		    h->additionals != c.tail->header[3];
	if (!c.differs)
		bpf_loop(AFPA_DNS_TAIL_ROOM / 64, dns_compare_some, &c, 0);
	if (!c.differs) {
		dns_count(AFPA_DNS_REASON_SAME);
		return;
	}
	bpf_map_delete_elem(&dns_keys, &key);
	dns_count(AFPA_DNS_REASON_DIFFERENT);
	dns_tell(&key, AFPA_DNS_DIFFERED);
}

#endif
