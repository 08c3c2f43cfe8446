/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Server cookies (RFC 7873, RFC 9018), made and checked with the server's own secret, where the operator has given it.
 *
 *  DN10 A client that shows a cookie of the server's has got an answer of it before, so its address is its own: its prefix needs no budget.
 *        The answer has a cookie as the server's would have: the client's own if it is younger than half an hour, else a new one. A
 *        cookie that is not right is the server's to judge.
 */
#ifndef AFPA_DNS_COOKIE_H
#define AFPA_DNS_COOKIE_H

#include <afpa/dns/derive.h>
#include <afpa/sip.h>

#define DNS_COOKIE_OLDEST 3600 /* seconds; RFC 9018 section 4.3 */
#define DNS_COOKIE_AHEAD 300
#define DNS_COOKIE_RENEWED 1800
#define DNS_COOKIE_VERSION 1

/* SipHash-2-4 over the client's part, version with time, and the address. */
static __always_inline __u64 dns_cookie_hash(const __u64 *secret, __u64 client, __u64 head, const __u32 *address, bool ipv6)
{
	struct sip s = sip_begin(secret);

	sip_take(&s, client);
	sip_take(&s, head);
	if (ipv6) {
		sip_take(&s, address[0] | (__u64)address[1] << 32);
		sip_take(&s, address[2] | (__u64)address[3] << 32);
		sip_take(&s, 32ULL << 56);
	} else {
		sip_take(&s, 20ULL << 56 | address[3]);
	}
	return sip_end(&s);
}

/* Seconds since a cookie was made; negative if that is still to come. */
static __always_inline __s32 dns_cookie_age(const struct dns_question *q, __u32 now)
{
	return now - bpf_ntohl(q->cookie[1] >> 32);
}

/* Is it one that the server has made for this client, within the hour? */
static __always_inline bool dns_cookie_proves(const struct dns_question *q, const __u64 *secret, __u32 now, const __u32 *address,
					      bool ipv6)
{
	__s32 age = dns_cookie_age(q, now);

	return (__u8)q->cookie[1] == DNS_COOKIE_VERSION && age <= DNS_COOKIE_OLDEST && age >= -DNS_COOKIE_AHEAD &&
	       dns_cookie_hash(secret, q->cookie[0], q->cookie[1], address, ipv6) == q->cookie[2];
}

/* The option of the answer: code, length, the client's part, the server's. Returns its sum, as from an even place, folded. */
static __always_inline __u16 dns_make_cookie(const struct dns_question *q, const __u64 *secret, __u32 now, const __u32 *address,
					     bool ipv6, __u32 *option)
{
	__u64 head = q->cookie[1], hash = q->cookie[2], sum = 0;

	if (!q->proven || dns_cookie_age(q, now) > DNS_COOKIE_RENEWED) {
		head = DNS_COOKIE_VERSION | (__u64)bpf_htonl(now) << 32;
		hash = dns_cookie_hash(secret, q->cookie[0], head, address, ipv6);
	}
	option[0] = bpf_htonl(10 << 16 | DNS_WHOLE_COOKIE);
	option[1] = q->cookie[0];
	option[2] = q->cookie[0] >> 32;
	option[3] = head;
	option[4] = head >> 32;
	option[5] = hash;
	option[6] = hash >> 32;
	for (int i = 0; i < 7; i++)
		sum += option[i];
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

#endif
