//! Names and passwords that a part of a site demands, or the consent of a server; and clients that were checked.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use afpa_proxy::limit::Permit;
use afpa_proxy::request::RequestHead;
use afpa_router::GroupId;
use afpa_users::Users;

use crate::checks::PasswordChecks;

/// A part of a site that demands a name and a password (RFC 7617).
#[derive(Debug)]
pub struct PasswordDemand {
    /// The users that may.
    pub users: Arc<Users>,
    /// Where passwords are checked.
    pub checks: PasswordChecks,
    /// The value of WWW-Authenticate.
    pub challenge: String,
}

impl PasswordDemand {
    /// A demand that names itself to people. `realm`: printable ASCII.
    pub fn new(users: Arc<Users>, checks: PasswordChecks, realm: &str) -> Self {
        let quoted = realm.replace('\\', "\\\\").replace('"', "\\\"");
        let challenge = format!("Basic realm=\"{quoted}\", charset=\"UTF-8\"");
        Self { users, checks, challenge }
    }
}

/// A part of a site for which a server says whether a request may be answered.
#[derive(Debug)]
pub struct ServerDemand {
    /// The number of its server group.
    pub group: GroupId,
    /// The path that it is asked for, and perhaps a query.
    pub path: String,
    /// The fields of its answer that the servers of the request get.
    pub copy: Vec<Box<str>>,
}

/// Names of fields that servers believe, because a server that decides has said them. A client's own are removed wherever
/// it asks the site, also where nobody is asked.
pub type Reserved = Arc<[Box<str>]>;

/// The consent of a server.
#[derive(Debug)]
pub(crate) struct Consent {
    pub(crate) demand: Arc<ServerDemand>,
    /// The copied fields.
    pub(crate) fields: Vec<(Box<str>, Box<[u8]>)>,
    /// Lines of Set-Cookie, for the client.
    pub(crate) cookies: Vec<u8>,
}

/// Fields that clients send with good reason: they are taken from servers only where a consent says others.
fn is_of_clients(name: &str) -> bool {
    ["authorization", "cookie"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// The names of copied fields that no client may set anywhere in the site.
pub fn reserved<'n>(copied: impl Iterator<Item = &'n str>) -> Arc<[Box<str>]> {
    let mut names: Vec<Box<str>> = Vec::new();
    for name in copied.filter(|name| !is_of_clients(name)) {
        if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            names.push(name.into());
        }
    }
    names.into()
}

/// The names of copied fields that clients send with good reason. Where a server has consented, it says them.
pub fn of_clients<'n>(copied: impl Iterator<Item = &'n str>) -> Arc<[Box<str>]> {
    copied.filter(|name| is_of_clients(name)).map(Box::from).collect()
}

/// Has a request to a server say what the consents say, and nothing in their place that a client says.
pub(crate) fn tell(head: &mut RequestHead, reserved: &[Box<str>], granted: Option<&Rc<Granted>>) {
    let consents = granted.map_or(&[][..], |granted| &granted.consents);
    if reserved.is_empty() && consents.is_empty() {
        return;
    }
    let copied = consents.iter().flat_map(|consent| &consent.demand.copy);
    let mut fields: Vec<(&str, &[u8])> = Vec::new();
    for consent in consents {
        // The consent for the path itself stands first.
        let is_said = |name: &str| fields.iter().any(|(said, _)| said.eq_ignore_ascii_case(name));
        let own = consent.fields.iter().filter(|(name, _)| !is_said(name));
        let own: Vec<_> = own.map(|(name, value)| (&**name, &**value)).collect();
        fields.extend(own);
    }
    head.claim(reserved.iter().chain(copied).map(|name| &**name), &fields);
}

/// A client that was checked.
#[derive(Debug, Default)]
pub(crate) struct Granted {
    /// The name whose password was right.
    pub(crate) user: Option<Arc<str>>,
    /// The servers that have consented.
    pub(crate) consents: Vec<Rc<Consent>>,
    /// Its questions to servers counted against the limits of the site, and the request is one with them.
    pub(crate) permit: RefCell<Option<Permit>>,
}

impl Consent {
    /// The user whom the server has named: the first field whose name ends as names of such fields do.
    fn user(&self) -> Option<&str> {
        let ends = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.ends_with("user") || name.ends_with("username")
        };
        let (_, value) = self.fields.iter().find(|(name, _)| ends(name))?;
        std::str::from_utf8(value).ok()
    }
}

impl Granted {
    /// The knowledge of the client of a request that was routed again: by its last path, and by those before.
    pub(crate) fn joined(last: Option<Rc<Self>>, before: Option<Rc<Self>>) -> Option<Rc<Self>> {
        let (last, before) = match (last, before) {
            (Some(last), Some(before)) => (last, before),
            (last, before) => return last.or(before),
        };
        let is_known = |other: &Rc<Consent>| last.consents.iter().any(|own| Rc::ptr_eq(own, other));
        let others = before.consents.iter().filter(|consent| !is_known(consent));
        let consents = last.consents.iter().chain(others).cloned().collect();
        let user = last.user.clone().or_else(|| before.user.clone());
        let permit = last.permit.take().or_else(|| before.permit.take());
        Some(Rc::new(Self { user, consents, permit: RefCell::new(permit) }))
    }

    /// The name of the user, for the log.
    pub(crate) fn name(&self) -> Option<&str> {
        let said = || self.consents.iter().find_map(|consent| consent.user());
        self.user.as_deref().or_else(said)
    }

    /// Whether the answer may be for this client alone: its server learns of the client, or the client gets cookies.
    pub(crate) fn is_personal(&self) -> bool {
        let is_one =
            |consent: &Rc<Consent>| !consent.demand.copy.is_empty() || !consent.cookies.is_empty();
        self.consents.iter().any(is_one)
    }

    /// Lines of Set-Cookie, for the client.
    pub(crate) fn cookies(&self) -> impl Iterator<Item = &[u8]> {
        self.consents.iter().map(|consent| &*consent.cookies).filter(|lines| !lines.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(user: Option<&str>, consents: &[&Rc<Consent>]) -> Option<Rc<Granted>> {
        let consents = consents.iter().map(|consent| Rc::clone(consent)).collect();
        let user = user.map(Arc::from);
        Some(Rc::new(Granted { user, consents, permit: RefCell::default() }))
    }

    #[test]
    fn a_request_that_is_routed_again_keeps_what_the_path_before_has_shown() {
        let consent = |user: &str, cookies: &[u8]| {
            let copy = vec!["X-User".into()];
            let demand = ServerDemand { group: GroupId(0), path: "/".to_owned(), copy };
            let fields = vec![("X-User".into(), user.as_bytes().into())];
            Rc::new(Consent { demand: Arc::new(demand), fields, cookies: cookies.to_vec() })
        };
        let (one, two) = (consent("one", b"Set-Cookie: a=b\r\n"), consent("two", b""));
        let both = Granted::joined(granted(Some("ann"), &[]), granted(None, &[&one])).unwrap();
        assert_eq!((both.name(), both.consents.len()), (Some("ann"), 1));
        assert!(both.is_personal() && both.cookies().next().is_some());
        let all = Granted::joined(granted(None, &[&two]), granted(Some("bob"), &[&one, &two]));
        let all = all.unwrap();
        assert_eq!((all.name(), all.consents.len()), (Some("bob"), 2));
        assert_eq!(all.consents[0].user(), Some("two"), "that for the last path stands first");
        let alone = Granted::joined(None, granted(Some("bob"), &[])).unwrap();
        assert_eq!(alone.name(), Some("bob"));
        assert!(Granted::joined(None, None).is_none());
    }
}
