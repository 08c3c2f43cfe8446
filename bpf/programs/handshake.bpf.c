/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Handshake: answers the SYN of a client that the kernel's own path knows, with a cookie, and opens the connection without
 * a socket when the cookie comes back. Reached from the ingress programs by a tail call. The kernel handles all other
 * segments, as if nothing were here.
 */
#include <afpa/conn/assign.h>
#include <afpa/conn/assigned.h>
#include <afpa/conn/bypass.h>
#include <afpa/conn/client_way.h>
#include <afpa/conn/listener.h>
#include <afpa/conn/socket.h>
#include <afpa/conn/socketless.h>
#include <afpa/conn/syn_flood.h>
#include <afpa/tx/syn_ack.h>

/* --- the SYN --- */

/* The MSS that this host announces by the interface. */
static __always_inline __u32 own_mss(struct __sk_buff *skb, bool ipv6)
{
	__u32 mtu = skb_field(skb, dev, mtu), headers = sizeof(struct tcphdr) + (ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));

	if (mtu > 65535)
		mtu = 65535;
	return mtu > headers + AFPA_UNIT_MIN ? mtu - headers : 0;
}

/* Would a cookie keep what the client's SYN says? Its values of the MSS are few; none may cost more than an eighth. */
static __always_inline bool fits_cookie(struct agreed *agreed, const struct syn_options *o, bool ipv6)
{
	__u32 kept;

	agreed->client_mss = cookie_mss_bits(o->mss, ipv6);
	if (agreed->client_mss >= COOKIE_MSS_VALUES)
		return false;
	kept = cookie_mss(agreed->client_mss << COOKIE_MSS_SHIFT, ipv6);
	return o->mss - kept <= kept / 8;
}

/* Has the kernel nothing of this tuple but a listener that takes connections from here, and has room for one (`at_once`)? */
static __always_inline enum afpa_reason may_begin(struct __sk_buff *skb, const struct segment *s, bool at_once)
{
	enum afpa_reason reason = AFPA_PASS_NO_SOCKET;
	struct bpf_sock *found = find_socket(skb, s);
	struct tcp_sock *tcp;

	if (!found)
		return reason;
	if (found->state == TCP_LISTEN) {
		tcp = bpf_skc_to_tcp_sock(found);
		reason = tcp && takes_connections(found, tcp) && (!at_once || has_room(tcp)) ? AFPA_ANSWERED :
												 AFPA_SOCKETLESS_UNFIT;
	}
	bpf_sk_release(found);
	return reason;
}

/* A new connection takes the tuple: the flow of one whose socket is gone, or that was closed by both sides, is removed. */
static __always_inline void remove_ended(const struct segment *s)
{
	const struct afpa_flow *flow = bpf_map_lookup_elem(&flows, &s->key);

	if (flow && (flow->socketless == AFPA_SOCKETLESS_NOT || flow->socketless == AFPA_SOCKETLESS_LAST_ACK))
		flow_remove(&s->key);
}

/* Did the packet come from where the way leads to? */
static __always_inline bool comes_by(struct __sk_buff *skb, const struct afpa_way *way)
{
	__u8 from[6] __attribute__((aligned(8)));

	return !bpf_skb_load_bytes(skb, 6, from, sizeof(from)) && same_mac(from, (const __u8 *)way);
}

/*
 * How is the client known whose SYN this is, if the kernel's way to it, seen within `life`, leaves by the interface that the SYN
 * came by? That is `work->way` then. The way of others behind its gateway is its own only if the SYN came through that (N10).
 */
static __always_inline enum known known_here(struct __sk_buff *skb, struct work *work, const struct segment *s, __u32 life)
{
	int known = afpa_client_way_recall(&s->key, &work->way, life);

	if (known == KNOWN_NOT || work->way.interface != skb->ifindex)
		return KNOWN_NOT;
	if (known == KNOWN_ITSELF)
		return KNOWN_ITSELF;
	return comes_by(skb, &work->way) ? KNOWN_BY_NEXT_HOP : KNOWN_NOT;
}

