//! `afpa attach` beside servers that know nothing of it.

mod answers;
mod life;
mod long;
