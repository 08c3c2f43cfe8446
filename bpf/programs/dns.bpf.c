/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * DNS: a server's answers to UDP queries, in the softirq in which the query arrived.
 *
 *     derive request -> derive cached response -> send response
 *
 * or up to the server with a numbered reason: *derive deferred response*. DNS.md has the walk and the rules.
 */
#include <afpa/dns/compare.h>

/* --- ingress --- */

static __always_inline int dns_pass(struct dns_core *core, enum afpa_dns_reason reason)
{
	dns_count(core, reason);
	return TCX_NEXT;
}

/* By what the server's answer to the query will be known. */
static __always_inline bool dns_watch_of(struct __sk_buff *skb, const struct datagram *d, const struct afpa_dns_client *client,
					 struct afpa_dns_watch *watch)
{
	watch->server = client->server;
	watch->port = d->source_port;
	__builtin_memcpy(watch->address, client->address, 16);
	return !bpf_skb_load_bytes(skb, d->udp_at + UDP_LENGTH, &watch->id, 2);
}

/* The query goes up though its answer is pinned. */
static __always_inline void dns_remember(struct __sk_buff *skb, struct dns_room *room, const struct datagram *d,
					 const struct afpa_dns_client *client, const struct dns_question *q, __u64 now)
{
	struct afpa_dns_watched watched = {
		.hash = room->hash,
		.type = q->type,
		.name_length = q->name_length,
		.bits = q->bits,
		.since = now >> DNS_MARK_SHIFT,
	};
	struct afpa_dns_watch watch = {};
	__u32 *mark;

	if (!dns_watch_of(skb, d, client, &watch) || !dns_is_sound(skb, room, d))
		return;
	bpf_map_update_elem(&dns_watches, &watch, &watched, BPF_ANY);
	mark = dns_mark_of(client->address, d->source_port);
	if (mark)
		*mark = watched.since;
}

/* Another query goes up: the answer to it must not be taken for that to one before with the same id. */
static __always_inline int dns_pass_other(struct __sk_buff *skb, struct dns_core *core, const struct datagram *d,
					  const struct afpa_dns_client *client, enum afpa_dns_reason reason, __u64 now)
{
	struct afpa_dns_watch watch = {};

	if (dns_is_marked(client->address, d->source_port, now) && dns_watch_of(skb, d, client, &watch) &&
	    bpf_map_lookup_elem(&dns_watches, &watch))
		bpf_map_delete_elem(&dns_watches, &watch);
	return dns_pass(core, reason);
}

static __always_inline bool dns_is_address(const struct afpa_dns_address *known, const __u32 *address)
{
	const __u32 *words = (const __u32 *)known->address;

	return !((words[0] ^ address[0]) | (words[1] ^ address[1]) | (words[2] ^ address[2]) | (words[3] ^ address[3]));
}

/* The number of a served address. Most servers have one or two. */
static __always_inline bool dns_served(const struct afpa_dns_config *config, const __u32 *address, __u32 *number)
{
	struct afpa_dns_address key;
	__u32 *found;

	for (*number = 0; *number < 2; *number += 1) {
		if (dns_is_address(&config->first[*number], address))
			return true;
	}
	put_address(key.address, address);
	found = bpf_map_lookup_elem(&dns_servers, &key);
	if (found)
		*number = *found;
	return found;
}

/* Reads the query into the room, and derives its question. */
static __always_inline enum afpa_dns_reason dns_read(struct __sk_buff *skb, struct dns_room *room, const struct datagram *d,
						     struct dns_question *q)
{
	__u32 length = d->length - UDP_LENGTH;

	if (!d->plain || skb->pkt_type != PACKET_HOST || skb_field(skb, dev, rx_handler))
		return AFPA_DNS_REASON_PASS_PACKET;
	if (bpf_ntohs(d->source_port) < 1024)
		return AFPA_DNS_REASON_PASS_PORT;
	if (!d->check)
		return AFPA_DNS_REASON_PASS_CHECKSUM;
	asm volatile("" : "+r"(length)); /* the verifier has to see the bounds that the compiler knows */
	if (length < DNS_SMALLEST || length > AFPA_DNS_QUERY_MAX - UDP_LENGTH ||
	    bpf_skb_load_bytes(skb, d->udp_at + UDP_LENGTH, room->message, length))
		return AFPA_DNS_REASON_PASS_LENGTH;
	return dns_derive(room, length, q);
}

/* Seconds since 1970. */
static __always_inline __u32 dns_seconds(const struct afpa_dns_config *config, __u64 now)
{
	return (now + *(volatile __u64 *)&config->wall) / 1000000000;
}