/* Is the client known (N1), or are those that are not answered, too (N12)? The table of answered SYNs is read only where neither is. */
static __always_inline enum afpa_reason is_known(struct __sk_buff *skb, struct work *work, const struct segment *s, __u64 now)
{
	enum known known = known_here(skb, work, s, client_way_life());
	enum afpa_reason reason = AFPA_SOCKETLESS_UNKNOWN_CLIENT;

	if (suffices(known)) {
		if (is_admitted(&s->key, now))
			return AFPA_ANSWERED;
		reason = AFPA_PASS_UNCONFIRMED;
	}
	if (is_flood(now) && known != KNOWN_NOT) {
		count_at(s->place, AFPA_SOCKETLESS_FLOOD);
		return AFPA_ANSWERED;
	}
	return afpa_is_syn_repeated(&s->key, s->seq, rtx_clock(now)) && known_here(skb, work, s, CLIENT_WAY_OF_COOKIE) != KNOWN_NOT ? AFPA_ANSWERED : reason;
}

/*
 * Is the source an address that no client has here (a martian)? The kernel's routing drops such packets: from no
 * network, from many machines, from this host itself unless it is by `lo`. There, no socket connects to its own port.
 */
static __always_inline bool is_martian(const struct __sk_buff *skb, const struct segment *s)
{
	const __u64 *client = (const __u64 *)s->key.client, *server = (const __u64 *)s->key.server;
	bool loopback = skb->ifindex == LOOPBACK_IFINDEX;
	__u8 first = s->key.client[s->ipv6 ? 0 : 12];

	if (client[0] == server[0] && client[1] == server[1])
		return !loopback || s->key.client_port == s->key.server_port;
	if (s->ipv6)
		return first == 0xff || (!client[0] && !loopback);
	return first == 0 || first >= 224 || (first == 127 && !loopback);
}

/* May the SYN be answered here, by `work->way`? Cheap checks come first, the sum of its bytes last. */
static __always_inline enum afpa_reason may_answer_syn(struct __sk_buff *skb, struct work *work, const struct segment *s,
							__u64 now)
{
	struct afpa_listener listener;
	enum afpa_reason reason;

	if (!date_now(now))
		return AFPA_PASS_NO_HEARTBEAT;
	if (*(volatile __u32 *)&shared.paused)
		return AFPA_PASS_PAUSED;
	if ((s->flags & ~(TCP_ECE | TCP_CWR)) != TCP_SYN || s->length || !s->plain_ip)
		return AFPA_SOCKETLESS_UNFIT;
	if (is_martian(skb, s))
		return AFPA_SOCKETLESS_UNFIT;
	if (is_link_local(&s->key))
		return AFPA_PASS_LINK_LOCAL;
	if (shared.not_first >> (skb->ifindex & 63) & 1)
		return AFPA_PASS_NOT_FIRST;
	if (!find_listener(s, NULL, 0, &listener))
		return AFPA_PASS_NOT_LISTENING;
	if ((is_full() || has_too_many(&s->key)) && !afpa_is_syn_repeated(&s->key, s->seq, rtx_clock(now)))
		return AFPA_SOCKETLESS_TOO_MANY;
	reason = is_known(skb, work, s, now);
	if (reason == AFPA_ANSWERED)
		reason = may_begin(skb, s, true);
	if (reason == AFPA_ANSWERED && !afpa_is_sound(skb, work, s))
		reason = AFPA_PASS_CHECKSUM;
	if (reason == AFPA_ANSWERED)
		remove_ended(s);
	return reason;
}

