/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every way out of the programs, numbered: counters, metrics and tests share this table.
 *
 * Numbers are stable: append, never reuse. `X(number, NAME, text)`.
 * Packets of ports that nobody serves are not counted: their way out must cost nothing.
 */
#ifndef AFPA_REASONS_H
#define AFPA_REASONS_H

#define AFPA_REASONS(X)                                                        \
	X(0, ANSWERED, "answered: object sent")                                    \
	X(1, ANSWERED_NOT_MODIFIED, "answered: 304")                               \
	X(2, ANSWERED_AGAIN, "answered again: request was retransmitted")          \
	X(3, SWALLOWED_ACK, "swallowed: acknowledges only bytes the kernel never sent") \
	X(4, PASS_NO_PAYLOAD, "passed: no payload, connection without drift")      \
	X(5, PASS_TRANSLATED, "passed: translated, no new request")                \
	X(6, PASS_NOT_LISTENING, "passed: address is not served")                  \
	X(7, PASS_NO_HEARTBEAT, "passed: user mode gives no sign of life")         \
	X(8, PASS_REFRESH, "passed: user mode's idle timer is to see a request")   \
	X(9, PASS_PACKET, "passed: IP options, fragment, VLAN, GRO or TCP options") \
	X(10, PASS_TCP_FLAGS, "passed: SYN, FIN, RST, URG or ECN flags with data")   \
	X(11, PASS_CHECKSUM, "passed: TCP checksum is wrong")                      \
	X(12, PASS_NO_SOCKET, "passed: no established socket that matches exactly") \
	X(13, PASS_OLD_CONNECTION, "passed: bytes were exchanged before AFPA looked") \
	X(14, PASS_FLOWS_FULL, "passed: flow table is full")                       \
	X(15, PASS_USER_OWNS, "passed: an earlier response is not finished")       \
	X(16, PASS_KEPT, "passed: user mode keeps this connection")                \
	X(17, PASS_CLOSING, "passed: connection is closing")                       \
	X(18, PASS_NOT_NEXT, "passed: not the next bytes, or earlier ones unacknowledged") \
	X(19, PASS_METHOD, "passed: method is not GET or HEAD")                    \
	X(20, PASS_REQUEST_LINE, "passed: request line is unusual or too long")    \
	X(21, PASS_HEAD_LENGTH, "passed: head too long, or not whole")             \
	X(22, PASS_HEADER, "passed: a header line is unusual")                     \
	X(23, PASS_FIELD, "passed: a header field only user mode handles")         \
	X(24, PASS_SITE, "passed: Host selects no site")                           \
	X(25, PASS_NOT_PINNED, "passed: path is not pinned")                       \
	X(26, PASS_VARIANT, "passed: no stored variant surely fits")               \
	X(27, PASS_CONDITION, "passed: condition needs user mode")                 \
	X(28, PASS_WINDOW, "passed: answer exceeds the client's window or segment size") \
	X(29, PASS_SEND, "passed: packet could not be turned into the answer")     \
	X(30, RESET_LOST_VERSION, "reset: answer to repeat is gone")               \
	X(31, EGRESS_STALE, "dropped: server's retransmission of bytes the client has") \
	X(32, EGRESS_TRANSLATED, "egress: translated")                             \
	X(33, RESPONSE_END, "egress: end of user mode's response found")           \
	X(34, RESPONSE_UNSURE, "egress: end of user mode's response is unknown")   \
	X(35, UNSOLICITED, "egress: server spoke unasked")                         \
	X(36, EVENT_LOST, "access log: ring buffer was full")                      \
	X(37, FLOW_OPENED, "flow: entered into the table")                         \
	X(38, FLOW_CLOSED, "flow: removed")                                        \
	X(39, BLOCK_SCANNED, "header block was read line by line")                 \
	X(40, BLOCK_COMPARED, "header block was known")                            \
	X(41, TRANSLATE_FAILED, "dropped: translation failed")                     \
	X(42, PASS_RESTING, "passed: fast path has had nothing for this connection") \
	X(43, FLOW_RESTED, "flow: left to user mode after passes without an answer") \
	X(44, PASS_FLIGHTS_FULL, "passed: too many answers are on their way")      \
	X(45, FLIGHT_BEGUN, "flight: answer of several segments begun")            \
	X(46, FLIGHT_DONE, "flight: acknowledged to its end")                      \
	X(47, FLIGHT_SENT, "flight: segment sent")                                 \
	X(48, FLIGHT_SENT_AGAIN, "flight: segment sent again")                     \
	X(49, FLIGHT_HEARD, "flight: acknowledgement taken")                       \
	X(50, FLIGHT_STRANGE, "flight: segment that is none of the connection, or is damaged") \
	X(51, FLIGHT_BUSY, "flight: two processors at once, one stood back")       \
	X(52, FLIGHT_TIMED, "flight: looked at because its time had come")         \
	X(53, FLIGHT_GIVEN_UP, "flight: given up, client has vanished")            \
	X(54, FLIGHT_LOST, "flight: reset, its bytes or its state are gone")       \
	X(55, FLIGHT_ENDED, "flight: ended with its connection")                   \
	X(56, PATH_NARROWED, "path: takes shorter segments than before")           \
	X(57, WATCH_BEGUN, "watch: connection entered, it got an answer of one segment") \
	X(58, WATCH_SENT_AGAIN, "watch: answer of one segment sent again, its time was over") \
	X(59, WATCH_CROSSED, "dropped: request was retransmitted, its answer has just left again") \
	X(60, WATCH_FULL, "watch: too many connections, losses are left to the client") \
	X(61, WATCH_LEFT, "watch: answer left to the client, after many tries or without its bytes")

#define X(number, name, text) AFPA_##name = number,
enum afpa_reason { AFPA_REASONS(X) };
#undef X

#define X(number, name, text) +1
enum { AFPA_REASON_COUNT = 0 AFPA_REASONS(X) };
#undef X

#endif
