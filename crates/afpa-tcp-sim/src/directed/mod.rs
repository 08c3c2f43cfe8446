//! Directed cases: the sender in one situation each, with numbers that were computed by hand from the RFCs'
//! formulas. Each case takes a fresh worker; a number that differs panics.

mod cwnd;
mod ecn;
mod mtu;
mod rack;
mod rtt;
mod sack;
mod timers;
mod undo;
mod window;

use crate::worker::Worker;

/// A case: its name, and its function.
pub type Case = (&'static str, fn(&mut Worker));

/// A list of the functions of a module.
macro_rules! cases {
    ($module:ident: $($case:ident)*) => {
        &[$((concat!(stringify!($module), "::", stringify!($case)), $module::$case)),*]
    };
}

/// All of them, by the file that they are in.
pub const ALL: &[&[Case]] = &[
    cases!(rtt: first_sample second_and_third_sample the_floor_and_the_ceiling timeouts_double
        the_probe_timeout karns_algorithm plain_acks_give_samples),
    cases!(cwnd: the_initial_window slow_start congestion_avoidance a_reduction
        an_unused_window_does_not_grow an_idle_path_begins_anew a_retransmission_timeout
        a_second_timeout_reduces_nothing_more recovery_after_a_timeout_is_slow_start),
    cases!(sack: blocks_count_whole_segments blocks_outside_of_what_was_sent the_last_segment_is_short
        a_client_that_reneges sets_of_more_than_64_segments acks_of_unsent_data),
    cases!(rack: three_blocks_lose_at_once two_blocks_wait_a_quarter_of_the_rtt
        segments_that_left_together reordering_widens_the_window the_window_is_bounded_by_srtt
        one_widening_a_round_trip patience_ends_after_sixteen_recoveries
        a_recovery_ends_at_its_point a_lost_retransmission),
    cases!(timers: probe_then_timeouts_that_double a_probe_repairs_a_lost_tail
        a_probe_of_new_data a_probe_that_was_not_needed progress_ends_the_backoff
        a_minute_of_silence what_is_sent_restarts_the_timer),
    cases!(undo: all_spurious_restores_cwnd_and_ssthresh one_of_two_restores_nothing
        the_next_transfer_restores_it an_old_timestamp_restores_at_once
        a_timestamp_behind_a_gap_says_nothing copies_of_the_network_say_nothing
        a_timeout_cannot_be_undone),
    cases!(ecn: one_reduction_a_window ece_at_the_end_is_told_with_the_next_transfer
        retransmissions_are_not_ecn_capable ece_in_a_recovery ece_with_the_request
        one_reduction_for_several_signs a_loss_behind_an_ece),
    cases!(mtu: too_big_is_no_congestion what_was_delivered_stays a_timeout_suspects_a_black_hole),
    cases!(window: the_window_is_never_exceeded a_small_window_gets_small_segments
        a_closed_window_is_probed a_probe_fills_what_is_open half_a_segment_is_not_sent_again),
];
