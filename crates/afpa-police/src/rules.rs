//! Which prefixes are allowed and denied.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::prefix::Prefix;
use crate::prefix_map::PrefixMap;

/// The rule for a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Its clients are never refused.
    Allow,
    /// Its clients are refused.
    Deny,
}

/// Prefixes and their rules.
pub type Rules = PrefixMap<Rule>;

impl Rules {
    /// Of a prefix that is in both lists, allowed wins.
    pub fn of(
        allow: impl IntoIterator<Item = Prefix>,
        deny: impl IntoIterator<Item = Prefix>,
    ) -> Self {
        let mut all: BTreeMap<_, _> = deny.into_iter().map(|prefix| (prefix, Rule::Deny)).collect();
        all.extend(allow.into_iter().map(|prefix| (prefix, Rule::Allow)));
        Self::new(all)
    }
}

/// A change of one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Enters the prefix, or changes its rule.
    Put(Prefix, Rule),
    /// Removes the prefix.
    Remove(Prefix),
}

impl Rules {
    /// The steps from `before` to these rules, for a table that is in use meanwhile.
    ///
    /// The longest prefixes are entered first, then the shortest removed first. So the rule for each address changes at
    /// most once, from the old one to the new one: no step refuses a client, or lets one in, against both.
    pub fn steps_from<'a>(
        &self,
        before: impl IntoIterator<Item = (&'a Prefix, &'a Rule)>,
    ) -> Vec<Step> {
        let before: BTreeMap<Prefix, Rule> =
            before.into_iter().map(|(prefix, rule)| (*prefix, *rule)).collect();
        let mut entered: Vec<_> =
            self.iter().filter(|(prefix, rule)| before.get(prefix) != Some(rule)).collect();
        entered.sort_by_key(|(prefix, _)| Reverse(prefix.bits()));
        let mut removed: Vec<_> =
            before.into_keys().filter(|prefix| self.exactly(*prefix).is_none()).collect();
        removed.sort_by_key(|prefix| prefix.bits());
        let entered = entered.into_iter().map(|(prefix, rule)| Step::Put(prefix, rule));
        entered.chain(removed.into_iter().map(Step::Remove)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use afpa_testkit::Random;

    use super::*;

    /// Prefixes of 10.0.0.0 to 10.0.0.7 and of all that contain these.
    fn some(random: &mut Random) -> BTreeMap<Prefix, Rule> {
        let count = random.below(6);
        (0..count)
            .map(|_| {
                let address = Ipv4Addr::new(10, 0, 0, random.below(8) as u8);
                let bits = [8, 28, 29, 30, 31, 32][random.below(6)];
                let rule = if random.below(2) == 0 { Rule::Allow } else { Rule::Deny };
                (Prefix::of(IpAddr::V4(address), bits), rule)
            })
            .collect()
    }

    #[test]
    fn every_step_leaves_each_address_with_its_old_rule_or_its_new_one() {
        let mut random = Random::new(36);
        for _ in 0..20_000 {
            let (before, after) = (some(&mut random), Rules::new(some(&mut random)));
            let old = Rules::new(before.clone());
            let mut table = before.clone();
            for step in after.steps_from(&before) {
                match step {
                    Step::Put(prefix, rule) => table.insert(prefix, rule),
                    Step::Remove(prefix) => table.remove(&prefix),
                };
                let now = Rules::new(table.clone());
                for last in 0..8 {
                    let client = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
                    let rule = now.longest(client);
                    let expected = [old.longest(client), after.longest(client)];
                    assert!(expected.contains(&rule), "{before:?} {after:?} {step:?} {client}");
                }
            }
            assert_eq!(Rules::new(table), after);
        }
    }
}