/* Answer a SYN, or leave it to the kernel's TCP. */
__noinline int afpa_answer_syn(struct __sk_buff *skb, struct work *work, const struct segment *s)
{
	__u64 now = bpf_ktime_get_coarse_ns();
	struct syn_options options = {};
	struct agreed agreed = {};
	enum afpa_reason reason;
	struct segment own;
	__u32 cookie;

	if (!work || !s)
		return TCX_NEXT;
	own = *s; /* Linux 6.1 takes none of the arguments of a global function for a key of a map */
	reason = may_answer_syn(skb, work, &own, now);
	if (reason == AFPA_ANSWERED && (!read_syn_options(skb, &own, &options) || !fits_cookie(&agreed, &options, own.ipv6) ||
					!own_mss(skb, own.ipv6)))
		reason = AFPA_SOCKETLESS_UNFIT;
	if (reason != AFPA_ANSWERED) {
		count_at(own.place, reason);
		return TCX_NEXT;
	}
	own.timestamps = false; /* of other options there is no model */
	if (!save_headers(skb, work, &own))
		return TCX_NEXT;
	agree(&agreed, &options, own_mss(skb, own.ipv6));
	cookie = afpa_cookie(&own.key, own.seq, cookie_bits(&agreed), rtx_clock(now));
	shared.cookie_ns = now;
	afpa_bypass_invalidate(&own.key); /* as the kernel's SYN-ACK does (B2) */
	put_way(work->frame + FRAME_AT, &work->way);
	mark_own(skb);
	if (!make_syn_ack(skb, work, &own, &agreed, cookie, options.ts_value))
		return TCX_DROP;
	count_at(own.place, AFPA_SOCKETLESS_SYN);
	return bpf_redirect(work->way.interface, 0);
}

/* --- its cookie comes back --- */

/* The round trip of the handshake, in microseconds, by the timestamp of ours that the client echoes; 0: not known. */
static __always_inline __u32 handshake_rtt(const struct segment *s, __u32 ts_now)
{
	__u32 trip = ts_now - s->ts_echo;

	if (!s->timestamps || trip > 60000)
		return 0;
	return trip ? trip * 1000 : 1000;
}

/* The flow as it begins: with the agreed options, nothing received, nothing sent. */
static __always_inline void begin_flow(struct afpa_flow *flow, const struct segment *s, __u32 agreed, __u32 mss, __u64 now)
{
	__u32 kept = cookie_mss(agreed, s->ipv6), scale = agreed & COOKIE_SCALE;

	adopt(flow, s, 0, now);
	flow->snd_una = s->ack;
	flow->socketless = AFPA_SOCKETLESS_OPEN;
	flow->agreed = agreed;
	flow->flags = (agreed & COOKIE_TIMESTAMPS ? AFPA_FLOW_TIMESTAMPS : 0) |
		      (agreed & COOKIE_SACK ? AFPA_FLOW_MULTI_SEGMENT : 0);
	flow->client_scale = scale == COOKIE_NO_SCALE ? 0 : scale;
	flow->server_scale = scale == COOKIE_NO_SCALE ? 0 : shared.window_scale & COOKIE_SCALE;
	flow->window = bpf_htons(first_window(mss) >> (flow->server_scale & 15));
	flow->mss = (kept < mss ? kept : mss) - (agreed & COOKIE_TIMESTAMPS ? TIMESTAMP_SIZE : 0);
	flow->ts_offset = timestamp_offset(&s->key);
	flow->ts_sent = timestamp_at(flow);
	flow->ts_seen = s->ts_value;
	path_learn(flow, handshake_rtt(s, flow->ts_sent));
}

/* May the tuple begin, and by which listener? */
static __always_inline enum afpa_reason may_open(struct __sk_buff *skb, const struct segment *s, __u32 agreed,
						 struct afpa_listener *listener)
{
	if (!!(agreed & COOKIE_TIMESTAMPS) != s->timestamps)
		return AFPA_SOCKETLESS_UNFIT; /* not where every stack puts them */
	if (was_assigned(&s->key, s->seq - 1))
		return AFPA_SOCKETLESS_REPLAYED;
	if (!find_listener(s, NULL, 0, listener))
		return AFPA_PASS_NOT_LISTENING;
	return may_begin(skb, s, false); /* hits need no room */
}

