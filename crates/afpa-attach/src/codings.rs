//! Which answer belongs to which Accept-Encoding.
//!
//! The programs choose among stored codings by a rule of their own: of those that the client names,
//! br before zstd before gzip, else identity. Requests with weights or wildcards go to the server. The
//! attached server has a rule of its own, which is not known. So it is asked with every set of codings,
//! and codings are stored so that both rules give the same answer. Where that is not possible, the
//! request goes to the server.

use afpa_bpf::Coding;

/// A value of Accept-Encoding to ask with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The Accept-Encoding value; None: no such field.
    pub text: Option<String>,
    /// The codings that the programs read from it.
    named: Named,
}

/// The index of an answer among those that differ; `None`: the answer may not be pinned.
pub type Class = Option<usize>;

/// A coding, and the class whose answer is stored for it. Without a class nothing is stored: requests for which the
/// programs would choose this coding go to the server.
pub type Plan = Vec<(Coding, Class)>;

/// Bits of the stored codings that a request names.
type Named = u8;

const GZIP: Named = 1;
const BROTLI: Named = 2;
const ZSTD: Named = 4;

/// Tokens that the programs know; `deflate` is never stored.
const TOKENS: [(&str, Named); 4] = [("gzip", GZIP), ("deflate", 0), ("br", BROTLI), ("zstd", ZSTD)];

/// Every set of tokens, in the order of browsers and reversed, and no field at all.
pub fn forms() -> Vec<Form> {
    let mut forms =
        vec![Form { text: None, named: 0 }, Form { text: Some("identity".into()), named: 0 }];
    for set in 1u8..16 {
        let mut tokens: Vec<_> = TOKENS
            .iter()
            .enumerate()
            .filter(|(at, _)| set >> at & 1 == 1)
            .map(|(_, t)| t)
            .collect();
        let named = tokens.iter().fold(0, |named, (_, bit)| named | bit);
        for _order in 0..tokens.len().min(2) {
            let words: Vec<_> = tokens.iter().map(|(word, _)| *word).collect();
            forms.push(Form { text: Some(words.join(", ")), named });
            tokens.reverse();
        }
    }
    forms
}

/// The plan that answers most of [`forms`], each as the server did: `classes` has the server's answer to each form. At
/// least one coding besides identity is stored: otherwise the programs would take the object for one that does not
/// vary, and not look at weights.
pub fn plan(classes: &[(Form, Class)]) -> Plan {
    let stored_sets = 1..=(GZIP | BROTLI | ZSTD);
    let best = stored_sets
        .map(|stored| arrange(stored, classes))
        .max_by_key(|(covered, plan)| (*covered, std::cmp::Reverse(plan.len())));
    best.filter(|(covered, _)| *covered > 0).map(|(_, plan)| plan).unwrap_or_default()
}

/// The plan with these codings stored, and how many forms it answers.
fn arrange(stored: Named, classes: &[(Form, Class)]) -> (usize, Plan) {
    let mut covered = 0;
    let mut plan = Plan::new();
    for (coding, bit) in [
        (Coding::Identity, 0),
        (Coding::Gzip, GZIP),
        (Coding::Brotli, BROTLI),
        (Coding::Zstd, ZSTD),
    ] {
        if stored & bit != bit {
            continue;
        }
        let mut mine = classes.iter().filter(|(form, _)| chosen(stored & form.named) == coding);
        let first = mine.next().and_then(|(_, class)| *class);
        let rest = mine.clone().count();
        let class = first.filter(|_| mine.all(|(_, class)| *class == first));
        covered += class.map_or(0, |_| rest + 1);
        plan.push((coding, class));
    }
    (covered, plan)
}

/// `choose_variant` of the programs.
fn chosen(named: Named) -> Coding {
    match named {
        named if named & BROTLI != 0 => Coding::Brotli,
        named if named & ZSTD != 0 => Coding::Zstd,
        named if named & GZIP != 0 => Coding::Gzip,
        _ => Coding::Identity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(server: impl Fn(Named, &str) -> Class) -> Plan {
        let classes: Vec<_> = forms()
            .into_iter()
            .map(|form| {
                let class = server(form.named, form.text.as_deref().unwrap_or_default());
                (form, class)
            })
            .collect();
        plan(&classes)
    }

    #[test]
    fn every_set_is_asked_for_in_both_orders() {
        let forms = forms();
        assert_eq!(forms.len(), 2 + 4 + 2 * 11);
        let texts: Vec<_> = forms.iter().filter_map(|form| form.text.as_deref()).collect();
        assert!(texts.contains(&"gzip, deflate, br, zstd") && texts.contains(&"br, deflate, gzip"));
    }

    #[test]
    fn plans_follow_the_server() {
        use Coding::*;
        let has = |named: Named, bit: Named| named & bit != 0;
        // One stored coding: browsers that name more get it, too.
        assert_eq!(
            planned(|named, _| Some(usize::from(has(named, GZIP)))),
            [(Identity, Some(0)), (Gzip, Some(1))]
        );
        // Brotli before gzip, as the programs do.
        let server = |named, _: &str| {
            Some(if has(named, BROTLI) { 2 } else { usize::from(has(named, GZIP)) })
        };
        assert_eq!(planned(server), [(Identity, Some(0)), (Gzip, Some(1)), (Brotli, Some(2))]);
        // Says that it varies, but does not: weights must still go to the server.
        assert_eq!(planned(|_, _| Some(0)).len(), 2);
        // Compresses on the fly, chunked: only requests that do not name the coding are answered.
        assert_eq!(
            planned(|named, _| (!has(named, GZIP)).then_some(0)),
            [(Identity, Some(0)), (Gzip, None)]
        );
        // Nothing may be kept.
        assert_eq!(planned(|_, _| None), []);
    }

    #[test]
    fn a_server_with_another_preference_keeps_the_requests_that_show_it() {
        // gzip before brotli: a request that names both gets gzip. The stored answers never contradict that.
        let server =
            |named: Named| if named & GZIP != 0 { 1 } else { usize::from(named & BROTLI != 0) * 2 };
        let plan = planned(|named, _| Some(server(named)));
        let stored = plan
            .iter()
            .fold(0, |stored, (coding, _)| stored | [0, GZIP, BROTLI, ZSTD][*coding as usize]);
        for named in 0..8 {
            let coding = chosen(named & stored);
            let class = plan.iter().find(|(have, _)| *have == coding).and_then(|(_, class)| *class);
            assert!(class.is_none_or(|class| class == server(named)), "{named:b}: {plan:?}");
        }
        // The client's order decides: no set of two may be answered.
        let plan = planned(|_, text| Some(usize::from(text.starts_with("gzip"))));
        assert!(
            plan.iter().all(|(coding, class)| *coding != Coding::Gzip || class.is_none()),
            "{plan:?}"
        );
    }
}