SEC("tcx/ingress")
int afpa_dns_ingress(struct __sk_buff *skb)
{
	struct afpa_dns_client client = {};
	struct afpa_dns_config *config;
	struct afpa_dns_seed *seed;
	enum afpa_dns_reason reason;
	struct dns_found found = {};
	struct dns_question q = {};
	struct datagram d = {};
	struct dns_core *core;
	__u32 zero = 0;
	__u64 now;

	config = bpf_map_lookup_elem(&dns_configs, &zero);
	if (!config || !parse_datagram(skb, &d, bpf_htons(config->port)) || d.destination_port != bpf_htons(config->port) ||
	    !dns_served(config, d.destination, &client.server))
		return TCX_NEXT;
	core = dns_core();
	seed = bpf_map_lookup_elem(&dns_seeds, &zero);
	if (!core || !seed)
		return TCX_NEXT;
	now = bpf_ktime_get_coarse_ns();
	if (now >= *(volatile __u64 *)&config->until)
		return dns_pass(core, AFPA_DNS_REASON_PASS_NO_HEARTBEAT);
	put_address(client.address, d.source);
	q.knows_cookies = config->knows_cookies;
	reason = dns_read(skb, &core->room, &d, &q);
	if (reason != AFPA_DNS_REASON_ANSWERED)
		goto other;
	if (q.opt_length > DNS_OPT + DNS_COOKIE) {
		q.proven = dns_cookie_proves(&q, config->cookie_secret, dns_seconds(config, now), d.source, d.ipv6);
		reason = AFPA_DNS_REASON_PASS_COOKIE;
		if (!q.proven)
			goto other;
	}
	dns_hash_question(&core->room, &q, client.server, seed);
	reason = dns_look_up(&core->room, &q, now, &found);
	if (reason == AFPA_DNS_REASON_PASS_NOT_PINNED)
		dns_tell_missed(core, now);
	if (reason != AFPA_DNS_REASON_ANSWERED)
		goto other;
	reason = dns_find_way(skb, &client, d.ipv6, config, now, &found.way);
	if (reason == AFPA_DNS_REASON_ANSWERED && !q.proven && !dns_within_budget(&client, d.ipv6, config, now))
		reason = AFPA_DNS_REASON_PASS_RATE;
	if (reason != AFPA_DNS_REASON_ANSWERED) {
		dns_remember(skb, &core->room, &d, &client, &q, now);
		return dns_pass(core, reason);
	}
	if (found.cookie)
		found.option_sum = dns_make_cookie(&q, config->cookie_secret, dns_seconds(config, now), d.source, d.ipv6,
						   core->option);
	return dns_send(skb, core, &d, &q, &found, config, &client);
other:
	return dns_pass_other(skb, core, &d, &client, reason, now);
}

/* --- egress --- */

/* The header of a message, which mostly lies in the packet's first piece. */
static __always_inline bool dns_read_header(struct __sk_buff *skb, const struct datagram *d, struct dns_header *header)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	const struct dns_header *there = data + d->udp_at + UDP_LENGTH;

	if ((void *)(there + 1) > end)
		return !bpf_skb_load_bytes(skb, d->udp_at + UDP_LENGTH, header, sizeof(*header));
	*header = *there;
	return true;
}

SEC("tcx/egress")
int afpa_dns_egress(struct __sk_buff *skb)
{
	struct afpa_dns_client client = {};
	struct afpa_dns_watch watch = {};
	struct afpa_dns_config *config;
	struct dns_header header;
	struct datagram d = {};
	struct dns_core *core;
	__u32 zero = 0, kind;
	__u64 now;

	if (skb->ingress_ifindex)
		return TCX_NEXT; /* made here of a query, or forwarded */
	config = bpf_map_lookup_elem(&dns_configs, &zero);
	if (!config || !parse_datagram(skb, &d, bpf_htons(config->port)) || d.length < UDP_LENGTH + DNS_HEADER ||
	    !dns_read_header(skb, &d, &header))
		return TCX_NEXT;
	core = dns_core();
	if (!core)
		return TCX_NEXT;
	kind = bpf_ntohs(header.flags) & (DNS_QR | DNS_OPCODE);
	if (d.destination_port == bpf_htons(config->port) && kind == DNS_NOTIFY)
		dns_notice(core);
	if (d.source_port != bpf_htons(config->port) || !dns_served(config, d.source, &client.server) || !(kind & DNS_QR))
		return TCX_NEXT;
	if ((kind == (DNS_QR | DNS_NOTIFY) || kind == (DNS_QR | DNS_UPDATE)) && !(bpf_ntohs(header.flags) & DNS_RCODE))
		dns_notice(core);
	now = bpf_ktime_get_coarse_ns();
	put_address(client.address, d.destination);
	dns_prove_way(skb, &client, d.ipv6, *(volatile __u32 *)&config->next_hops, now);
	if (!dns_is_marked(client.address, d.destination_port, now))
		return TCX_NEXT;
	__builtin_memcpy(watch.address, client.address, 16);
	watch.server = client.server;
	watch.port = d.destination_port;
	watch.id = header.id;
	dns_compare(skb, core, &d, &header, &watch, now);
	return TCX_NEXT;
}
