//! The plan of the house and its words.

mod circles;
mod comments;
mod house;
mod imports;
mod pages;
mod prose;
mod rules;
mod runner;
mod words;
