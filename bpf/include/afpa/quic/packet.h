/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The plain bytes of a packet of QUIC (RFC 8999; RFC 9000, 17.2), and whom it is for.
 */
#ifndef AFPA_QUIC_PACKET_H
#define AFPA_QUIC_PACKET_H

#include <afpa/quic/maps.h>

#define QUIC_LONG 0x80
#define QUIC_FIXED 0x40
#define QUIC_TYPE 0x30
#define QUIC_VERSION 1
#define QUIC_READ 160        /* bytes of an Initial that are read: all before its length, with the longest token of ours */
#define QUIC_HEAD 14         /* of a packet with an id of ours in a long header, up to the end of that id */

enum quic_kind {
	QUIC_KIND_INITIAL,
	QUIC_KIND_EARLY,   /* 0-RTT */
	QUIC_KIND_GOES_ON, /* a short header or Handshake: begins no connection, and is sent to an id of the server's */
	QUIC_KIND_VERSION, /* of another version */
	QUIC_KIND_NONE,    /* one that no client sends */
};

/* A packet whose beginning is in `work->in`. */
struct quic_packet {
	enum quic_kind kind;
	__u32 length;        /* of the first datagram */
	__u32 id_length;     /* of the id that it is sent to */
	__u32 id_at;         /* where an id of ours would stand; 0: it has none */
};

/* Is the datagram for an address that this host has and serves? One that is forwarded to another is not. */
static __always_inline bool quic_is_here(const struct datagram *d)
{
	struct afpa_quic_address key = { .port = bpf_ntohs(d->destination_port) };

	for (int i = 0; i < 4; i++)
		QUIC_U32(key.address + 4 * i) = d->destination[i];
	return bpf_map_lookup_elem(&quic_addresses, &key);
}

/* Would the kernel give the datagram to a socket of ours? */
static __always_inline bool quic_is_ours(struct __sk_buff *skb, const struct datagram *d)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *found;
	bool ours;

	if (d->ipv6) {
		for (int i = 0; i < 4; i++) {
			tuple.ipv6.saddr[i] = d->source[i];
			tuple.ipv6.daddr[i] = d->destination[i];
		}
		tuple.ipv6.sport = d->source_port;
		tuple.ipv6.dport = d->destination_port;
		found = bpf_sk_lookup_udp(skb, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	} else {
		tuple.ipv4.saddr = d->source[3];
		tuple.ipv4.daddr = d->destination[3];
		tuple.ipv4.sport = d->source_port;
		tuple.ipv4.dport = d->destination_port;
		found = bpf_sk_lookup_udp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	}
	if (!found)
		return false;
	ours = bpf_sk_storage_get(&quic_sockets, found, 0, 0);
	bpf_sk_release(found);
	return ours;
}

/* A client may clear the bit that is fixed in packets of the first version (RFC 9287), so nothing depends on it. */
static __always_inline enum quic_kind quic_long_kind(const __u8 *head)
{
	if (QUIC_U32(head + 1) == 0)
		return QUIC_KIND_NONE; /* versions, which only servers negotiate */
	if (QUIC_U32(head + 1) != bpf_htonl(QUIC_VERSION))
		return QUIC_KIND_VERSION;
	switch (head[0] & QUIC_TYPE) {
	case 0x00:
		return QUIC_KIND_INITIAL;
	case 0x10:
		return QUIC_KIND_EARLY;
	case 0x30:
		return QUIC_KIND_NONE; /* a Retry, of a server */
	default:
		return QUIC_KIND_GOES_ON;
	}
}

/* Reads the beginning of the (first) datagram. False: it is shorter than any packet. */
static __always_inline bool quic_read(struct __sk_buff *skb, struct quic_work *work, const struct datagram *d, struct quic_packet *p)
{
	const __u8 *head = work->in;

	p->length = skb->gso_size && skb->gso_size < d->length - UDP_LENGTH ? skb->gso_size : d->length - UDP_LENGTH;
	if (p->length < AFPA_QUIC_SHORTEST || bpf_skb_load_bytes(skb, d->udp_at + UDP_LENGTH, work->in, QUIC_HEAD))
		return false;
	if (!(head[0] & QUIC_LONG)) {
		p->kind = QUIC_KIND_GOES_ON;
		p->id_at = 1;
		return true;
	}
	p->kind = quic_long_kind(head);
	p->id_length = head[5];
	p->id_at = head[5] == AFPA_QUIC_ID ? 6 : 0;
	return true;
}

/* Is the packet sent to an id of ours? One that a Retry gave is none of them. */
static __always_inline bool quic_has_own_id(const struct afpa_quic_config *config, struct quic_work *work, const struct quic_packet *p)
{
	const __u8 *id = quic_at(work->in, p->id_at);

	if (!p->id_at)
		return false;
	if (quic_is_place(quic_place(config->id_keys, id)))
		return true;
	if (config->id_keys[2] == config->id_keys[0] && config->id_keys[3] == config->id_keys[1])
		return false;
	return quic_is_place(quic_place(config->id_keys + 2, id));
}

static __always_inline bool quic_has_retry_id(const struct afpa_quic_config *config, struct quic_work *work, const struct quic_packet *p)
{
	return p->id_at && quic_is_of_retry(config->retry_key, quic_at(work->in, p->id_at));
}

/* Has the client's longest prefix a rule that denies? */
static __always_inline bool quic_is_denied(const struct datagram *d)
{
	struct afpa_quic_prefix key = {};
	__u32 *rule;

	if (d->ipv6) {
		key.bits = 32 + 128;
		key.family = 6;
		for (int i = 0; i < 4; i++)
			QUIC_U32(key.address + 4 * i) = d->source[i];
	} else {
		key.bits = 32 + 32;
		key.family = 4;
		QUIC_U32(key.address) = d->source[3];
	}
	rule = bpf_map_lookup_elem(&quic_rules, &key);
	return rule && *rule == AFPA_QUIC_DENY;
}

/* An address that no client has: the kernel's routing drops what comes from one. */
static __always_inline bool quic_is_martian(const struct datagram *d)
{
	__u8 first = d->ipv6 ? *(const __u8 *)d->source : *(const __u8 *)&d->source[3];
	bool own = true;

	for (int i = 0; i < 4; i++)
		own = own && d->source[i] == d->destination[i];
	if (own || !d->source_port)
		return true;
	return d->ipv6 ? first == 0xff : first == 0 || first == 127 || first >= 224;
}

/* Of its link alone (fe80::/10)? Sockets tell links apart, tokens do not. */
static __always_inline bool quic_is_link_local(const struct datagram *d)
{
	return d->ipv6 && (d->source[0] & bpf_htonl(0xffc00000)) == bpf_htonl(0xfe800000);
}

#endif
