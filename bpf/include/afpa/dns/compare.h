/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The server's own answers, as they leave.
 *
 *  DN8 A query that goes up though its answer is pinned is remembered, and the server's answer to it compared. A difference drops the
 *       pinned one at once, and the programs report it. Anybody can send two queries with one id, of which the server answers only one:
 *       so queries whose checksum is wrong are not remembered, the next one from there is forgotten about, and an answer is compared
 *       only if it has the question that was remembered, within two seconds. A cut answer says nothing: the server's rate limit cuts any.
 *  DN7 A NOTIFY that leaves (a primary has reloaded), and a NOTIFY or UPDATE that the server accepts, end all leases until the next poll.
 */
#ifndef AFPA_DNS_COMPARE_H
#define AFPA_DNS_COMPARE_H

#include <afpa/dns/respond.h>

#define DNS_QR 0x8000
#define DNS_TC 0x0200
#define DNS_OPCODE 0x7800
#define DNS_NOTIFY 0x2000
#define DNS_UPDATE 0x2800
#define DNS_RCODE 0x000f

/* Some zone has changed, or may have. */
static __always_inline void dns_notice(struct dns_core *core)
{
	__u64 *noticed, now = bpf_ktime_get_ns();
	__u32 zero = 0;

	noticed = bpf_map_lookup_elem(&dns_noticed, &zero);
	if (noticed)
		*(volatile __u64 *)noticed = now;
	dns_count(core, AFPA_DNS_REASON_NOTIFIED);
	core->room.name_length = 0;
	dns_tell(core, AFPA_DNS_NOTIFIED);
}

struct dns_comparison {
	struct __sk_buff *skb;
	const struct dns_found *found;
	__u32 from, at;
	bool differs;
};

/* A patch's address as it lies in a word of a tail, `behind` bytes behind the word's beginning. */
static __always_inline __u64 dns_patch_of(const struct dns_found *found, __s32 behind)
{
	if (!found->patch.at || behind >= 8 || behind <= -4)
		return 0;
	return behind >= 0 ? (__u64)found->patch.address << 8 * behind : (__u64)found->patch.address >> -8 * behind;
}

/* The next 16 bytes, or what is left of them. */
static long dns_compare_some(__u32 index, struct dns_comparison *c)
{
	__u32 at = c->at, left = c->found->tail_length - at;
	__u64 theirs[2] = {}, ours[2] = {};

	if (c->found->tail_length <= at)
		return 1;
	if (left > 16)
		left = 16;
	left = ((left - 1) & 15) + 1;
	c->at = at + 16;
	c->differs = true;
	if (bpf_skb_load_bytes(c->skb, c->from + at, theirs, left))
		return 1;
	if (c->found->brief) {
		if (at > AFPA_DNS_SHORT_MAX - 16)
			return 1;
		bpf_probe_read_kernel(ours, left, c->found->brief->bytes + at);
		ours[0] |= dns_patch_of(c->found, (__s32)(c->found->patch.at - at));
		ours[1] |= dns_patch_of(c->found, (__s32)(c->found->patch.at - at) - 8);
	} else {
		if (!c->found->whole || at > AFPA_DNS_TAIL_ROOM - 16)
			return 1;
		bpf_probe_read_kernel(ours, left, c->found->whole->bytes + at);
	}
	c->differs = theirs[0] != ours[0] || theirs[1] != ours[1];
	return c->differs;
}

/* Is the checksum of the query right? A datagram with a wrong one does not reach the server. The room's message is none after that. */
static __always_inline bool dns_is_sound(struct __sk_buff *skb, struct dns_room *room, const struct datagram *d)
{
	__u64 pseudo = (__u64)bpf_htons(IPPROTO_UDP) + bpf_htons(d->length);
	__u32 length = d->length;
	__s64 sum;

	if (skb_bits(skb, ip_summed) == CHECKSUM_PARTIAL)
		return true; /* it never was on a wire */
	asm volatile("" : "+r"(length)); /* the verifier has to see the bounds that the compiler knows */
	if (length - 1 >= AFPA_DNS_QUERY_MAX || bpf_skb_load_bytes(skb, d->udp_at, room->message, length))
		return false;
	*(__u32 *)(room->message + length) = 0;
	for (int i = d->ipv6 ? 0 : 3; i < 4; i++)
		pseudo += (__u64)d->source[i] + d->destination[i];
	sum = bpf_csum_diff(0, 0, (__be32 *)room->message, (length + 3) & ~3, 0);
	return sum >= 0 && datagram_fold((__u64)sum + pseudo) == 0xffff;
}

