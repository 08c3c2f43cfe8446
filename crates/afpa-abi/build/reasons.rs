//! Turns the table of numbered exits in `reasons.h` into the enum `Reason`: one source for both worlds.

use std::fmt::Write;

/// The enum of the reasons that `header` lists.
pub(crate) fn write(header: &str) -> String {
    let table: Vec<Row> = header.lines().filter_map(Row::parse).collect();
    let numbered = table.iter().enumerate().all(|(at, row)| row.number == at);
    assert!(!table.is_empty() && numbered, "reasons are numbered without gaps");
    generate(&table)
}

struct Row<'a> {
    number: usize,
    name: &'a str,
    text: &'a str,
}

impl<'a> Row<'a> {
    /// `X(3, ABSORBED_ACK, "...")   \`
    fn parse(line: &'a str) -> Option<Self> {
        let inside = line.trim().strip_prefix("X(")?;
        let (number, rest) = inside.split_once(", ")?;
        let (name, rest) = rest.split_once(", \"")?;
        let (text, _) = rest.split_once("\")")?;
        Some(Self { number: number.parse().ok()?, name, text })
    }

    fn camel_case(&self) -> String {
        let word = |word: &str| {
            let (first, rest) = word.split_at(1);
            first.to_owned() + &rest.to_lowercase()
        };
        self.name.split('_').map(word).collect()
    }
}

fn generate(table: &[Row]) -> String {
    let mut out = String::new();
    let mut put = |line: String| writeln!(out, "{line}").expect("strings grow");
    put("/// Every way out of the programs, as numbered in `reasons.h`.".into());
    put("#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u32)]\npub enum Reason {".into());
    for row in table {
        put(format!("    /// {}\n    {} = {},", row.text, row.camel_case(), row.number));
    }
    put("}\nimpl Reason {\n    /// All, in the order of their numbers.\n    pub const ALL: &'static [Self] = &[".into());
    for row in table {
        put(format!("        Self::{},", row.camel_case()));
    }
    put("    ];\n    /// Stable lower-case name, as metrics label it.\n    pub fn name(self) -> &'static str {\n        match self {".into());
    for row in table {
        put(format!("            Self::{} => \"{}\",", row.camel_case(), row.name.to_lowercase()));
    }
    put("        }\n    }\n    /// What it means, in a few words.\n    pub fn text(self) -> &'static str {\n        match self {".into());
    for row in table {
        put(format!("            Self::{} => \"{}\",", row.camel_case(), row.text));
    }
    put("        }\n    }\n}".into());
    out
}
