//! Reads the C header that the eBPF programs and user mode share.
//!
//! It knows the subset of C that `abi.h` is written in, and refuses everything else with its line:
//! `#define NAME expression`, enums, structs of integers, arrays and earlier structs. Comments become
//! documentation: one that stands above an item, or behind it on the same line.

use std::collections::HashMap;

use super::tokens::{Comment, Refusal, Token, number, refusal, tokens};

/// The definitions of a header, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) constants: Vec<Constant>,
    pub(crate) enums: Vec<Enum>,
    pub(crate) structs: Vec<Struct>,
}

/// A number with a name: of a `#define`, or of an enum.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Constant {
    pub(crate) name: String,
    pub(crate) value: u64,
    pub(crate) doc: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Enum {
    pub(crate) name: String,
    pub(crate) members: Vec<Constant>,
    pub(crate) doc: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) doc: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Elements, if it is an array.
    pub(crate) count: Option<u64>,
    pub(crate) doc: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An unsigned integer of this many bytes.
    Integer(usize),
    Struct(String),
}

pub(crate) fn read(text: &str) -> Result<Header, Refusal> {
    let (tokens, comments) = tokens(text)?;
    let mut reader =
        Reader { tokens, at: 0, comments, values: HashMap::new(), header: Header::default() };
    reader.all()?;
    Ok(reader.header)
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    comments: Vec<Comment>,
    /// Constants so far, for expressions.
    values: HashMap<String, u64>,
    header: Header,
}

impl Reader {
    fn all(&mut self) -> Result<(), Refusal> {
        while let Some(token) = self.peek().cloned() {
            match token.text.as_str() {
                "#" => self.directive()?,
                "enum" => self.enumeration()?,
                "struct" => self.structure()?,
                other => return Err(refusal(token.line, format!("unknown definition `{other}`"))),
            }
        }
        Ok(())
    }

    fn directive(&mut self) -> Result<(), Refusal> {
        let line = self.next()?.line;
        let word = self.next()?.text;
        let mut rest = self.rest_of_line(line);
        match word.as_str() {
            "include" | "ifndef" | "endif" => Ok(()),
            "define" => {
                let Some((name, expression)) = rest.split_first_mut() else {
                    return Err(refusal(line, "`#define` without a name"));
                };
                if expression.is_empty() {
                    return Ok(()); // the guard against a second inclusion
                }
                let value = self.value(expression, line)?;
                let constant =
                    Constant { name: name.text.clone(), value, doc: self.doc(line, line) };
                self.remember(&constant, line)?;
                self.header.constants.push(constant);
                Ok(())
            }
            other => Err(refusal(line, format!("unknown directive `#{other}`"))),
        }
    }

    fn enumeration(&mut self) -> Result<(), Refusal> {
        let line = self.expect("enum")?;
        let name = self.name()?;
        self.expect("{")?;
        let (mut members, mut next) = (Vec::new(), 0);
        while !self.accept("}") {
            let Token { text, line, .. } = self.next_name()?;
            if self.accept("=") {
                let expression = self.until(&[",", "}"])?;
                next = self.value(&expression, line)?;
            }
            let member = Constant { name: text, value: next, doc: self.doc(line, line) };
            self.remember(&member, line)?;
            members.push(member);
            next += 1;
            if !self.accept(",") && self.peek().is_none_or(|token| token.text != "}") {
                return Err(refusal(line, "`,` or `}` is missing"));
            }
        }
        self.expect(";")?;
        if members.len() < 2 {
            return Err(refusal(line, format!("enum {name} has fewer than two members")));
        }
        self.header.enums.push(Enum { name, members, doc: self.doc_above(line) });
        Ok(())
    }

