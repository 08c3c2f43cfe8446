//! Writes the header's definitions in Rust: `struct afpa_flow_key` becomes `FlowKey`, `AFPA_PATH_MAX`
//! becomes `PATH_MAX`, `enum afpa_owner` a module `owner` of constants.

use std::fmt::Write;

use super::header::{Constant, Enum, Field, Header, Kind, Struct};
use super::layout::{Layout, layouts};

pub(crate) fn write(header: &Header) -> Result<String, String> {
    let layouts = layouts(header)?;
    let mut out = String::new();
    header.constants.iter().for_each(|constant| self::constant(&mut out, constant));
    for found in &header.enums {
        enumeration(&mut out, found)?;
    }
    header.structs.iter().for_each(|found| structure(&mut out, found, &layouts[&found.name]));
    table(&mut out, header);
    Ok(out)
}

fn constant(out: &mut String, constant: &Constant) {
    let Constant { name, value, doc } = constant;
    let name = name.strip_prefix("AFPA_").unwrap_or(name);
    let kind = if u32::try_from(*value).is_ok() { "usize" } else { "u64" };
    put(out, "", doc, &format!("pub const {name}: {kind} = {value};"));
}

/// The members without the prefix that all of their names have.
fn enumeration(out: &mut String, found: &Enum) -> Result<(), String> {
    let prefix = common_prefix(&found.members);
    put(out, "", &found.doc, &format!("pub mod {} {{", snake_case(&found.name)));
    for Constant { name, value, doc } in &found.members {
        let value = u8::try_from(*value).map_err(|_| format!("{name} is no byte"))?;
        put(out, "    ", doc, &format!("pub const {}: u8 = {value};", &name[prefix..]));
    }
    line(out, "}");
    Ok(())
}

fn common_prefix(members: &[Constant]) -> usize {
    let first = &members[0].name;
    let common = |length: &usize| members.iter().all(|m| m.name.starts_with(&first[..*length]));
    let ends = first.match_indices('_').map(|(at, _)| at + 1);
    ends.filter(common).max().unwrap_or(0)
}

fn structure(out: &mut String, found: &Struct, layout: &Layout) {
    let name = camel_case(&found.name);
    let title = format!("`struct {}`", found.name);
    let doc = if found.doc.is_empty() { title } else { format!("{title}: {}", found.doc) };
    put(out, "", &doc, "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]");
    line(out, "#[repr(C)]");
    line(out, &format!("pub struct {name} {{"));
    for field in &found.fields {
        put(out, "    ", &field.doc, &format!("pub {}: {},", rust_name(field), rust_type(field)));
    }
    line(out, "}");
    each(
        out,
        found,
        &format!("impl {name} {{\n    /// Every byte is zero.\n    pub const ZERO: Self = Self {{"),
        |field| format!("        {}: {},", rust_name(field), zero(field)),
    );
    line(out, "    };");
    line(out, BYTES);
    line(
        out,
        &format!(
            "}}\nimpl Default for {name} {{\n    fn default() -> Self {{\n        Self::ZERO\n    }}\n}}"
        ),
    );
    each(
        out,
        found,
        &format!("impl Plain for {name} {{\n    fn read(bytes: &[u8]) -> Self {{\n        Self {{"),
        |field| {
            let field = rust_name(field);
            format!("            {field}: Plain::read(&bytes[offset_of!(Self, {field})..]),")
        },
    );
    each(out, found, "        }\n    }\n    fn write(&self, bytes: &mut [u8]) {", |field| {
        let field = rust_name(field);
        format!("        self.{field}.write(&mut bytes[offset_of!(Self, {field})..]);")
    });
    line(out, "    }\n}");
    line(out, &format!("const _: () = assert!(size_of::<{name}>() == {});", layout.size));
    for (field, offset) in found.fields.iter().zip(&layout.offsets) {
        let field = rust_name(field);
        line(out, &format!("const _: () = assert!(offset_of!({name}, {field}) == {offset});"));
    }
}

const BYTES: &str =
    "    /// From the bytes of a map or event. None: they are not as many as this takes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() == size_of::<Self>()).then(|| Plain::read(bytes))
    }
    /// The bytes that a map or event has.
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        let mut bytes = [0; size_of::<Self>()];
        self.write(&mut bytes);
        bytes
    }";

