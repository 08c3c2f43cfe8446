//! Settings that take one of some words.

/// A closed set of words.
pub trait Choice: Copy + 'static {
    /// Every value, in the order in which messages list them.
    const ALL: &'static [Self];

    /// The word of a value.
    fn word(self) -> &'static str;

    /// The words for a person: `` `a`, `b` or `c` ``.
    fn kind() -> String {
        let words: Vec<String> = Self::ALL.iter().map(|c| format!("`{}`", c.word())).collect();
        match words.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => words.concat(),
        }
    }
}

/// Declares an enum whose values are words of the configuration.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        $crate::choice::words! { $name { $($name::$variant = $word,)+ } }
    };
}

/// Gives the values of enums of other crates their words.
macro_rules! words {
    ($($name:ty { $($($value:ident)::+ $(($inner:path))? = $word:literal,)+ })+) => {$(
        impl $crate::Choice for $name {
            const ALL: &'static [Self] = &[$($($value)::+ $(($inner))?,)+];

            fn word(self) -> &'static str {
                match self { $($($value)::+ $(($inner))? => $word,)+ }
            }
        }
    )+};
}

pub(crate) use {choice, words};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LogFormat, Policy};

    #[test]
    fn words_are_listed_for_people() {
        assert_eq!(Policy::kind(), "`afpa-lru`, `lru`, `lfu`, `s3-fifo`, `structured` or `auto`");
        assert_eq!(LogFormat::kind(), "`text` or `json`");
    }
}
