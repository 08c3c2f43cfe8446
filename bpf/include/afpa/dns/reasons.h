/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every way out of the programs that answer DNS, numbered as in reasons.h: append, never reuse.
 */
#ifndef AFPA_DNS_REASONS_H
#define AFPA_DNS_REASONS_H

#define AFPA_DNS_REASONS(X)                                                    \
	X(0, ANSWERED, "answered")                                                 \
	X(1, PASS_NO_HEARTBEAT, "passed: paused, or user mode has not beaten")     \
	X(2, PASS_PACKET, "passed: IP options, fragment, VLAN tag, lengths that differ, or for another device") \
	X(3, PASS_PORT, "passed: source port below 1024")                          \
	X(4, PASS_CHECKSUM, "passed: no UDP checksum")                             \
	X(5, PASS_LENGTH, "passed: too short or too long")                         \
	X(6, PASS_HEADER, "passed: opcode, flags or counts are not those of a plain query") \
	X(7, PASS_EDNS, "passed: EDNS with options but a client's cookie, another version, or a small buffer") \
	X(8, PASS_TYPE, "passed: class is not IN, or type is ANY, AXFR or IXFR")   \
	X(9, PASS_NAME, "passed: name is too long")                                \
	X(10, PASS_NOT_PINNED, "passed: question is not pinned")                   \
	X(11, PASS_LEASE, "passed: zone has changed, or was not confirmed in time") \
	X(12, PASS_CASE, "passed: answer depends on the case of the name")         \
	X(13, PASS_BUFFER, "passed: answer may not fit the client's buffer")       \
	X(14, PASS_NO_WAY, "passed: the server has not answered this client within the last second") \
	X(15, PASS_OTHER_WAY, "passed: it came another way than the server's answer left") \
	X(16, PASS_RATE, "passed: too many answers to this prefix")                \
	X(17, PASS_SEND, "passed: packet could not be turned into the answer")     \
	X(18, DROP_SEND, "dropped: packet was half turned into the answer")        \
	X(19, SAME, "compared: the server's own answer is the pinned one")         \
	X(20, DIFFERENT, "compared: the server's own answer differs, and the pinned one was dropped") \
	X(21, NOTIFIED, "seen: NOTIFY or UPDATE, all zones are to be confirmed")   \
	X(22, REPORT_LOST, "report to user mode lost: ring buffer was full")      \
	X(23, PASS_COOKIE, "passed: the cookie is not one of the server's for this client, or is too old")

#define AFPA_DNS_ENUM(number, name, text) AFPA_DNS_REASON_##name = number,
enum afpa_dns_reason { AFPA_DNS_REASONS(AFPA_DNS_ENUM) AFPA_DNS_REASONS_COUNT };
#undef AFPA_DNS_ENUM

#endif
