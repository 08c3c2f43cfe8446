//! Requests to the server, and why an answer may be of no use.

use afpa_http::request::{FieldClass, FieldClasses};

use super::answers::AnswerClass;
use crate::answer::{Answer, Asked, Malformed};
use crate::kept::{is_public, permit as kept_permit};
use crate::permit::{Permit, Refused, permit};

/// The server, which is asked one request after the other.
pub trait Ask {
    /// From how many viewpoints it can be asked: a stranger's on each of its addresses, and loopback's. To be
    /// called before each object, because addresses come and go.
    fn viewpoints(&mut self) -> usize;

    /// Sends a whole request, and returns the whole answer. Every question is asked at the first viewpoint; those
    /// about an answer that will be pinned are asked at the others as well.
    ///
    /// # Errors
    /// When no answer comes, or one that cannot be parsed.
    fn ask_at(&mut self, viewpoint: usize, asked: Asked, request: &str)
    -> Result<Answer, AskError>;
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The server cannot be reached, or does not answer in time. Worth a retry.
    #[error("no answer from the server: {0}")]
    Unreachable(#[from] std::io::Error),
    /// It answered in a form that cannot be pinned.
    #[error("its {0}")]
    Malformed(#[from] Malformed),
}

/// The object to ask for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Host values that lead to the same content. Never empty.
    pub hosts: &'a [String],
    /// The request target, as clients spell it.
    pub target: &'a str,
    /// Longest answer, head and content, that can be kept.
    pub longest: usize,
    /// Whether requests that ask for the connection's end are of interest.
    pub closes: bool,
    /// No file stands behind it: it is kept for as long as its own fields allow.
    pub kept: bool,
}

impl Wanted<'_> {
    /// Whether an answer may be pinned.
    pub(super) fn permit(&self, answer: &Answer) -> Result<Permit, Refused> {
        if self.kept { kept_permit(answer) } else { permit(answer) }
    }

    /// The classes of request fields that may turn out to be unimportant. Cookies are not among them where no file
    /// stands behind the answers, unless these say that they are for everybody.
    pub(super) fn fields(&self, classes: &[AnswerClass]) -> FieldClasses {
        let public = classes.iter().all(|class| is_public(&class.answers.whole));
        let all = FieldClasses::classed();
        if self.kept && !public { all.without(FieldClass::Cookie) } else { all }
    }
}

/// A server whose Expires moves with its Date.
pub(super) struct Moving<'s> {
    pub(super) server: &'s mut dyn Ask,
    /// Whether it does so for this target.
    pub(super) moves: bool,
}

impl Ask for Moving<'_> {
    fn viewpoints(&mut self) -> usize {
        self.server.viewpoints()
    }

    fn ask_at(
        &mut self,
        viewpoint: usize,
        asked: Asked,
        request: &str,
    ) -> Result<Answer, AskError> {
        let answer = self.server.ask_at(viewpoint, asked, request)?;
        Ok(if self.moves { answer.with_moving_expires() } else { answer })
    }
}

/// Why a target is not kept.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// No answer, or none that can be read.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The server's answer forbids it.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// The answer is not the content of the file. A server that caches open files sees a change late, so a
    /// retry may succeed.
    #[error("its content is not that of the file")]
    Content,
    /// Head and content are longer than answers of the kernel may be.
    #[error("it is too long")]
    Length,
    /// The kernel could not keep the promise of its Keep-Alive.
    #[error("{0}")]
    Timeout(String),
    /// Every coding that the kernel could store is refused.
    #[error("it is compressed on the way: {0}")]
    Coded(&'static str),
    /// The same request got different answers.
    #[error("its answers differ: {0}")]
    Differs(&'static str),
}
