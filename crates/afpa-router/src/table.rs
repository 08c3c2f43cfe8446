//! The hierarchy as it is configured: plain values, in the order of the file.

use std::sync::Arc;

use afpa_http::Status;

use crate::conditions::Conditions;
use crate::expression::Expression;
use crate::ids::{GroupId, ListenerId, RootId};

/// The whole hierarchy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The virtual sites.
    pub sites: Vec<SiteEntry>,
}

/// Levels one to three: where a site is reached, and under which names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SiteEntry {
    /// Its name in logs and metrics.
    pub name: String,
    /// Listeners on which it answers.
    pub listeners: Vec<ListenerId>,
    /// Names it answers to; none: to all that no other site of its listeners has.
    pub hosts: Vec<HostPattern>,
    /// Its URL paths.
    pub paths: Vec<PathEntry>,
}

/// A host name, compared without regard to case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// This name.
    Exact(String),
    /// `*.` and this name: every name with at least one label before it.
    Below(String),
    /// Every name in which this finds something. The name is in lower case.
    Matching(Expression),
}

/// Level four: a URL path prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct PathEntry {
    /// Must match the beginning of a normalised path exactly, byte by byte.
    pub prefix: Vec<u8>,
    /// How far it reaches.
    pub reach: Reach,
    /// Its content groups.
    pub contents: Vec<Content>,
}

impl PathEntry {
    /// Whether some request for a path below its prefix belongs to none of its content groups.
    pub fn leaves_over(&self) -> bool {
        let takes = |what: &dyn Fn(&ContentGroup) -> bool| {
            let certain = self.contents.iter().filter(|content| content.conditions.is_empty());
            certain.map(|content| &content.group).any(what)
        };
        let list = |group: &ContentGroup| match group {
            ContentGroup::All => (true, true),
            ContentGroup::List { none, others, .. } => (*none, *others),
        };
        !(takes(&|group| list(group).0) && takes(&|group| list(group).1))
    }
}

/// How far below its prefix a path applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// To all subdirectories.
    #[default]
    Recursion,
    /// No slash may follow the prefix: the directory alone.
    NoRecursion,
    /// To the prefix itself alone.
    Exact,
}

/// Level five: a content group with its conditions and its action.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// Which files.
    pub group: ContentGroup,
    /// Further conditions; none: every request.
    pub conditions: Conditions,
    /// The action for its requests.
    pub action: Action,
    /// How the path of the requests is rewritten for the action.
    pub rewrite: Option<Rewrite>,
}

impl Content {
    /// The text of the target that takes the place of that of the request; `None`: at most its prefix is replaced.
    #[inline]
    pub fn target(&self) -> Option<&str> {
        match (&self.action, &self.rewrite) {
            (Action::Again(target), _) | (_, Some(Rewrite::Target(target))) => Some(target),
            _ => None,
        }
    }
}

/// A content group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContentGroup {
    /// Everything that no other unconditional group of the path has: all extensions, and none.
    #[default]
    All,
    /// A list of extensions with the paper's two special ones.
    List {
        /// Without their dot; compared without regard to case.
        extensions: Vec<String>,
        /// Requests without an extension.
        none: bool,
        /// Extensions that no other unconditional group of the path lists.
        others: bool,
    },
}

/// The action for the requests of a request set.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Served from the cache, and from a file-system directory behind it.
    Cached {
        /// The directory.
        root: RootId,
        /// The answer to requests for paths that are no files there; `None`: 404.
        fallback: Option<Fallback>,
        /// The files there that are run; `None`: none.
        scripts: Option<Arc<Scripts>>,
    },
    /// Distributed to a server group.
    Distributed {
        /// The group.
        group: GroupId,
        /// How a client is kept with one server.
        affinity: Affinity,
    },
    /// Answered with a redirect.
    Redirect(Redirect),
    /// Routed again, for the target that this text gives: see [`Rewrite::Target`].
    Again(Box<str>),
    /// Answered with these bytes.
    Fixed(Fixed),
}

/// The scripts of a directory: files whose names end in `.php`. Servers run them, by FastCGI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripts {
    /// The servers.
    pub group: GroupId,
    /// How a client is kept with one of them.
    pub affinity: Affinity,
    /// The directory as the servers see it, without a slash at its end.
    pub root: Box<[u8]>,
    /// The part of a URL path that the directory stands for, without a slash at its end.
    pub mount: Box<[u8]>,
    /// Parameters of the operator.
    pub params: Vec<(String, String)>,
}

/// The answer to a request for a path that is no file below a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The file with this path below the directory, for GET and HEAD.
    File(Arc<[u8]>),
    /// That of a server group, which gets the URL as it came. Any method.
    Distributed {
        /// The group.
        group: GroupId,
        /// How a client is kept with one server.
        affinity: Affinity,
    },
    /// A page with this status.
    Status(Status),
}

/// The property by which the requests of a client are kept with one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Nothing.
    #[default]
    None,
    /// The client's address, as in the paper.
    Client,
    /// A cookie that AFPA sets.
    Cookie,
}

/// A redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// 301, 302, 303, 307 or 308.
    pub status: Status,
    /// The Location. `{host}`, `{path}`, `{rest}` (the path behind the prefix) and `{query}` (with its question mark, or `&`
    /// behind another; or nothing) stand for those of the request. `{1}` to `{9}` are the groups of the condition on the
    /// path that the request fits, and other names its named groups, or those of conditions on the query.
    pub location: String,
}

/// A fixed response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The status; any final one.
    pub status: Status,
    /// The media type of the content.
    pub content_type: String,
    /// The content.
    pub body: Vec<u8>,
}

/// The change of a path for the action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// The first `strip` bytes give way to `head`.
    Prefix {
        /// At most the length of the prefix.
        strip: usize,
        /// The bytes in their place.
        head: Vec<u8>,
    },
    /// This text takes the place of the whole target, with the query if the text has one. It has the variables of
    /// [`Redirect::location`] but for `{host}`.
    Target(Box<str>),
}

impl std::fmt::Display for HostPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HostPattern::Exact(name) => f.write_str(name),
            HostPattern::Below(name) => write!(f, "*.{name}"),
            HostPattern::Matching(expression) => write!(f, "{expression}"),
        }
    }
}

impl std::fmt::Display for ContentGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ContentGroup::List { extensions, none, others } = self else { return f.write_str("*") };
        let special = [(*none, "none"), (*others, "others")];
        let special = special.iter().filter(|(is, _)| *is).map(|(_, name)| *name);
        let names: Vec<&str> = extensions.iter().map(String::as_str).chain(special).collect();
        f.write_str(&names.join(","))
    }
}
