//! W3C Trace Context, level 1: the field `traceparent`, which tells a server to which trace a request belongs, and which
//! step of it has asked.
//!
//! AFPA is a step of the trace: it passes a trace on in a step of its own, or begins a new one. Its `tracestate` is kept
//! with a trace that goes on, and goes with one that does not (section 3.3.1.3).

use crate::request::Request;

/// The field of the trace and its step.
pub const TRACEPARENT: &str = "traceparent";

/// The field in which systems that record traces tell one another more.
pub const TRACESTATE: &str = "tracestate";

/// Bytes of a `traceparent` of version 00 (section 3.2.2).
const LENGTH: usize = 55;

/// The places of its parts: version, trace, step and flags, with hyphens between them.
const TRACE: std::ops::Range<usize> = 3..35;
const STEP: std::ops::Range<usize> = 36..52;
const FLAGS: std::ops::Range<usize> = 53..55;

/// How requests belong to traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceRule {
    /// Whether the trace of any client goes on, not only of trusted routers in front.
    pub of_anybody: bool,
    /// Per cent of new traces that are to be recorded.
    pub share: u8,
}

/// Random bits for the trace and the step of one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceBits {
    /// Of a new trace.
    pub trace: u128,
    /// Of the step that a request to a server is.
    pub step: u64,
    /// Of the step that the request itself is.
    pub own: u64,
    /// They decide whether a new trace is recorded.
    pub choice: u32,
}

/// The step of a trace that a request to a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The value of `traceparent` for servers.
    line: [u8; LENGTH],
    /// The trace was begun by another.
    goes_on: bool,
    /// The step that has asked; zeros if the trace is new.
    parent: [u8; 8],
    /// The step that the request itself is.
    own: [u8; 8],
}

/// The numbers of a trace that is to be recorded, and of the steps that a request is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The trace.
    pub trace: [u8; 16],
    /// The step that has asked; zeros if the trace is new.
    pub parent: [u8; 8],
    /// The request.
    pub own: [u8; 8],
    /// The request to a server.
    pub step: [u8; 8],
}

impl TraceRule {
    /// The trace of a request: the one that it has, if its client may choose it, else a new one.
    pub fn trace(&self, request: &Request<'_, '_>, trusted: bool, bits: TraceBits) -> Trace {
        let given = || {
            let lines = request.fields();
            let mut own = lines.filter(|(name, _)| name.eq_ignore_ascii_case(TRACEPARENT));
            match (own.next(), own.next()) {
                (Some((_, value)), None) => Trace::given(value),
                _ => None,
            }
        };
        let given = if trusted || self.of_anybody { given() } else { None };
        let is_recorded = bits.choice % 100 < u32::from(self.share);
        given.unwrap_or_else(|| Trace::new(bits.trace, is_recorded)).in_steps(bits)
    }
}

impl Trace {
    /// A new trace.
    fn new(trace: u128, is_recorded: bool) -> Self {
        // The form of a value without its numbers.
        let mut line = *b"00-00000000000000000000000000000000-0000000000000000-00";
        put_hex(&trace.max(1).to_be_bytes(), line.get_mut(TRACE));
        put_hex(&[u8::from(is_recorded)], line.get_mut(FLAGS));
        Self { line, goes_on: false, parent: [0; 8], own: [0; 8] }
    }

    /// The trace of a value of `traceparent`. Of a later version, the parts of version 00 are read, and of the flags the one
    /// that asks for a record (section 3.2.2). `None`: it is not valid.
    pub fn given(value: &[u8]) -> Option<Self> {
        let mut line = *value.first_chunk::<LENGTH>()?;
        let has_form = |(at, byte): (usize, &u8)| match at {
            2 | 35 | 52 => *byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        };
        let is_zero =
            |part| line.get(part).is_some_and(|part: &[u8]| part.iter().all(|b| *b == b'0'));
        let rest = value.get(LENGTH..).unwrap_or_default();
        let fits = match line.first_chunk::<2>()? {
            b"ff" => false,
            b"00" => rest.is_empty(),
            _ => rest.first().is_none_or(|byte| *byte == b'-'),
        };
        if !fits || !line.iter().enumerate().all(has_form) || is_zero(TRACE) || is_zero(STEP) {
            return None;
        }
        let last = line.last().and_then(|digit| char::from(*digit).to_digit(16))?;
        line[..2].copy_from_slice(b"00");
        put_hex(&[u8::from(last & 1 == 1)], line.get_mut(FLAGS));
        let parent = bytes_of(line.get(STEP));
        Some(Self { line, goes_on: true, parent, own: [0; 8] })
    }

    /// The trace in other steps.
    fn in_steps(mut self, bits: TraceBits) -> Self {
        put_hex(&bits.step.max(1).to_be_bytes(), self.line.get_mut(STEP));
        self.own = bits.own.max(1).to_be_bytes();
        self
    }

    /// Whether it is to be recorded.
    pub fn is_recorded(&self) -> bool {
        self.line.last() == Some(&b'1')
    }

    /// The numbers of the trace, if it is to be recorded.
    pub fn recorded(&self) -> Option<Steps> {
        self.is_recorded().then(|| Steps {
            trace: bytes_of(self.line.get(TRACE)),
            parent: self.parent,
            own: self.own,
            step: bytes_of(self.line.get(STEP)),
        })
    }

