/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QUIC: in a flood of first packets, their answers in the softirq in which they arrived. The server's sockets get only what
 * belongs to a connection, or to a client that has shown that its address is its own.
 *
 *     a first packet -> does its token hold? -> up to the server, or a Retry, which gives the client a token
 *     another packet -> is its id one of ours? -> up to the server, or dropped
 *
 * Without a flood all goes up, and what is done here is to count first packets: no client pays a round trip.
 *
 *  RT4 A flood is a rate of Initials on a processor, with tokens or without. It lasts until so long after it that clients have sent
 *      again what was lost of theirs.
 *  RT5 A packet to an id of ours goes up: connections that began before a flood end their handshakes in it. Somebody may have learnt
 *      an id, so Initials to one without a token that holds go up at a rate of their own. An id that a Retry gave is none of those,
 *      nor is anything that can be made of it: clients send to it an Initial with a token and 0-RTT, which has a rate, too, and no
 *      other packet (RFC 9000, 7.2).
 *  RT6 A token that does not hold is answered like none (RFC 9000, 8.1.3): it may be one of NEW_TOKEN, which only the server reads.
 *  RT7 Sockets are served, and not addresses: nothing is dropped or answered that the kernel would give to another socket than ours,
 *      or to another host.
 */
#include <afpa/quic/packet.h>
#include <afpa/quic/reply.h>

#define QUIC_SECOND 1000000000ULL
#define QUIC_LINGERS (5ULL << 30) /* ns: 5.4 s; clients send an Initial again after 1 s, and then after 2 (RFC 9002, 6.2) */

/* One more Initial: is there a flood? It begins at the rate, and goes on at half of it. */
static __always_inline bool quic_is_flood(struct quic_load *load, const struct afpa_quic_config *config, __u64 now)
{
	__u32 flood = *(volatile __u32 *)&config->flood;
	bool lasts = now < load->until;

	if (!flood)
		return false;
	if (load->window != now >> AFPA_QUIC_WINDOW_SHIFT) {
		load->window = now >> AFPA_QUIC_WINDOW_SHIFT;
		load->count = load->known = load->early = 0;
	}
	load->count++;
	if (load->count < (lasts ? flood - flood / 2 : flood))
		return lasts;
	if (!lasts)
		quic_count(AFPA_QUIC_REASON_FLOOD);
	load->until = now + QUIC_LINGERS;
	return true;
}

/* May one more Initial go up without a token, in this window? */
static __always_inline bool quic_may_pass(struct quic_load *load, const struct afpa_quic_config *config)
{
	return load->known++ < *(volatile __u32 *)&config->known;
}

/* May one more packet of 0-RTT go up to an id that a Retry gave? */
static __always_inline bool quic_may_be_early(struct quic_load *load, const struct afpa_quic_config *config)
{
	return load->early++ < *(volatile __u32 *)&config->early;
}

/* Does it bear a token that holds? */
__noinline int afpa_quic_has_token(struct quic_work *work, const struct datagram *d, __u64 second)
{
	const struct afpa_quic_config *config;
	__u32 zero = 0, at, length;
	struct quic_client client;

	config = bpf_map_lookup_elem(&quic_configs, &zero);
	if (!work || !d || !config || work->in[5] > AFPA_QUIC_ID_MAX)
		return 0;
	client = (struct quic_client){ .address = d->source, .port = d->source_port };
	at = 6 + work->in[5];
	length = *quic_at(work->in, at);
	if (length > AFPA_QUIC_ID_MAX)
		return 0;
	at += 1 + length;
	length = *quic_at(work->in, at);
	at++;
	if ((length & 0xc0) == 0x40) { /* a length in two bytes (RFC 9000, 16) */
		length = (length & 0x3f) << 8 | *quic_at(work->in, at);
		at++;
	}
	if (!length)
		return 0;
	if (quic_token_holds(config, work->in, at, length, &client, second))
		return 1;
	quic_count(AFPA_QUIC_REASON_BAD_TOKEN);
	return 0;
}

/* An Initial, in a flood. */
static __always_inline enum afpa_quic_reason quic_on_initial(const struct afpa_quic_config *config, struct quic_work *work,
							     struct quic_load *load, const struct datagram *d,
							     const struct quic_packet *p, bool own, __u64 second)
{
	if (afpa_quic_has_token(work, d, second))
		return AFPA_QUIC_REASON_PASS_TOKEN;
	if (own && quic_may_pass(load, config))
		return AFPA_QUIC_REASON_PASS_KNOWN;
	if (quic_is_link_local(d))
		return quic_may_pass(load, config) ? AFPA_QUIC_REASON_PASS_KNOWN : AFPA_QUIC_REASON_DROP_UNFIT;
	if (p->id_length < AFPA_QUIC_ID || p->id_length > AFPA_QUIC_ID_MAX || quic_is_martian(d))
		return AFPA_QUIC_REASON_DROP_UNFIT;
	return quic_has_token_key(config, second) ? AFPA_QUIC_REASON_RETRY : AFPA_QUIC_REASON_PASS_NO_HEARTBEAT;
}

