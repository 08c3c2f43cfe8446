//! Where the members of a struct lie. The header has no implicit padding; a struct that would is refused.

use std::collections::HashMap;

use super::header::{Field, Header, Kind};

/// Sizes and alignments by the name of the struct, and the offset of each member in order.
pub(crate) struct Layout {
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) offsets: Vec<usize>,
}

pub(crate) fn layouts(header: &Header) -> Result<HashMap<String, Layout>, String> {
    let mut all: HashMap<String, Layout> = HashMap::new();
    for found in &header.structs {
        let mut layout = Layout { size: 0, align: 1, offsets: Vec::new() };
        for field in &found.fields {
            let (size, align) = of_field(field, &all);
            if layout.size % align != 0 {
                return Err(format!("struct {} has padding before {}", found.name, field.name));
            }
            layout.offsets.push(layout.size);
            layout.size += size;
            layout.align = layout.align.max(align);
        }
        if layout.size % layout.align != 0 {
            return Err(format!("struct {} has padding at its end", found.name));
        }
        all.insert(found.name.clone(), layout);
    }
    Ok(all)
}

fn of_field(field: &Field, known: &HashMap<String, Layout>) -> (usize, usize) {
    let (size, align) = match &field.kind {
        Kind::Integer(bytes) => (*bytes, *bytes),
        Kind::Struct(name) => (known[name].size, known[name].align),
    };
    (size * field.count.unwrap_or(1) as usize, align)
}

#[cfg(test)]
mod tests {
    use super::super::header::read;
    use super::*;

    #[test]
    fn members_follow_one_another() {
        let text = "struct a { __u16 x; __u8 y[2]; };\nstruct b { __u64 z; struct a more[2]; };";
        let all = layouts(&read(text).expect("the subset")).expect("no padding");
        assert_eq!((all["a"].size, all["a"].align, &all["a"].offsets[..]), (4, 2, &[0, 2][..]));
        assert_eq!((all["b"].size, all["b"].align, &all["b"].offsets[..]), (16, 8, &[0, 8][..]));
    }

    #[test]
    fn padding_is_refused() {
        let refused = |text| layouts(&read(text).expect("the subset")).err().expect("has padding");
        assert_eq!(refused("struct a { __u8 x; __u16 y; };"), "struct a has padding before y");
        assert_eq!(refused("struct a { __u16 x; __u8 y; };"), "struct a has padding at its end");
    }
}