    /// The value of `traceparent` for a server that is asked on behalf of the request, beside the one that answers it.
    pub fn own_line(&self) -> [u8; LENGTH] {
        let mut line = self.line;
        put_hex(&self.own, line.get_mut(STEP));
        line
    }

    /// The value of `traceparent`.
    pub fn line(&self) -> &[u8] {
        &self.line
    }

    /// The number of the trace, in 32 hexadecimal digits.
    pub fn id(&self) -> &[u8] {
        self.line.get(TRACE).unwrap_or_default()
    }

    /// Whether another has begun it, so that its `tracestate` is kept.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }
}

/// Writes bytes as hexadecimal digits in lower case, as far as there is room.
pub(crate) fn put_hex(bytes: &[u8], out: Option<&mut [u8]>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let pairs = out.unwrap_or_default().as_chunks_mut::<2>().0;
    for (byte, [high, low]) in bytes.iter().zip(pairs) {
        *high = DIGITS[usize::from(byte >> 4)];
        *low = DIGITS[usize::from(byte & 15)];
    }
}

/// The bytes of hexadecimal digits in lower case.
fn bytes_of<const N: usize>(digits: Option<&[u8]>) -> [u8; N] {
    let value = |digit: u8| match digit {
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'0') & 15,
    };
    let mut bytes = [0; N];
    let pairs = digits.unwrap_or_default().as_chunks::<2>().0;
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = value(*high) << 4 | value(*low);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldSlots, RequestLimits, request};

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const BITS: TraceBits = TraceBits { trace: 0xa, step: 0xb, own: 0xc, choice: 149 };

    fn passed(lines: &str, trusted: bool, rule: TraceRule) -> (String, bool) {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let mut slots = FieldSlots::default();
        let parsed = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        let trace = rule.trace(&parsed.unwrap().unwrap(), trusted, BITS);
        (String::from_utf8(trace.line().to_vec()).unwrap(), trace.goes_on())
    }

    const ANYBODY: TraceRule = TraceRule { of_anybody: true, share: 50 };

    /// A new trace in these bits. 49 of 100 lie below a share of 50.
    const NEW: &str = "00-0000000000000000000000000000000a-000000000000000b-01";

    #[test]
    fn a_valid_trace_goes_on_in_a_new_step() {
        for (given, trace, flags) in [
            (GIVEN, "4bf92f3577b34da6a3ce929d0e0e4736", "01"),
            (
                "00-00000000000000000000000000000001-0000000000000001-00",
                "00000000000000000000000000000001",
                "00",
            ),
            // Flags of later levels are not passed on: nobody here knows what they promise.
            (
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff",
                "4bf92f3577b34da6a3ce929d0e0e4736",
                "01",
            ),
            (
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02",
                "4bf92f3577b34da6a3ce929d0e0e4736",
                "00",
            ),
            // Of a later version.
            (
                "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                "4bf92f3577b34da6a3ce929d0e0e4736",
                "01",
            ),
            (
                "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what.the-future",
                "4bf92f3577b34da6a3ce929d0e0e4736",
                "01",
            ),
        ] {
            let line = format!("TraceParent: {given}\r\n");
            let expected = (format!("00-{trace}-000000000000000b-{flags}"), true);
            assert_eq!(passed(&line, false, ANYBODY), expected, "{given}");
            let trusted = TraceRule { of_anybody: false, ..ANYBODY };
            assert_eq!(passed(&line, true, trusted), expected, "{given}");
            assert_eq!(passed(&line, false, trusted), (NEW.to_owned(), false), "{given}");
        }
    }

    #[test]
    fn a_recorded_trace_has_the_numbers_of_its_steps() {
        let given = Trace::given(GIVEN.as_bytes()).unwrap().in_steps(BITS);
        let steps = given.recorded().unwrap();
        assert_eq!(steps.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736u128.to_be_bytes());
        assert_eq!(steps.parent, 0x00f0_67aa_0ba9_02b7u64.to_be_bytes());
        assert_eq!((steps.own, steps.step), (0xcu64.to_be_bytes(), 0xbu64.to_be_bytes()));
        let own = String::from_utf8(given.own_line().to_vec()).unwrap();
        assert_eq!(own, "00-4bf92f3577b34da6a3ce929d0e0e4736-000000000000000c-01");
        let new = Trace::new(10, true).in_steps(BITS).recorded().unwrap();
        assert_eq!((new.trace, new.parent), (10u128.to_be_bytes(), [0; 8]));
        assert_eq!(Trace::new(10, false).in_steps(BITS).recorded(), None);
    }

    #[test]
    fn what_is_not_valid_begins_a_new_trace() {
        for given in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.future",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "0-4bf92f3577b34da6a3ce929d0e0e47360-00f067aa0ba902b7-01",
        ] {
            let line = format!("traceparent: {given}\r\n");
            assert_eq!(passed(&line, true, ANYBODY), (NEW.to_owned(), false), "{given}");
        }
        let twice = format!("traceparent: {GIVEN}\r\ntraceparent: {GIVEN}\r\n");
        assert_eq!(passed(&twice, true, ANYBODY), (NEW.to_owned(), false));
        let less = TraceRule { share: 49, ..ANYBODY };
        assert!(
            passed("", true, less).0.ends_with("-00")
                && passed("", true, ANYBODY).0.ends_with("-01")
        );
    }
}
