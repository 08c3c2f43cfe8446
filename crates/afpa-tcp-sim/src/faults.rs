//! Faults to be planted into a copy of the C, one at a time: each has to be found by the directed cases or by the
//! networks.
//!
//! They show the worth of the tests. A change of the C comes with the faults that it makes possible; a fault whose
//! line is gone from the C fails loudly.

use std::fs;
use std::path::{Path, PathBuf};

/// A fault: a piece of text that occurs once in a file of `bpf/include/afpa/tcp`, and the text that replaces it.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// A description of the fault.
    pub name: &'static str,
    /// The file.
    pub file: &'static str,
    /// The text in the file.
    pub from: &'static str,
    /// The text with the fault.
    pub to: &'static str,
}

/// The folder that `#include <afpa/...>` looks in.
pub fn include() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf/include")).to_owned()
}

impl Fault {
    /// A copy of the sender's headers in `folder`, with the fault. An error, when `from` does not occur exactly once.
    pub fn plant(&self, folder: &Path) -> Result<(), String> {
        let (source, copy) = (include().join("afpa/tcp"), folder.join("afpa/tcp"));
        fs::create_dir_all(&copy).map_err(|error| error.to_string())?;
        for entry in fs::read_dir(source).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.file_name().unwrap_or_default();
            let mut text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
            if name == self.file {
                let count = text.matches(self.from).count();
                if count != 1 {
                    return Err(format!("`{}` occurs {count} times in {}", self.from, self.file));
                }
                text = text.replace(self.from, self.to);
            }
            fs::write(copy.join(name), text).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

const fn fault(
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
) -> Fault {
    Fault { name, file, from, to }
}

/// All of them.
pub const ALL: &[Fault] = &[
    fault(
        "ssthresh is half instead of seven tenths",
        "path.h",
        "path->ssthresh = greater(path->cwnd * 7u / 10, 2);",
        "path->ssthresh = greater(path->cwnd * 5u / 10, 2);",
    ),
    fault(
        "ssthresh may fall to one",
        "path.h",
        "path->ssthresh = greater(path->cwnd * 7u / 10, 2);",
        "path->ssthresh = greater(path->cwnd * 7u / 10, 1);",
    ),
    fault("cwnd stays after a loss", "path.h", "\tpath->cwnd = path->ssthresh;\n", ""),
    fault(
        "congestion avoidance as fast as Reno",
        "path.h",
        "whole = path->cwnd * 15 / 8;",
        "whole = path->cwnd;",
    ),
    fault(
        "slow start at ssthresh, too",
        "path.h",
        "if (path->cwnd < path->ssthresh) {",
        "if (path->cwnd <= path->ssthresh) {",
    ),
    fault(
        "initial window of eleven",
        "path.h",
        "#define CWND_INITIAL 10 ",
        "#define CWND_INITIAL 11 ",
    ),
    fault(
        "idle restart missing",
        "path.h",
        "\t\tpath->cwnd = lesser(path->cwnd, CWND_INITIAL);",
        "\t\t;",
    ),
    fault(
        "RTTVAR gain an eighth",
        "path.h",
        "path->rttvar - path->rttvar / 4 + difference / 4",
        "path->rttvar - path->rttvar / 8 + difference / 8",
    ),
    fault(
        "SRTT gain a quarter",
        "path.h",
        "path->srtt - path->srtt / 8 + sample / 8",
        "path->srtt - path->srtt / 4 + sample / 4",
    ),
    fault(
        "first RTTVAR is the whole sample",
        "path.h",
        "path->rttvar = sample / 2;",
        "path->rttvar = sample;",
    ),
    fault(
        "RTO without the floor of 200 ms",
        "path.h",
        "(__u64)greater(path->rttvar * 4, RTO_MIN)",
        "(__u64)path->rttvar * 4",
    ),
    fault(
        "RTO does not double",
        "path.h",
        "first << (backoff < 16 ? backoff : 16)",
        "first << (backoff < 16 ? 0 : 16)",
    ),
    fault(
        "RTO back-off not counted",
        "rack.h",
        "\t\ton_rto(snd);\n\t\tsnd->rto_backoff += snd->rto_backoff < 255;\n",
        "\t\ton_rto(snd);\n",
    ),
    fault(
        "RTO back-off survives progress",
        "ack.h",
        "\t\tsnd->rto_backoff = 0;\n\t}\n\tsnd->snd_una = acked;\n\tsnd->snd_wnd_end = acked + ack->wnd < acked ? ~0u : acked + ack->wnd;\n\tresult->dsack",
        "\t}\n\tsnd->snd_una = acked;\n\tsnd->snd_wnd_end = acked + ack->wnd < acked ? ~0u : acked + ack->wnd;\n\tresult->dsack",
    ),
    fault("cwnd not one segment after an RTO", "rack.h", "\tsnd->path.cwnd = 1;\n", ""),
    fault(
        "an RTO in a recovery reduces ssthresh again",
        "rack.h",
        "\tif (snd->ca_state == CA_OPEN) /* a recovery",
        "\tif (1) /* a recovery",
    ),
    fault(
        "Karn's algorithm dropped",
        "ack.h",
        "\t\tif (rtt < snd->path.min_rtt)\n\t\t\treturn 0;\n",
        "\t\td->sample = rtt;\n\t\td->sampled = true;\n",
    ),
    fault(
        "an older timestamp taken for the retransmission",
        "ack.h",
        "is_before(d->ack->tsecr, left / 1000)",
        "is_before(left / 1000, d->ack->tsecr)",
    ),
    fault(
        "SACK block one segment too short",
        "ack.h",
        "bitset_range((from + mss - 1) / mss, end)",
        "bitset_range((from + mss - 1) / mss, end - (end > 0))",
    ),
    fault(
        "part of a segment SACKed counts as the whole",
        "ack.h",
        "(from + mss - 1) / mss",
        "from / mss",
    ),
    fault("SACK of unsent data believed", "ack.h", "|| to > sent ||", "|| to > sent + mss ||"),
    fault(
        "reneging ignored",
        "ack.h",
        "\tbitset_clear(&snd->sacked, sender_first_unacked(snd));\n",
        "",
    ),
    fault(
        "ACK of unsent data believed",
        "ack.h",
        "\tif (acked > sender_snd_nxt(snd) || acked < snd->snd_una)\n",
        "\tif (acked < snd->snd_una)\n",
    ),
    fault(
        "DSACK below the cumulative ACK not seen",
        "ack.h",
        "one.to <= acked ||",
        "(one.to <= acked && false) ||",
    ),
    fault(
        "reo_wnd never grows",
        "path.h",
        "\tpath->reo_wnd_mult += path->reo_wnd_mult < 255;\n",
        "",
    ),
    fault(
        "reo_wnd grows more than once a round trip",
        "ack.h",
        "\t\tsnd->reo_wnd_until = snd->next;\n",
        "",
    ),
    fault(
        "reo_wnd never shrinks",
        "path.h",
        "\tpath->reo_wnd_persist -= path->reo_wnd_persist > 0;\n",
        "",
    ),
    fault(
        "reo_wnd not bounded by SRTT",
        "rack.h",
        "lesser(snd->path.min_rtt / 4 * snd->path.reo_wnd_mult, snd->path.srtt)",
        "snd->path.min_rtt / 4 * snd->path.reo_wnd_mult",
    ),
    fault(
        "DupThresh of one",
        "rack.h",
        "bitset_count(snd->sacked) >= 3",
        "bitset_count(snd->sacked) >= 1",
    ),
    fault(
        "RACK orders segments of one time the wrong way",
        "rack.h",
        "segment < snd->rack_segment)",
        "segment > snd->rack_segment)",
    ),
    fault(
        "cwnd not reduced on ECE",
        "ack.h",
        "\t\tif (snd->ca_state == CA_OPEN)\n\t\t\treduce_cwnd(snd);\n\t\tsnd->path.cwr_pending = true;\n",
        "\t\tsnd->path.cwr_pending = true;\n",
    ),
    fault(
        "several signs of one window's congestion each reduce cwnd",
        "rack.h",
        "\tsnd->reduced_until = snd->next;\n",
        "",
    ),
    fault(
        "ECE reduces more than once a window",
        "ack.h",
        "\t\tsnd->cwr_until = snd->next + 1; /* the segment with CWR is acknowledged, too */\n",
        "",
    ),
    fault(
        "CWR never sent",
        "sender.h",
        "t->cwr = !retransmitted && snd->path.cwr_pending;",
        "t->cwr = false;",
    ),
    fault(
        "retransmissions are ECN-capable",
        "sender.h",
        "\tt->ect = !retransmitted;\n",
        "\tt->ect = true;\n",
    ),
    fault(
        "undo restores the reduced cwnd",
        "path.h",
        "path->undo_cwnd = path->cwnd;",
        "path->undo_cwnd = path->cwnd * 7 / 10;",
    ),
    fault(
        "undo leaves ssthresh",
        "path.h",
        "\t\tpath->ssthresh = greater(path->ssthresh, path->undo_ssthresh);\n",
        "",
    ),
    fault(
        "undo after the first of several spurious ones",
        "path.h",
        "if (segments && path->undo_cwnd && path->undo_retrans == 0) {",
        "if (segments && path->undo_cwnd) {",
    ),
    fault("TLP never sent", "rack.h", "\t\tsnd->tlp = TLP_DUE;\n", ""),
    fault(
        "PTO of one SRTT",
        "path.h",
        "greater(2 * path->srtt, PTO_MIN)",
        "greater(path->srtt, PTO_MIN)",
    ),
    fault("PTO without the delayed ACK", "path.h", "\t\twait += DELAYED_ACK_MAX;\n", "\t\t;\n"),
    fault(
        "a loss that a TLP repaired leaves cwnd",
        "ack.h",
        "\t\tif (!dsack && snd->ca_state == CA_OPEN)\n\t\t\treduce_cwnd(snd);\n",
        "",
    ),
    fault(
        "receive window ignored",
        "sender.h",
        "segment < snd->segments && sender_segment_start(snd, segment + 1) <= snd->snd_wnd_end",
        "segment < snd->segments",
    ),
    fault(
        "receive window one byte too wide",
        "sender.h",
        "sender_segment_start(snd, segment + 1) <= snd->snd_wnd_end",
        "sender_segment_start(snd, segment + 1) <= snd->snd_wnd_end + 1",
    ),
    fault("window probe never sent", "rack.h", "\t\tsnd->window_probe = true;\n", ""),
    fault(
        "cwnd ignored",
        "sender.h",
        "bool room = sender_pipe(snd) < snd->path.cwnd;",
        "bool room = true;",
    ),
    fault(
        "cwnd one segment too wide",
        "sender.h",
        "bool room = sender_pipe(snd) < snd->path.cwnd;",
        "bool room = sender_pipe(snd) <= snd->path.cwnd;",
    ),
    fault(
        "a range of the bitset one too long",
        "bitset.h",
        "return (((1ULL << (to & 63)) - 1) | beyond) & ~negative;",
        "return (((2ULL << (to & 63)) - 1) | beyond) & ~negative;",
    ),
    fault(
        "second word of the bitset begins at 63",
        "bitset.h",
        "word_below((__s64)(__s32)to - 64) & ~word_below((__s64)(__s32)from - 64),",
        "word_below((__s64)(__s32)to - 63) & ~word_below((__s64)(__s32)from - 63),",
    ),
    fault(
        "first member of the second word is one too low",
        "bitset.h",
        "return set.word[1] ? 64 + word_first(set.word[1])",
        "return set.word[1] ? 63 + word_first(set.word[1])",
    ),
    fault("MTU black hole not suspected", "rack.h", "\tsnd->mtu_blackhole = true;\n", ""),
    fault(
        "a lowered MTU loses nothing",
        "rack.h",
        "\tsnd->lost = sender_outstanding(snd);\n\tsnd->rack_valid = false;\n\tsnd->tlp",
        "\tsnd->rack_valid = false;\n\tsnd->tlp",
    ),
    fault(
        "client never given up",
        "rack.h",
        "now - snd->last_progress >= SENDER_GIVE_UP_AFTER",
        "now - snd->last_progress >= 100 * SENDER_GIVE_UP_AFTER",
    ),
    fault(
        "plain ACKs give no RTT sample",
        "ack.h",
        "\t\tpath_rtt_sample(&snd->path, (__u32)now - snd->sent_at[last & (SENDER_SEGMENTS - 1)]);\n",
        "",
    ),
    fault(
        "plain ACK of unsent data believed",
        "ack.h",
        "ack->ack >= snd->snd_una && lesser(ack->ack, snd->length) <= sender_snd_nxt(snd);",
        "ack->ack >= snd->snd_una;",
    ),
    fault(
        "an unused cwnd grows",
        "ack.h",
        "(snd->ca_state == CA_OPEN && snd->path.cwnd < 2 * snd->max_pipe)",
        "(snd->ca_state == CA_OPEN)",
    ),
    fault(
        "acknowledged half of a segment is sent again",
        "sender.h",
        "t->offset = greater(start, snd->snd_una);",
        "t->offset = start;",
    ),
    fault(
        "time of sending written behind the array",
        "sender.h",
        "snd->sent_at[segment & (SENDER_SEGMENTS - 1)] = now;",
        "snd->sent_at[segment + 1] = now;",
    ),
    fault(
        "timer not restarted after sending",
        "rack.h",
        "\tsnd->timer_base = now;\n\tarm_timer(snd, now);\n}\n\n/* The next segment",
        "\tarm_timer(snd, now);\n}\n\n/* The next segment",
    ),
    fault(
        "a recovery ends one segment early",
        "rack.h",
        "\t\tsnd->recovery_point = snd->next;\n\t\tsnd->fast_retransmit = true;\n",
        "\t\tsnd->recovery_point = snd->next - 1;\n\t\tsnd->fast_retransmit = true;\n",
    ),
];