/* Is the question of the message at `at` the one that was remembered? It lies in the room then. */
static __always_inline bool dns_has_question(struct __sk_buff *skb, __u32 at, struct dns_room *room, const struct dns_header *h,
					     const struct afpa_dns_watched *watched, __u32 server)
{
	struct afpa_dns_seed *seed;
	__u32 length = DNS_HEADER + watched->name_length + DNS_TYPE_CLASS, zero = 0;
	__u16 *end;

	seed = bpf_map_lookup_elem(&dns_seeds, &zero);
	asm volatile("" : "+r"(length));
	if (!seed || h->questions != bpf_htons(1) ||
	    !!(h->flags & bpf_htons(DNS_RD)) != !!(watched->bits & AFPA_DNS_RD) || length < DNS_SMALLEST ||
	    length > DNS_HEADER + AFPA_DNS_NAME_MAX + DNS_TYPE_CLASS || bpf_skb_load_bytes(skb, at, room->message, length))
		return false;
	end = (__u16 *)(room->message + length - DNS_TYPE_CLASS);
	if (end[0] != watched->type || end[1] != bpf_htons(1))
		return false;
	room->type = watched->type;
	room->name_length = watched->name_length;
	room->bits = watched->bits;
	room->server = server;
	dns_hash(room, seed);
	return room->hash.check == watched->hash.check && room->hash.set == watched->hash.set && room->hash.mark == watched->hash.mark;
}

static __always_inline void dns_compare(struct __sk_buff *skb, struct dns_core *core, const struct datagram *d,
					const struct dns_header *h, const struct afpa_dns_watch *watch, __u64 now)
{
	struct afpa_dns_watched *remembered = bpf_map_lookup_elem(&dns_watches, watch), watched;
	struct dns_found found = {};
	struct dns_comparison c = { .skb = skb, .found = &found };
	struct afpa_dns_pin *pin;
	__u32 at, place = 0;
	__u64 word;

	if (!remembered)
		return;
	watched = *remembered;
	if ((__u32)(now >> DNS_MARK_SHIFT) - watched.since > DNS_MARK_LIFE)
		return; /* queries after it may have been let through without a look here */
	if ((h->flags & bpf_htons(DNS_TC)) ||
	    !dns_has_question(skb, d->udp_at + UDP_LENGTH, &core->room, h, &watched, watch->server))
		return;
	bpf_map_delete_elem(&dns_watches, watch);
	pin = dns_find_pin(&watched.hash, &place);
	word = pin ? dns_pinned_word(pin, &watched.hash) : 0;
	if (!word || !dns_find_tail(pin, place, word, &found))
		return;
	at = UDP_LENGTH + DNS_HEADER + watched.name_length + DNS_TYPE_CLASS;
	c.from = d->udp_at + at;
	if (found.takes_cookie && (watched.bits & AFPA_DNS_COOKIE))
		at += DNS_WHOLE_OPTION; /* another one for each client, which the server makes as the programs do */
	c.differs = d->length != at + found.tail_length || ((h->flags ^ found.header[0]) & ~bpf_htons(DNS_RD)) ||
		    h->answers != found.header[1] || h->authorities != found.header[2] || h->additionals != found.header[3];
	if (!c.differs)
		bpf_loop(AFPA_DNS_TAIL_MAX / 16, dns_compare_some, &c, 0);
	if (!c.differs) {
		dns_count(core, AFPA_DNS_REASON_SAME);
		return;
	}
	/* Unless user mode has pinned another one there meanwhile. */
	__sync_val_compare_and_swap(&pin->word, word, 0);
	dns_count(core, AFPA_DNS_REASON_DIFFERENT);
	dns_tell(core, AFPA_DNS_DIFFERED);
}

#endif
