//! The plan of the house and its words.

mod house;
mod rules;
mod words;