/* What becomes of a packet for an address that is served? */
static __always_inline enum afpa_quic_reason quic_judge(struct __sk_buff *skb, const struct afpa_quic_config *config,
							 struct quic_work *work, struct quic_load *load, const struct datagram *d,
							 const struct quic_packet *p, __u64 now)
{
	__u64 second = (now + *(volatile __u64 *)&config->wall) / QUIC_SECOND;
	bool flood = now < load->until, denied = false, own;

	if (p->kind == QUIC_KIND_INITIAL) {
		if (p->length < AFPA_QUIC_LEAST)
			return AFPA_QUIC_REASON_DROP_LITTLE_INITIAL;
		flood = quic_is_flood(load, config, now);
		denied = *(volatile __u32 *)&config->rules && quic_is_denied(d);
	}
	if (!flood && !denied)
		return AFPA_QUIC_REASON_PASS_CALM;
	own = quic_has_own_id(config, work, p);
	if (p->kind == QUIC_KIND_EARLY && !own && quic_has_retry_id(config, work, p))
		return quic_may_be_early(load, config) ? AFPA_QUIC_REASON_PASS_KNOWN : AFPA_QUIC_REASON_DROP_EARLY;
	if (p->kind == QUIC_KIND_GOES_ON || p->kind == QUIC_KIND_EARLY)
		return own ? AFPA_QUIC_REASON_PASS_KNOWN : AFPA_QUIC_REASON_DROP_UNKNOWN_ID;
	if (denied && !own)
		return AFPA_QUIC_REASON_DROP_DENIED;
	if (!flood)
		return AFPA_QUIC_REASON_PASS_CALM;
	if (p->kind == QUIC_KIND_NONE || p->length < AFPA_QUIC_LEAST ||
	    bpf_skb_load_bytes(skb, d->udp_at + UDP_LENGTH, work->in, QUIC_READ))
		return AFPA_QUIC_REASON_DROP_UNFIT;
	if (p->kind == QUIC_KIND_INITIAL)
		return quic_on_initial(config, work, load, d, p, own, second);
	return quic_is_martian(d) ? AFPA_QUIC_REASON_DROP_UNFIT : AFPA_QUIC_REASON_VERSIONS;
}

static __always_inline bool quic_goes_up(enum afpa_quic_reason reason)
{
	return reason >= AFPA_QUIC_REASON_PASS_CALM && reason <= AFPA_QUIC_REASON_PASS_OTHER_SOCKET;
}

/* Answers the packet. */
static __always_inline int quic_answer(struct __sk_buff *skb, const struct afpa_quic_config *config, struct quic_work *work,
				       const struct datagram *d, enum afpa_quic_reason reason, __u64 now)
{
	__u64 second = (now + *(volatile __u64 *)&config->wall) / QUIC_SECOND;
	bool made;

	made = reason == AFPA_QUIC_REASON_RETRY ? afpa_quic_make_retry(work, d, second) :
						  quic_make_versions(work);
	if (!made) {
		quic_count(AFPA_QUIC_REASON_DROP_UNFIT);
		return TCX_DROP;
	}
	if (!quic_send(skb, d, work)) {
		quic_count(AFPA_QUIC_REASON_DROP_SEND);
		return TCX_DROP;
	}
	quic_count(reason);
	return bpf_redirect(skb->ifindex, 0);
}

SEC("tcx/ingress")
int afpa_quic_ingress(struct __sk_buff *skb)
{
	struct afpa_quic_config *config;
	enum afpa_quic_reason reason;
	struct quic_packet p = {};
	struct quic_work *work;
	struct quic_load *load;
	struct datagram d = {};
	__u32 zero = 0;
	__u8 first = 0;
	__u64 now;

	if (!read_datagram(skb, &d, NULL) || !d.plain || d.length <= UDP_LENGTH ||
	    bpf_skb_load_bytes(skb, d.udp_at + UDP_LENGTH, &first, sizeof(first)))
		return TCX_NEXT;
	now = bpf_ktime_get_coarse_ns();
	load = bpf_map_lookup_elem(&quic_loads, &zero);
	if (!load || (!(first & QUIC_LONG) && now >= load->until))
		return TCX_NEXT;
	if (skb->pkt_type != PACKET_HOST || skb_field(skb, dev, rx_handler) || !quic_is_here(&d))
		return TCX_NEXT;
	config = bpf_map_lookup_elem(&quic_configs, &zero);
	work = bpf_map_lookup_elem(&quic_works, &zero);
	if (!config || !work)
		return TCX_NEXT;
	reason = AFPA_QUIC_REASON_PASS_NO_HEARTBEAT;
	if (now < *(volatile __u64 *)&config->until) {
		reason = now < load->until ? AFPA_QUIC_REASON_DROP_UNFIT : AFPA_QUIC_REASON_PASS_CALM;
		if (quic_read(skb, work, &d, &p))
			reason = quic_judge(skb, config, work, load, &d, &p, now);
	}
	if (!quic_goes_up(reason) && !quic_is_ours(skb, &d))
		reason = AFPA_QUIC_REASON_PASS_OTHER_SOCKET;
	if (reason != AFPA_QUIC_REASON_RETRY && reason != AFPA_QUIC_REASON_VERSIONS) {
		quic_count(reason);
		return quic_goes_up(reason) ? TCX_NEXT : TCX_DROP;
	}
	return quic_answer(skb, config, work, &d, reason, now);
}
