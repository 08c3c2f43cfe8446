//! Checks after every step: the invariants S1 to S7 of docs/rules, and the rules of the RFCs that hold
//! at each step of any transfer. Everything is computed from the state before the step, the step and the RFC's
//! formula; no line is shared with the C. (The client checks S6 and S8.)

use crate::client::Broken;
use crate::step::{Ack, MAX_SEGMENTS, Micros, SenderState, Step, ca_state, progress, timer, tlp};

/// RFC 6298, 2.3, 2.4 (with Linux' floor) and 5.5.
pub fn rto(srtt: u64, rttvar: u64, backoff: u64) -> Micros {
    let base = if srtt == 0 { 1_000_000 } else { srtt + (4 * rttvar).max(200_000) };
    (base << backoff.min(16)).min(60_000_000)
}

/// RFC 8985, 7.2: two round trips, and a delayed ACK for a single segment; never later than the RTO.
pub fn pto(state: &SenderState) -> Micros {
    let wait = if state.srtt == 0 { 1_000_000 } else { (2 * state.srtt).max(10_000) };
    let delayed = if in_flight(state).count_ones() == 1 { 200_000 } else { 0 };
    (wait + delayed).min(rto(state.srtt, state.rttvar, 0))
}

/// RFC 9438, 4.6, and RFC 5681, equation 4: never below two segments.
pub fn reduced(cwnd: u64) -> u64 {
    (cwnd * 7 / 10).max(2)
}

/// Holds all rules for one step.
pub fn check(
    before: &SenderState,
    now: Micros,
    step: &Step,
    after: &SenderState,
) -> Result<(), Broken> {
    match step {
        Step::Begin { length, segment, window, path } => {
            let idle = now.saturating_sub(path.last_sent);
            return begun(after, *length, *segment, *window)
                .and_then(|()| check_begin(path.cwnd, idle, after));
        }
        Step::Ack(ack) => check_ack(before, now, ack, after)?,
        Step::Timer => check_timer(before, now, after)?,
        Step::Poll => check_transmission(before, now, after)?,
        Step::MtuLowered => {
            let same = (after.cwnd, after.ssthresh) == (before.cwnd, before.ssthresh);
            rule(same, "a lowered MTU is no congestion")?;
            rule(after.lost() == outstanding(before), "all that was too big is lost")?;
        }
        _ => {}
    }
    invariants(after)?;
    if after.deadline == before.deadline { Ok(()) } else { check_deadline(now, after) }
}

fn begun(after: &SenderState, length: u32, segment: u32, window: u32) -> Result<(), Broken> {
    let mss = if window >= 2 * segment { segment } else { segment.min(window / 2) };
    let fits = length > 0 && mss > 0 && length.div_ceil(mss) <= MAX_SEGMENTS;
    rule((after.result == 1) == fits, "a transfer has 1 to 128 segments")?;
    if fits {
        rule(
            after.mss == u64::from(mss),
            "segments are half a small window (RFC 9293, 3.8.6.2.1)",
        )?;
        rule(after.segments == u64::from(length.div_ceil(mss)), "as many segments as bytes need")?;
    }
    Ok(())
}

fn check_begin(cwnd: u32, idle: Micros, after: &SenderState) -> Result<(), Broken> {
    if after.result == 0 {
        return Ok(());
    }
    let cwnd = if cwnd == 0 { 10 } else { u64::from(cwnd) };
    let idle = idle > rto(after.srtt, after.rttvar, 0);
    let expected = if idle { cwnd.min(10) } else { cwnd };
    rule(after.cwnd == expected, "ten segments after an idle RTO (RFC 5681, 4.1; RFC 6928)")
}

