/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every way out of the programs, numbered: counters, metrics and tests share this table.
 *
 * Numbers are stable: append, never reuse. `X(number, NAME, text)`.
 * Packets of ports that are not served are not counted: their way out must cost nothing.
 */
#ifndef AFPA_REASONS_H
#define AFPA_REASONS_H

#define AFPA_REASONS(X)                                                        \
	X(0, ANSWERED, "answered: object sent")                                       \
	X(1, ANSWERED_NOT_MODIFIED, "answered: 304")                                  \
	X(2, ANSWERED_RETRANSMISSION, "answered: request was retransmitted, same bytes sent again") \
	X(3, ABSORBED_ACK, "absorbed: acknowledges only bytes the kernel never sent") \
	X(4, PASS_NO_PAYLOAD, "passed: no payload, connection without sequence offset")         \
	X(5, PASS_TRANSLATED, "passed: translated, no new request")                   \
	X(6, PASS_NOT_LISTENING, "passed: address is not served")                     \
	X(7, PASS_NO_HEARTBEAT, "passed: user mode has not beaten for two seconds")   \
	X(8, PASS_REFRESH, "passed: the server's idle timer is due to see a request") \
	X(9, PASS_PACKET, "passed: IP options, fragment, VLAN, GRO or TCP options")   \
	X(10, PASS_TCP_FLAGS, "passed: SYN, FIN, RST, URG or ECN flags with data")    \
	X(11, PASS_CHECKSUM, "passed: TCP checksum is wrong")                         \
	X(12, PASS_NO_SOCKET, "passed: no established socket that matches exactly")   \
	X(13, PASS_OLD_CONNECTION, "passed: bytes were exchanged before AFPA looked") \
	X(14, PASS_FLOWS_FULL, "passed: flow table is full")                          \
	X(15, PASS_USER_OWNS, "passed: an earlier response is not finished")          \
	X(16, PASS_USER_FINAL, "passed: user mode serves this connection to its end") \
	X(17, PASS_CLOSING, "passed: connection is closing")                          \
	X(18, PASS_NOT_NEXT, "passed: not the next bytes, or earlier ones unacknowledged") \
	X(19, PASS_METHOD, "passed: method is not GET or HEAD")                       \
	X(20, PASS_REQUEST_LINE, "passed: request line is unusual or too long")       \
	X(21, PASS_HEAD_LENGTH, "passed: head too long, or not whole")                \
	X(22, PASS_HEADER, "passed: a header line is unusual")                        \
	X(23, PASS_FIELD, "passed: a header field only user mode handles")            \
	X(24, PASS_SITE, "passed: Host selects no site")                              \
	X(25, PASS_NOT_PINNED, "passed: path is not pinned")                          \
	X(26, PASS_VARIANT, "passed: no stored variant surely fits")                  \
	X(27, PASS_CONDITION, "passed: condition needs user mode")                    \
	X(28, PASS_WINDOW, "passed: answer exceeds the client's window or segment size") \
	X(29, PASS_SEND, "passed: packet could not be turned into the answer")        \
	X(30, RESET_LOST_VERSION, "reset: version of the answer to retransmit is gone") \
	X(31, EGRESS_STALE, "dropped: server's retransmission of bytes the client has") \
	X(32, EGRESS_TRANSLATED, "egress: translated")                                \
	X(33, RESPONSE_END, "egress: end of user mode's response found")              \
	X(34, RESPONSE_UNSURE, "egress: end of user mode's response is unknown")      \
	X(35, UNSOLICITED, "egress: server sent unasked")                             \
	X(36, EVENT_LOST, "access log: ring buffer was full")                         \
	X(37, FLOW_OPENED, "flow: entered into the table")                            \
	X(38, FLOW_CLOSED, "flow: removed")                                           \
	X(39, BLOCK_SCANNED, "header block was read line by line")                    \
	X(40, BLOCK_COMPARED, "header block was known")                               \
	X(41, TRANSLATE_FAILED, "dropped: translation failed")                        \
	X(42, PASS_BYPASSED, "passed: connection is bypassed, too many passes in a row") \
	X(43, FLOW_BYPASSED, "flow: bypassed after too many passes in a row")         \
	X(44, PASS_TRANSFERS_FULL, "passed: too many transfers under way")            \
	X(45, TRANSFER_BEGUN, "transfer: answer of several segments begun")           \
	X(46, TRANSFER_DONE, "transfer: acknowledged to its end")                     \
	X(47, TRANSFER_SENT, "transfer: segment sent")                                \
	X(48, TRANSFER_RETRANSMITTED, "transfer: segment retransmitted")              \
	X(49, TRANSFER_ON_ACK, "transfer: acknowledgement processed")                 \
	X(50, TRANSFER_INVALID, "transfer: segment is damaged, or not of this connection") \
	X(51, TRANSFER_BUSY, "transfer: locked by another processor, segment dropped") \
	X(52, TRANSFER_ON_TIMER, "transfer: timer serviced")                          \
	X(53, TRANSFER_GIVEN_UP, "transfer: reset, client has been silent for a minute") \
	X(54, TRANSFER_LOST, "transfer: reset, its bytes or its state are gone")      \
	X(55, TRANSFER_ENDED, "transfer: ended with its connection")                  \
	X(56, PMTU_REDUCED, "path: segments must be shorter than before")             \
	X(57, RTX_ARMED, "rtx timer: armed for an answer of one segment")             \
	X(58, RTX_RETRANSMITTED, "rtx timer: answer of one segment retransmitted")    \
	X(59, RTX_CROSSED, "dropped: retransmitted request, its answer was retransmitted just now") \
	X(60, RTX_FULL, "rtx timer: queue is full, losses are left to the client")    \
	X(61, RTX_GIVEN_UP, "rtx timer: answer left to the client, after many tries or without its bytes") \
	X(62, PASS_OTHER_SOCKET, "passed: socket of a listener that is not served, or was not yet") \
	X(63, PASS_UNCONFIRMED, "passed: the firewall is due to see a packet of this client") \
	X(64, PASS_PAUSED, "passed: answers are paused") \
	X(65, PASS_OUTSIDE, "passed: outside of the window, or acknowledges what was not sent") \
	X(66, STALE_SEGMENT, "dropped: older than what was answered, by its timestamp or acknowledgement") \
	X(67, ANSWER_REPLACED, "dropped: another version came into the slot while the answer was copied") \
	X(68, PASS_NO_WAY, "passed: the kernel's way back to the client is not known yet")     \
	X(69, PASS_OTHER_WAY, "passed: it came another way than the request before")  \
	X(70, PASS_NOT_FIRST, "passed: another program stands before ours on the interface") \
	X(71, PASS_LOOPBACK, "passed: several segments to an own address by loopback, where none could be sent again") \
	X(72, DROP_UNPARSED, "dropped: client's segment that cannot be translated")   \
	X(73, EGRESS_UNPARSED, "dropped: server's packet that cannot be translated")  \
	X(74, DROP_NO_WAY, "dropped: would leave or arrive where no program of ours translates it") \
	X(75, WAY_ASKED, "way: the kernel was asked for it, an answer is to be sent again") \
	X(76, SOCKETLESS_SYN, "without a socket: SYN answered with a cookie")          \
	X(77, SOCKETLESS_OPENED, "without a socket: connection opened by its cookie") \
	X(78, SOCKETLESS_TO_KERNEL, "without a socket: assigned to the kernel's TCP") \
	X(79, SOCKETLESS_TO_KERNEL_AGAIN, "without a socket: assigned again, the kernel had not taken it") \
	X(80, SOCKETLESS_CLOSED, "without a socket: closed by both sides")            \
	X(81, SOCKETLESS_RESET, "without a socket: reset by the client")              \
	X(82, SOCKETLESS_IDLE, "without a socket: idle for too long, closed")         \
	X(83, SOCKETLESS_ENDED, "without a socket: reset, its answer cannot be sent again, or the client went on after the end") \
	X(84, SOCKETLESS_ACKED, "dropped: acknowledgement or FIN of a connection without a socket, processed") \
	X(85, SOCKETLESS_HELD, "dropped: connection without a socket, must wait for the acknowledgement of an answer or for its socket") \
	X(86, SOCKETLESS_CHALLENGED, "without a socket: keep-alive probe or segment out of place, acknowledged") \
	X(87, SOCKETLESS_INVALID, "dropped: damaged, or not of the connection without a socket") \
	X(88, SOCKETLESS_REPLAYED, "passed: opens a connection that was assigned already") \
	X(89, SOCKETLESS_REFUSED, "without a socket: reset, the kernel's TCP refused to take it over") \
	X(90, SOCKETLESS_UNFIT, "passed: SYN to a listener that takes no connection from here, or with options that a cookie has no room for") \
	X(91, SOCKETLESS_UNKNOWN_CLIENT, "passed: SYN of a client whose way through the kernel was not seen lately") \
	X(92, DROP_DENIED, "dropped: SYN of a client whose prefix is denied")         \
	X(93, DROP_CLIENT_RATE, "dropped: SYN of a client that connects too often")   \
	X(94, DROP_TOTAL_RATE, "dropped: SYN while all clients together connect too often") \
	X(95, PASS_DENIED, "passed: request of a client whose prefix is denied")      \
	X(96, PASS_CLIENT_RATE, "passed: request of a client that asks too often")    \
	X(97, PASS_TOTAL_RATE, "passed: request while all clients together ask too often") \
	X(98, SOCKETLESS_TRACKED, "without a socket: not for this client, its connections are tracked (conntrack)") \
	X(99, SOCKETLESS_EARLY, "dropped: opens a connection without a socket, but its first segment was not seen") \
	X(100, PASS_EXPIRED, "passed: a server's answer has reached the end of its freshness, or of the digits of its age") \
	X(101, ANSWERED_SHARED, "answered: with a server's answer (also counted as answered)") \
	X(102, SOCKETLESS_TOO_MANY, "passed: SYN, while this client or all have as many connections without a socket as they may, or nearly all needed one lately") \
	X(103, PASS_OUTDATED, "passed: an unsafe request for the target has passed since the attached server was asked for its answer") \
	X(104, SOCKETLESS_FLOOD, "without a socket: SYN of a client that is not known, in a flood: answered as well (also counted as answered)") \
	X(105, PASS_TRACKED, "passed: connection tracking saw the segment before the programs did") \
	X(106, PASS_LINK_LOCAL, "passed: the client's address is of its link alone (fe80::/10)") \
	X(107, SOCKETLESS_WRONG_COOKIE, "dropped: acknowledges a cookie that was never sent, or is not its connection's first segment, while records of answered SYNs get lost") \
	X(108, SOCKETLESS_LOST, "without a socket: reset, something on this host drops what the kernel's TCP was to take over") \
	X(109, SOCKETLESS_LOST_ALONE, "without a socket: reset, something on this host drops what this client sends, not what others send") \
	X(110, PASS_IN_PARTS, "passed: head in several segments, the first of which is with user mode")

#define X(number, name, text) AFPA_##name = number,
enum afpa_reason { AFPA_REASONS(X) };
#undef X

#define X(number, name, text) +1
enum { AFPA_REASON_COUNT = 0 AFPA_REASONS(X) };
#undef X

#endif
