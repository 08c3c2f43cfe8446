//! `afpa attach` beside servers that know nothing of it.

mod answers;
mod doctor;
mod fields;
mod health;
mod life;
mod long;
mod one;
mod others;
mod pause;
mod rights;
mod self_check;
mod strangers;
