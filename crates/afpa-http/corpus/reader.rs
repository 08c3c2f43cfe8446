//! Reads the request corpus; `README.md` beside this file has the format.
//!
//! Suites of other crates include this file with `#[path]`.

/// One request and what every parser has to say about it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// A short name, unique in its file.
    pub(crate) name: String,
    /// The expected result.
    pub(crate) verdict: Verdict,
    /// The bytes of the head.
    pub(crate) head: Vec<u8>,
    /// The bytes of the body.
    pub(crate) body: Vec<u8>,
    /// The bytes behind it on the connection.
    pub(crate) next: Vec<u8>,
}

/// The expected result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Refused with a status, for a reason.
    Refuse(u16, String),
    /// Accepted, but the body is refused with a status.
    RefuseBody(u16),
    /// Incomplete.
    More,
    /// Accepted: whether the connection is kept, the body, the host.
    Accept {
        /// Whether the connection is kept.
        keep: bool,
        /// `none`, `chunked` or a length.
        body: String,
        /// The authority or `-`.
        host: String,
    },
}

impl Case {
    /// Everything that goes over the wire.
    pub(crate) fn wire(&self) -> Vec<u8> {
        [&self.head[..], &self.body, &self.next].concat()
    }
}

/// Every case of both files.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = read(include_str!("refused.txt"));
    cases.extend(read(include_str!("accepted.txt")));
    cases
}

/// The cases of one file; panics on a mistake in it.
pub(crate) fn read(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("== ") {
            let verdict = verdict(lines.next().unwrap_or_default());
            let (head, body, next) = Default::default();
            cases.push(Case { name: name.to_string(), verdict, head, body, next });
            continue;
        }
        let case = cases.last_mut().expect("bytes belong to a case");
        match line.split_at(2) {
            ("| ", bytes) => case.head.extend(unescape(bytes)),
            ("> ", bytes) => case.body.extend(unescape(bytes)),
            ("+ ", bytes) => case.next.extend(unescape(bytes)),
            _ => panic!("{}: what is {line:?}?", case.name),
        }
    }
    cases
}

fn verdict(line: &str) -> Verdict {
    let status = |text: &str| text.parse().expect("a status");
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["refuse", code, key] => Verdict::Refuse(status(code), key.to_string()),
        ["refuse-body", code] => Verdict::RefuseBody(status(code)),
        ["more"] => Verdict::More,
        ["accept", keep @ ("keep" | "close"), body, host] => {
            Verdict::Accept { keep: keep == "keep", body: body.to_string(), host: host.to_string() }
        }
        _ => panic!("what verdict is {line:?}?"),
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let length = match rest.as_bytes()[0] {
            b'x' => {
                bytes.push(u8::from_str_radix(&rest[1..3], 16).expect("two hexadecimal digits"));
                3
            }
            b'{' => {
                let end = rest.find('}').expect("a closing brace");
                let (copied, count) = rest[1..end].rsplit_once('*').expect("a star");
                bytes.extend(copied.repeat(count.parse().expect("a count")).into_bytes());
                end + 1
            }
            simple => {
                let known =
                    [(b'r', b'\r'), (b'n', b'\n'), (b't', b'\t'), (b'0', 0), (b'\\', b'\\')];
                let found = known.iter().find(|(letter, _)| *letter == simple);
                bytes.push(found.expect("a known escape").1);
                1
            }
        };
        rest = &rest[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