    fn structure(&mut self) -> Result<(), Refusal> {
        let line = self.expect("struct")?;
        let name = self.name()?;
        self.expect("{")?;
        let mut fields: Vec<Field> = Vec::new();
        while !self.accept("}") {
            let first = self.peek().map_or(0, |token| token.line);
            let kind = self.kind()?;
            let mut declared = Vec::new();
            loop {
                let name = self.name()?;
                let count = self.accept("[").then(|| self.array(first)).transpose()?;
                declared.push((name, count));
                if !self.accept(",") {
                    break;
                }
            }
            let last = self.expect(";")?;
            let doc = self.doc(first, last);
            fields.extend(declared.into_iter().map(|(name, count)| Field {
                name,
                kind: kind.clone(),
                count,
                doc: doc.clone(),
            }));
        }
        self.expect(";")?;
        let defined = self.header.structs.iter().any(|other| other.name == name);
        let twice = fields
            .iter()
            .enumerate()
            .find(|(at, field)| fields[..*at].iter().any(|earlier| earlier.name == field.name));
        if defined || twice.is_some() || fields.is_empty() {
            let why = format!("struct {name} is empty, or it or a member of it is defined twice");
            return Err(refusal(line, why));
        }
        self.header.structs.push(Struct { name, fields, doc: self.doc_above(line) });
        Ok(())
    }

    fn kind(&mut self) -> Result<Kind, Refusal> {
        let Token { text, line, .. } = self.next()?;
        match text.as_str() {
            "__u8" => Ok(Kind::Integer(1)),
            "__u16" => Ok(Kind::Integer(2)),
            "__u32" => Ok(Kind::Integer(4)),
            "__u64" => Ok(Kind::Integer(8)),
            "struct" => match self.name()? {
                name if name == "bpf_spin_lock" => Ok(Kind::Integer(4)),
                name if self.header.structs.iter().any(|known| known.name == name) => {
                    Ok(Kind::Struct(name))
                }
                name => Err(refusal(line, format!("struct {name} is not defined above"))),
            },
            other => Err(refusal(line, format!("unknown type `{other}`"))),
        }
    }

    fn array(&mut self, line: usize) -> Result<u64, Refusal> {
        let expression = self.until(&["]"])?;
        self.expect("]")?;
        match self.value(&expression, line)? {
            0 => Err(refusal(line, "an array of no elements")),
            count => Ok(count),
        }
    }

    fn remember(&mut self, constant: &Constant, line: usize) -> Result<(), Refusal> {
        match self.values.insert(constant.name.clone(), constant.value) {
            None => Ok(()),
            Some(_) => Err(refusal(line, format!("{} is defined twice", constant.name))),
        }
    }

    fn value(&self, expression: &[Token], line: usize) -> Result<u64, Refusal> {
        let mut rest = expression;
        let value = self.binary(&mut rest, 0, line)?;
        match rest.first() {
            None => Ok(value),
            Some(token) => Err(refusal(line, format!("unexpected `{}`", token.text))),
        }
    }

    /// By precedence, as C has it; operators of one level are taken from the left.
    fn binary(&self, rest: &mut &[Token], level: usize, line: usize) -> Result<u64, Refusal> {
        const LEVELS: [&[&str]; 5] = [&["|"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "%"]];
        let Some(operators) = LEVELS.get(level) else { return self.operand(rest, line) };
        let mut left = self.binary(rest, level + 1, line)?;
        while let Some((token, after)) = rest.split_first()
            && operators.contains(&token.text.as_str())
        {
            *rest = after;
            let right = self.binary(rest, level + 1, line)?;
            left = apply(&token.text, left, right)
                .ok_or_else(|| refusal(line, "the expression has no value of 64 bits"))?;
        }
        Ok(left)
    }

