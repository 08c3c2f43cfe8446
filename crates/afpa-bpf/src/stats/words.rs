//! The reasons for which requests went up to user mode, in the operator's words, with what to change.

use afpa_abi::Reason;

use super::Counters;

/// The reason for which a request went up, and what to change if anything can be. None: the reason is not one of a
/// request that went up.
pub fn words(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::PassNoHeartbeat => {
            "the process that drives the fast path was away (see its log, and `afpa doctor`)"
        }
        Reason::PassRefresh => {
            "it was the server's turn, so that its idle timer saw a request (--server-timeout, where the server keeps \
             idle connections for longer)"
        }
        Reason::PassPacket => {
            "its packet had IP options, was a fragment, or had unusual TCP options (nothing to change)"
        }
        Reason::PassTcpFlags => {
            "its packet carried another TCP flag with its data (nothing to change)"
        }
        Reason::PassChecksum => "its packet was damaged (nothing to change)",
        Reason::PassNoSocket => {
            "its connection has no socket here, as behind address translation (`afpa doctor`)"
        }
        Reason::PassOldConnection => {
            "its connection was open before, or the server accepts connections with their first request (Apache: \
             AcceptFilter http none; or --connections known)"
        }
        Reason::PassFlowsFull => "too many connections are shared with the fast path",
        Reason::PassUserOwns => {
            "the client had not waited for the response before (nothing to change)"
        }
        Reason::PassUserFinal => {
            "an earlier request of its connection left all others to the server (`afpa explain` tells which do)"
        }
        Reason::PassClosing => "its connection was ending (nothing to change)",
        Reason::PassMethod => "its method is not GET or HEAD (nothing to change)",
        Reason::PassRequestLine => {
            "its request line is unusual, of HTTP/1.0, or longer than 448 bytes (HTTP/1.0: --connections known)"
        }
        Reason::PassHeadLength => "its head is longer than 2,560 bytes (fewer or shorter cookies)",
        Reason::PassInParts => {
            "its head came in several segments, as from telnet and from clients that send each line by itself (send the \
             head with one call)"
        }
        Reason::PassHeader => {
            "it has an unusual line, or asks for more than to keep the connection (Connection: close: --connections known)"
        }
        Reason::PassField => {
            "a field of it may matter to the answer: credentials, a range, or one that is not known (--allow-field NAME \
             for one that matters to no answer)"
        }
        Reason::PassSite => "its Host is no name of the site (--host NAME)",
        Reason::PassNotPinned => {
            "its path is not in the kernel (no file, a query, or refused: see the reasons of URLs; --ext, --cache)"
        }
        Reason::PassVariant => {
            "no stored coding surely fits its Accept-Encoding, or the server answers it otherwise (HEAD, HTTP/1.0)"
        }
        Reason::PassCondition => {
            "its condition is one that the server treats in its own way (nothing to change)"
        }
        Reason::PassWindow => {
            "the answer is longer than the client's window or one segment (nothing to change)"
        }
        Reason::PassSend => "its packet could not become the answer (nothing to change)",
        Reason::PassBypassed => {
            "too many requests in a row of its connection were the server's (--bypass-after)"
        }
        Reason::PassTransfersFull => "too many long answers were under way",
        Reason::PassOtherSocket => {
            "its connection is another listener's on this port (name the server's own address with --listen)"
        }
        Reason::PassUnconfirmed => {
            "it was the firewall's turn to see a request of this client (--firewall-interval)"
        }
        Reason::PassPaused => "the fast path is paused (`afpa resume`)",
        Reason::PassOutside => "its packet was out of its connection's order (nothing to change)",
        Reason::PassNoWay => "the way back to the client was not known yet (nothing to change)",
        Reason::PassOtherWay => "it came another way than the request before (nothing to change)",
        Reason::PassNotFirst => {
            "another program stands before ours on the interface (start afpa after it)"
        }
        Reason::PassLoopback => {
            "it came over loopback to another of the machine's addresses (nothing to change)"
        }
        Reason::PassDenied => "its client is denied (`afpa deny list`)",
        Reason::PassClientRate => "its client asks too often, by the limits",
        Reason::PassTotalRate => "all clients together ask too often, by the limits",
        Reason::PassExpired => "the kept answer was no longer fresh (longer max-age)",
        Reason::PassOutdated => {
            "an unsafe request had passed since the answer was kept (nothing to change)"
        }
        Reason::PassTracked => {
            "its connection is tracked (conntrack; `afpa doctor` has the remedy)"
        }
        Reason::PassLinkLocal => "its client has a link-local address (nothing to change)",
        _ => return None,
    })
}

impl Counters {
    /// Why requests went up, in the operator's words, and how many, the most frequent reason first.
    pub fn passes(&self) -> Vec<(&'static str, u64)> {
        let told = self.iter().filter(|(_, count)| *count > 0);
        let mut told: Vec<_> =
            told.filter_map(|(reason, count)| Some((words(reason)?, count))).collect();
        told.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets without a request, and SYNs, which the server's side counts apart.
    const NO_REQUESTS: [Reason; 6] = [
        Reason::PassNoPayload,
        Reason::PassTranslated,
        Reason::PassNotListening,
        Reason::PassNotNext,
        Reason::SocketlessUnfit,
        Reason::SocketlessUnknownClient,
    ];

    #[test]
    fn every_request_that_went_up_has_words() {
        for reason in Reason::ALL.iter().copied() {
            let passed = reason.text().starts_with("passed: ");
            let of_syn = ["SYN", "connections without a socket", "opens a connection"];
            let syn = of_syn.iter().any(|word| reason.text().contains(word));
            let wanted = passed && !syn && !NO_REQUESTS.contains(&reason);
            assert!(!wanted || words(reason).is_some(), "{}", reason.text());
            assert!(passed || words(reason).is_none(), "{}", reason.text());
        }
    }
}