/* There is no room for a flow: the first request makes it a connection of the kernel's that no program knows. */
static __always_inline int assign_unopened(struct __sk_buff *skb, const struct segment *s, __u32 agreed)
{
	__u32 ts_now = timestamp_now(&s->key);
	struct assignment a = { .agreed = agreed, .ts_now = ts_now, .rtt = handshake_rtt(s, ts_now) / 1000 };
	struct bpf_sock *found = find_socket(skb, s);
	struct tcp_sock *tcp;
	int error = -1;

	if (!found)
		return TCX_NEXT;
	tcp = found->state == TCP_LISTEN ? bpf_skc_to_tcp_sock(found) : NULL;
	if (tcp && has_room(tcp))
		error = assign(skb, s, tcp, &a);
	bpf_sk_release(found);
	count_at(s->place, error ? AFPA_SOCKETLESS_REFUSED : AFPA_SOCKETLESS_TO_KERNEL);
	if (error)
		return TCX_DROP;
	remember_assigned(&s->key, s->seq - 1);
	return deliver(skb);
}

/*
 * Has another processor opened the connection since the segment was found to have no flow? By then it may have assigned it, too:
 * the listener would reset a segment that goes up (N5).
 */
static __always_inline bool opened_meanwhile(const struct segment *s)
{
	return bpf_map_lookup_elem(&flows, &s->key);
}

/* Open the connection. Returns a verdict, or GO_ON: the segment begins anew, and finds the flow. */
__noinline int afpa_open_socketless(struct __sk_buff *skb, struct work *work, const struct segment *s)
{
	__u32 generation = *(volatile __u32 *)&shared.generation, zero = 0, agreed;
	__u64 now = bpf_ktime_get_coarse_ns();
	struct afpa_listener listener;
	enum afpa_reason reason;
	struct afpa_flow *fresh;
	struct segment own;
	struct work *mine;

	mine = bpf_map_lookup_elem(&ingress_work, &zero); /* `work` itself, but Linux 6.1 does not know */
	if (!mine || !work || !s)
		return TCX_NEXT;
	if (!afpa_is_sound(skb, work, s))
		return TCX_NEXT; /* the kernel drops it */
	own = *s;
	agreed = mine->agreed & COOKIE_BITS;
	reason = may_open(skb, &own, agreed, &listener);
	if (reason != AFPA_ANSWERED) {
		if (opened_meanwhile(&own))
			return GO_ON;
		count_at(own.place, reason);
		return TCX_NEXT;
	}
	__builtin_memset(mine->fresh, 0, sizeof(mine->fresh));
	fresh = (struct afpa_flow *)mine->fresh;
	begin_flow(fresh, &own, agreed, own_mss(skb, own.ipv6), now);
	fresh->listener = listener.id;
	fresh->any_host_site = listener.any_host_site;
	fresh->generation = generation;
	fresh->came_by = skb->ifindex;
	if (bpf_skb_load_bytes(skb, 6, fresh->came_from, 6))
		return TCX_NEXT;
	afpa_client_way_recall(&own.key, &fresh->way, CLIENT_WAY_OF_COOKIE);
	fresh->way_known = rtx_clock(now);
	if (has_too_many(&own.key) || bpf_map_update_elem(&flows, &own.key, mine->fresh, BPF_NOEXIST)) {
		if (opened_meanwhile(&own))
			return GO_ON;
		count_at(own.place, has_too_many(&own.key) ? AFPA_SOCKETLESS_TOO_MANY : AFPA_PASS_FLOWS_FULL);
		return own.length ? assign_unopened(skb, &own, agreed) : TCX_DROP;
	}
	afpa_count_client(&own.key, 1);
	count_at(own.place, AFPA_FLOW_OPENED);
	count_at(own.place, AFPA_SOCKETLESS_OPENED);
	return own.length || own.flags & TCP_FIN ? GO_ON : TCX_DROP;
}

SEC("tcx/ingress")
int afpa_handshake(struct __sk_buff *skb)
{
	struct segment *s;
	struct work *work;
	__u32 zero = 0;
	int verdict;

	work = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!work)
		return TCX_NEXT;
	s = (struct segment *)work->segment;
	if (s->flags & TCP_SYN)
		return afpa_answer_syn(skb, work, s);
	verdict = afpa_open_socketless(skb, work, s);
	return verdict == GO_ON ? begin_anew(skb) : verdict;
}