/// S1 to S5: of a state alone.
pub fn invariants(state: &SenderState) -> Result<(), Broken> {
    let sent = (state.next * state.mss).min(state.length);
    let done = state.snd_una == state.length;
    rule(state.snd_una <= sent && state.next <= state.segments, "S1: una <= sent <= length")?;
    let window = range(first_unacked(state), state.next);
    rule(state.sacked() & !window == 0, "S2: only what was sent can be delivered")?;
    rule(state.lost() & !window == 0, "S2: only what was sent can be lost")?;
    rule(state.rack_fack <= state.next, "S2: only what was sent can be delivered")?;
    rule(state.retransmitted() & !range(0, state.next) == 0, "S2: sent twice means sent")?;
    rule(state.lost() & state.sacked() == 0, "S3: what was delivered is not lost")?;
    rule(state.cwnd >= 1 && state.ssthresh >= 2, "S4: cwnd >= 1, ssthresh >= 2")?;
    rule(state.cwnd <= 255 && state.ssthresh <= 255, "S4: at most 255 segments")?;
    let armed = done || state.next == 0 || state.timer != timer::NONE;
    rule(armed, "S5: a timer runs while anything is missing")?;
    rule(done == (state.timer == timer::NONE) || state.next == 0, "S5: and none after that")?;
    rule(state.pipe == u64::from(in_flight(state).count_ones()), "pipe (RFC 6675, 4)")
}

fn check_deadline(now: Micros, state: &SenderState) -> Result<(), Broken> {
    let wait = state.deadline.wrapping_sub(state.timer_base);
    let rto = rto(state.srtt, state.rttvar, state.rto_backoff);
    match state.timer {
        timer::RTO => rule(wait == rto, "the RTO doubles with each timeout (RFC 6298)"),
        timer::PERSIST => rule(wait == rto, "window probes are an RTO apart (RFC 9293, 3.8.6.1)"),
        timer::TLP => rule(wait == pto(state), "the PTO (RFC 8985, 7.2)"),
        timer::RACK => {
            let longest = state.rack_rtt + state.srtt.max(state.min_rtt);
            let within = state.deadline >= now && state.deadline <= now + longest;
            rule(within, "reo_wnd is bounded by SRTT (RFC 8985, 6.2)")
        }
        _ => Ok(()),
    }
}

fn check_timer(before: &SenderState, now: Micros, after: &SenderState) -> Result<(), Broken> {
    if before.timer == timer::NONE || now < before.deadline {
        return rule(before.at_rest() == after.at_rest(), "nothing happens before the deadline");
    }
    let silent = now.saturating_sub(before.last_progress) >= 60_000_000;
    rule((after.result == progress::GIVEN_UP) == silent, "given up after 60 s without progress")?;
    if silent {
        return Ok(());
    }
    match before.timer {
        timer::RTO => check_rto(before, after),
        timer::TLP => rule(after.tlp == tlp::DUE, "the PTO makes a probe due (RFC 8985, 7.3)"),
        timer::PERSIST if before.ready == 255 => {
            rule(after.window_probe == 1, "a closed window is probed")?;
            rule(after.rto_backoff == before.rto_backoff + 1, "and less often each time")
        }
        _ => Ok(()),
    }
}

fn check_rto(before: &SenderState, after: &SenderState) -> Result<(), Broken> {
    rule(after.rto_backoff == before.rto_backoff + 1, "each timeout backs off (RFC 6298, 5.5)")?;
    rule(after.cwnd == 1, "one segment after a timeout (RFC 5681, 3.1)")?;
    let open = before.ca_state == ca_state::OPEN;
    let reduces = open && may_reduce(before, before);
    let ssthresh = if reduces { reduced(before.cwnd) } else { before.ssthresh };
    rule(after.ssthresh == ssthresh, "a timeout reduces ssthresh once")?;
    rule(after.lost() == outstanding(before), "a timeout loses all (RFC 8985, 6.3)")?;
    rule(after.ca_state == ca_state::LOSS, "a timeout begins a recovery by slow start")?;
    rule(after.recovery_point == before.next, "up to all that was sent")?;
    rule(after.mtu_blackhole == 1, "a timeout may be an MTU black hole")
}

