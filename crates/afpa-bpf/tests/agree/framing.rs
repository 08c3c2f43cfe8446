//! Requests that go up together, or with content: the programs must count those that user mode reads, one by one, with
//! the same ends. Otherwise they could take one response for another.

use afpa_http::{BodyLength, FieldSlots, Method, Refusal, Request, RequestLimits, request};

/// As in `property.rs`.
const LIMITS: RequestLimits = RequestLimits { request_line: 512, head: 2560, fields: 63 };

/// `enum taken` of `http/request.h`: how the reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Last,
    /// More than the programs count in a segment.
    More,
    Part,
    Unsure,
}

/// The requests that the programs read in some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    pub taken: Taken,
    pub requests: u32,
    heads: u32,
    end: u32,
}

impl Framing {
    /// Unpacks the four words that both ways of asking give.
    pub fn new(words: [u32; 4]) -> Self {
        let [taken, requests, heads, end] = words;
        let taken = match taken {
            0 => Taken::Last,
            1 => Taken::More,
            2 => Taken::Part,
            3 => Taken::Unsure,
            other => panic!("there is no {other}"),
        };
        Self { taken, requests, heads, end }
    }

    /// Whether responses are counted: user mode does not keep the connection.
    pub fn is_sure(&self) -> bool {
        matches!(self.taken, Taken::Last | Taken::Part)
    }
}

/// The property. The error has the views of both parsers.
pub fn agree(input: &[u8], framing: &Framing) -> Result<(), String> {
    if !framing.is_sure() {
        return Ok(());
    }
    // The programs pass over an empty line at once, user mode with the request behind it.
    let is_part = framing.requests == 0 && input.len() > 2 && input.starts_with(b"\r\n");
    let mut at = if is_part { 2 } else { 0usize };
    for number in 0..framing.requests {
        let rest = input.get(at..).unwrap_or_default();
        let mut slots = FieldSlots::new();
        let is_head = framing.heads >> number & 1 == 1;
        match request::parse(rest, &mut slots, &LIMITS) {
            Ok(Some(request)) => at += length(&request, is_head)?,
            Ok(None) => return Err(format!("{framing:?}: number {number} is incomplete")),
            Err(refusal) if ends_all(refusal, rest) => return Ok(()),
            Err(refusal) => {
                return Err(format!("{framing:?}: number {number} is refused: {refusal}"));
            }
        }
    }
    if at != framing.end as usize {
        return Err(format!("{framing:?}: for user mode they end at {at}"));
    }
    let rest = input.get(at..).unwrap_or_default();
    let mut slots = FieldSlots::new();
    match request::parse(rest, &mut slots, &LIMITS) {
        Ok(Some(_)) => Err(format!("{framing:?}: another request follows")),
        _ if (framing.taken == Taken::Part) == rest.is_empty() => {
            Err(format!("{framing:?}: {} bytes are left", rest.len()))
        }
        _ => Ok(()),
    }
}

/// Head and content of a request of which exactly one response follows, and then the next request.
fn length(request: &Request<'_, '_>, is_head: bool) -> Result<usize, String> {
    let plain = matches!(request.method, Method::Get | Method::Head);
    let known = plain
        || matches!(
            request.method,
            Method::Post | Method::Put | Method::Patch | Method::Delete | Method::Options
        );
    let content = match request.body {
        BodyLength::None => Some(0),
        BodyLength::Length(length) if !plain => usize::try_from(length).ok(),
        _ => None,
    };
    let fits = known
        && !request.expect_continue
        && request.keep_alive
        && is_head == (request.method == Method::Head);
    match content {
        Some(content) if fits => Ok(request.head_len + content),
        _ => Err(format!("HEAD: {is_head}; not to be counted: {request:?}")),
    }
}

/// Refusals that end the connection, for properties that the programs do not check: the bytes of the target and the value
/// of Host. The server answers, and closes.
fn ends_all(refusal: Refusal, input: &[u8]) -> bool {
    let target = input.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    matches!(refusal, Refusal::HostInvalid | Refusal::TargetBytes)
        || target.iter().any(u8::is_ascii_control)
}
