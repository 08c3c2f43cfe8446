/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every way out of the program for QUIC, numbered as in reasons.h: append, never reuse.
 */
#ifndef AFPA_QUIC_REASONS_H
#define AFPA_QUIC_REASONS_H

#define AFPA_QUIC_REASONS(X)                                                    \
	X(0, RETRY, "answered: an Initial without a token that holds, by a Retry")  \
	X(1, VERSIONS, "answered: an unknown version, by the one there is")         \
	X(2, PASS_CALM, "passed: a long header while there is no flood")            \
	X(3, PASS_TOKEN, "passed: an Initial with a token that holds")              \
	X(4, PASS_KNOWN, "passed: a packet to an id of ours, or 0-RTT to one that a Retry gave") \
	X(5, PASS_NO_HEARTBEAT, "passed: user mode has not beaten, or has no key for this time") \
	X(6, PASS_OTHER_SOCKET, "passed: the socket is not ours")                   \
	X(7, DROP_LITTLE_INITIAL, "dropped: an Initial in a datagram of less than 1,200 bytes") \
	X(8, DROP_DENIED, "dropped: an Initial of a client whose prefix is denied") \
	X(9, DROP_UNKNOWN_ID, "dropped: a packet to an id that is not ours, of a kind that begins no connection") \
	X(10, DROP_UNFIT, "dropped: a first packet that no client sends")           \
	X(11, DROP_SEND, "dropped: packet was half turned into the answer")         \
	X(12, BAD_TOKEN, "seen: a token that does not hold (also counted as answered)") \
	X(13, FLOOD, "seen: a flood has begun on a processor")                      \
	X(14, DROP_EARLY, "dropped: 0-RTT to an id that a Retry gave, beyond its rate")

#define AFPA_QUIC_ENUM(number, name, text) AFPA_QUIC_REASON_##name = number,
enum afpa_quic_reason { AFPA_QUIC_REASONS(AFPA_QUIC_ENUM) AFPA_QUIC_REASONS_COUNT };
#undef AFPA_QUIC_ENUM

#endif
