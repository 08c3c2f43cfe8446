//! `limit_req` of a place: how often each client may ask there.

use crate::scope::Scope;
use crate::syntax::Directive;
use crate::upstream::Context;
use crate::values::quoted;

/// The rate of a place; `None`: it has none. The error is a directive whose meaning AFPA does not have.
pub(crate) fn rate<'d>(
    context: &Context<'_>,
    scope: &Scope<'d>,
) -> Result<Option<(&'d Directive, String)>, &'d Directive> {
    match &scope.all("limit_req")[..] {
        [] => Ok(None),
        [one] => of(context, one).map(|rate| Some((*one, rate))).ok_or(*one),
        [first, ..] => Err(*first),
    }
}

/// The line for the place, with a word on what is different.
pub(crate) fn line(context: &Context<'_>, scope: &Scope<'_>) -> Option<String> {
    let (directive, rate) = rate(context, scope).ok().flatten()?;
    let why = "a request beyond it gets 429 and none is delayed; each place counts for itself";
    context.ledger.differs(directive, why);
    Some(format!("client_rate = {}", quoted(&rate)))
}

/// nginx takes the first request and as many as `burst` says at once.
fn of(context: &Context<'_>, directive: &Directive) -> Option<String> {
    let find = |start| directive.words.iter().find_map(|word: &String| word.strip_prefix(start));
    let rate = context.zones.get(find("zone=")?)?;
    let (count, unit) = rate.split_once("r/")?;
    let count = count.parse::<u32>().ok().filter(|count| *count > 0)?;
    let burst = find("burst=").map_or(Some(0), |burst| burst.parse::<u32>().ok())?;
    let at_once = burst.checked_add(1)?;
    matches!(unit, "s" | "m").then(|| format!("{count}/{unit} burst {at_once}"))
}