fn check_transmission(
    before: &SenderState,
    now: Micros,
    after: &SenderState,
) -> Result<(), Broken> {
    let t = after.transmission();
    if after.result == 0 {
        let may = before.window_probe == 1 || before.ready != 255;
        return rule(!may, "what may leave leaves");
    }
    let start = before.snd_una.max(u64::from(t.offset) / before.mss * before.mss);
    rule(u64::from(t.offset) == start, "a segment begins where one begins, or at una")?;
    rule(u64::from(t.offset + t.length) <= before.length, "S1: nothing beyond the end")?;
    let end = u64::from(t.offset + t.length);
    rule(end <= before.snd_wnd_end || t.length == 0, "S6: nothing beyond the window")?;
    rule(t.last == (end == before.length), "the last segment is told")?;
    if before.window_probe == 1 {
        rule(!t.ect, "a window probe is not ECN-capable (RFC 3168, 6.1.6)")?;
        return rule(u64::from(t.offset) == before.snd_una, "a window probe is at una");
    }
    let segment = u64::from(t.offset) / before.mss;
    let bit = 1u128 << segment;
    let whole = ((segment + 1) * before.mss).min(before.length);
    rule(t.length > 0 && end == whole, "a segment is sent to its end")?;
    rule(before.sacked() & bit == 0, "S3: nothing that was delivered is sent")?;
    rule(t.retransmitted == (segment < before.next), "sent before or not")?;
    rule(t.retransmitted || segment == before.next, "new segments in their order")?;
    rule(t.ect != t.retransmitted, "only new data is ECN-capable (RFC 3168, 6.1.5)")?;
    let owed = before.cwr_pending == 1 && !t.retransmitted;
    rule(t.cwr == owed, "CWR goes with the next new data (RFC 3168, 6.1.2)")?;
    rule(after.timer_base == now && after.last_sent == now, "timeouts count from here")?;
    // A TLP is new data, or the last outstanding segment (RFC 8985, 7.3).
    let last = 127_u64.wrapping_sub(outstanding(before).leading_zeros().into());
    if before.tlp == tlp::DUE && (segment == before.next || segment == last) {
        return Ok(());
    }
    let first_lost = before.lost().trailing_zeros();
    let due = if before.lost() == 0 { before.next } else { u64::from(first_lost) };
    rule(segment == due, "the first lost segment, or else the next new one")?;
    let room = u64::from(in_flight(before).count_ones()) < before.cwnd;
    rule(room || (before.fast_retransmit == 1 && t.retransmitted), "cwnd limits the pipe")
}

fn check_ack(
    before: &SenderState,
    now: Micros,
    ack: &Ack,
    after: &SenderState,
) -> Result<(), Broken> {
    let sent = (before.next * before.mss).min(before.length);
    let acked = u64::from(ack.ack).min(before.length);
    let unsent = acked > sent;
    rule((after.result == progress::IMPOSSIBLE) == unsent, "S7: unsent data is acknowledged")?;
    if unsent || acked < before.snd_una {
        return rule(before.at_rest() == after.at_rest(), "S7: such an ACK changes nothing");
    }
    rule(after.snd_una == acked, "the cumulative ACK is believed")?;
    let end = u64::from(u32::try_from(acked + u64::from(ack.wnd)).unwrap_or(u32::MAX));
    rule(after.snd_wnd_end == end, "the client's window")?;
    rule((after.result == progress::DONE) == (acked == before.length), "S8: done is all")?;
    if acked > before.snd_una {
        rule(after.rto_backoff == 0, "progress ends the back-off (RFC 6298, 5.7)")?;
        rule(after.last_progress == now, "progress is noted")?;
    }
    rule(after.sacked() == expected_sacked(before, ack, sent, after), "S2: the blocks (RFC 2018)")?;
    check_cwnd_on_ack(before, ack, after)
}

