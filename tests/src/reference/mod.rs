//! A naive server of static files, made of rules alone. It reads the file system at every request and
//! gives the response that the rules demand. It is slow and short, and shares no code with the real one.
//!
//! It learns two things that no rule gives from the server before: the entity tags, whose form is the
//! server's own affair, and the bytes of content that the server has compressed itself, once they are
//! known to decode to the file.

pub mod multipart;
mod negotiation;
mod preconditions;
mod ranges;
mod request;
mod target;

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use afpa_testkit::Response;

pub use self::request::Request;
use self::{
    preconditions::Precondition,
    ranges::Selected,
    target::{Resolved, Target},
};
use crate::{codings, dates::http_date};

/// The demands on a response.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// One of these; more than one where two faults meet and no rule says which counts.
    pub statuses: Vec<u16>,
    /// Fields that must stand there once with this value, or (`None`) must not.
    pub fields: Vec<(&'static str, Option<String>)>,
    /// The body, where it is known byte by byte.
    pub body: Option<Vec<u8>>,
    /// Several ranges were asked for.
    pub ranges: Option<Ranges>,
    /// A request for HEAD: a body's fields without the body.
    pub head: bool,
}

/// Several ranges and the representation they are of.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// First and last position of each.
    pub spans: Vec<(usize, usize)>,
    /// The whole representation.
    pub whole: Vec<u8>,
}

impl Expected {
    /// Compares; the error says what differs.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn check(&self, response: &Response) -> Result<(), String> {
        if !self.statuses.contains(&response.status) {
            return Err(format!("status is {}, not of {:?}", response.status, self.statuses));
        }
        for (name, expected) in &self.fields {
            let values: Vec<&str> = response.values(name).collect();
            let wanted: Vec<&str> = expected.iter().map(String::as_str).collect();
            if values != wanted {
                return Err(format!("{name} is {values:?}, not {wanted:?}"));
            }
        }
        if response.values("date").count() != 1 {
            return Err("not exactly one Date".to_owned());
        }
        match (&self.body, &self.ranges) {
            _ if self.head => Ok(()),
            (_, Some(ranges)) => multipart::check(response, &ranges.spans, &ranges.whole),
            (Some(body), None) if *body != response.body => Err("the body differs".to_owned()),
            _ => Ok(()),
        }
    }

    fn status(status: u16) -> Self {
        Self { statuses: vec![status], ..Self::default() }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, Some(value.into())));
        self
    }
}

/// One representation of a file as the server was seen to send it.
#[derive(Clone, Debug)]
struct Learned {
    tag: String,
    bytes: Vec<u8>,
}

/// The reference for one document root.
#[derive(Debug)]
pub struct Reference {
    root: PathBuf,
    /// By path of the file and coding.
    learned: HashMap<(PathBuf, &'static str), Learned>,
}

/// The codings in the order the server prefers them when the client does not care.
const CODINGS: [(&str, &str); 3] = [("br", "br"), ("zstd", "zst"), ("gzip", "gz")];

impl Reference {
    /// Learns the representations of every file under `root` with `get`, which sends a target with
    /// an Accept-Encoding and gives the response.
    ///
    /// # Panics
    /// When a representation does not decode to its file, has no strong entity tag, shares it with
    /// another, or is not the stored sibling where there is one.
    pub fn learn(root: &Path, files: &[&str], mut get: impl FnMut(&str, &str) -> Response) -> Self {
        let mut reference = Self { root: root.to_owned(), learned: HashMap::new() };
        for name in files {
            for coding in ["identity", "br", "zstd", "gzip"] {
                let response = get(&target_of(name), coding);
                reference.learn_one(&root.join(name), coding, &response);
            }
        }
        reference
    }

    fn learn_one(&mut self, file: &Path, asked: &'static str, response: &Response) {
        assert_eq!(response.status, 200, "{}: {response:?}", file.display());
        let coding = response.field("content-encoding");
        if coding.unwrap_or("identity") != asked {
            assert_eq!(coding, None, "{asked} asked for {}", file.display());
            return;
        }
        let content = fs::read(file).expect("the file");
        let decoded = codings::decode(coding, &response.body);
        assert!(decoded == content, "{} in {asked} decodes to something else", file.display());
        if let Some((_, suffix)) = CODINGS.iter().find(|(coding, _)| *coding == asked)
            && let Ok(stored) = fs::read(format!("{}.{suffix}", file.display()))
        {
            assert!(stored == response.body, "{}.{suffix} is not what is sent", file.display());
        }
        let tag = response.field("etag").expect("an entity tag").to_owned();
        assert!(tag.starts_with('"'), "strong: {tag}");
        let shared = self.learned.iter().any(|((path, _), have)| path == file && have.tag == tag);
        assert!(!shared, "{} shares its tag in {asked}", file.display());
        let learned = Learned { tag, bytes: response.body.clone() };
        self.learned.insert((file.to_owned(), asked), learned);
    }

