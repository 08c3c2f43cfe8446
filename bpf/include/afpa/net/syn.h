/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The options of a SYN, in any order (RFC 9293, 3.1; RFC 7323; RFC 2018).
 */
#ifndef AFPA_NET_SYN_H
#define AFPA_NET_SYN_H

#include <afpa/net/segment.h>

#define OPTION_END 0
#define OPTION_MSS 2
#define OPTION_WINDOW_SCALE 3
#define OPTION_SACK_PERMITTED 4
#define OPTION_TIMESTAMPS 8
#define MSS_BY_DEFAULT_IPV4 536  /* of a client that says none: RFC 9293, 3.7.1 */
#define MSS_BY_DEFAULT_IPV6 1220

struct syn_options {
	__u8 bytes[64];          /* as they stand in the segment, at most 40, and zeros */
	__u32 at, length;        /* of those that are not read yet */
	__u32 ts_value;
	__u16 mss;
	__u8 scale;
	__u8 scaling, sack, timestamps; /* the option was there */
	__u8 odd;                /* an option is not whole, or has no model here */
};

/* One option; stops (1) behind the last one. A function for `bpf_loop`: a plain loop has too many states. */
static long read_syn_option(__u32 index, void *context)
{
	struct syn_options *o = context;
	__u32 at = o->at, size;
	const __u8 *option;

	if (at >= o->length || at >= OPTIONS_MAX)
		return 1;
	option = o->bytes + at;
	if (option[0] == OPTION_END)
		return 1;
	if (option[0] == OPTION_NOP) {
		o->at++;
		return 0;
	}
	size = option[1];
	if (size < 2 || at + size > o->length) {
		o->odd = true;
		return 1;
	}
	if (option[0] == OPTION_MSS && size == 4) {
		o->mss = option[2] << 8 | option[3];
	} else if (option[0] == OPTION_WINDOW_SCALE && size == 3) {
		o->scaling = true;
		o->scale = option[2] > 14 ? 14 : option[2];
	} else if (option[0] == OPTION_SACK_PERMITTED && size == 2) {
		o->sack = true;
	} else if (option[0] == OPTION_TIMESTAMPS && size == 10) {
		o->timestamps = true;
		o->ts_value = (__u32)option[2] << 24 | option[3] << 16 | option[4] << 8 | option[5];
	} else {
		o->odd = true; /* MD5, AO, Fast Open, Multipath TCP, what is unknown: the kernel's TCP knows what to do */
	}
	o->at += size;
	return 0;
}

/* Read the options of a SYN. False: they are not such as cookies are made for. */
static __always_inline bool read_syn_options(struct __sk_buff *skb, const struct segment *s, struct syn_options *o)
{
	__u32 length = s->payload_at - s->tcp_at - sizeof(struct tcphdr);

	o->mss = s->ipv6 ? MSS_BY_DEFAULT_IPV6 : MSS_BY_DEFAULT_IPV4;
	o->length = length;
	if (length == 0)
		return true;
	if (!is_within(&length, 1, OPTIONS_MAX) ||
	    bpf_skb_load_bytes(skb, s->tcp_at + sizeof(struct tcphdr), o->bytes, length))
		return false;
	bpf_loop(OPTIONS_MAX, read_syn_option, o, 0);
	return !o->odd;
}

#endif
