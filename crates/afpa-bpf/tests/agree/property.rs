//! The property that must hold between the two parsers, for any bytes.
//!
//! The programs may leave anything to user mode. User mode would have answered in the same way every request that
//! they answer. Bytes that they take for one request are one for user mode too, or it refuses them as a whole.

use afpa_abi::{FIELD_HOP, OTHER_TAG_WHOLE, Reason, TAG_WINS, WEIGHTS_AS_OURS, kind};
use afpa_http::request::FieldClasses;
use afpa_http::{
    BodyLength, Coding, CodingSet, FieldSlots, HttpDate, Known, Method, Precondition, Ranges,
    Refusal, Request, RequestLimits, Target, Validators, coding, conditional, range, request,
    target,
};

use super::world::{ANY_HOST, HOSTS, MODIFIED, World};

/// The tightest limits with which the property holds: the programs look at no more. A server with
/// tighter ones would refuse requests that they answer.
const LIMITS: RequestLimits = RequestLimits { request_line: 512, head: 2560, fields: 63 };

/// How sure the programs are: `enum certainty` of `http/request.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    Unsure,
    One,
    Answerable,
}

/// The programs' verdict on some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub certainty: Certainty,
    /// `Answered` when there is an answer.
    pub reason: Reason,
    kind: u8,
    site: u32,
    slot: u32,
    changed: bool,
    /// The connection may be closed by the programs: it has no socket.
    pub may_close: bool,
}

impl Verdict {
    /// Unpacks the word of `verdict.h`.
    pub fn new(word: u32) -> Self {
        Self {
            certainty: match word & 3 {
                0 => Certainty::Unsure,
                1 => Certainty::One,
                2 => Certainty::Answerable,
                other => panic!("there is no certainty {other}"),
            },
            reason: Reason::ALL[(word >> 2 & 63) as usize],
            kind: (word >> 8 & 3) as u8,
            changed: word >> 10 & 1 == 1,
            site: word >> 12 & 15,
            slot: word >> 16,
            may_close: false,
        }
    }

    /// On a connection that the programs may close, or not.
    pub fn of_connection(self, may_close: bool) -> Self {
        Self { may_close, ..self }
    }

    pub fn answers(&self) -> bool {
        self.certainty == Certainty::Answerable && self.reason == Reason::Answered
    }
}

/// An answer, as both sides can name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub site: u32,
    pub name: Vec<u8>,
    pub coding: Coding,
    pub kind: u8,
}

/// The answer that user mode would give from the cache, or why it would not.
pub fn user_mode(world: &World, input: &[u8], may_close: bool) -> Result<Answer, String> {
    let mut slots = FieldSlots::new();
    let request = match request::parse(input, &mut slots, &LIMITS) {
        Ok(Some(request)) => request,
        other => return Err(format!("no request: {:?}", other.map(|_| "incomplete"))),
    };
    one_whole_request(&request, input, may_close)?;
    let site = site_of(&request);
    let mut scratch = Vec::new();
    let Target::Origin { path, .. } = request.target else {
        return Err(format!("target is {:?}", request.target));
    };
    let name = target::normalise(path, &mut scratch).map_err(|error| error.to_string())?;
    let object = world.find(site, name).ok_or("no such object")?;
    only_what_does_not_matter(&request, object.unimportant())?;
    if object.codings() != CodingSet::IDENTITY
        && object.unimportant() & WEIGHTS_AS_OURS as u32 == 0
        && !names_only(&request)
    {
        return Err("its server may weigh codings in another way".into());
    }
    let coding = coding::choose(&request, object.codings());
    let validators = Validators { etag: &object.etag(coding), last_modified: MODIFIED };
    let kind = match (conditional::evaluate(&request, &validators), request.method) {
        (Precondition::Failed, _) => return Err("precondition failed".into()),
        (Precondition::NotModified, _) => kind::NOT_MODIFIED,
        (Precondition::Proceed, Method::Head) => kind::HEAD,
        (Precondition::Proceed, _) => kind::WHOLE,
    };
    let other_tag = kind != kind::NOT_MODIFIED && request.has(Known::IfNoneMatch);
    if other_tag && object.unimportant() & OTHER_TAG_WHOLE as u32 == 0 {
        return Err("another tag may mean something".into());
    }
    match range::select(&request, &validators, 1000, 8, MODIFIED + 9) {
        Ranges::Whole => Ok(Answer { site, name: name.to_vec(), coding, kind }),
        ranges => Err(format!("{ranges:?}")),
    }
}

/// Fields that the parsers read. All others have classes, or may mean anything.
const READ: [Known; 12] = [
    Known::Host,
    Known::Connection,
    Known::TransferEncoding,
    Known::Expect,
    Known::Upgrade,
    Known::IfMatch,
    Known::IfNoneMatch,
    Known::IfModifiedSince,
    Known::IfUnmodifiedSince,
    Known::IfRange,
    Known::Range,
    Known::AcceptEncoding,
];

