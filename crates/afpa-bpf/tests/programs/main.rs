//! The programs in the kernel: packet in and packet out, and in front of an unmodified server.

mod at_once;
mod blind;
mod bypass;
mod bypass_after;
mod cost;
mod firewall;
mod keep_alive;
mod life;
mod load;
mod object;
mod oracle;
mod packets;
mod police;
mod requests;
mod retransmission;
mod samples;
mod segments;
mod servers_answers;
mod socketless;
mod support;
mod tour;
mod transfer;
mod transfer_ends;
mod transfer_segments;
mod unsafe_requests;
mod unsafe_spellings;
