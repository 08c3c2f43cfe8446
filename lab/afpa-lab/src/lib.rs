//! The lab: AFPA and its peers on the papers' workloads, side by side.