    /// The entity tags learned, for requests that use them.
    pub fn tags(&self) -> Vec<String> {
        let mut tags: Vec<String> = self.learned.values().map(|have| have.tag.clone()).collect();
        tags.sort();
        tags
    }

    /// The demands on the response to `request`.
    pub fn answer(&self, request: &Request) -> Expected {
        let resolved = target::resolve(&self.root, &request.target);
        let mut expected = match request.method.as_str() {
            "GET" | "HEAD" => self.get(request, &resolved),
            "OPTIONS" => Expected::status(204).with("allow", ALLOW),
            "POST" | "PUT" | "DELETE" | "PATCH" | "TRACE" => Expected::status(405),
            _ => Expected::status(501),
        };
        expected.head = request.method == "HEAD";
        if expected.head {
            expected.body = None;
        }
        if let Target::Faulty(status) = resolved.target
            && !expected.statuses.contains(&status)
        {
            // A faulty target and a method without effect are two faults; the response may name either.
            expected =
                Expected { statuses: vec![status, expected.statuses[0]], ..Expected::default() };
        }
        expected
    }

    fn get(&self, request: &Request, resolved: &Resolved) -> Expected {
        match &resolved.target {
            Target::Faulty(status) => Expected::status(*status),
            Target::Missing => Expected::status(404),
            Target::Forbidden => Expected::status(403),
            Target::Folder { location } => Expected::status(301).with("location", location),
            Target::File(path) => self.file(request, path),
        }
    }

    fn file(&self, request: &Request, path: &Path) -> Expected {
        let metadata = fs::metadata(path).expect("the file was just there");
        let modified = metadata.modified().expect("a time").duration_since(UNIX_EPOCH);
        let modified = modified.expect("after 1970").as_secs();
        let available: Vec<&str> = CODINGS
            .iter()
            .map(|(coding, _)| *coding)
            .filter(|coding| self.learned.contains_key(&(path.to_owned(), coding)))
            .collect();
        let coding = negotiation::choose(request.field("accept-encoding"), &available);
        let have = self
            .learned
            .get(&(path.to_owned(), coding))
            .unwrap_or_else(|| panic!("{} in {coding} was never learned", path.display()));
        // The plain bytes are read from the file each time.
        let bytes = match coding {
            "identity" => fs::read(path).expect("the file"),
            _ => have.bytes.clone(),
        };
        let mut expected = match preconditions::evaluate(request, &have.tag, modified) {
            Precondition::Failed => return Expected::status(412),
            Precondition::NotModified => Expected::status(304),
            Precondition::Proceed => self.selected(request, &have.tag, modified, &bytes),
        };
        if expected.statuses == [416] {
            return expected;
        }
        if !available.is_empty() {
            expected = expected.with("vary", "Accept-Encoding");
        }
        let varying = (coding != "identity").then(|| coding.to_owned());
        if expected.statuses != [304] {
            let media_type = media_type(path).to_owned();
            if expected.ranges.is_none() {
                expected.fields.push(("content-type", Some(media_type)));
            }
            expected.fields.push(("content-encoding", varying));
            expected.fields.push(("last-modified", Some(http_date(modified))));
        }
        expected.with("etag", &have.tag)
    }

    /// The response to a request whose preconditions hold: the whole, or parts of it.
    fn selected(&self, request: &Request, tag: &str, modified: u64, bytes: &[u8]) -> Expected {
        let whole = bytes.len();
        match ranges::select(request, tag, modified, whole) {
            Selected::Whole => Expected { body: Some(bytes.to_vec()), ..Expected::status(200) }
                .with("content-length", whole.to_string())
                .with("accept-ranges", "bytes"),
            Selected::None => {
                Expected::status(416).with("content-range", format!("bytes */{whole}"))
            }
            Selected::One(first, last) => {
                Expected { body: Some(bytes[first..=last].to_vec()), ..Expected::status(206) }
                    .with("content-length", (last + 1 - first).to_string())
                    .with("content-range", format!("bytes {first}-{last}/{whole}"))
            }
            Selected::Many(spans) => Expected {
                statuses: vec![206, 200],
                ranges: Some(Ranges { spans, whole: bytes.to_vec() }),
                ..Expected::default()
            },
        }
    }
}

/// The target that leads to a file below the root.
pub fn target_of(name: &str) -> String {
    format!("/{}", target::encode(name))
}

const ALLOW: &str = "GET, HEAD, OPTIONS";

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("txt") => "text/plain; charset=utf-8",
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("gz") => "application/gzip",
        _ => "application/octet-stream",
    }
}
