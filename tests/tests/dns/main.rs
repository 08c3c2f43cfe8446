//! AFPA as a name server: against other servers, with real clients, through its life.

mod acme;
mod bed;
mod clients;
mod differ;
mod ferret;
mod keys;
mod life;
mod message;
mod odd;
mod secondaries;
mod types;
