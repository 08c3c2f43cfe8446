//! Access to a place: `allow`, `deny`, `auth_basic`, and whatever else keeps somebody out.

use crate::facts::Facts;
use crate::kind::located;
use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::{Context, texts};
use crate::values::{is_network, is_plain, quoted};
use crate::{conditions, consent, learnt, names, rates, rewrites};

/// The guards of a place.
pub(crate) enum Guard<'d> {
    /// Everybody may.
    Open,
    /// These settings say which clients may.
    Lines(Vec<String>),
    /// Nobody may, as `deny all` says.
    Nobody,
    /// Somebody may not, which cannot be kept: the place has to refuse everybody.
    Unknown(&'d Directive, String),
}

/// Everybody, of both families.
pub(crate) const EVERYBODY: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// The lines that open a place within one that is guarded.
pub(crate) fn open() -> Vec<String> {
    let nobody_asks = ["basic_auth = \"none\"", "forward_auth = \"none\""].map(str::to_owned);
    [vec![texts("allow", &EVERYBODY.map(String::from))], nobody_asks.to_vec()].concat()
}

/// The guard of a place with this scope.
/// `limited`: the limits of the site stand for those of requests.
pub(crate) fn guard<'d>(context: &Context<'_>, scope: &Scope<'d>, limited: bool) -> Guard<'d> {
    for directive in scope.everything() {
        let limits = match &*directive.name {
            "limit_req" => !limited && rates::rate(context, scope).is_err(),
            "limit_conn" => !limited,
            _ => false,
        };
        // A directive that is switched off further inside guards nothing.
        let counts = scope.last(&directive.name).filter(|last| last.word(0) != "off");
        let other = names::guards(&directive.name) && !directive.is("auth_request");
        if let (true, Some(counts)) = (limits || other, counts) {
            let why = "AFPA cannot guard this place in that way, so it refuses everybody";
            return Guard::Unknown(counts, why.to_owned());
        }
    }
    let access = match access(scope) {
        Ok(access) => access,
        Err((directive, why)) => return Guard::Unknown(directive, why),
    };
    let password = match password(context, scope) {
        Ok(password) => password,
        Err((directive, why)) => return Guard::Unknown(directive, why),
    };
    let consent = match (consent::lines(context, scope), learnt::asked(scope)) {
        (Ok(lines), _) => lines,
        (Err(why), Some(directive)) => {
            let why = format!("{why}, so this place refuses everybody (docs/forward-auth.md)");
            return Guard::Unknown(directive, why);
        }
        (Err(_), None) => Vec::new(),
    };
    let either = scope.last("satisfy").filter(|satisfy| satisfy.word(0) == "any");
    let guards = [access.is_some(), !password.is_empty(), !consent.is_empty()];
    let several = guards.into_iter().filter(|there| *there).count() > 1;
    if let (Some(satisfy), true) = (either, several) {
        return Guard::Unknown(satisfy, "AFPA wants all of them, not one".to_owned());
    }
    match access {
        Some(lines) if lines.is_empty() => Guard::Nobody,
        None if password.is_empty() && consent.is_empty() => Guard::Open,
        access => {
            Guard::Lines(access.into_iter().flatten().chain(password).chain(consent).collect())
        }
    }
}

/// Whether the location of a path gives its file or script, and everybody who may use `from` may use it.
pub(crate) fn gives(
    context: &Context<'_>,
    facts: &Facts<'_>,
    path: &str,
    from: &Scope<'_>,
) -> bool {
    let Some((to, scope)) = located(&facts.scope, path) else {
        return follows(context, &facts.scope, from);
    };
    let changes = |one: &Directive| match &*one.name {
        "return" => true,
        "rewrite" => !one.word(0).starts_with("^/(?!"),
        "if" => conditions::may_guard(to, one) && !rewrites::is_fallback(one),
        _ => false,
    };
    !to.children().iter().any(changes) && follows(context, &scope, from)
}