/// The segments that lie whole within the blocks, without the segment that the client says it lacks.
fn expected_sacked(before: &SenderState, ack: &Ack, sent: u64, after: &SenderState) -> u128 {
    let first = first_unacked(after);
    let mut sacked = before.sacked();
    for (from, to) in ack.sack.map(|(from, to)| (u64::from(from), u64::from(to))) {
        if from >= to || from <= after.snd_una || to > sent {
            continue;
        }
        for segment in 0..before.next {
            let (start, end) = (segment * before.mss, (segment + 1) * before.mss);
            if from <= start && end.min(before.length) <= to {
                sacked |= 1 << segment;
            }
        }
    }
    sacked & range(first + 1, before.next)
}

fn check_cwnd_on_ack(before: &SenderState, ack: &Ack, after: &SenderState) -> Result<(), Broken> {
    let acked = first_unacked(after) - first_unacked(before);
    let undone = before.undo_cwnd.max(before.cwnd) + acked;
    rule(
        after.cwnd <= undone.max(2),
        "cwnd grows by no more than was acknowledged (RFC 5681, 3.1)",
    )?;
    let open = before.ca_state == ca_state::OPEN;
    let same_recovery =
        before.ca_state == after.ca_state && before.recovery_point == after.recovery_point;
    let recovers = after.ca_state == ca_state::FAST_RECOVERY && !same_recovery;
    if recovers {
        // cwnd may have grown by this ACK. However many signs of congestion it shows, it is reduced once.
        let within = (reduced(before.cwnd)..=reduced(undone)).contains(&after.ssthresh)
            && after.cwnd == after.ssthresh;
        let once = !may_reduce(before, after) && after.cwnd >= before.cwnd.min(undone);
        rule(within || once, "a loss reduces cwnd to 0.7 (RFC 9438, 4.6), once a window")?;
        rule(after.recovery_point == before.next, "a recovery is up to all that was sent")?;
    }
    let exit = !open && after.ca_state == ca_state::OPEN;
    let point = first_unacked(after) >= before.recovery_point;
    if before.ca_state == ca_state::LOSS {
        rule(exit == point || after.ca_state != ca_state::OPEN, "a recovery ends at its point")?;
    }
    rule(!exit || point, "a recovery ends at its point, not before")?;
    let told = ack.ece && first_unacked(after) >= before.cwr_until;
    rule(!told || after.cwr_pending == 1, "an ECE is answered by CWR (RFC 3168, 6.1.2)")?;
    if told && open && may_reduce(before, after) {
        rule(after.cwnd <= reduced(undone), "an ECE reduces cwnd as a loss (RFC 3168, 6.1.2)")?;
    }
    let tlp_repair = before.tlp == tlp::RETRANSMITTED && after.tlp == tlp::NONE;
    let reason = recovers || told || tlp_repair;
    rule(reason || after.cwnd >= before.cwnd, "cwnd falls for a reason")
}

/// Does a sign of congestion that came between these two reduce cwnd? It does once a window.
fn may_reduce(before: &SenderState, after: &SenderState) -> bool {
    first_unacked(after) >= before.reduced_until
}

/// The segment of the first byte that is not acknowledged.
fn first_unacked(state: &SenderState) -> u64 {
    if state.snd_una == state.length { state.segments } else { state.snd_una / state.mss }
}

/// Sent, and not known to be delivered.
fn outstanding(state: &SenderState) -> u128 {
    range(first_unacked(state), state.next) & !state.sacked()
}

fn in_flight(state: &SenderState) -> u128 {
    outstanding(state) & !state.lost()
}

/// The segments from `from` up to, but without, `to`.
fn range(from: u64, to: u64) -> u128 {
    let below = |to: u64| if to >= 128 { u128::MAX } else { (1 << to) - 1 };
    below(to) & !below(from)
}

fn rule(holds: bool, rule: &str) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(rule.to_owned()) }
}
