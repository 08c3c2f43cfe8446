//! The plan of the house and its words.

mod comments;
mod house;
mod pages;
mod prose;
mod rules;
mod words;