/// For the comparison with the BTF of the programs.
fn table(out: &mut String, header: &Header) {
    line(out, "/// The layout of every struct, as Rust has it.");
    line(out, "pub const STRUCTS: &[StructLayout] = &[");
    for found in &header.structs {
        let name = camel_case(&found.name);
        let (c_name, size) = (&found.name, format!("size_of::<{name}>()"));
        line(out, &format!("    StructLayout {{ name: \"{c_name}\", size: {size}, members: &["));
        for field in &found.fields {
            let offset = format!("offset_of!({name}, {})", rust_name(field));
            line(out, &format!("        (\"{}\", {offset}),", field.name));
        }
        line(out, "    ] },");
    }
    line(out, "];");
}

fn each(out: &mut String, found: &Struct, head: &str, text: impl Fn(&Field) -> String) {
    line(out, head);
    found.fields.iter().for_each(|field| line(out, &text(field)));
}

fn rust_type(field: &Field) -> String {
    let one = match &field.kind {
        Kind::Integer(bytes) => format!("u{}", bytes * 8),
        Kind::Struct(name) => camel_case(name),
    };
    field.count.map_or(one.clone(), |count| format!("[{one}; {count}]"))
}

fn zero(field: &Field) -> String {
    let one = match &field.kind {
        Kind::Integer(_) => "0".to_owned(),
        Kind::Struct(name) => format!("{}::ZERO", camel_case(name)),
    };
    field.count.map_or(one.clone(), |count| format!("[{one}; {count}]"))
}

/// Words of C that Rust keeps for itself.
fn rust_name(field: &Field) -> String {
    let reserved = ["type", "ref", "in", "match", "move", "use", "final", "priv"];
    let raw = reserved.contains(&field.name.as_str());
    if raw { format!("r#{}", field.name) } else { field.name.clone() }
}

fn snake_case(name: &str) -> &str {
    name.strip_prefix("afpa_").unwrap_or(name)
}

fn camel_case(name: &str) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    };
    snake_case(name).split('_').map(capital).collect()
}

/// `text`, below its documentation.
fn put(out: &mut String, indent: &str, doc: &str, text: &str) {
    if !doc.is_empty() {
        let escaped = doc.replace('[', "\\[").replace('<', "\\<");
        line(out, &format!("{indent}/// {escaped}"));
    }
    line(out, &format!("{indent}{text}"));
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("strings grow");
}

#[cfg(test)]
mod tests {
    use super::super::header::read;
    use super::*;

    fn written(text: &str) -> String {
        write(&read(text).expect("the subset")).expect("can be written")
    }

    #[test]
    fn names_lose_what_c_needs_in_place_of_modules() {
        let text = written(
            "#define AFPA_MAX 4 /* most */\nenum afpa_owner { AFPA_OWNER_A, AFPA_OWNER_B = 7 };\n\
             struct afpa_flow_key {\n\t__u16 port[AFPA_MAX]; /* see [1] */\n\t__u64 type;\n};",
        );
        for expected in [
            "/// most\npub const MAX: usize = 4;\n",
            "pub mod owner {\n    pub const A: u8 = 0;\n    pub const B: u8 = 7;\n}\n",
            "#[repr(C)]\npub struct FlowKey {\n    /// see \\[1]\n    pub port: [u16; 4],\n    pub r#type: u64,\n}\n",
            "const _: () = assert!(size_of::<FlowKey>() == 16);\n",
            "const _: () = assert!(offset_of!(FlowKey, r#type) == 8);\n",
            "StructLayout { name: \"afpa_flow_key\", size: size_of::<FlowKey>(), members: &[\n        (\"port\", offset_of!(FlowKey, port)),\n",
        ] {
            assert!(text.contains(expected), "{expected}\nis not in\n{text}");
        }
    }

    #[test]
    fn members_of_enums_are_bytes() {
        let header = read("enum e { A = 255, B };").expect("the subset");
        assert_eq!(write(&header).err().as_deref(), Some("B is no byte"));
    }
}