/// No field, and no combination of conditions, of which the object's server might make something.
fn only_what_does_not_matter(request: &Request<'_, '_>, unimportant: u32) -> Result<(), String> {
    let read = |name: &str| Known::recognise(name).is_some_and(|known| READ.contains(&known));
    for (name, _) in request.fields().filter(|(name, _)| !read(name)) {
        if FieldClasses::of(name).bits() & !unimportant != 0 {
            return Err(format!("{name} may matter"));
        }
    }
    let hop = request.has(Known::Upgrade) || names_fields(request);
    if hop && unimportant & FIELD_HOP as u32 == 0 {
        return Err("the connection may change".into());
    }
    let date = request.only(Known::IfModifiedSince);
    let odd_date = date.is_some_and(|date| date != HttpDate::new(MODIFIED).as_bytes());
    match request.has(Known::IfNoneMatch) && odd_date && unimportant & TAG_WINS as u32 == 0 {
        true => Err("the date may matter, too".into()),
        false => Ok(()),
    }
}

/// Whether a connection option names a field that is neither TE nor Upgrade.
fn names_fields(request: &Request<'_, '_>) -> bool {
    let options = request.values(Known::Connection).flat_map(|value| value.split(|b| *b == b','));
    let known = ["", "close", "keep-alive", "te", "upgrade"];
    options
        .map(<[u8]>::trim_ascii)
        .any(|option| !known.iter().any(|known| option.eq_ignore_ascii_case(known.as_bytes())))
}

/// Whether Accept-Encoding only names codings that the programs know, each once.
fn names_only(request: &Request<'_, '_>) -> bool {
    let members = request.values(Known::AcceptEncoding).flat_map(|line| line.split(|b| *b == b','));
    let mut members: Vec<&[u8]> = members.map(<[u8]>::trim_ascii).collect();
    let known: [&[u8]; 5] = [b"gzip", b"br", b"zstd", b"deflate", b"identity"];
    let all = members.len();
    members.retain(|member| known.contains(member));
    members.sort_unstable();
    members.dedup();
    members.len() == all
}

/// Exactly one GET or HEAD, after which the connection stays, or may be closed, and nothing follows.
fn one_whole_request(
    request: &Request<'_, '_>,
    input: &[u8],
    may_close: bool,
) -> Result<(), String> {
    let fits = request.head_len == input.len()
        && matches!(request.method, Method::Get | Method::Head)
        && request.body == BodyLength::None
        && !request.expect_continue
        && (request.keep_alive || may_close);
    if fits { Ok(()) } else { Err(format!("not one plain request: {request:?}")) }
}

fn site_of(request: &Request<'_, '_>) -> u32 {
    let host = request.host.as_bytes();
    let called =
        |host: &[u8]| HOSTS.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(host));
    // A name is the same with any port.
    let named = called(host).or_else(|| called(request.host.name().as_bytes()));
    named.map_or(ANY_HOST, |(_, site)| *site)
}

/// The property. The error has the views of both parsers.
pub fn agree(world: &World, input: &[u8], verdict: Verdict) -> Result<(), String> {
    if verdict.changed {
        return Err(format!("read anew and from memory differ; at first {verdict:?}"));
    }
    if verdict.certainty == Certainty::Unsure {
        return Ok(());
    }
    one_response_follows(input, verdict.may_close)?;
    if !verdict.answers() {
        return Ok(());
    }
    let user_mode = user_mode(world, input, verdict.may_close);
    let owner = world.owner(verdict.slot);
    let kernel = owner.map(|(object, coding)| Answer {
        site: object.site,
        name: object.name.clone(),
        coding,
        kind: verdict.kind,
    });
    if user_mode.as_ref().ok() == kernel.as_ref()
        && kernel.is_some_and(|kernel| kernel.site == verdict.site)
    {
        return Ok(());
    }
    Err(format!("the programs answer {verdict:?}, user mode: {user_mode:?}"))
}

/// The programs wait for the end of one response of user mode: that of a whole request, or a refusal
/// for properties that they leave to it: the bytes of the target and the value of Host.
fn one_response_follows(input: &[u8], may_close: bool) -> Result<(), String> {
    let target = input.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    let mut slots = FieldSlots::new();
    match request::parse(input, &mut slots, &LIMITS) {
        Ok(Some(request)) => one_whole_request(&request, input, may_close),
        Ok(None) => Err("one request for the programs, incomplete for user mode".into()),
        Err(Refusal::HostInvalid | Refusal::TargetBytes) => Ok(()),
        Err(_) if target.iter().any(u8::is_ascii_control) => Ok(()),
        Err(refusal) => Err(format!("one request for the programs, refused: {refusal}")),
    }
}