/// Whether everybody who may use `from` may use `to`: a fallback asks for no rights of its own here.
pub(crate) fn follows(context: &Context<'_>, to: &Scope<'_>, from: &Scope<'_>) -> bool {
    match (guard(context, to, true), guard(context, from, true)) {
        (Guard::Open, _) => true,
        (Guard::Lines(to), Guard::Lines(from)) => to == from,
        _ => false,
    }
}

/// The fault of a directive.
type Fault<'d> = (&'d Directive, String);

/// A rule: whether it allows, and the network; `None`: all.
type Rule<'d> = (bool, Option<&'d str>);

/// The lists of prefixes; no line: nobody may; `None`: everybody may.
fn access<'d>(scope: &Scope<'d>) -> Result<Option<Vec<String>>, Fault<'d>> {
    let mut rules: Vec<Rule<'d>> = Vec::new();
    for directive in scope.any(&["allow", "deny"]) {
        let network = match directive.word(0) {
            "all" => None,
            network if is_network(network) => Some(network),
            other => {
                let why = format!("{other} is no network: this place refuses everybody");
                return Err((directive, why));
            }
        };
        // The first rule that has a client decides, so that one within an earlier one never does.
        if !rules.iter().any(|(_, earlier)| covers(*earlier, network)) {
            rules.push((directive.is("allow"), network));
        }
    }
    let of = |allowed: bool| -> Vec<String> {
        let of_kind = rules.iter().filter(|(allows, _)| *allows == allowed);
        of_kind.filter_map(|(_, network)| network.map(str::to_owned)).collect()
    };
    let (mut allow, deny) = (of(true), of(false));
    let is_closed = rules.iter().any(|(allows, network)| !allows && network.is_none());
    if is_closed && allow.is_empty() {
        return Ok(Some(Vec::new()));
    }
    if !is_closed && !allow.is_empty() {
        if deny.is_empty() {
            return Ok(None);
        }
        allow.extend(EVERYBODY.map(String::from));
    }
    let mut lines = Vec::new();
    if !allow.is_empty() {
        lines.push(texts("allow", &allow));
    }
    if !deny.is_empty() {
        lines.push(texts("deny", &deny));
    }
    Ok((!lines.is_empty()).then_some(lines))
}

/// Whether every client of `inner` is one of `outer`.
fn covers(outer: Option<&str>, inner: Option<&str>) -> bool {
    let (Some(outer), Some(inner)) = (outer, inner) else { return outer.is_none() };
    match (bits(outer), bits(inner)) {
        (Some((one, short, four)), Some((other, long, other_four))) => {
            let shift = 128 - u32::from(short);
            four == other_four
                && short <= long
                && one.checked_shr(shift).unwrap_or(0) == other.checked_shr(shift).unwrap_or(0)
        }
        _ => false,
    }
}

/// The bits of an address at the top of 128, how many count, and whether they are IPv4's.
fn bits(network: &str) -> Option<(u128, u8, bool)> {
    let (address, length) = network.split_once('/').unwrap_or((network, ""));
    let length = length.parse::<u8>().ok();
    Some(match address.parse().ok()? {
        std::net::IpAddr::V4(four) => {
            (u128::from(u32::from(four)) << 96, length.unwrap_or(32), true)
        }
        std::net::IpAddr::V6(six) => (u128::from(six), length.unwrap_or(128), false),
    })
}

/// The lines of `basic_auth`.
fn password<'d>(context: &Context<'_>, scope: &Scope<'d>) -> Result<Vec<String>, Fault<'d>> {
    let Some(basic) = scope.last("auth_basic").filter(|basic| basic.word(0) != "off") else {
        return Ok(Vec::new());
    };
    let (realm, file) = (basic.word(0), scope.last("auth_basic_user_file"));
    let printable = realm.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let Some(file) = file.filter(|file| is_plain(file.word(0)) && !file.word(0).is_empty()) else {
        return Err((basic, "its file of users is not known".to_owned()));
    };
    if !is_plain(realm) || !printable || realm.is_empty() {
        return Err((basic, "AFPA takes a realm of printable ASCII".to_owned()));
    }
    let mut lines = vec![format!("basic_auth = {}", quoted(&context.file(file.word(0))))];
    lines.push(format!("basic_auth_realm = {}", quoted(realm)));
    Ok(lines)
}
