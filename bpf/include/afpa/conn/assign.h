/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A segment is given to a listener as if it were the last one of a handshake (`bpf_sk_assign_tcp_reqsk`): the kernel's TCP
 * makes a connection that begins at the segment's numbers, and processes its payload.
 */
#ifndef AFPA_CONN_ASSIGN_H
#define AFPA_CONN_ASSIGN_H

#include <afpa/conn/cookie.h>
#include <afpa/conn/socket.h>

/* The options of the connection, and the values of its path for the kernel's TCP. */
struct assignment {
	__u32 agreed;       /* the low bits of its cookie (conn/cookie.h) */
	__u32 ts_now;       /* our timestamp clock: the kernel's timestamps go on from here */
	__u32 rtt;          /* of the path, in milliseconds; 0: not known */
};

/*
 * The kernel takes the segment's echo for the round trip of a SYN-ACK. But the client echoes our last timestamp, which may
 * be minutes old: the time-out would be three times that, and the kernel would keep it for other connections to the same
 * client. So the echo becomes one that gives the measured time, or 0: no sample. The checksum follows by the difference.
 */
static __always_inline int mend_echo(struct __sk_buff *skb, const struct segment *s, const struct assignment *a)
{
	__be32 old = bpf_htonl(s->ts_echo), echo = a->rtt ? bpf_htonl(a->ts_now - a->rtt) : 0;

	if (!s->timestamps)
		return 0;
	if (bpf_l4_csum_replace(skb, s->tcp_at + offsetof(struct tcphdr, check), old, echo, 4))
		return -1;
	return bpf_skb_store_bytes(skb, s->tcp_at + sizeof(struct tcphdr) + 8, &echo, sizeof(echo), 0);
}

#define ASSIGNED_LOST_AFTER 1024 /* rtx_clock: a segment that was assigned twice and did not arrive for so long never will */

#define ASSIGN_LATER (-12) /* -ENOMEM: another time the kernel may take it */

/*
 * 0: the segment goes up, and the listener takes it. Else it is to be dropped: the kernel never takes the connection, unless it
 * is ASSIGN_LATER.
 */
static __always_inline int assign(struct __sk_buff *skb, const struct segment *s, struct tcp_sock *listener,
				  const struct assignment *a)
{
	__u32 scale = a->agreed & COOKIE_SCALE;
	bool scaling = scale != COOKIE_NO_SCALE;
	struct bpf_tcp_req_attrs attributes = {
		.rcv_tsval = s->ts_value,
		.rcv_tsecr = a->ts_now,
		.mss = cookie_mss(a->agreed, s->ipv6),
		.rcv_wscale = scaling ? shared.window_scale & COOKIE_SCALE : 0,
		.snd_wscale = scaling ? scale : 0,
		.wscale_ok = scaling,
		.sack_ok = !!(a->agreed & COOKIE_SACK),
		.tstamp_ok = s->timestamps,
	};

	if (!bpf_ksym_exists(bpf_sk_assign_tcp_reqsk) || mend_echo(skb, s, a))
		return -1;
	return bpf_sk_assign_tcp_reqsk(skb, (struct sock *)listener, &attributes, sizeof(attributes));
}

#endif