    fn operand(&self, rest: &mut &[Token], line: usize) -> Result<u64, Refusal> {
        let Some((token, after)) = rest.split_first() else {
            return Err(refusal(line, "a number is missing"));
        };
        *rest = after;
        if token.text == "(" {
            let value = self.binary(rest, 0, line)?;
            let closed = rest.split_first().filter(|(token, _)| token.text == ")");
            let (_, after) = closed.ok_or_else(|| refusal(line, "`)` is missing"))?;
            *rest = after;
            return Ok(value);
        }
        if token.text.starts_with(|c: char| c.is_ascii_digit()) {
            return number(&token.text)
                .ok_or_else(|| refusal(line, format!("`{}` is no number", token.text)));
        }
        let known = self.values.get(&token.text).copied();
        known.ok_or_else(|| refusal(line, format!("`{}` is not defined above", token.text)))
    }

    /// The comment above the line `first`, and the one behind the item that ends on the line `last`.
    fn doc(&self, first: usize, last: usize) -> String {
        let behind = self.comments.iter().find(|c| !c.alone && c.first_line == last);
        let behind = behind.map_or("", |comment| comment.text.as_str());
        let above = self.doc_above(first);
        [above.as_str(), behind]
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn doc_above(&self, line: usize) -> String {
        let above = self.comments.iter().find(|c| c.alone && c.last_line + 1 == line);
        above.map_or(String::new(), |comment| comment.text.clone())
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Result<Token, Refusal> {
        let last = self.tokens.last().map_or(0, |token| token.line);
        let token =
            self.peek().cloned().ok_or_else(|| refusal(last, "the header ends too early"))?;
        self.at += 1;
        Ok(token)
    }

    fn next_name(&mut self) -> Result<Token, Refusal> {
        let token = self.next()?;
        let first = token.text.chars().next().unwrap_or_default();
        let is_name = first == '_' || first.is_ascii_alphabetic();
        if is_name {
            Ok(token)
        } else {
            Err(refusal(token.line, format!("`{}` is no name", token.text)))
        }
    }

    fn name(&mut self) -> Result<String, Refusal> {
        Ok(self.next_name()?.text)
    }

    fn accept(&mut self, text: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.text == text);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, text: &str) -> Result<usize, Refusal> {
        let token = self.next()?;
        let wrong = || refusal(token.line, format!("`{}` where `{text}` is expected", token.text));
        if token.text == text { Ok(token.line) } else { Err(wrong()) }
    }

    fn until(&mut self, ends: &[&str]) -> Result<Vec<Token>, Refusal> {
        let mut taken = Vec::new();
        while self.peek().is_none_or(|token| !ends.contains(&token.text.as_str())) {
            taken.push(self.next()?);
        }
        Ok(taken)
    }

    fn rest_of_line(&mut self, line: usize) -> Vec<Token> {
        let mut taken = Vec::new();
        while let Some(token) = self.peek().filter(|token| token.line == line && token.directive) {
            taken.push(token.clone());
            self.at += 1;
        }
        taken
    }
}

fn apply(operator: &str, left: u64, right: u64) -> Option<u64> {
    let shift = || u32::try_from(right).ok().filter(|bits| *bits < u64::BITS);
    match operator {
        "|" => Some(left | right),
        "&" => Some(left & right),
        "<<" => shift().and_then(|bits| left.checked_mul(1 << bits)),
        ">>" => shift().map(|bits| left >> bits),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        _ => left.checked_rem(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        read(text).expect_err("outside of the subset").to_string()
    }

    #[test]
    fn constants_are_computed_as_c_does() {
        let text = "#define A 3 /* three */\n/* above */\n#define B (A + 1 << 2)\n\
                    #define C (B | 0x20) / 3 % 7\n#define D 0xffULL\n#define E 20 - 8 - 2";
        let constants = read(text).expect("the subset").constants;
        let values: Vec<_> = constants.iter().map(|c| (c.name.as_str(), c.value)).collect();
        assert_eq!(values, [("A", 3), ("B", 16), ("C", 48 / 3 % 7), ("D", 255), ("E", 10)]);
        assert_eq!((&*constants[0].doc, &*constants[1].doc), ("three", "above"));
    }

    #[test]
    fn a_guard_and_includes_are_no_constants() {
        let text = "#ifndef X_H\n#define X_H\n#include <linux/types.h>\n#endif\n";
        assert_eq!(read(text), Ok(Header::default()));
    }

    #[test]
    fn enums_count_on() {
        let text = "/* what\n * it is */\nenum colour {\n\tRED = 4, /* hot */\n\tGREEN, BLUE, /* cold */\n\tGREY = RED | 1 << 4\n};";
        let found = &read(text).expect("the subset").enums[0];
        let member =
            |name: &str, value, doc: &str| Constant { name: name.into(), value, doc: doc.into() };
        let members = [
            member("RED", 4, "hot"),
            member("GREEN", 5, "cold"),
            member("BLUE", 6, "cold"),
            member("GREY", 20, ""),
        ];
        assert_eq!((&*found.name, &*found.doc), ("colour", "what it is"));
        assert_eq!(found.members, members);
    }

    #[test]
    fn structs_have_integers_arrays_and_earlier_structs() {
        let text = "#define N 4\nstruct inner {\n\t__u8 a, b[N * 2]; /* both */\n};\n\
                    struct outer {\n\tstruct bpf_spin_lock lock;\n\tstruct inner parts[N];\n\t__u64 end;\n};";
        let structs = read(text).expect("the subset").structs;
        let field = |name: &str, kind, count, doc: &str| Field {
            name: name.into(),
            kind,
            count,
            doc: doc.into(),
        };
        let inner = [
            field("a", Kind::Integer(1), None, "both"),
            field("b", Kind::Integer(1), Some(8), "both"),
        ];
        let outer = [
            field("lock", Kind::Integer(4), None, ""),
            field("parts", Kind::Struct("inner".into()), Some(4), ""),
            field("end", Kind::Integer(8), None, ""),
        ];
        assert_eq!((&structs[0].fields[..], &structs[1].fields[..]), (&inner[..], &outer[..]));
    }

    #[test]
    fn everything_else_is_refused_with_its_line() {
        for (text, expected) in [
            ("\nunion u { __u8 a; };", "line 2: unknown definition `union`"),
            ("typedef int x;", "line 1: unknown definition `typedef`"),
            ("struct s { int a; };", "line 1: unknown type `int`"),
            ("struct s { __u8 a : 3; };", "line 1: `:` is not understood"),
            ("struct s { __u8 *a; };", "line 1: `*` is no name"),
            ("struct s { struct t a; };", "line 1: struct t is not defined above"),
            ("struct s { __u8 a[0]; };", "line 1: an array of no elements"),
            (
                "struct s { __u8 a, a; };",
                "line 1: struct s is empty, or it or a member of it is defined twice",
            ),
            ("struct s { __u8 a; } __packed;", "line 1: `__packed` where `;` is expected"),
            ("enum e { A = -1, B };", "line 1: `-` is not defined above"),
            ("enum e { A };", "line 1: enum e has fewer than two members"),
            ("enum e { A B };", "line 1: `,` or `}` is missing"),
            ("#define F(x) x", "line 1: `x` is not defined above"),
            ("#define A 010", "line 1: `010` is no number"),
            ("#define A 1\n#define A 1", "line 2: A is defined twice"),
            ("#define A 1 << 64", "line 1: the expression has no value of 64 bits"),
            ("#define A 1 - 2", "line 1: the expression has no value of 64 bits"),
            ("#define A 1 / 0", "line 1: the expression has no value of 64 bits"),
            ("#define A (1", "line 1: `)` is missing"),
            ("#define A 1 2", "line 1: unexpected `2`"),
            ("#define A 1 \\\n + 1", "line 1: `\\` is not understood"),
            ("#if 0\n#endif", "line 1: unknown directive `#if`"),
            ("/* open", "line 1: a comment without end"),
            ("struct s {", "line 1: the header ends too early"),
        ] {
            assert_eq!(refused(text), expected, "{text}");
        }
    }
}
